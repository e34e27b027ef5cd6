// Collects and prints diagnostics: see diag.h.
#include "frontend/diag.h"

#include <utf8proc.h>

enum { MAX_SHOWN = 160, SHOWN_BEFORE = 60 }; // characters of a source line that are shown, and of those before the caret where it is longer

static const struct {
  const char *name;
  uint8_t severity;
} rows[] = {
#define ERROR ULY_ERROR
#define WARNING ULY_WARNING
#define NOTE ULY_NOTE
#define DIAG(id, severity, format) {#id, severity},
#include "frontend/diag.def"
};

void uly_diags_init(uly_diags *diags, uly_arena *arena) { *diags = (uly_diags){.arena = arena}; }

int32_t uly_diags_add_source(uly_diags *diags, uly_str name, uly_str text) {
  uint32_t base = 0;
  if (diags->n_sources) {
    const uly_source *last = &diags->sources[diags->n_sources - 1];
    base = last->base + (uint32_t)last->text.len + 1;
  }
  ULY_MAKE_ROOM(diags->arena, diags->sources, diags->n_sources, diags->cap_sources, 4);
  diags->sources[diags->n_sources] = (uly_source){name, text, base};
  return diags->n_sources++;
}

static uly_diag *new_diag(uly_diags *diags, uly_loc loc, uly_diag_id id, const char *format, va_list args) {
  uly_diag *d = ULY_NEW(diags->arena, uly_diag);
  char small[512];
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(small, sizeof small, format, args);
  size_t bytes = n < 0 ? 0 : (size_t)n;
  char *text = uly_arena_alloc(diags->arena, bytes + 1);
  vsnprintf(text, bytes + 1, format, again);
  va_end(again);
  *d = (uly_diag){.id = id, .severity = (uly_severity)rows[id].severity, .loc = loc, .message = {text, bytes}};
  return d;
}

uly_diag *uly_diag_add(uly_diags *diags, uly_loc loc, uly_diag_id id, const char *format, ...) {
  int32_t *count = rows[id].severity == ULY_ERROR ? &diags->n_errors : &diags->n_warnings;
  if (*count >= ULY_MAX_DIAGS) { // nothing is made: a long file may have millions
    *count += *count < INT32_MAX;
    return &diags->dropped;
  }
  va_list args;
  va_start(args, format);
  uly_diag *d = new_diag(diags, loc, id, format, args);
  va_end(args);
  for (const uly_diag *o = diags->first; o; o = o->next)
    if (o->id == id && o->loc.begin == loc.begin && o->loc.end == loc.end && uly_str_equal(o->message, d->message)) return &diags->dropped;
  ++*count;
  uly_diag **at = &diags->first; // in the order of the text
  while (*at && (*at)->loc.begin <= loc.begin) at = &(*at)->next;
  d->next = *at;
  return *at = d;
}

void uly_diag_note(uly_diags *diags, uly_diag *diag, uly_loc loc, uly_diag_id id, const char *format, ...) {
  if (diag == &diags->dropped) return;
  va_list args;
  va_start(args, format);
  uly_diag **end = &diag->notes;
  while (*end) end = &(*end)->next;
  *end = new_diag(diags, loc, id, format, args);
  va_end(args);
}

void uly_diag_suggest(uly_diags *diags, uly_diag *diag, uly_str name, const uly_str *names, size_t n) {
  if (diag == &diags->dropped) return;
  uly_str near = uly_str_nearest(name, names, n);
  if (near.len) uly_diag_note(diags, diag, (uly_loc){0}, ULY_D(DID_YOU_MEAN), ULY_STR_ARG(near));
}

// ---- printing

// One character of |s| at byte i: its bytes, and what is shown for it. Whatever could move the cursor or is not text becomes U+FFFD.
typedef struct glyph {
  size_t bytes;
  uly_str shown;
  int width;
} glyph;

static glyph glyph_at(uly_str s, size_t i) {
  static const char unknown[] = "\xEF\xBF\xBD";
  utf8proc_int32_t c;
  utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)s.ptr + i, (utf8proc_ssize_t)(s.len - i), &c);
  if (n <= 0) return (glyph){1, {unknown, 3}, 1};
  if (c == '\t') return (glyph){1, {" ", 1}, 1};
  utf8proc_category_t category = utf8proc_category(c);
  if (category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP)
    return (glyph){(size_t)n, {unknown, 3}, 1};
  return (glyph){(size_t)n, {s.ptr + i, (size_t)n}, utf8proc_charwidth(c)};
}

void uly_diags_add_clean(uly_text *out, uly_str s) {
  for (size_t i = 0; i < s.len;) {
    glyph g = glyph_at(s, i);
    uly_text_add_str(out, g.shown);
    i += g.bytes;
  }
}

static const uly_source *source_of(const uly_diags *diags, uly_loc loc) {
  for (int32_t i = diags->n_sources; i-- > 0;)
    if (loc.begin >= diags->sources[i].base) return &diags->sources[i];
  return NULL;
}

// The line of |loc| without its end, cut to a window around the place where it is very long. |out_begin| is where the range begins in it.
static uly_str line_of(const uly_source *s, uly_loc loc, size_t *out_begin) {
  size_t at = loc.begin - s->base;
  if (at > s->text.len) at = s->text.len;
  size_t begin = at, end = at;
  while (begin > 0 && s->text.ptr[begin - 1] != '\n') begin--;
  while (end < s->text.len && s->text.ptr[end] != '\n') end++;
  while (end > at && s->text.ptr[end - 1] == '\r') end--;
  if (end - begin > MAX_SHOWN) {
    if (at - begin > SHOWN_BEFORE) begin = at - SHOWN_BEFORE;
    while (begin < at && ((uint8_t)s->text.ptr[begin] & 0xC0) == 0x80) begin++;
    if (end - begin > MAX_SHOWN) end = begin + MAX_SHOWN;
    while (end > at && end < s->text.len && ((uint8_t)s->text.ptr[end] & 0xC0) == 0x80) end--;
  }
  *out_begin = at - begin;
  return (uly_str){s->text.ptr + begin, end - begin};
}

static void add_line_and_caret(uly_text *out, const uly_source *s, uly_loc loc) {
  size_t begin;
  uly_str line = line_of(s, loc, &begin);
  size_t end = begin + (loc.end - loc.begin);
  uly_text_add(out, "  ");
  uly_diags_add_clean(out, line);
  uly_text_add(out, "\n  ");
  for (size_t i = 0; i < begin;) {
    glyph g = glyph_at(line, i);
    uly_text_add(out, "%*s", g.width, "");
    i += g.bytes;
  }
  uly_text_add(out, "^");
  bool first = true;
  for (size_t i = begin; i < line.len && i < end;) {
    glyph g = glyph_at(line, i);
    for (int w = first; w < g.width; w++) uly_text_add(out, "~");
    first = false;
    i += g.bytes;
  }
  uly_text_add(out, "\n");
}

static void add_diag(uly_text *out, const uly_diags *diags, const uly_diag *d) {
  static const char *const words[] = {"error", "warning", "note"};
  const uly_source *s = d->loc.line ? source_of(diags, d->loc) : NULL;
  if (s) {
    uly_diags_add_clean(out, s->name);
    uly_text_add(out, ":%u:%u: ", d->loc.line, d->loc.column);
  } else if (d->severity != ULY_NOTE && diags->n_sources) {
    uly_diags_add_clean(out, diags->sources[0].name);
    uly_text_add(out, ": ");
  }
  uly_text_add(out, "%s%s: ", !s && d->severity == ULY_NOTE ? "  " : "", words[d->severity]);
  uly_diags_add_clean(out, d->message);
  uly_text_add(out, "\n");
  if (s) add_line_and_caret(out, s, d->loc);
  for (const uly_diag *n = d->notes; n; n = n->next) add_diag(out, diags, n);
}

uly_str uly_diags_text(const uly_diags *diags) {
  uly_text out = {.arena = diags->arena};
  for (const uly_diag *d = diags->first; d; d = d->next) add_diag(&out, diags, d);
  if (diags->n_errors > ULY_MAX_DIAGS) uly_text_add(&out, "not shown: %d more\n", diags->n_errors - ULY_MAX_DIAGS);
  return uly_text_str(&out);
}

void uly_diags_print(const uly_diags *diags, FILE *stream) {
  uly_str text = uly_diags_text(diags);
  if (text.len) fwrite(text.ptr, 1, text.len, stream);
}
