// Strings: a pointer and a length, not zero-terminated, owned by the source text or an arena.
#ifndef ULY_RUNTIME_BASE_STR_H
#define ULY_RUNTIME_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/base/arena.h"
#include "runtime/base/status.h"

typedef struct uly_str {
  const char *ptr;
  size_t len;
} uly_str;

#define ULY_STR(literal) ((uly_str){literal, sizeof(literal) - 1})
#define ULY_STR_ARG(s) (int)(s).len, (s).ptr // for "%.*s"

static inline uly_str uly_str_of(const char *z) { return (uly_str){z, strlen(z)}; }
static inline bool uly_str_equal(uly_str a, uly_str b) { return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0); }
static inline bool uly_str_is(uly_str a, const char *z) { return uly_str_equal(a, uly_str_of(z)); }

uint64_t uly_str_hash(uly_str s); // FNV-1a, its high bits mixed into the low ones
// In |arena|, zero-terminated behind the end.
uly_str uly_str_copy(uly_arena *arena, uly_str s);
uly_str uly_str_format(uly_arena *arena, const char *format, ...) ULY_PRINTF(2, 3);
// Of |n| names the one closest to |name| in edit distance (Damerau–Levenshtein), or an empty string where none is close enough to suggest.
uly_str uly_str_nearest(uly_str name, const uly_str *names, size_t n);

// A growing text.
typedef struct uly_text {
  uly_arena *arena;
  char *ptr;
  size_t len, cap;
} uly_text;
void uly_text_add(uly_text *text, const char *format, ...) ULY_PRINTF(2, 3);
void uly_text_add_str(uly_text *text, uly_str s);
static inline uly_str uly_text_str(const uly_text *text) { return (uly_str){text->ptr, text->len}; }

#endif
