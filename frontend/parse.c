// The parser's frame, statements and declarations: see parse.h and parser.h.
#include "frontend/parse.h"

#include "frontend/parser.h"

// ---- tokens

static uly_parser begin(uly_arena *arena, uly_diags *diags, int32_t source) {
  uly_parser p = {.arena = arena, .diags = diags, .lexer = uly_lex_begin(arena, diags, source)};
  p.tok = uly_lex_next(&p.lexer);
  p.next = uly_lex_next(&p.lexer);
  p.last = p.tok.loc;
  return p;
}

bool uly_parser_at(const uly_parser *p, uly_token_kind kind) { return p->tok.kind == kind; }
bool uly_parser_failed(const uly_parser *p) { return p->tok.kind == ULY_TOKEN_POISON; }

void uly_parser_advance(uly_parser *p) {
  if (uly_parser_failed(p)) return;
  p->last = p->tok.loc;
  p->tok = p->next;
  if (p->next.kind != ULY_TOKEN_END) p->next = uly_lex_next(&p->lexer);
}

bool uly_parser_accept(uly_parser *p, uly_token_kind kind) {
  if (!uly_parser_at(p, kind)) return false;
  uly_parser_advance(p);
  return true;
}

void uly_parser_poison(uly_parser *p) {
  if (uly_parser_failed(p)) return;
  p->held = p->tok;
  p->tok.kind = ULY_TOKEN_POISON;
}

uly_diag *uly_parser_fail(uly_parser *p, const char *what) {
  if (uly_parser_failed(p)) return NULL;
  uly_diag *d;
  if (uly_token_is_reserved(p->tok.kind)) {
    d = uly_diag_add(p->diags, p->tok.loc, ULY_D(RESERVED), ULY_STR_ARG(p->tok.text));
  } else {
    uly_str found = uly_token_describe(p->arena, &p->tok);
    d = uly_diag_add(p->diags, p->tok.loc, ULY_D(EXPECTED), what, found.ptr);
  }
  uly_parser_poison(p);
  return d;
}

bool uly_parser_expect(uly_parser *p, uly_token_kind kind) {
  if (uly_parser_accept(p, kind)) return true;
  bool assign = uly_parser_at(p, ULY_TOKEN_ASSIGN);
  uly_diag *d = uly_parser_fail(p, uly_token_text(kind));
  if (d && assign && kind == ULY_TOKEN_THEN) uly_diag_note(p->diags, d, (uly_loc){0}, ULY_D(WRITE_EQUAL));
  return false;
}

void uly_parser_close(uly_parser *p, uly_token_kind kind, uly_loc open) {
  if (uly_parser_accept(p, kind)) return;
  const char *what = kind == ULY_TOKEN_RPAREN ? "`,` or `)`" : kind == ULY_TOKEN_RBRACKET ? "`,` or `]`" : "`}`";
  const char *opened = kind == ULY_TOKEN_RPAREN ? "(" : kind == ULY_TOKEN_RBRACKET ? "[" : "{";
  uly_diag *d = uly_parser_fail(p, what);
  if (d) uly_diag_note(p->diags, d, open, ULY_D(OPENED_HERE), 1, opened);
}

uly_ast_name uly_parser_name(uly_parser *p, const char *what) {
  uly_ast_name name = {p->tok.text, p->tok.loc};
  if (uly_parser_accept(p, ULY_TOKEN_NAME)) return name;
  if (uly_token_is_word(p->tok.kind) && !uly_token_is_reserved(p->tok.kind)) {
    uly_diag_add(p->diags, p->tok.loc, ULY_D(KEYWORD_NAME), ULY_STR_ARG(p->tok.text));
    uly_parser_poison(p);
  } else {
    uly_parser_fail(p, what);
  }
  return name;
}

bool uly_parser_enter(uly_parser *p) {
  if (uly_parser_failed(p)) return false;
  if (p->depth >= ULY_MAX_DEPTH) {
    uly_diag_add(p->diags, p->tok.loc, ULY_D(TOO_DEEP), ULY_MAX_DEPTH);
    uly_parser_poison(p);
    return false;
  }
  p->depth++;
  return true;
}

void uly_parser_leave(uly_parser *p) { p->depth--; }

void *uly_list_push(uly_arena *arena, uly_list *list, size_t item_bytes) {
  if (list->n == list->cap) {
    int32_t cap = list->cap ? 2 * list->cap : 4;
    list->items = uly_arena_grow(arena, list->items, item_bytes * (size_t)list->cap, item_bytes * (size_t)cap);
    list->cap = cap;
  }
  return memset((char *)list->items + item_bytes * (size_t)list->n++, 0, item_bytes);
}

// ---- recovery

static bool is_decl_word(uly_str s) {
  for (int k = ULY_AST_CONST; k <= ULY_AST_MODEL; k++)
    if (uly_str_is(s, uly_ast_decl_word((uly_ast_decl_kind)k))) return true;
  return false;
}

// A declaration at the start of a line. `layer x` can be nothing else; a statement may well begin with a variable called `mask`.
static bool at_declaration(const uly_parser *p) {
  return p->tok.kind == ULY_TOKEN_NAME && p->tok.starts_line && is_decl_word(p->tok.text) &&
         (p->next.kind == ULY_TOKEN_NAME || uly_token_is_word(p->next.kind));
}

// Skips what is left of a broken statement that began at |begin|: to the end of its line, but not into a line that is indented no deeper, nor past `}`.
static void recover(uly_parser *p, uly_loc begin) {
  p->tok = p->held;
  if (p->tok.loc.begin == begin.begin) uly_parser_advance(p);
  while (p->tok.kind != ULY_TOKEN_END && p->tok.kind != ULY_TOKEN_RBRACE) {
    if (p->tok.kind == ULY_TOKEN_NEWLINE || (p->tok.starts_line && p->tok.loc.column <= begin.column)) break;
    uly_parser_advance(p);
  }
  p->lexer.depth = 0;
}

// Skips to the next declaration, or to what may have been meant as one: a line at the left margin, outside brackets and braces.
static void recover_declaration(uly_parser *p) {
  int32_t braces = 0;
  bool line = false;
  if (uly_parser_failed(p)) p->tok = p->held;
  while (p->tok.kind != ULY_TOKEN_END && !at_declaration(p)) {
    bool margin = p->tok.starts_line && p->tok.loc.column == 1 && p->tok.kind != ULY_TOKEN_RBRACE;
    if (margin && ((line && braces <= 0) || (p->tok.kind == ULY_TOKEN_NAME && is_decl_word(p->tok.text)))) break;
    line = p->tok.kind == ULY_TOKEN_NEWLINE;
    braces += p->tok.kind == ULY_TOKEN_LBRACE;
    braces -= p->tok.kind == ULY_TOKEN_RBRACE;
    uly_parser_advance(p);
  }
  p->lexer.depth = 0;
}

// ---- statements

static bool parse_block(uly_parser *p, uly_ast_block *block);

static void parse_repeat(uly_parser *p, uly_ast_stmt *s) {
  s->kind = ULY_AST_REPEAT;
  uly_parser_advance(p);
  s->u.repeat.count = uly_parser_expr(p);
  if (uly_parser_accept(p, ULY_TOKEN_AS)) s->u.repeat.counter = uly_parser_name(p, "the counter's name");
  if (!uly_parser_at(p, ULY_TOKEN_LBRACE)) uly_parser_fail(p, "`{`");
  if (!uly_parser_enter(p)) return;
  parse_block(p, &s->u.repeat.body);
  uly_parser_leave(p);
}

static void parse_return(uly_parser *p, uly_ast_stmt *s) {
  uly_list values = {0};
  s->kind = ULY_AST_RETURN;
  uly_parser_advance(p);
  do {
    uly_ast_expr *e = uly_parser_expr(p);
    *(uly_ast_expr **)uly_list_push(p->arena, &values, sizeof e) = e;
  } while (uly_parser_accept(p, ULY_TOKEN_COMMA));
  s->u.ret.values = values.items;
  s->u.ret.n = values.n;
}

static void parse_let(uly_parser *p, uly_ast_stmt *s) {
  uly_list names = {0};
  s->kind = ULY_AST_LET;
  if (!uly_parser_at(p, ULY_TOKEN_NAME)) {
    uly_loc line = p->last;
    bool goes_on = p->tok.starts_line && uly_token_joins(p->tok.kind);
    uly_diag *d = uly_parser_fail(p, "a statement");
    if (d && goes_on) uly_diag_note(p->diags, d, line, ULY_D(LINE_ENDED));
  }
  do {
    *(uly_ast_name *)uly_list_push(p->arena, &names, sizeof(uly_ast_name)) = uly_parser_name(p, "a name");
  } while (uly_parser_accept(p, ULY_TOKEN_COMMA));
  if (uly_parser_at(p, ULY_TOKEN_LBRACKET)) {
    uly_diag_add(p->diags, uly_loc_join(s->loc, p->tok.loc), ULY_D(ASSIGN_INDEX));
    uly_parser_poison(p);
  }
  uly_parser_expect(p, ULY_TOKEN_ASSIGN);
  s->u.let.names = names.items;
  s->u.let.n_names = names.n;
  s->u.let.value = uly_parser_expr(p);
}

static void parse_statement(uly_parser *p, uly_ast_stmt *s) {
  s->loc = p->tok.loc;
  if (uly_parser_at(p, ULY_TOKEN_RETURN))
    parse_return(p, s);
  else if (uly_parser_at(p, ULY_TOKEN_REPEAT))
    parse_repeat(p, s);
  else
    parse_let(p, s);
  s->loc = uly_loc_join(s->loc, p->last);
}

// What must follow a statement or declaration. A line that goes on with an operator gets a hint.
static void end_line(uly_parser *p, bool in_block) {
  if (uly_parser_failed(p) || uly_parser_at(p, ULY_TOKEN_END) || (in_block && uly_parser_at(p, ULY_TOKEN_RBRACE))) return;
  if (uly_parser_accept(p, ULY_TOKEN_NEWLINE) || p->tok.starts_line) return; // after an error inside brackets the newline is no token
  bool assign = uly_parser_at(p, ULY_TOKEN_ASSIGN);
  uly_diag *d = uly_parser_fail(p, "the end of the line");
  if (d && assign) uly_diag_note(p->diags, d, (uly_loc){0}, ULY_D(WRITE_EQUAL));
}

// { statements }. False where it ended without its brace.
static bool parse_block(uly_parser *p, uly_ast_block *block) {
  uly_list stmts = {0};
  uly_loc open = p->tok.loc;
  uly_parser_expect(p, ULY_TOKEN_LBRACE);
  if (uly_parser_failed(p)) return false;
  while (!uly_parser_at(p, ULY_TOKEN_RBRACE) && !uly_parser_at(p, ULY_TOKEN_END) && !at_declaration(p) && p->diags->n_errors < ULY_MAX_DIAGS) {
    uly_loc begin = p->tok.loc;
    uly_ast_stmt stmt = {0}; // a nested block grows the arena between
    parse_statement(p, &stmt);
    *(uly_ast_stmt *)uly_list_push(p->arena, &stmts, sizeof stmt) = stmt;
    if (stmts.n == ULY_MAX_STATEMENTS + 1) uly_diag_add(p->diags, stmt.loc, ULY_D(TOO_MANY_STATEMENTS), ULY_MAX_STATEMENTS);
    end_line(p, true);
    if (uly_parser_failed(p)) {
      recover(p, begin);
      uly_parser_accept(p, ULY_TOKEN_NEWLINE);
    }
  }
  block->stmts = stmts.items;
  block->n = stmts.n;
  block->end = p->tok.loc;
  if (!stmts.n) uly_diag_add(p->diags, uly_loc_join(open, p->tok.loc), ULY_D(NO_STATEMENT));
  uly_parser_close(p, ULY_TOKEN_RBRACE, open);
  return !uly_parser_failed(p);
}

// = expression, or a block.
static void parse_body(uly_parser *p, uly_ast_block *block) {
  if (!uly_parser_accept(p, ULY_TOKEN_ASSIGN)) {
    if (!uly_parser_at(p, ULY_TOKEN_LBRACE)) uly_parser_fail(p, "`=` or `{`");
    parse_block(p, block);
    return;
  }
  uly_ast_stmt *s = block->stmts = ULY_NEW(p->arena, uly_ast_stmt);
  block->n = 1;
  s->kind = ULY_AST_RETURN;
  s->u.ret.n = 1;
  s->u.ret.values = ULY_NEW_ARRAY(p->arena, uly_ast_expr *, 1);
  s->u.ret.values[0] = uly_parser_expr(p);
  uly_diag *d = uly_parser_at(p, ULY_TOKEN_COMMA) ? uly_parser_fail(p, "the end of the line") : NULL;
  if (d) uly_diag_note(p->diags, d, (uly_loc){0}, ULY_D(SEVERAL_RESULTS));
  s->loc = block->end = s->u.ret.values[0]->loc;
}

// ---- declarations

static uly_ast_param parse_param(uly_parser *p) {
  uly_ast_param param = {.name = uly_parser_name(p, "a name")};
  if (uly_parser_accept(p, ULY_TOKEN_COLON)) param.type = uly_parser_type(p);
  if (uly_parser_accept(p, ULY_TOKEN_ASSIGN)) param.value = uly_parser_expr(p);
  return param;
}

static void parse_params(uly_parser *p, uly_ast_decl *d) {
  uly_list params = {0}, captures = {0}, *to = &params;
  uly_loc open = p->tok.loc;
  uly_parser_expect(p, ULY_TOKEN_LPAREN);
  while (!uly_parser_failed(p) && !uly_parser_at(p, ULY_TOKEN_RPAREN)) {
    uly_ast_param param = parse_param(p);
    *(uly_ast_param *)uly_list_push(p->arena, to, sizeof param) = param;
    if (to->n == ULY_MAX_PARAMS + 1) uly_diag_add(p->diags, param.name.loc, ULY_D(TOO_MANY_PARAMS), ULY_MAX_PARAMS);
    if (uly_parser_at(p, ULY_TOKEN_SEMICOLON) && to == &params) {
      if (d->kind != ULY_AST_MASK && d->kind != ULY_AST_SCORE) uly_diag_add(p->diags, p->tok.loc, ULY_D(CAPTURES_HERE));
      uly_parser_advance(p);
      to = &captures;
    } else if (!uly_parser_accept(p, ULY_TOKEN_COMMA)) {
      break;
    }
  }
  uly_parser_close(p, ULY_TOKEN_RPAREN, open);
  d->u.body.params = params.items;
  d->u.body.n_params = params.n;
  d->u.body.captures = captures.items;
  d->u.body.n_captures = captures.n;
}

static uly_ast_name *parse_names(uly_parser *p, uly_token_kind close, const char *what, int32_t *out_n) {
  uly_list names = {0};
  uly_loc open = p->last;
  while (!uly_parser_failed(p) && !uly_parser_at(p, close)) {
    *(uly_ast_name *)uly_list_push(p->arena, &names, sizeof(uly_ast_name)) = uly_parser_name(p, what);
    if (!uly_parser_accept(p, ULY_TOKEN_COMMA)) break;
  }
  uly_parser_close(p, close, open);
  *out_n = names.n;
  return names.items;
}

static void parse_results(uly_parser *p, uly_ast_decl *d) {
  uly_list results = {0};
  if (!uly_parser_accept(p, ULY_TOKEN_ARROW)) uly_parser_fail(p, "`->` and the type of the result");
  uly_loc open = p->tok.loc;
  if (!uly_parser_accept(p, ULY_TOKEN_LPAREN)) {
    uly_ast_result *r = uly_list_push(p->arena, &results, sizeof *r);
    r->type = uly_parser_type(p);
    r->name.loc = r->type->loc;
  } else {
    do {
      uly_ast_result r = {0};
      if (!uly_parser_at(p, ULY_TOKEN_NAME) || p->next.kind != ULY_TOKEN_COLON) {
        if (!uly_parser_failed(p)) uly_diag_add(p->diags, p->tok.loc, ULY_D(UNNAMED_RESULT));
        uly_parser_poison(p);
      }
      r.name = uly_parser_name(p, "a result's name");
      uly_parser_expect(p, ULY_TOKEN_COLON);
      r.type = uly_parser_type(p);
      *(uly_ast_result *)uly_list_push(p->arena, &results, sizeof r) = r;
      if (results.n == ULY_MAX_PARAMS + 1) uly_diag_add(p->diags, r.name.loc, ULY_D(TOO_MANY_PARAMS), ULY_MAX_PARAMS);
    } while (uly_parser_accept(p, ULY_TOKEN_COMMA) && !uly_parser_at(p, ULY_TOKEN_RPAREN));
    uly_parser_close(p, ULY_TOKEN_RPAREN, open);
  }
  d->u.body.results = results.items;
  d->u.body.n_results = results.n;
}

static void parse_function(uly_parser *p, uly_ast_decl *d) {
  bool layer = d->kind == ULY_AST_LAYER || d->kind == ULY_AST_MODEL;
  d->name = uly_parser_name(p, "a name");
  if (uly_parser_at(p, ULY_TOKEN_LBRACKET)) {
    if (!layer) uly_diag_add(p->diags, p->tok.loc, ULY_D(SYMBOLS_HERE));
    uly_parser_advance(p);
    d->u.body.symbols = parse_names(p, ULY_TOKEN_RBRACKET, "a symbol's name", &d->u.body.n_symbols);
  }
  parse_params(p, d);
  if (layer) parse_results(p, d);
  parse_body(p, &d->u.body.body);
}

// One of the declarations behind a word: `a = 1` of const, `B` of free, `sp(S)` of grid, `bf16` of dtype.
static void parse_item(uly_parser *p, uly_ast_decl *d) {
  d->name = uly_parser_name(p, d->kind == ULY_AST_DTYPE ? "a dtype" : "a name");
  if (d->kind == ULY_AST_CONST) {
    uly_parser_expect(p, ULY_TOKEN_ASSIGN);
    d->u.value = uly_parser_expr(p);
  } else if (d->kind == ULY_AST_GRID && uly_parser_expect(p, ULY_TOKEN_LPAREN)) {
    d->u.grid.dims = parse_names(p, ULY_TOKEN_RPAREN, "the dim that the axis splits", &d->u.grid.n_dims);
  }
}

const char *uly_ast_decl_word(uly_ast_decl_kind kind) {
  static const char *const words[] = {"const", "free", "grid", "dtype", "fn", "mask", "score", "layer", "model"};
  return words[kind];
}

static bool decl_kind(uly_str word, uly_ast_decl_kind *out_kind) {
  for (int k = ULY_AST_CONST; k <= ULY_AST_MODEL; k++)
    if (uly_str_is(word, uly_ast_decl_word((uly_ast_decl_kind)k))) return *out_kind = (uly_ast_decl_kind)k, true;
  return false;
}

static void unknown_declaration(uly_parser *p) {
  if (p->tok.kind != ULY_TOKEN_NAME) {
    uly_parser_fail(p, "a declaration");
    return;
  }
  uly_str words[ULY_AST_MODEL + 1];
  for (int k = 0; k <= ULY_AST_MODEL; k++) words[k] = uly_str_of(uly_ast_decl_word((uly_ast_decl_kind)k));
  uly_diag *d = uly_diag_add(p->diags, p->tok.loc, ULY_D(EXPECTED_DECL), ULY_STR_ARG(p->tok.text));
  uly_diag_suggest(p->diags, d, p->tok.text, words, ULY_AST_MODEL + 1);
  uly_parser_poison(p);
}

static void parse_declaration(uly_parser *p, uly_list *decls) {
  uly_ast_decl_kind kind;
  uly_loc word = p->tok.loc;
  if (p->tok.kind != ULY_TOKEN_NAME || !decl_kind(p->tok.text, &kind)) {
    unknown_declaration(p);
    return;
  }
  uly_parser_advance(p);
  bool many = kind == ULY_AST_CONST || kind == ULY_AST_FREE || kind == ULY_AST_GRID;
  do {
    uly_ast_decl d = {.kind = kind, .loc = word};
    if (kind <= ULY_AST_DTYPE)
      parse_item(p, &d);
    else
      parse_function(p, &d);
    d.loc = uly_loc_join(d.loc, p->last);
    *(uly_ast_decl *)uly_list_push(p->arena, decls, sizeof d) = d;
  } while (many && uly_parser_accept(p, ULY_TOKEN_COMMA));
  end_line(p, false);
}

// `ulyc 1`. False where nothing below can be understood.
static bool parse_version(uly_parser *p) {
  if (p->tok.kind != ULY_TOKEN_NAME || !uly_str_is(p->tok.text, "ulyc") || p->next.kind != ULY_TOKEN_INT) {
    uly_diag_add(p->diags, p->tok.loc, ULY_D(NO_VERSION));
    return p->tok.kind == ULY_TOKEN_NAME && is_decl_word(p->tok.text);
  }
  uly_parser_advance(p);
  if (p->tok.value.i != 1) {
    uly_diag_add(p->diags, p->tok.loc, ULY_D(BAD_VERSION), ULY_STR_ARG(p->tok.text));
    return false;
  }
  uly_parser_advance(p);
  end_line(p, false);
  if (uly_parser_failed(p)) recover_declaration(p);
  return true;
}

uly_ast_spec *uly_parse_spec(uly_arena *arena, uly_diags *diags, int32_t source) {
  int32_t errors = diags->n_errors;
  if (!uly_lex_validate(diags, source, ULY_MAX_SOURCE_BYTES)) return NULL;
  uly_parser p = begin(arena, diags, source);
  uly_list decls = {0};
  if (!parse_version(&p)) return NULL;
  while (!uly_parser_at(&p, ULY_TOKEN_END) && diags->n_errors < ULY_MAX_DIAGS) {
    parse_declaration(&p, &decls);
    if (uly_parser_failed(&p)) recover_declaration(&p);
  }
  if (diags->n_errors > errors) return NULL;
  uly_ast_spec *spec = ULY_NEW(arena, uly_ast_spec);
  spec->decls = decls.items;
  spec->n_decls = decls.n;
  return spec;
}

uly_ast_expr *uly_parse_define(uly_arena *arena, uly_diags *diags, int32_t source, uly_ast_name *out_name) {
  int32_t errors = diags->n_errors;
  if (!uly_lex_validate(diags, source, ULY_MAX_SOURCE_BYTES)) return NULL;
  uly_parser p = begin(arena, diags, source);
  *out_name = uly_parser_name(&p, "a const's name");
  uly_parser_expect(&p, ULY_TOKEN_ASSIGN);
  uly_ast_expr *value = uly_parser_expr(&p);
  if (!uly_parser_failed(&p) && !uly_parser_at(&p, ULY_TOKEN_END)) uly_parser_fail(&p, "the end of the value");
  return diags->n_errors > errors ? NULL : value;
}
