#include "runtime/base/str.h"

#include <stdio.h>

uint64_t uly_str_hash(uly_str s) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < s.len; i++) h = (h ^ (unsigned char)s.ptr[i]) * 0x100000001b3u;
  return h ^ h >> 31;
}

uly_str uly_str_copy(uly_arena *arena, uly_str s) {
  char *p = uly_arena_alloc(arena, s.len + 1);
  if (s.len) memcpy(p, s.ptr, s.len);
  return (uly_str){p, s.len};
}

static void text_add_v(uly_text *text, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  ULY_ASSERT(n >= 0);
  size_t need = text->len + (size_t)n + 1;
  if (need > text->cap) {
    size_t cap = need < 64 ? 64 : need * 2;
    text->ptr = uly_arena_grow(text->arena, text->ptr, text->cap, cap);
    text->cap = cap;
  }
  vsnprintf(text->ptr + text->len, (size_t)n + 1, format, again);
  va_end(again);
  text->len += (size_t)n;
}

void uly_text_add(uly_text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_add_v(text, format, args);
  va_end(args);
}

void uly_text_add_str(uly_text *text, uly_str s) { uly_text_add(text, "%.*s", ULY_STR_ARG(s)); }

uly_str uly_str_format(uly_arena *arena, const char *format, ...) {
  uly_text text = {.arena = arena};
  va_list args;
  va_start(args, format);
  text_add_v(&text, format, args);
  va_end(args);
  return uly_text_str(&text);
}

enum { MAX_NAME = 64 };

// Edit distance with transpositions; names longer than MAX_NAME are not compared.
static size_t distance(uly_str a, uly_str b) {
  size_t rows[3][MAX_NAME + 1];
  if (a.len > MAX_NAME || b.len > MAX_NAME) return MAX_NAME;
  for (size_t j = 0; j <= b.len; j++) rows[1][j] = j;
  for (size_t i = 1; i <= a.len; i++) {
    size_t *two_up = rows[(i + 2) % 3], *up = rows[i % 3], *row = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= b.len; j++) {
      size_t best = up[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
      if (up[j] + 1 < best) best = up[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1] && two_up[j - 2] + 1 < best) best = two_up[j - 2] + 1;
      row[j] = best;
    }
  }
  return rows[(a.len + 1) % 3][b.len];
}

uly_str uly_str_nearest(uly_str name, const uly_str *names, size_t n) {
  uly_str best = {0};
  size_t least = name.len / 3 + 1;
  for (size_t i = 0; i < n; i++) {
    size_t d = distance(name, names[i]);
    if (d < least || (d == least && !best.ptr)) {
      least = d;
      best = names[i];
    }
  }
  return least >= name.len ? (uly_str){0} : best;
}
