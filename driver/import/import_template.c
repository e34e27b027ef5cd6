// Templates: specs with holes and lines that depend on what config.json says.
//   @{name}            the value; @{name#} the key that it comes from
//   @{condition?text}  the text where the condition holds. It has no }
//   @if condition, @else, @end, @include template, @consts, @# comment: lines of their own
// A mistake in a template is one of ours.
#include "driver/import/import_values.h"

enum { MAX_NESTING = 8, MAX_INCLUDES = 4 };

static const struct {
  const char *name, *text;
  size_t bytes;
} templates[] = {
#include "driver/import/templates.inc" // {name, bytes, number of bytes}, made by CMakeLists.txt
};

typedef struct expansion {
  uly_text *out;
  const uly_import_values *values;
  int includes;
} expansion;

static void expand(expansion *e, const char *name);

static uly_str trim(uly_str s) {
  while (s.len && s.ptr[0] == ' ') s.ptr++, s.len--;
  while (s.len && s.ptr[s.len - 1] == ' ') s.len--;
  return s;
}

// What is behind |word| at the beginning of |line|.
static bool after_word(uly_str line, const char *word, uly_str *out_rest) {
  size_t n = strlen(word);
  if (line.len < n || memcmp(line.ptr, word, n) != 0 || (line.len > n && line.ptr[n] != ' ')) return false;
  *out_rest = trim((uly_str){line.ptr + n, line.len - n});
  return true;
}

static void add_hole(expansion *e, uly_str hole) {
  const char *question = memchr(hole.ptr, '?', hole.len);
  if (question) {
    size_t n = (size_t)(question - hole.ptr);
    if (uly_import_holds(e->values, (uly_str){hole.ptr, n})) uly_text_add_str(e->out, (uly_str){question + 1, hole.len - n - 1});
    return;
  }
  bool origin = hole.len && hole.ptr[hole.len - 1] == '#';
  const uly_import_value *value = uly_import_get(e->values, (uly_str){hole.ptr, hole.len - origin});
  if (value) uly_text_add_str(e->out, origin ? value->origin : value->text);
}

static void add_line(expansion *e, uly_str line) {
  for (size_t i = 0; i < line.len;) {
    const char *at = memchr(line.ptr + i, '@', line.len - i);
    size_t to = at ? (size_t)(at - line.ptr) : line.len;
    uly_text_add_str(e->out, (uly_str){line.ptr + i, to - i});
    if (!at) break;
    const char *end = memchr(at, '}', line.len - to);
    ULY_ASSERT(end && at[1] == '{');
    add_hole(e, (uly_str){at + 2, (size_t)(end - at) - 2});
    i = (size_t)(end - line.ptr) + 1;
  }
  uly_text_add(e->out, "\n");
}

static void add_consts(expansion *e) {
  for (int i = 0; i < e->values->n; i++) {
    const uly_import_value *v = &e->values->items[i];
    if (!v->is_const || !v->text.len) continue;
    uly_text_add(e->out, "const %s = %.*s", v->name, ULY_STR_ARG(v->text));
    uly_text_add(e->out, v->origin.len ? "  # %.*s\n" : "%.*s\n", ULY_STR_ARG(v->origin));
  }
}

static void expand_lines(expansion *e, uly_str text) {
  bool shown[MAX_NESTING] = {true};
  int depth = 0;
  for (size_t i = 0; i < text.len;) {
    const char *end = memchr(text.ptr + i, '\n', text.len - i);
    ULY_ASSERT(end);
    uly_str line = {text.ptr + i, (size_t)(end - text.ptr) - i}, rest;
    i += line.len + 1;
    if (after_word(line, "@if", &rest)) {
      ULY_ASSERT(depth + 1 < MAX_NESTING);
      shown[depth + 1] = shown[depth] && uly_import_holds(e->values, rest);
      depth++;
    } else if (after_word(line, "@else", &rest)) {
      ULY_ASSERT(depth > 0);
      shown[depth] = shown[depth - 1] && !shown[depth];
    } else if (after_word(line, "@end", &rest)) {
      ULY_ASSERT(depth > 0);
      depth--;
    } else if (!shown[depth] || after_word(line, "@#", &rest)) {
      continue;
    } else if (after_word(line, "@include", &rest)) {
      expand(e, uly_str_copy(e->out->arena, rest).ptr);
    } else if (after_word(line, "@consts", &rest)) {
      add_consts(e);
    } else {
      add_line(e, line);
    }
  }
  ULY_ASSERT(depth == 0);
}

static void expand(expansion *e, const char *name) {
  size_t n = sizeof templates / sizeof *templates, t = 0;
  while (t < n && strcmp(templates[t].name, name) != 0) t++;
  ULY_ASSERT(t < n && e->includes < MAX_INCLUDES);
  e->includes++;
  expand_lines(e, (uly_str){templates[t].text, templates[t].bytes});
  e->includes--;
}

void uly_import_expand(uly_text *out, const uly_import_values *values, const char *name) {
  expansion e = {.out = out, .values = values};
  expand(&e, name);
}

// ---- values

void uly_import_set(uly_import_values *values, const char *name, uly_str text, uly_str origin, bool is_const) {
  int i = 0;
  while (i < values->n && strcmp(values->items[i].name, name) != 0) i++;
  if (i == values->n) values->n++;
  ULY_ASSERT(values->n <= ULY_IMPORT_MAX_VALUES);
  values->items[i] = (uly_import_value){name, text, origin, is_const};
}

const uly_import_value *uly_import_get(const uly_import_values *values, uly_str name) {
  for (int i = 0; i < values->n; i++)
    if (uly_str_is(name, values->items[i].name)) return values->items[i].text.len ? &values->items[i] : NULL;
  return NULL;
}

bool uly_import_holds(const uly_import_values *values, uly_str condition) {
  uly_str name = trim(condition), want = {0};
  bool wanted = !after_word(name, "not", &name);
  const char *equal = memchr(name.ptr, '=', name.len);
  if (equal) {
    want = trim((uly_str){equal + 1, name.len - (size_t)(equal - name.ptr) - 1});
    name = trim((uly_str){name.ptr, (size_t)(equal - name.ptr)});
  }
  const uly_import_value *value = uly_import_get(values, name);
  return (value && (!equal || uly_str_equal(value->text, want))) == wanted;
}
