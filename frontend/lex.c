// The lexer: see lex.h. A character that begins no token is reported and skipped, so one run shows several.
#include "frontend/lex.h"

#include <errno.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "frontend/parse.h" // limits

enum { SIGN, WORD, RESERVED };

typedef struct token_row {
  const char *text, *shown;
  uint8_t len, kind;
  bool continues;
} token_row;

static const token_row rows[ULY_N_TOKENS] = {
    [ULY_TOKEN_END] = {"", "the end of the file", 0, SIGN, false},
    [ULY_TOKEN_NEWLINE] = {"", "the end of the line", 0, SIGN, true},
    [ULY_TOKEN_NAME] = {"", "a name", 0, SIGN, false},
    [ULY_TOKEN_INT] = {"", "a number", 0, SIGN, false},
    [ULY_TOKEN_FLOAT] = {"", "a number", 0, SIGN, false},
    [ULY_TOKEN_STRING] = {"", "a string", 0, SIGN, false},
#define TOKEN(id, text, kind, continues) [ULY_TOKEN_##id] = {text, "`" text "`", sizeof(text) - 1, kind, continues},
#include "frontend/token.def"
};

bool uly_lex_validate(uly_diags *diags, int32_t source, uint32_t max_bytes) {
  const uly_source *s = &diags->sources[source];
  uly_loc loc = {s->base, s->base, 1, 1};
  if (s->text.len > max_bytes) {
    uly_diag_add(diags, (uly_loc){s->base, s->base, 0, 0}, ULY_D(FILE_TOO_LARGE), (unsigned long long)s->text.len, max_bytes);
    return false;
  }
  for (size_t i = 0; i < s->text.len;) {
    utf8proc_int32_t c;
    utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)s->text.ptr + i, (utf8proc_ssize_t)(s->text.len - i), &c);
    loc.begin = s->base + (uint32_t)i;
    loc.end = loc.begin + 1;
    if (n <= 0) {
      uly_diag_add(diags, loc, ULY_D(NOT_UTF8), (unsigned)i, (unsigned)(uint8_t)s->text.ptr[i]);
      return false;
    }
    if (c == 0) {
      uly_diag_add(diags, loc, ULY_D(NUL_BYTE), (unsigned)i);
      return false;
    }
    loc.column++;
    if (c == '\n') loc.line++, loc.column = 1;
    i += (size_t)n;
  }
  return true;
}

uly_lexer uly_lex_begin(uly_arena *arena, uly_diags *diags, int32_t source) {
  const uly_source *s = &diags->sources[source];
  uly_lexer l = {.arena = arena, .diags = diags, .text = s->text.ptr, .base = s->base, .end = (uint32_t)s->text.len, .line = 1, .column = 1};
  l.starts_line = l.continues = true;
  if (l.end >= 3 && memcmp(l.text, "\xEF\xBB\xBF", 3) == 0) l.pos = l.column_pos = 3; // a byte order mark
  return l;
}

static char peek(const uly_lexer *l, uint32_t ahead) { return l->pos + ahead < l->end ? l->text[l->pos + ahead] : 0; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The place of bytes [begin, end) of the current line; begin must not lie before the last one asked for.
static uly_loc place(uly_lexer *l, uint32_t begin, uint32_t end) {
  for (; l->column_pos < begin; l->column_pos++) l->column += ((uint8_t)l->text[l->column_pos] & 0xC0) != 0x80;
  return (uly_loc){l->base + begin, l->base + end, l->line, l->column};
}

static void next_line(uly_lexer *l) {
  l->pos++;
  l->line++;
  l->column = 1;
  l->column_pos = l->pos;
  l->starts_line = true;
}

static void bad_character(uly_lexer *l) {
  utf8proc_int32_t c;
  utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)l->text + l->pos, (utf8proc_ssize_t)(l->end - l->pos), &c);
  if (n < 1) n = 1;
  uint32_t begin = l->pos;
  l->pos += (uint32_t)n;
  uly_diag_add(l->diags, place(l, begin, l->pos), ULY_D(BAD_CHARACTER), (int)n, l->text + begin, (unsigned)c);
}

static uly_token finish(uly_lexer *l, uly_token_kind kind, uint32_t begin) {
  uly_token t = {.kind = (uint8_t)kind, .starts_line = l->starts_line, .loc = place(l, begin, l->pos), .text = {l->text + begin, l->pos - begin}};
  l->starts_line = false;
  l->continues = rows[kind].continues;
  return t;
}

static uly_token lex_name(uly_lexer *l) {
  uint32_t begin = l->pos;
  while (is_letter(peek(l, 0)) || is_digit(peek(l, 0))) l->pos++;
  uint32_t n = l->pos - begin;
  uly_token_kind kind = ULY_TOKEN_NAME;
  for (int k = ULY_TOKEN_NAME; k < ULY_N_TOKENS; k++)
    if (rows[k].kind != SIGN && rows[k].len == n && memcmp(rows[k].text, l->text + begin, n) == 0) kind = (uly_token_kind)k;
  if (n > ULY_MAX_NAME_BYTES) uly_diag_add(l->diags, place(l, begin, l->pos), ULY_D(LONG_NAME), (size_t)n, ULY_MAX_NAME_BYTES);
  return finish(l, kind, begin);
}

// digits, digits.digits, either with an exponent. Letters or a dot that follow belong to the mistake.
static uly_token lex_number(uly_lexer *l) {
  uint32_t begin = l->pos;
  bool real = false;
  while (is_digit(peek(l, 0))) l->pos++;
  if (peek(l, 0) == '.' && is_digit(peek(l, 1))) {
    real = true;
    l->pos++;
    while (is_digit(peek(l, 0))) l->pos++;
  }
  uint32_t sign = peek(l, 1) == '+' || peek(l, 1) == '-';
  if ((peek(l, 0) == 'e' || peek(l, 0) == 'E') && is_digit(peek(l, 1 + sign))) {
    real = true;
    l->pos += 1 + sign;
    while (is_digit(peek(l, 0))) l->pos++;
  }
  uint32_t good = l->pos;
  while (is_letter(peek(l, 0)) || is_digit(peek(l, 0)) || (peek(l, 0) == '.' && peek(l, 1) != '.')) l->pos++;
  uly_token t = finish(l, real ? ULY_TOKEN_FLOAT : ULY_TOKEN_INT, begin);
  if (l->pos != good) {
    uly_diag_add(l->diags, t.loc, ULY_D(BAD_NUMBER), ULY_STR_ARG(t.text));
    return t;
  }
  uly_str z = uly_str_copy(l->arena, t.text);
  errno = 0;
  if (real)
    t.value.f = strtod(z.ptr, NULL);
  else
    t.value.i = strtoll(z.ptr, NULL, 10);
  // A denormal sets ERANGE too, but is a number.
  if (errno == ERANGE && !real) uly_diag_add(l->diags, t.loc, ULY_D(INT_RANGE), ULY_STR_ARG(t.text));
  if (errno == ERANGE && real && (t.value.f == 0 || t.value.f > 1e308)) uly_diag_add(l->diags, t.loc, ULY_D(FLOAT_RANGE), ULY_STR_ARG(t.text));
  return t;
}

static uly_token lex_string(uly_lexer *l) {
  uint32_t begin = l->pos++;
  uint32_t bad = 0;
  while (l->pos < l->end && peek(l, 0) != '"' && peek(l, 0) != '\n') {
    if ((uint8_t)peek(l, 0) < 0x20 && !bad) bad = l->pos;
    l->pos++;
  }
  bool closed = peek(l, 0) == '"';
  uint32_t text_end = l->pos;
  if (closed) l->pos++;
  uly_token t = finish(l, ULY_TOKEN_STRING, begin);
  t.text = (uly_str){l->text + begin + 1, text_end - begin - 1};
  if (!closed)
    uly_diag_add(l->diags, t.loc, ULY_D(OPEN_STRING));
  else if (t.text.len > ULY_MAX_STRING_BYTES)
    uly_diag_add(l->diags, t.loc, ULY_D(LONG_STRING), t.text.len, ULY_MAX_STRING_BYTES);
  else if (bad)
    uly_diag_add(l->diags, place(l, bad, bad + 1), ULY_D(BAD_STRING), (unsigned)(uint8_t)l->text[bad]);
  return t;
}

static bool lex_sign(uly_lexer *l, uly_token *out_token) {
  for (int k = ULY_TOKEN_STRING + 1; k < ULY_N_TOKENS && rows[k].kind == SIGN; k++) {
    if (l->end - l->pos < rows[k].len || memcmp(rows[k].text, l->text + l->pos, rows[k].len) != 0) continue;
    uint32_t begin = l->pos;
    l->pos += rows[k].len;
    if (k == ULY_TOKEN_LPAREN || k == ULY_TOKEN_LBRACKET) l->depth++;
    if ((k == ULY_TOKEN_RPAREN || k == ULY_TOKEN_RBRACKET) && l->depth > 0) l->depth--;
    *out_token = finish(l, (uly_token_kind)k, begin);
    return true;
  }
  return false;
}

uly_token uly_lex_next(uly_lexer *l) {
  while (l->pos < l->end && l->diags->n_errors <= ULY_MAX_DIAGS) { // beyond, nothing that follows is shown
    char c = peek(l, 0);
    uly_token t;
    if (c == '\n') {
      bool ends = l->depth == 0 && !l->continues;
      if (ends) t = finish(l, ULY_TOKEN_NEWLINE, l->pos);
      next_line(l);
      if (ends) return t;
    } else if (is_blank(c)) {
      l->pos++;
    } else if (c == '#') {
      while (l->pos < l->end && peek(l, 0) != '\n') l->pos++;
    } else if (is_letter(c)) {
      return lex_name(l);
    } else if (is_digit(c)) {
      return lex_number(l);
    } else if (c == '"') {
      return lex_string(l);
    } else if (lex_sign(l, &t)) {
      return t;
    } else {
      bad_character(l);
    }
  }
  l->pos = l->end;
  return finish(l, ULY_TOKEN_END, l->end);
}

uly_str uly_token_describe(uly_arena *arena, const uly_token *t) {
  bool shown = t->kind == ULY_TOKEN_NAME || t->kind == ULY_TOKEN_INT || t->kind == ULY_TOKEN_FLOAT;
  if (!shown) return uly_str_of(rows[t->kind].shown);
  return t->text.len > 40 ? uly_str_format(arena, "`%.37s...`", t->text.ptr) : uly_str_format(arena, "`%.*s`", ULY_STR_ARG(t->text));
}

const char *uly_token_text(uly_token_kind kind) { return rows[kind].shown; }
bool uly_token_joins(uly_token_kind kind) { return kind > ULY_TOKEN_STRING && rows[kind].continues && kind != ULY_TOKEN_IF && kind != ULY_TOKEN_NOT; }
bool uly_token_is_word(uly_token_kind kind) { return kind > ULY_TOKEN_STRING && rows[kind].kind != SIGN; }
bool uly_token_is_reserved(uly_token_kind kind) { return kind > ULY_TOKEN_STRING && rows[kind].kind == RESERVED; }
