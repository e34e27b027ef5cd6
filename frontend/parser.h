// What parse.c (declarations, statements) and parse_expr.c (expressions, types) share. Not for others: see parse.h.
//
// Errors: uly_parser_fail reports and poisons the current token, so that every rule up to the statement returns at once without a second report;
// the statement's loop then skips to a place where it can go on. Rules always return a tree, which nobody reads after an error.
#ifndef ULY_FRONTEND_PARSER_H
#define ULY_FRONTEND_PARSER_H

#include "frontend/lex.h"
#include "frontend/parse.h"

typedef struct uly_parser {
  uly_arena *arena;
  uly_diags *diags;
  uly_lexer lexer;
  uly_token tok, next; // |tok| is the current one
  uly_token held;      // the current one, while |tok| is poison
  uly_loc last;        // of the token before
  int32_t depth, n_nodes;
} uly_parser;

void uly_parser_advance(uly_parser *p);
bool uly_parser_at(const uly_parser *p, uly_token_kind kind);
bool uly_parser_accept(uly_parser *p, uly_token_kind kind);
// Reports "expected …, found …" where the current token is another.
bool uly_parser_expect(uly_parser *p, uly_token_kind kind);
bool uly_parser_failed(const uly_parser *p);
void uly_parser_poison(uly_parser *p);
// "expected |what|, found …" at the current token; NULL where already failed.
uly_diag *uly_parser_fail(uly_parser *p, const char *what);
// Closing bracket of what was opened at |open|.
void uly_parser_close(uly_parser *p, uly_token_kind kind, uly_loc open);
uly_ast_name uly_parser_name(uly_parser *p, const char *what);
// Bounds recursion; false after an error. Each enter is followed by one leave.
bool uly_parser_enter(uly_parser *p);
void uly_parser_leave(uly_parser *p);

uly_ast_expr *uly_parser_expr(uly_parser *p);
uly_ast_type *uly_parser_type(uly_parser *p);

// A list of unknown length, built in the arena.
typedef struct uly_list {
  void *items;
  int32_t n, cap;
} uly_list;
void *uly_list_push(uly_arena *arena, uly_list *list, size_t item_bytes); // the new item, zeroed

#endif
