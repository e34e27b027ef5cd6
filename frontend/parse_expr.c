// Expressions and types. Loosest to tightest: then, if, or, and, not, comparison, + -, * / // %, unary -, ** (right), call and index.
#include "frontend/parser.h"

static uly_ast_expr *parse_or(uly_parser *p);
static uly_ast_expr *parse_unary(uly_parser *p);

// A tree may also become deep by a long row of operators, without recursion here; those who walk it recurse.
static uly_ast_expr *new_expr(uly_parser *p, uly_ast_expr_kind kind, uly_loc loc) {
  uly_ast_expr *e = ULY_NEW(p->arena, uly_ast_expr);
  e->kind = (uint8_t)kind;
  e->loc = e->op_loc = loc;
  if (++p->n_nodes > ULY_MAX_AST_NODES && !uly_parser_failed(p)) {
    uly_diag_add(p->diags, loc, ULY_D(TOO_MANY_NODES), ULY_MAX_AST_NODES);
    uly_parser_poison(p);
  }
  return e;
}

static void set_height(uly_parser *p, uly_ast_expr *e, const uly_ast_expr *child) {
  if (child && child->height >= e->height) e->height = (uint16_t)(child->height + 1);
  if (e->height > ULY_MAX_HEIGHT && !uly_parser_failed(p)) {
    uly_diag_add(p->diags, e->loc, ULY_D(TOO_LONG), ULY_MAX_HEIGHT);
    uly_parser_poison(p);
  }
}

static uly_ast_expr *new_binary(uly_parser *p, uly_ast_expr_kind kind, uly_scalar op, uly_loc op_loc, uly_ast_expr *a, uly_ast_expr *b) {
  uly_ast_expr *e = new_expr(p, kind, uly_loc_join(a->loc, b->loc));
  e->op = (uint8_t)op;
  e->op_loc = op_loc;
  e->u.args[0] = a;
  e->u.args[1] = b;
  set_height(p, e, a);
  set_height(p, e, b);
  return e;
}

// ---- primaries

static uly_ast_expr *parse_list(uly_parser *p) {
  uly_ast_expr *e = new_expr(p, ULY_AST_LIST, p->tok.loc);
  uly_list items = {0};
  uly_parser_advance(p);
  while (!uly_parser_failed(p) && !uly_parser_at(p, ULY_TOKEN_RBRACKET)) {
    uly_ast_expr *item = uly_parser_expr(p);
    *(uly_ast_expr **)uly_list_push(p->arena, &items, sizeof item) = item;
    set_height(p, e, item);
    if (!uly_parser_accept(p, ULY_TOKEN_COMMA)) break;
  }
  uly_parser_close(p, ULY_TOKEN_RBRACKET, e->loc);
  e->loc = uly_loc_join(e->loc, p->last);
  e->u.list.items = items.items;
  e->u.list.n = items.n;
  return e;
}

// The expression and its closing brace, |hole|, in a string that is the current token: parsed in place, so that its errors point into the string.
static uly_ast_expr *parse_hole(uly_parser *p, uly_str hole) {
  uly_parser inner = *p;
  inner.lexer.pos = (uint32_t)(hole.ptr - p->lexer.text);
  inner.lexer.end = inner.lexer.pos + (uint32_t)hole.len;
  inner.lexer.line = p->tok.loc.line;
  inner.lexer.column = p->tok.loc.column;
  inner.lexer.column_pos = p->tok.loc.begin - p->lexer.base;
  inner.lexer.starts_line = false;
  inner.tok = uly_lex_next(&inner.lexer);
  inner.next = uly_lex_next(&inner.lexer);
  uly_ast_expr *e = uly_parser_expr(&inner);
  uly_parser_expect(&inner, ULY_TOKEN_RBRACE);
  p->n_nodes = inner.n_nodes;
  return e;
}

static uly_loc inside(const uly_parser *p, const char *at) { // a byte of the string that is the current token
  uly_loc loc = p->tok.loc;
  loc.begin = p->lexer.base + (uint32_t)(at - p->lexer.text);
  loc.end = loc.begin + 1;
  for (const char *c = p->tok.text.ptr - 1; c < at; c++) loc.column += ((uint8_t)*c & 0xC0) != 0x80;
  return loc;
}

static uly_ast_expr *parse_string(uly_parser *p) {
  uly_ast_expr *e = new_expr(p, ULY_AST_STRING, p->tok.loc);
  uly_list pieces = {0};
  const char *c = p->tok.text.ptr, *end = c + p->tok.text.len;
  if (p->tok.text.len > ULY_MAX_STRING_BYTES) end = c; // reported
  while (c < end) {
    uly_ast_piece *piece = uly_list_push(p->arena, &pieces, sizeof *piece);
    const char *brace = c;
    while (brace < end && *brace != '{' && *brace != '}') brace++;
    piece->text = (uly_str){c, (size_t)(brace - c)};
    c = brace;
    if (c == end) break;
    const char *close = *c == '{' ? memchr(c, '}', (size_t)(end - c)) : NULL;
    if (!close) {
      if (*c == '{')
        uly_diag_add(p->diags, inside(p, c), ULY_D(OPEN_HOLE));
      else
        uly_diag_add(p->diags, inside(p, c), ULY_D(STRAY_BRACE));
      break;
    }
    piece->hole = parse_hole(p, (uly_str){c + 1, (size_t)(close - c)});
    set_height(p, e, piece->hole);
    c = close + 1;
  }
  e->u.string.pieces = pieces.items;
  e->u.string.n = pieces.n;
  uly_parser_advance(p);
  return e;
}

static uly_ast_expr *parse_literal(uly_parser *p, uly_ast_expr_kind kind) {
  uly_ast_expr *e = new_expr(p, kind, p->tok.loc);
  if (kind == ULY_AST_INT) e->u.i = p->tok.value.i;
  if (kind == ULY_AST_FLOAT) e->u.f = p->tok.value.f;
  if (kind == ULY_AST_BOOL) e->u.b = p->tok.kind == ULY_TOKEN_TRUE;
  if (kind == ULY_AST_NAME) e->u.name = p->tok.text;
  uly_parser_advance(p);
  return e;
}

static uly_ast_expr *parse_name(uly_parser *p) {
  uly_dtype dtype;
  if (p->next.kind != ULY_TOKEN_LBRACKET || !uly_dtype_by_name(p->tok.text, &dtype)) return parse_literal(p, ULY_AST_NAME);
  uly_ast_expr *e = new_expr(p, ULY_AST_TYPE, p->tok.loc);
  e->u.type = uly_parser_type(p);
  e->loc = e->op_loc = e->u.type->loc;
  return e;
}

static uly_ast_expr *parse_primary(uly_parser *p) {
  uly_loc open = p->tok.loc;
  switch (p->tok.kind) {
  case ULY_TOKEN_INT: return parse_literal(p, ULY_AST_INT);
  case ULY_TOKEN_FLOAT: return parse_literal(p, ULY_AST_FLOAT);
  case ULY_TOKEN_TRUE:
  case ULY_TOKEN_FALSE: return parse_literal(p, ULY_AST_BOOL);
  case ULY_TOKEN_NONE: return parse_literal(p, ULY_AST_NONE);
  case ULY_TOKEN_STRING: return parse_string(p);
  case ULY_TOKEN_NAME: return parse_name(p);
  case ULY_TOKEN_LBRACKET: return parse_list(p);
  case ULY_TOKEN_LPAREN: {
    uly_parser_advance(p);
    uly_ast_expr *e = uly_parser_expr(p);
    uly_parser_close(p, ULY_TOKEN_RPAREN, open);
    e->loc = uly_loc_join(open, p->last);
    return e;
  }
  case ULY_TOKEN_IF: {
    uly_diag_add(p->diags, p->tok.loc, ULY_D(IF_IN_MIDDLE));
    uly_parser_poison(p);
    break;
  }
  default: uly_parser_fail(p, "an expression");
  }
  return new_expr(p, ULY_AST_NONE, open);
}

// ---- calls and indices

static uly_ast_expr *parse_call(uly_parser *p, uly_ast_expr *callee) {
  uly_ast_expr *e = new_expr(p, ULY_AST_CALL, callee->loc);
  uly_loc open = p->tok.loc;
  uly_list args = {0};
  bool named = false;
  e->u.call.callee = callee;
  set_height(p, e, callee);
  uly_parser_advance(p);
  while (!uly_parser_failed(p) && !uly_parser_at(p, ULY_TOKEN_RPAREN)) {
    uly_ast_arg *arg = uly_list_push(p->arena, &args, sizeof *arg);
    if (uly_parser_at(p, ULY_TOKEN_NAME) && p->next.kind == ULY_TOKEN_ASSIGN) {
      named = true;
      arg->name = uly_parser_name(p, "a name");
      uly_parser_advance(p);
    }
    arg->value = uly_parser_expr(p);
    if (named && !arg->name.text.len && !uly_parser_failed(p)) uly_diag_add(p->diags, arg->value->loc, ULY_D(POSITIONAL_AFTER));
    set_height(p, e, arg->value);
    if (!uly_parser_accept(p, ULY_TOKEN_COMMA)) break;
  }
  uly_parser_close(p, ULY_TOKEN_RPAREN, open);
  e->op_loc = uly_loc_join(open, p->last);
  e->loc = uly_loc_join(callee->loc, p->last);
  e->u.call.args = args.items;
  e->u.call.n = args.n;
  return e;
}

static void parse_index_item(uly_parser *p, uly_ast_index *item) {
  item->loc = p->tok.loc;
  if (uly_parser_accept(p, ULY_TOKEN_ELLIPSIS)) {
    item->kind = ULY_AST_ELLIPSIS;
  } else if (uly_parser_at(p, ULY_TOKEN_NAME) && uly_str_is(p->tok.text, "_")) {
    item->kind = ULY_AST_NEW_DIM;
    uly_parser_advance(p);
  } else {
    item->kind = ULY_AST_AT;
    if (!uly_parser_at(p, ULY_TOKEN_COLON)) item->begin = uly_parser_expr(p);
    if (uly_parser_accept(p, ULY_TOKEN_COLON)) {
      item->kind = ULY_AST_SLICE;
      if (!uly_parser_at(p, ULY_TOKEN_COMMA) && !uly_parser_at(p, ULY_TOKEN_RBRACKET)) item->end = uly_parser_expr(p);
    }
  }
  item->loc = uly_loc_join(item->loc, p->last);
}

static uly_ast_expr *parse_index(uly_parser *p, uly_ast_expr *base) {
  uly_ast_expr *e = new_expr(p, ULY_AST_INDEX, base->loc);
  uly_loc open = p->tok.loc;
  uly_list items = {0};
  bool ellipsis = false;
  e->u.index.base = base;
  set_height(p, e, base);
  uly_parser_advance(p);
  do {
    uly_ast_index *item = uly_list_push(p->arena, &items, sizeof *item);
    parse_index_item(p, item);
    set_height(p, e, item->begin);
    set_height(p, e, item->end);
    if (item->kind != ULY_AST_ELLIPSIS) continue;
    if (ellipsis) uly_diag_add(p->diags, item->loc, ULY_D(TWO_ELLIPSES));
    ellipsis = true;
  } while (uly_parser_accept(p, ULY_TOKEN_COMMA) && !uly_parser_at(p, ULY_TOKEN_RBRACKET));
  uly_parser_close(p, ULY_TOKEN_RBRACKET, open);
  e->op_loc = uly_loc_join(open, p->last);
  e->loc = uly_loc_join(base->loc, p->last);
  e->u.index.items = items.items;
  e->u.index.n = items.n;
  return e;
}

static uly_ast_expr *parse_postfix(uly_parser *p) {
  uly_ast_expr *e = parse_primary(p);
  for (;;) {
    if (uly_parser_at(p, ULY_TOKEN_LPAREN))
      e = parse_call(p, e);
    else if (uly_parser_at(p, ULY_TOKEN_LBRACKET))
      e = parse_index(p, e);
    else
      return e;
  }
}

// ---- operators

static uly_ast_expr *parse_prefix(uly_parser *p, uly_scalar op, uly_ast_expr *(*operand)(uly_parser *)) {
  uly_loc loc = p->tok.loc;
  uly_parser_advance(p);
  if (!uly_parser_enter(p)) return new_expr(p, ULY_AST_NONE, loc);
  uly_ast_expr *a = operand(p);
  uly_parser_leave(p);
  uly_ast_expr *e = new_expr(p, ULY_AST_UNARY, uly_loc_join(loc, a->loc));
  e->op = (uint8_t)op;
  e->op_loc = loc;
  e->u.args[0] = a;
  set_height(p, e, a);
  return e;
}

static uly_ast_expr *parse_unary(uly_parser *p) {
  if (uly_parser_at(p, ULY_TOKEN_MINUS)) return parse_prefix(p, ULY_SC_NEG, parse_unary);
  uly_ast_expr *a = parse_postfix(p);
  uly_loc op_loc = p->tok.loc;
  if (!uly_parser_accept(p, ULY_TOKEN_POWER)) return a;
  if (!uly_parser_enter(p)) return a;
  uly_ast_expr *b = parse_unary(p);
  uly_parser_leave(p);
  return new_binary(p, ULY_AST_BINARY, ULY_SC_POW, op_loc, a, b);
}

// A left-associative level: |ops| maps token kinds to operations.
typedef struct op_row {
  uint8_t token, op;
} op_row;

static const op_row *find_op(const uly_parser *p, const op_row *ops, int n) {
  for (int i = 0; i < n; i++)
    if (uly_parser_at(p, ops[i].token)) return &ops[i];
  return NULL;
}

static uly_ast_expr *parse_left(uly_parser *p, const op_row *ops, int n, uly_ast_expr *(*operand)(uly_parser *)) {
  uly_ast_expr *a = operand(p);
  const op_row *row;
  while ((row = find_op(p, ops, n))) {
    uly_loc op_loc = p->tok.loc;
    uly_parser_advance(p);
    uly_ast_expr *b = operand(p);
    a = new_binary(p, ULY_AST_BINARY, row->op, op_loc, a, b);
  }
  return a;
}

static uly_ast_expr *parse_product(uly_parser *p) {
  static const op_row ops[] = {
      {ULY_TOKEN_TIMES, ULY_SC_MUL}, {ULY_TOKEN_DIVIDE, ULY_SC_DIV}, {ULY_TOKEN_FLOOR_DIV, ULY_SC_FDIV}, {ULY_TOKEN_MODULO, ULY_SC_MOD}};
  return parse_left(p, ops, 4, parse_unary);
}

static uly_ast_expr *parse_sum(uly_parser *p) {
  static const op_row ops[] = {{ULY_TOKEN_PLUS, ULY_SC_ADD}, {ULY_TOKEN_MINUS, ULY_SC_SUB}};
  return parse_left(p, ops, 2, parse_product);
}

static uly_ast_expr *parse_comparison(uly_parser *p) {
  static const op_row ops[] = {{ULY_TOKEN_LESS, ULY_SC_LT},    {ULY_TOKEN_LESS_EQ, ULY_SC_LE}, {ULY_TOKEN_MORE, ULY_SC_GT},
                               {ULY_TOKEN_MORE_EQ, ULY_SC_GE}, {ULY_TOKEN_EQ, ULY_SC_EQ},      {ULY_TOKEN_NOT_EQ, ULY_SC_NE}};
  uly_ast_expr *a = parse_sum(p);
  const op_row *row = find_op(p, ops, 6);
  if (!row) return a;
  uly_ast_expr *e = new_expr(p, ULY_AST_COMPARE, a->loc);
  uly_list args = {0}, signs = {0};
  *(uly_ast_expr **)uly_list_push(p->arena, &args, sizeof a) = a;
  set_height(p, e, a);
  for (; row; row = find_op(p, ops, 6)) {
    uly_parser_advance(p);
    uly_ast_expr *b = parse_sum(p);
    *(uint8_t *)uly_list_push(p->arena, &signs, 1) = row->op;
    *(uly_ast_expr **)uly_list_push(p->arena, &args, sizeof b) = b;
    set_height(p, e, b);
  }
  e->loc = e->op_loc = uly_loc_join(a->loc, p->last);
  e->u.compare.args = args.items;
  e->u.compare.ops = signs.items;
  e->u.compare.n = args.n;
  return e;
}

static uly_ast_expr *parse_not(uly_parser *p) {
  if (uly_parser_at(p, ULY_TOKEN_NOT)) return parse_prefix(p, ULY_SC_NOT, parse_not);
  return parse_comparison(p);
}

static uly_ast_expr *parse_and(uly_parser *p) {
  static const op_row ops[] = {{ULY_TOKEN_AND, ULY_SC_AND}};
  return parse_left(p, ops, 1, parse_not);
}

static uly_ast_expr *parse_or(uly_parser *p) {
  static const op_row ops[] = {{ULY_TOKEN_OR, ULY_SC_OR}};
  return parse_left(p, ops, 1, parse_and);
}

// |chain|: whether `a then b` may follow. Not in the condition of an `if`, whose own `then` it would take.
static uly_ast_expr *parse_chain(uly_parser *p, bool chain) {
  if (!uly_parser_enter(p)) return new_expr(p, ULY_AST_NONE, p->last);
  uly_ast_expr *e;
  if (uly_parser_at(p, ULY_TOKEN_IF)) {
    e = new_expr(p, ULY_AST_IF, p->tok.loc);
    uly_parser_advance(p);
    e->u.args[0] = parse_chain(p, false);
    uly_parser_expect(p, ULY_TOKEN_THEN);
    e->u.args[1] = parse_chain(p, true);
    uly_parser_expect(p, ULY_TOKEN_ELSE);
    e->u.args[2] = parse_chain(p, chain);
    for (int i = 0; i < 3; i++) set_height(p, e, e->u.args[i]);
    e->loc = e->op_loc = uly_loc_join(e->loc, p->last);
  } else {
    e = parse_or(p);
    while (chain && uly_parser_at(p, ULY_TOKEN_THEN)) {
      uly_loc op_loc = p->tok.loc;
      uly_parser_advance(p);
      uly_ast_expr *b = parse_or(p);
      e = new_binary(p, ULY_AST_THEN, ULY_SC_CONST, op_loc, e, b);
    }
  }
  uly_parser_leave(p);
  return e;
}

uly_ast_expr *uly_parser_expr(uly_parser *p) { return parse_chain(p, true); }

// ---- types

uly_ast_type *uly_parser_type(uly_parser *p) {
  uly_ast_type *type = ULY_NEW(p->arena, uly_ast_type);
  uly_list dims = {0};
  type->loc = p->tok.loc;
  if (!uly_parser_at(p, ULY_TOKEN_LBRACKET)) type->name = uly_parser_name(p, "a type");
  uly_loc open = p->tok.loc;
  if (uly_parser_accept(p, ULY_TOKEN_LBRACKET)) {
    type->has_dims = true;
    while (!uly_parser_failed(p) && !uly_parser_at(p, ULY_TOKEN_RBRACKET)) {
      uly_ast_dim *dim = uly_list_push(p->arena, &dims, sizeof *dim);
      dim->loc = p->tok.loc;
      if (!uly_parser_accept(p, ULY_TOKEN_ELLIPSIS))
        dim->size = uly_parser_expr(p);
      else if (dims.n > 1)
        uly_diag_add(p->diags, dim->loc, ULY_D(ELLIPSIS_FIRST));
      dim->loc = uly_loc_join(dim->loc, p->last);
      if (!uly_parser_accept(p, ULY_TOKEN_COMMA)) break;
    }
    uly_parser_close(p, ULY_TOKEN_RBRACKET, open);
  }
  type->loc = uly_loc_join(type->loc, p->last);
  type->dims = dims.items;
  type->n_dims = dims.n;
  return type;
}
