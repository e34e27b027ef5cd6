// From text to tokens, one at a time. Called by parse.c only. Newlines come as tokens where they end a statement: not inside ( and [, not behind a
// token that continues (token.def), never two in a row.
#ifndef ULY_FRONTEND_LEX_H
#define ULY_FRONTEND_LEX_H

#include "frontend/diag.h"

typedef enum uly_token_kind {
  ULY_TOKEN_END,
  ULY_TOKEN_POISON, // the parser's, after an error
  ULY_TOKEN_NEWLINE,
  ULY_TOKEN_NAME,
  ULY_TOKEN_INT,
  ULY_TOKEN_FLOAT,
  ULY_TOKEN_STRING, // text without the quotes
#define TOKEN(id, text, kind, continues) ULY_TOKEN_##id,
#include "frontend/token.def"
  ULY_N_TOKENS
} uly_token_kind;

typedef struct uly_token {
  uint8_t kind;     // uly_token_kind
  bool starts_line; // first of its line
  uly_loc loc;      // NEWLINE, END: empty, at the end of the line
  uly_str text;
  union {
    int64_t i;
    double f;
  } value;
} uly_token;

typedef struct uly_lexer {
  uly_arena *arena;
  uly_diags *diags;
  const char *text;
  uint32_t base;                     // offset of text in the sources
  uint32_t pos, end;                 // bytes of text
  uint32_t line, column, column_pos; // |column| is that of byte |column_pos|
  int32_t depth;                     // open ( and [
  bool starts_line, continues;       // about what comes next
} uly_lexer;

// Reports the first byte that is NUL or not UTF-8, or a file beyond the limit; false then.
bool uly_lex_validate(uly_diags *diags, int32_t source, uint32_t max_bytes);
uly_lexer uly_lex_begin(uly_arena *arena, uly_diags *diags, int32_t source);
uly_token uly_lex_next(uly_lexer *lexer);

// "`->`", "the end of the line", "a string"
uly_str uly_token_describe(uly_arena *arena, const uly_token *token);
const char *uly_token_text(uly_token_kind kind); // "`->`" or "a name"
bool uly_token_joins(uly_token_kind kind);       // stands between two operands, or a newline behind it would not end the statement
bool uly_token_is_word(uly_token_kind kind);
bool uly_token_is_reserved(uly_token_kind kind);

#endif
