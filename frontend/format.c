// Lays a spec out: see format.h. The tokens are those of the parser; what stands between them, comments and ends of lines, is read from the text.
#include "frontend/format.h"

#include "frontend/lex.h"
#include "frontend/parse.h"

enum { STEP = 2, COMMENT_GAP = 2 };

typedef struct line {
  uly_text code;   // without indentation
  uly_str comment; // with its #; empty: none
  int32_t indent;
  bool after_empty; // an empty line comes before
  int group;        // of words that are padded to one width; 0: none
  size_t word;      // bytes of such a word
} line;

typedef struct bracket {
  bool brace;
  bool index; // [ in which `:` stands between two bounds
  int32_t indent;
} bracket;

typedef struct formatter {
  uly_arena *arena;
  uly_str text;
  line *lines;
  int32_t n, cap;
  bool open; // the last line can still get tokens
  int empty; // ends of lines since the last one
  bracket stack[2 * ULY_MAX_DEPTH + 2];
  int32_t depth;
  bool starts;       // the next token begins a statement or declaration
  int32_t statement; // indentation of the current statement's first line
  uly_token prev;
  bool prev_unary;
} formatter;

// ---- lines

static const struct {
  const char *word;
  int group;
} groups[] = {{"const", 1}, {"free", 1}, {"grid", 1}, {"dtype", 1}, {"mask", 2}, {"score", 2}};

static bracket *top(formatter *f) { return f->depth ? &f->stack[f->depth - 1] : NULL; }

static line *new_line(formatter *f, int32_t indent) {
  ULY_MAKE_ROOM(f->arena, f->lines, f->n, f->cap, 256);
  bool inside_edge = f->n == 0 || (f->prev.kind == ULY_TOKEN_LBRACE && f->lines[f->n - 1].code.len);
  line *l = &f->lines[f->n++];
  *l = (line){.code = {.arena = f->arena}, .indent = indent, .after_empty = f->empty > 1 && !inside_edge};
  f->empty = 0;
  return l;
}

// Of a line that begins here and not with a closing bracket.
static int32_t indentation(formatter *f) {
  const bracket *in = top(f);
  if (in && !in->brace) return in->indent + STEP;
  if (!f->starts) return f->statement + STEP;
  return in ? in->indent + STEP : 0;
}

static bool closes(const uly_token *t) { return t->kind == ULY_TOKEN_RPAREN || t->kind == ULY_TOKEN_RBRACKET || t->kind == ULY_TOKEN_RBRACE; }

// ---- between two tokens of a line

static bool ends_operand(const uly_token *t) {
  switch (t->kind) {
  case ULY_TOKEN_NAME:
  case ULY_TOKEN_INT:
  case ULY_TOKEN_FLOAT:
  case ULY_TOKEN_STRING:
  case ULY_TOKEN_TRUE:
  case ULY_TOKEN_FALSE:
  case ULY_TOKEN_NONE:
  case ULY_TOKEN_RPAREN:
  case ULY_TOKEN_RBRACKET: return true;
  default: return false;
  }
}

static bool wants_blank(formatter *f, const uly_token *t) {
  const uly_token *p = &f->prev;
  switch (t->kind) {
  case ULY_TOKEN_COMMA:
  case ULY_TOKEN_SEMICOLON:
  case ULY_TOKEN_RPAREN:
  case ULY_TOKEN_RBRACKET: return false;
  default: break;
  }
  if (p->kind == ULY_TOKEN_LPAREN || p->kind == ULY_TOKEN_LBRACKET || f->prev_unary) return false;
  if (t->kind == ULY_TOKEN_COLON) return top(f) && top(f)->index;
  if (t->kind == ULY_TOKEN_LPAREN || t->kind == ULY_TOKEN_LBRACKET) return !ends_operand(p);
  return true;
}

static void track_brackets(formatter *f, const uly_token *t, int32_t indent) {
  if (closes(t)) {
    if (f->depth) f->depth--;
    return;
  }
  bool brace = t->kind == ULY_TOKEN_LBRACE;
  if (!brace && t->kind != ULY_TOKEN_LPAREN && t->kind != ULY_TOKEN_LBRACKET) return;
  ULY_ASSERT(f->depth < (int32_t)(sizeof f->stack / sizeof *f->stack)); // the parser has bounded it
  f->stack[f->depth++] = (bracket){brace, t->kind == ULY_TOKEN_LBRACKET, brace ? f->statement : indent};
}

static void add_token(formatter *f, const uly_token *t) {
  if (!f->open) {
    int32_t indent = closes(t) && f->depth ? top(f)->indent : indentation(f);
    line *l = new_line(f, indent);
    if (closes(t)) l->after_empty = false;
    for (size_t g = 0; f->starts && !f->depth && g < sizeof groups / sizeof *groups; g++)
      if (uly_str_is(t->text, groups[g].word)) l->group = groups[g].group, l->word = t->text.len;
    if (f->starts) f->statement = indent;
    f->open = true;
  } else if (wants_blank(f, t)) {
    uly_text_add(&f->lines[f->n - 1].code, " ");
  }
  if (f->starts && f->prev.kind == ULY_TOKEN_LBRACE) f->statement = top(f) ? top(f)->indent + STEP : 0;
  line *l = &f->lines[f->n - 1];
  uly_text_add_str(&l->code, t->kind == ULY_TOKEN_STRING ? (uly_str){t->text.ptr - 1, t->text.len + 2} : t->text);
  track_brackets(f, t, l->indent);
  f->starts = t->kind == ULY_TOKEN_LBRACE;
  f->prev_unary = t->kind == ULY_TOKEN_MINUS && !ends_operand(&f->prev);
  f->prev = *t;
}

static void add_comment(formatter *f, uly_str comment) {
  while (comment.len && (comment.ptr[comment.len - 1] == ' ' || comment.ptr[comment.len - 1] == '\t' || comment.ptr[comment.len - 1] == '\r')) comment.len--;
  line *l = f->open ? &f->lines[f->n - 1] : new_line(f, indentation(f));
  l->comment = comment;
}

// What stands between two tokens: bytes [begin, end) of the text.
static void add_gap(formatter *f, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++) {
    if (f->text.ptr[i] == '#') {
      const char *stop = memchr(f->text.ptr + i, '\n', end - i);
      size_t to = stop ? (size_t)(stop - f->text.ptr) : end;
      add_comment(f, (uly_str){f->text.ptr + i, to - i});
      i = to - 1;
    } else if (f->text.ptr[i] == '\n') {
      f->open = false;
      f->empty++;
    }
  }
}

// ---- columns

// Bytes that are not the rest of a character.
static int32_t width(uly_str s) {
  int32_t n = 0;
  for (size_t i = 0; i < s.len; i++) n += ((uint8_t)s.ptr[i] & 0xC0) != 0x80;
  return n;
}

static void pad_words(formatter *f) {
  for (int32_t i = 0, end; i < f->n; i = end) {
    size_t widest = f->lines[i].word;
    for (end = i + 1; end < f->n && f->lines[i].group && f->lines[end].group == f->lines[i].group && !f->lines[end].after_empty; end++)
      if (f->lines[end].word > widest) widest = f->lines[end].word;
    for (int32_t k = i; k < end; k++) {
      line *l = &f->lines[k];
      uly_str code = uly_text_str(&l->code);
      if (!l->group || l->word == widest || l->word == code.len) continue;
      uly_text padded = {.arena = f->arena};
      uly_text_add(&padded, "%-*.*s%.*s", (int)widest, (int)l->word, code.ptr, (int)(code.len - l->word), code.ptr + l->word);
      l->code = padded;
    }
  }
}

static void print(formatter *f, uly_text *out) {
  for (int32_t i = 0, end; i < f->n; i = end) {
    int32_t column = 0;
    for (end = i; end < f->n && f->lines[end].code.len && f->lines[end].comment.len && (end == i || !f->lines[end].after_empty); end++) {
      int32_t w = f->lines[end].indent + width(uly_text_str(&f->lines[end].code)) + COMMENT_GAP;
      if (w > column) column = w;
    }
    if (end == i) end++;
    for (int32_t k = i; k < end; k++) {
      const line *l = &f->lines[k];
      if (l->after_empty) uly_text_add(out, "\n");
      uly_text_add(out, "%*s%.*s", l->indent, "", ULY_STR_ARG(uly_text_str(&l->code)));
      int32_t gap = l->code.len && l->comment.len ? column - l->indent - width(uly_text_str(&l->code)) : 0;
      uly_text_add(out, "%*s%.*s\n", gap, "", ULY_STR_ARG(l->comment));
    }
  }
}

// Both texts are the same words and signs, with statements that end at the same places; the end of the last line may be missing.
static bool same_tokens(uly_arena *arena, uly_str a, uly_str b) {
  uly_diags diags;
  uly_diags_init(&diags, arena);
  uly_lexer x = uly_lex_begin(arena, &diags, uly_diags_add_source(&diags, ULY_STR(""), a));
  uly_lexer y = uly_lex_begin(arena, &diags, uly_diags_add_source(&diags, ULY_STR(""), b));
  for (;;) {
    uly_token s = uly_lex_next(&x), t = uly_lex_next(&y);
    if (s.kind == ULY_TOKEN_END && t.kind == ULY_TOKEN_NEWLINE) t = uly_lex_next(&y);
    if (s.kind != t.kind || !uly_str_equal(s.text, t.text)) return false;
    if (s.kind == ULY_TOKEN_END) return true;
  }
}

uly_status uly_format(uly_arena *arena, uly_diags *diags, int32_t source, uly_str *out_text) {
  const uly_source *s = &diags->sources[source];
  uly_text out = {.arena = arena};
  if (!uly_parse_spec(arena, diags, source)) return ULY_INVALID_INPUT;
  formatter f = {.arena = arena, .text = s->text, .starts = true, .prev = {.kind = ULY_TOKEN_NEWLINE}};
  uly_lexer lexer = uly_lex_begin(arena, diags, source);
  size_t at = lexer.pos;
  for (uly_token t; (t = uly_lex_next(&lexer)).kind != ULY_TOKEN_END; at = t.loc.end - s->base) {
    add_gap(&f, at, t.loc.begin - s->base);
    if (t.kind == ULY_TOKEN_NEWLINE)
      f.starts = true;
    else
      add_token(&f, &t);
  }
  add_gap(&f, at, s->text.len);
  pad_words(&f);
  print(&f, &out);
  ULY_ASSERT(same_tokens(arena, s->text, uly_text_str(&out)));
  *out_text = uly_text_str(&out);
  return ULY_OK;
}
