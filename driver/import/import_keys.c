// Reads config.json by the rows of keys.def.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "driver/import/import_values.h"

typedef enum key_type { SIZE, COUNT, REAL, FLAG, CHOICE, ACT, DTYPE, LAYERS, ONLY, ANY, NEVER } key_type;
static const char *const type_names[] = {"an int from 1", "an int from 0", "a number", "true or false", "a text", "a text", "a text", "a list", "", "", ""};

typedef struct key {
  uint32_t families;
  const char *name, *paths;
  key_type type;
  const char *when, *absent, *null, *allowed;
} key;

#define ON(id) (1u << ULY_IMPORT_##id)
#define ALL ((1u << ULY_N_IMPORT_FAMILIES) - 1)
static const key keys[] = {
#define KEY(families, name, paths, type, when, absent, null, allowed) {families, name, paths, type, when, absent, null, allowed},
#include "driver/import/keys.def"
};

enum { N_KEYS = sizeof keys / sizeof *keys };

static const struct {
  const char *name, *function, *declaration;
} activations[] = {
#define ACTIVATION(name, function, declaration) {name, function, declaration},
#include "driver/import/activations.def"
};

enum { N_ACTIVATIONS = sizeof activations / sizeof *activations };

// ---- places and texts

static const char *skip_string(const char *at, const char *end) {
  for (at++; at < end && *at != '"'; at++) at += *at == '\\';
  return at < end ? at + 1 : end;
}

static const char *skip_blank(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
  return at;
}

static const char *skip_value(const char *at, const char *end) {
  int depth = 0;
  do {
    if (*at == '"') {
      at = skip_string(at, end);
      continue;
    }
    if (*at == '{' || *at == '[') depth++;
    if (*at == '}' || *at == ']') depth--;
    at++;
  } while (at < end && (depth > 0 || !strchr(",}] \t\r\n", *at)));
  return at;
}

// The value of |name| in the object that begins at |at|; NULL where it is spelled in another way. The text is JSON.
static const char *find_member(const char *at, const char *end, uly_str name) {
  at = skip_blank(at, end);
  if (at >= end || *at != '{') return NULL;
  for (at = skip_blank(at + 1, end); at < end && *at == '"';) {
    const char *key_end = skip_string(at, end);
    uly_str found = {at + 1, (size_t)(key_end - at) - 2};
    at = skip_blank(key_end, end);
    at = skip_blank(at < end ? at + 1 : end, end); // behind the colon
    if (at >= end) return NULL;
    if (uly_str_equal(found, name)) return at;
    at = skip_blank(skip_value(at, end), end);
    at = skip_blank(at < end ? at + 1 : end, end); // behind the comma
  }
  return NULL;
}

// |path| up to its first dot; |path| becomes the rest.
static uly_str first_name(uly_str *path) {
  const char *dot = memchr(path->ptr, '.', path->len);
  uly_str name = {path->ptr, dot ? (size_t)(dot - path->ptr) : path->len};
  *path = dot ? (uly_str){dot + 1, path->len - name.len - 1} : (uly_str){0};
  return name;
}

uly_loc uly_import_place(const uly_import_reader *r, uly_str path) {
  const uly_source *s = &r->diags->sources[r->source];
  const char *at = s->text.ptr, *end = at + s->text.len, *stop = at;
  while (path.len && at) at = find_member(at, end, first_name(&path));
  if (at) stop = skip_value(at, end);
  if (!at || at == s->text.ptr) return (uly_loc){s->base, s->base, 1, 1};
  uly_loc loc = {s->base + (uint32_t)(at - s->text.ptr), s->base + (uint32_t)(stop - s->text.ptr), 1, 1};
  for (const char *c = s->text.ptr; c < at; c++) {
    loc.column += ((uint8_t)*c & 0xC0) != 0x80;
    if (*c == '\n') loc.line++, loc.column = 1;
  }
  return loc;
}

uly_str uly_import_show(uly_arena *arena, const json_t *value) {
  enum { MOST = 40 };
  if (json_is_object(value)) return ULY_STR("an object");
  if (json_is_array(value)) return ULY_STR("a list");
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
  uly_str shown = uly_str_copy(arena, text ? uly_str_of(text) : ULY_STR("?"));
  free(text);
  if (shown.len <= MOST) return shown;
  while (((uint8_t)shown.ptr[MOST] & 0xC0) == 0x80) shown.len--, shown.ptr++;
  return uly_str_format(arena, "%.*s...", MOST, shown.ptr);
}

// 1e-05 as 1e-5: the language has both.
static uly_str real_text(uly_arena *arena, double value) {
  uly_text text = {.arena = arena};
  uly_float_print(&text, value);
  char *e = strpbrk(text.ptr, "e"), *from = e ? e + 2 : NULL;
  while (from && from[0] == '0' && from[1]) memmove(from, from + 1, strlen(from)), text.len--;
  return uly_text_str(&text);
}

// ---- values

static const json_t *look_up(const uly_import_reader *r, uly_str path) {
  const json_t *at = r->root;
  while (path.len && json_is_object(at)) {
    uly_str name = first_name(&path);
    at = json_object_getn(at, name.ptr, name.len);
  }
  return path.len ? NULL : at;
}

// The next of |paths|, which becomes the rest.
static uly_str next_path(const char **paths) {
  size_t n = strcspn(*paths, "|");
  uly_str path = {*paths, n};
  *paths += n + ((*paths)[n] == '|');
  return path;
}

static bool report_type(uly_import_reader *r, const key *k, uly_str path, const json_t *value) {
  uly_str shown = uly_import_show(r->arena, value);
  uly_diag_add(r->diags, uly_import_place(r, path), ULY_D(IMPORT_TYPE), ULY_STR_ARG(path), ULY_STR_ARG(shown), type_names[k->type]);
  return false;
}

static bool report_choice(uly_import_reader *r, uly_str path, const json_t *value, const char *known) {
  uly_str shown = uly_import_show(r->arena, value);
  uly_diag_add(r->diags, uly_import_place(r, path), ULY_D(IMPORT_CHOICE), ULY_STR_ARG(path), ULY_STR_ARG(shown), known);
  return false;
}

static bool read_number(uly_import_reader *r, const key *k, uly_str path, const json_t *value, uly_str *out) {
  int64_t least = k->type == COUNT ? 0 : 1;
  if (k->type == REAL) {
    if (!json_is_number(value)) return report_type(r, k, path, value);
    *out = real_text(r->arena, json_number_value(value));
    return true;
  }
  if (!json_is_integer(value) || json_integer_value(value) < least) return report_type(r, k, path, value);
  *out = uly_str_format(r->arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  return true;
}

static bool read_flag(uly_import_reader *r, const key *k, uly_str path, const json_t *value, uly_str *out) {
  if (!json_is_boolean(value)) return report_type(r, k, path, value);
  *out = json_is_true(value) ? ULY_STR("true") : (uly_str){0};
  return true;
}

// A text or an int, as one of |allowed|, with blanks between them.
static bool read_choice(uly_import_reader *r, const key *k, uly_str path, const json_t *value, uly_str *out) {
  if (!json_is_string(value) && !json_is_integer(value)) return report_type(r, k, path, value);
  uly_str text = json_is_string(value) ? uly_str_of(json_string_value(value)) : uly_import_show(r->arena, value);
  uly_text known = {.arena = r->arena};
  for (const char *at = k->allowed; *at; at += strspn(at, " ")) {
    *out = (uly_str){at, strcspn(at, " ")};
    if (uly_str_equal(*out, text)) return true;
    uly_text_add(&known, "%s%.*s", known.len ? ", " : "", ULY_STR_ARG(*out));
    at += out->len;
  }
  return report_choice(r, path, value, known.ptr);
}

static bool read_activation(uly_import_reader *r, const key *k, uly_str path, const json_t *value, uly_str *out) {
  if (!json_is_string(value)) return report_type(r, k, path, value);
  uly_text known = {.arena = r->arena};
  for (int i = 0; i < N_ACTIVATIONS; i++) {
    uly_text_add(&known, "%s%s", i ? ", " : "", activations[i].name);
    if (strcmp(json_string_value(value), activations[i].name) != 0) continue;
    uly_import_set(&r->values, "act_declaration", uly_str_of(activations[i].declaration), (uly_str){0}, false);
    *out = uly_str_of(activations[i].function);
    return true;
  }
  return report_choice(r, path, value, known.ptr);
}

static bool read_dtype(uly_import_reader *r, const key *k, uly_str path, const json_t *value, uly_str *out) {
  static const struct {
    const char *name, *dtype;
  } dtypes[] = {{"float32", "f32"}, {"bfloat16", "bf16"}, {"float16", "f16"}};
  if (!json_is_string(value)) return report_type(r, k, path, value);
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    if (strcmp(json_string_value(value), dtypes[i].name) == 0) return *out = uly_str_of(dtypes[i].dtype), true;
  return report_choice(r, path, value, "float32, bfloat16, float16");
}

// Whether |value| says the same as |text|.
static bool says(const json_t *value, const char *text) {
  if (json_is_string(value)) return strcmp(json_string_value(value), text) == 0;
  if (json_is_boolean(value)) return strcmp(json_is_true(value) ? "true" : "false", text) == 0;
  char *end;
  return json_is_number(value) && strtod(text, &end) == json_number_value(value) && !*end;
}

// Empty objects and lists are what absent ones are.
static bool is_nothing(const json_t *value) {
  return json_is_false(value) || (json_is_object(value) && !json_object_size(value)) || (json_is_array(value) && !json_array_size(value));
}

static void check_only(uly_import_reader *r, const key *k, uly_str path, const json_t *value) {
  if (k->type == NEVER ? is_nothing(value) : says(value, k->absent)) return;
  uly_str shown = uly_import_show(r->arena, value);
  uly_diag_add(r->diags, uly_import_place(r, path), ULY_D(IMPORT_ONLY), ULY_STR_ARG(path), ULY_STR_ARG(shown), k->allowed);
}

static bool convert(uly_import_reader *r, const key *k, uly_str path, const json_t *value, uly_str *out) {
  switch (k->type) {
  case SIZE:
  case COUNT:
  case REAL: return read_number(r, k, path, value, out);
  case FLAG: return read_flag(r, k, path, value, out);
  case CHOICE: return read_choice(r, k, path, value, out);
  case ACT: return read_activation(r, k, path, value, out);
  case DTYPE: return read_dtype(r, k, path, value, out);
  case LAYERS:
    if (!json_is_array(value)) return report_type(r, k, path, value);
    uly_import_settle_windows(r, value, path, uly_str_of(k->absent));
    return false;
  case ONLY:
  case NEVER: check_only(r, k, path, value); return false;
  case ANY: return false;
  }
  return false;
}

// The value of |k|, by whichever name; NULL where there is none. Two names must not say different things.
static const json_t *find_value(uly_import_reader *r, const key *k, uly_str *out_path) {
  const json_t *found = NULL;
  for (const char *paths = k->paths; *paths;) {
    uly_str path = next_path(&paths);
    const json_t *value = look_up(r, path);
    if (!value) continue;
    if (found && !json_equal(found, value)) uly_diag_add(r->diags, uly_import_place(r, path), ULY_D(IMPORT_TWICE), ULY_STR_ARG(*out_path), ULY_STR_ARG(path));
    if (found) continue;
    found = value;
    *out_path = path;
  }
  return found;
}

// What the family takes where the file says nothing.
static bool default_text(uly_import_reader *r, const key *k, const char *text, uly_str path, uly_str *out) {
  if (strcmp(text, "!") == 0) {
    uly_diag_add(r->diags, uly_import_place(r, (uly_str){0}), ULY_D(IMPORT_MISSING), ULY_STR_ARG(path));
    return false;
  }
  *out = strcmp(text, "none") == 0 || strcmp(text, "false") == 0 ? (uly_str){0} : uly_str_of(text);
  if (k->type == ACT) {
    json_t *name = json_string(text);
    bool ok = name && read_activation(r, k, path, name, out);
    json_decref(name);
    return ok;
  }
  if (k->type == LAYERS) uly_import_settle_windows(r, NULL, path, *out);
  return k->type < LAYERS;
}

static void read_key(uly_import_reader *r, const key *k) {
  const char *paths = k->paths;
  uly_str path = next_path(&paths), text = {0}, origin = {0};
  const json_t *value = find_value(r, k, &path);
  bool keep;
  if (!value) {
    keep = default_text(r, k, k->absent, path, &text);
    origin = path.len ? uly_str_format(r->arena, "%.*s, not given", ULY_STR_ARG(path)) : uly_str_of(k->allowed);
  } else if (json_is_null(value) && k->null[0]) {
    keep = default_text(r, k, strcmp(k->null, "=") == 0 ? k->absent : k->null, path, &text);
    origin = uly_str_format(r->arena, "%.*s is null", ULY_STR_ARG(path));
  } else {
    keep = convert(r, k, path, value, &text);
    origin = path;
  }
  if (keep && k->name[0]) uly_import_set(&r->values, k->name, text, origin, k->type <= REAL);
}

void uly_import_read_keys(uly_import_reader *r) {
  uly_import_set(&r->values, "mask", ULY_STR("causal"), (uly_str){0}, false);
  for (int i = 0; i < N_KEYS; i++)
    if ((keys[i].families >> r->family & 1) && (!keys[i].when[0] || uly_import_holds(&r->values, uly_str_of(keys[i].when)))) read_key(r, &keys[i]);
}

// ---- what is not read

typedef enum knowledge { UNKNOWN, KNOWN, KNOWN_INSIDE } knowledge;

static knowledge is_known(const uly_import_reader *r, uly_str path) {
  for (int i = 0; i < N_KEYS; i++) {
    const char *paths = keys[i].families >> r->family & 1 ? keys[i].paths : "";
    while (*paths) {
      uly_str known = next_path(&paths);
      if (uly_str_equal(known, path)) return KNOWN;
      if (known.len > path.len && known.ptr[path.len] == '.' && memcmp(known.ptr, path.ptr, path.len) == 0) return KNOWN_INSIDE;
    }
  }
  return UNKNOWN;
}

static void note_members(const uly_import_reader *r, const json_t *object, uly_str prefix, uly_text *notes) {
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)object, name, value) {
    uly_str path = uly_str_format(r->arena, "%.*s%s", ULY_STR_ARG(prefix), name);
    knowledge known = is_known(r, path);
    if (known == KNOWN_INSIDE && json_is_object(value)) {
      note_members(r, value, uly_str_format(r->arena, "%.*s.", ULY_STR_ARG(path)), notes);
    } else if (known == KNOWN_INSIDE && !json_is_null(value)) {
      uly_str shown = uly_import_show(r->arena, value);
      uly_diag_add(r->diags, uly_import_place(r, path), ULY_D(IMPORT_TYPE), ULY_STR_ARG(path), ULY_STR_ARG(shown), "an object");
    } else if (known == UNKNOWN) {
      const uly_source *s = &r->diags->sources[r->source];
      uly_text_add(notes, "%.*s:%u: note: `", ULY_STR_ARG(s->name), uly_import_place(r, path).line);
      uly_diags_add_clean(notes, path);
      uly_text_add(notes, "` is not read\n");
    }
  }
}

void uly_import_note_unread(const uly_import_reader *r, uly_text *notes) { note_members(r, r->root, (uly_str){0}, notes); }
