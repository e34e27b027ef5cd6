#include "runtime/base/escape.h"

// Format characters, line separators and marks of direction: they have no width, and some of them move what follows.
static const uint32_t hidden[][2] = {{0x7f, 0xa0},     {0xad, 0xad},     {0x34f, 0x34f},   {0x61c, 0x61c},     {0x115f, 0x1160},  {0x17b4, 0x17b5},
                                     {0x180b, 0x180f}, {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f},   {0x3000, 0x3000},  {0x3164, 0x3164},
                                     {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

// The character at byte |at|, and how many bytes it takes; 0: none that UTF-8 has.
static size_t decode(uly_str s, size_t at, uint32_t *out) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char first = (unsigned char)s.ptr[at];
  size_t n = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  if (n == 0 || n > s.len - at) return 0;
  *out = n == 1 ? first : first & (0x7fu >> n);
  for (size_t i = 1; i < n; i++) {
    unsigned char next = (unsigned char)s.ptr[at + i];
    if ((next & 0xc0) != 0x80) return 0;
    *out = *out << 6 | (next & 0x3f);
  }
  return *out < least[n] || *out > 0x10ffff || (*out >= 0xd800 && *out < 0xe000) ? 0 : n;
}

static bool is_hidden(uint32_t c) {
  for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
    if (c >= hidden[i][0] && c <= hidden[i][1]) return true;
  return false;
}

enum { MOST = 16 }; // characters of an escaped one

// What stands for the character at |at| of |s|; returns how many bytes that was.
static size_t escape(uly_str s, size_t at, bool lines, char out[MOST]) {
  uint32_t c = 0;
  size_t n = decode(s, at, &c);
  if (n == 0)
    snprintf(out, MOST, "\\x%02x", (unsigned char)s.ptr[at]);
  else if (c == '\n' && !lines)
    snprintf(out, MOST, "\\n");
  else if (c == '\t' && !lines)
    snprintf(out, MOST, "\\t");
  else if (c == '\\' && !lines)
    snprintf(out, MOST, "\\\\");
  else if (c < ' ' && c != '\n' && c != '\t')
    snprintf(out, MOST, "\\x%02x", c);
  else if (is_hidden(c))
    snprintf(out, MOST, "\\u{%x}", c);
  else
    snprintf(out, MOST, "%.*s", (int)n, s.ptr + at);
  return n ? n : 1;
}

void uly_text_add_escaped(uly_text *text, uly_str s) {
  char shown[MOST];
  for (size_t at = 0; at < s.len;) {
    at += escape(s, at, false, shown);
    uly_text_add(text, "%s", shown);
  }
}

void uly_print_escaped(FILE *stream, const char *before, uly_str s, const char *after) {
  char piece[4096];
  size_t n = (size_t)snprintf(piece, sizeof piece / 2, "%s", before), last = strlen(after);
  for (size_t at = 0; at < s.len;) {
    if (n + MOST + last >= sizeof piece) {
      fwrite(piece, 1, n, stream);
      n = 0;
    }
    at += escape(s, at, true, piece + n);
    n += strlen(piece + n);
  }
  n += (size_t)snprintf(piece + n, sizeof piece - n, "%s", after);
  fwrite(piece, 1, n < sizeof piece ? n : sizeof piece - 1, stream);
}
