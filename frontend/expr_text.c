// Text form of scalar expressions, as it stands in IR attributes: printing and parsing.
#include "frontend/expr.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

static const char *const coord_names[ULY_COORD_MAX] = {"b", "h", "q", "k", "s", "i0", "i1", "i2", "i3", "i4", "i5"};
static const char *const type_suffix[] = {[ULY_SCALAR_BOOL] = "b", [ULY_SCALAR_INT] = "i", [ULY_SCALAR_FLOAT] = ""};

int32_t uly_coord_by_name(uly_str name) {
  for (int32_t i = 0; i < ULY_COORD_I0; i++)
    if (uly_str_is(name, coord_names[i])) return i;
  return -1;
}

// How tightly an operation binds, loosest first. Comparisons do not chain here: the checker has made them conjunctions.
enum { LEVEL_IF, LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_NEG, LEVEL_POWER, LEVEL_PRIMARY };

static int level_of(uly_scalar op) {
  switch (op) {
  case ULY_SC_IF: return LEVEL_IF;
  case ULY_SC_OR: return LEVEL_OR;
  case ULY_SC_AND: return LEVEL_AND;
  case ULY_SC_NOT: return LEVEL_NOT;
  case ULY_SC_LT:
  case ULY_SC_LE:
  case ULY_SC_GT:
  case ULY_SC_GE:
  case ULY_SC_EQ:
  case ULY_SC_NE: return LEVEL_COMPARE;
  case ULY_SC_ADD:
  case ULY_SC_SUB: return LEVEL_SUM;
  case ULY_SC_MUL:
  case ULY_SC_DIV:
  case ULY_SC_FDIV:
  case ULY_SC_MOD: return LEVEL_PRODUCT;
  case ULY_SC_NEG: return LEVEL_NEG;
  case ULY_SC_POW: return LEVEL_POWER;
  default: return LEVEL_PRIMARY;
  }
}

// ---- printing -------------------------------------------------------------------------------------------------------------------------------------------------

typedef struct printer {
  uly_text text;
  const uly_expr *expr;
  const uly_str *symbols;
  int n_symbols;
  int32_t *names; // by node: number of its t…, -1 without
} printer;

static void print_node(printer *p, int32_t number, int level);

void uly_float_print(uly_text *text, double f) {
  char digits[40];
  if (!isfinite(f)) {
    uly_text_add(text, "%s", isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
    return;
  }
  int whole = fabs(f) >= 1.0 && fabs(f) < 1e15 ? (int)floor(log10(fabs(f))) + 1 : 1; // digits before the point
  for (int n = whole; n <= 17; n++) {
    snprintf(digits, sizeof digits, "%.*g", n, f);
    if (strtod(digits, NULL) == f) break;
  }
  uly_text_add(text, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

static void print_args(printer *p, const uly_expr_node *node, const char *open, const char *close) {
  uly_text_add(&p->text, "%s", open);
  for (int i = 0; i < node->n_args; i++) {
    if (i) uly_text_add(&p->text, ", ");
    print_node(p, node->args[i], LEVEL_IF);
  }
  uly_text_add(&p->text, "%s", close);
}

static void print_leaf(printer *p, const uly_expr_node *node) {
  switch ((uly_scalar)node->op) {
  case ULY_SC_CONST:
    if (node->type == ULY_SCALAR_FLOAT)
      uly_float_print(&p->text, node->value.f);
    else if (node->type == ULY_SCALAR_INT)
      uly_text_add(&p->text, "%" PRId64, node->value.i);
    else
      uly_text_add(&p->text, "%s", node->value.i ? "true" : "false");
    return;
  case ULY_SC_COORD: uly_text_add(&p->text, "%s", coord_names[node->index]); return;
  case ULY_SC_SIZE:
    ULY_ASSERT(node->index >= 0 && node->index < p->n_symbols);
    uly_text_add(&p->text, "size(%.*s)", ULY_STR_ARG(p->symbols[node->index]));
    return;
  case ULY_SC_OPERAND: uly_text_add(&p->text, "x%d%s", node->index, type_suffix[node->type]); return;
  default: uly_text_add(&p->text, "c%d%s", node->index, type_suffix[node->type]); print_args(p, node, "[", "]");
  }
}

static void print_if(printer *p, const uly_expr_node *node) {
  uly_text_add(&p->text, "if ");
  print_node(p, node->args[0], LEVEL_OR);
  uly_text_add(&p->text, " then ");
  print_node(p, node->args[1], LEVEL_OR);
  uly_text_add(&p->text, " else ");
  print_node(p, node->args[2], LEVEL_IF);
}

static bool is_negative(const uly_expr_node *node) {
  return node->op == ULY_SC_CONST && (node->type == ULY_SCALAR_FLOAT ? signbit(node->value.f) && !isnan(node->value.f) : node->value.i < 0);
}

static void print_operation(printer *p, const uly_expr_node *node, int own) {
  const uly_scalar_info *info = uly_scalar_get((uly_scalar)node->op);
  if (node->op == ULY_SC_IF) {
    print_if(p, node);
  } else if (info->class == ULY_SCALAR_UNARY) {
    uly_text_add(&p->text, "%s%s", info->text, node->op == ULY_SC_NOT ? " " : "");
    // A number would be read as a negative constant.
    print_node(p, node->args[0], p->expr->nodes[node->args[0]].op == ULY_SC_CONST ? LEVEL_PRIMARY + 1 : own);
  } else if (info->class == ULY_SCALAR_BINARY) {
    bool right = node->op == ULY_SC_POW, strict = own == LEVEL_COMPARE;
    print_node(p, node->args[0], own + (right || strict));
    uly_text_add(&p->text, " %s ", info->text);
    print_node(p, node->args[1], right ? LEVEL_NEG : own + 1);
  } else {
    uly_text_add(&p->text, "%s", info->text);
    print_args(p, node, "(", ")");
  }
}

static void print_node(printer *p, int32_t number, int level) {
  const uly_expr_node *node = &p->expr->nodes[number];
  if (p->names[number] >= 0) {
    uly_text_add(&p->text, "t%d", p->names[number]);
    return;
  }
  int own = is_negative(node) ? LEVEL_NEG : level_of((uly_scalar)node->op);
  bool leaf = node->n_args == 0 || node->op == ULY_SC_LOAD, parens = own < level;
  if (parens) uly_text_add(&p->text, "(");
  if (leaf)
    print_leaf(p, node);
  else
    print_operation(p, node, own);
  if (parens) uly_text_add(&p->text, ")");
}

enum { NAMED_DEPTH = 100 }; // deeper values get names too, so that reading the text needs no deep recursion

uly_str uly_expr_print(uly_arena *arena, const uly_expr *expr, const uly_str *symbols, int n_symbols) {
  printer p = {.text = {.arena = arena}, .expr = expr, .symbols = symbols, .n_symbols = n_symbols};
  int32_t *uses = ULY_NEW_ARRAY(arena, int32_t, expr->n_nodes), *depth = ULY_NEW_ARRAY(arena, int32_t, expr->n_nodes), n_names = 0;
  p.names = ULY_NEW_ARRAY(arena, int32_t, expr->n_nodes);
  for (int32_t i = 0; i < expr->n_nodes; i++) {
    p.names[i] = -1;
    for (int j = 0; j < expr->nodes[i].n_args; j++) uses[expr->nodes[i].args[j]]++;
  }
  if (expr->wide) uly_text_add(&p.text, "wide ");
  for (int32_t i = 0; i < expr->n_nodes; i++) {
    for (int j = 0; j < expr->nodes[i].n_args; j++)
      if (depth[expr->nodes[i].args[j]] >= depth[i]) depth[i] = depth[expr->nodes[i].args[j]] + 1;
    if ((uses[i] < 2 && depth[i] < NAMED_DEPTH) || expr->nodes[i].n_args == 0 || i + 1 == expr->n_nodes) continue;
    depth[i] = 0;
    uly_text_add(&p.text, "t%d = ", n_names);
    print_node(&p, i, LEVEL_IF);
    uly_text_add(&p.text, "; ");
    p.names[i] = n_names++;
  }
  print_node(&p, expr->n_nodes - 1, LEVEL_IF);
  return uly_text_str(&p.text);
}

// ---- parsing --------------------------------------------------------------------------------------------------------------------------------------------------
// Recursive descent without a lexer of its own: words and operators are tried at the cursor. -1 is an error anywhere.

enum { MAX_DEPTH = 2000 };

typedef struct reader {
  const char *at, *end;
  uly_expr_builder *b;
  const uly_str *symbols;
  int n_symbols, depth;
  int32_t *temps, n_temps;
} reader;

static int32_t read_expr(reader *r);
static int32_t read_unary(reader *r);

static void skip_space(reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n')) r->at++;
}
static bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

static bool accept(reader *r, const char *text) {
  size_t n = strlen(text);
  skip_space(r);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0) return false;
  const char *after = r->at + n;
  if (is_word(text[0]) && after < r->end && is_word(*after)) return false;
  r->at = after;
  return true;
}

static uly_str read_word(reader *r) {
  skip_space(r);
  const char *begin = r->at;
  while (r->at < r->end && is_word(*r->at)) r->at++;
  return (uly_str){begin, (size_t)(r->at - begin)};
}

static int32_t read_number(reader *r, bool negative) {
  char digits[64];
  size_t n = 0;
  bool real = false;
  skip_space(r);
  if (negative) digits[n++] = '-';
  while (r->at < r->end && n + 1 < sizeof digits) {
    char c = *r->at;
    bool sign = (c == '+' || c == '-') && n && (digits[n - 1] == 'e' || digits[n - 1] == 'E');
    if (!(c >= '0' && c <= '9') && c != '.' && c != 'e' && c != 'E' && !sign) break;
    real |= c == '.' || c == 'e' || c == 'E';
    digits[n++] = c;
    r->at++;
  }
  digits[n] = 0;
  char *stop;
  errno = 0;
  double f = real ? strtod(digits, &stop) : 0;
  int64_t i = real ? 0 : strtoll(digits, &stop, 10);
  if (*stop || stop == digits || (!real && errno)) return -1;
  return real ? uly_expr_const_float(r->b, f) : uly_expr_const_int(r->b, i);
}

static int read_args(reader *r, const char *close, int32_t *args) {
  int n = 0;
  if (accept(r, close)) return 0;
  do {
    if (n == ULY_EXPR_MAX_ARGS || (args[n++] = read_expr(r)) < 0) return -1;
  } while (accept(r, ","));
  return accept(r, close) ? n : -1;
}

// A letter, a number and a type's letter: x0, c3i, t2.
static bool split_word(uly_str word, char letter, bool typed, int32_t *out_number, uly_scalar_type *out_type) {
  size_t i = 1;
  int64_t number = 0;
  if (word.len < 2 || word.len > 9 || word.ptr[0] != letter) return false;
  for (; i < word.len && word.ptr[i] >= '0' && word.ptr[i] <= '9'; i++) number = number * 10 + word.ptr[i] - '0';
  *out_type = ULY_SCALAR_FLOAT;
  if (typed && i + 1 == word.len && (word.ptr[i] == 'i' || word.ptr[i] == 'b')) *out_type = word.ptr[i++] == 'i' ? ULY_SCALAR_INT : ULY_SCALAR_BOOL;
  *out_number = (int32_t)number;
  return i > 1 && i == word.len;
}

static int32_t read_size(reader *r) {
  if (!accept(r, "(")) return -1;
  uly_str name = read_word(r);
  for (int i = 0; i < r->n_symbols; i++)
    if (uly_str_equal(r->symbols[i], name)) return accept(r, ")") ? uly_expr_leaf(r->b, ULY_SC_SIZE, ULY_SCALAR_INT, i) : -1;
  return -1;
}

static int32_t read_named(reader *r, uly_str word) {
  int32_t number, args[ULY_EXPR_MAX_ARGS];
  uly_scalar_type type;
  uly_scalar op;
  uly_dtype dtype;
  if (uly_str_is(word, "true") || uly_str_is(word, "false")) return uly_expr_const_bool(r->b, word.ptr[0] == 't');
  if (uly_str_is(word, "inf")) return uly_expr_const_float(r->b, (double)INFINITY);
  if (uly_str_is(word, "nan")) return uly_expr_const_float(r->b, (double)NAN);
  if (uly_str_is(word, "size")) return read_size(r);
  for (int i = 0; i < ULY_COORD_MAX; i++)
    if (uly_str_is(word, coord_names[i])) return uly_expr_leaf(r->b, ULY_SC_COORD, i == ULY_COORD_S ? ULY_SCALAR_FLOAT : ULY_SCALAR_INT, i);
  if (split_word(word, 'x', true, &number, &type)) return uly_expr_leaf(r->b, ULY_SC_OPERAND, type, number);
  if (split_word(word, 't', false, &number, &type)) return number < r->n_temps ? r->temps[number] : -1;
  if (split_word(word, 'c', true, &number, &type)) {
    int n = accept(r, "[") ? read_args(r, "]", args) : -1;
    return n < 0 ? -1 : uly_expr_load(r->b, type, number, args, n);
  }
  bool stored = uly_dtype_by_name(word, &dtype) && uly_scalar_stored(dtype, &op);
  if ((!stored && !uly_scalar_by_name(word, &op)) || !accept(r, "(")) return -1;
  int n = read_args(r, ")", args);
  return n < 0 ? -1 : uly_expr_op(r->b, op, args, n);
}

static int32_t read_primary(reader *r) {
  skip_space(r);
  if (r->at == r->end) return -1;
  if (accept(r, "(")) {
    int32_t inner = read_expr(r);
    return accept(r, ")") ? inner : -1;
  }
  if (*r->at >= '0' && *r->at <= '9') return read_number(r, false);
  return read_named(r, read_word(r));
}

static int32_t read_power(reader *r) {
  int32_t args[2] = {read_primary(r)};
  if (args[0] < 0 || !accept(r, "**")) return args[0];
  args[1] = read_unary(r);
  return uly_expr_op(r->b, ULY_SC_POW, args, 2);
}

static int32_t read_unary(reader *r) {
  if (!accept(r, "-")) return read_power(r);
  skip_space(r);
  if (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
    const char *number = r->at;
    int32_t constant = read_number(r, true);
    if (!accept(r, "**")) return constant;
    r->at = number;
  }
  int32_t arg = read_unary(r);
  return uly_expr_op(r->b, ULY_SC_NEG, &arg, 1);
}

// One operator of a level of precedence at the cursor; the longest spelling wins.
static bool accept_operator(reader *r, int level, uly_scalar *out_op) {
  size_t longest = 0;
  const char *start = r->at, *after = r->at;
  for (int op = 0; op < ULY_N_SCALARS; op++) {
    const uly_scalar_info *info = uly_scalar_get((uly_scalar)op);
    if (info->class != ULY_SCALAR_BINARY || strlen(info->text) <= longest) continue;
    r->at = start;
    if (!accept(r, info->text)) continue;
    longest = strlen(info->text);
    after = r->at;
    *out_op = (uly_scalar)op;
  }
  bool fits = longest && level_of(*out_op) == level;
  r->at = fits ? after : start;
  return fits;
}

static int32_t read_level(reader *r, int level) {
  int32_t args[2];
  uly_scalar op;
  if (level == LEVEL_NEG) return read_unary(r);
  if (level == LEVEL_NOT) {
    if (!accept(r, "not")) return read_level(r, LEVEL_COMPARE);
    args[0] = read_level(r, LEVEL_NOT);
    return uly_expr_op(r->b, ULY_SC_NOT, args, 1);
  }
  args[0] = read_level(r, level + 1);
  while (args[0] >= 0 && accept_operator(r, level, &op)) {
    args[1] = read_level(r, level + 1);
    args[0] = uly_expr_op(r->b, op, args, 2);
    if (level == LEVEL_COMPARE) break;
  }
  return args[0];
}

static int32_t read_expr(reader *r) {
  int32_t args[3], result = -1;
  if (r->depth++ >= MAX_DEPTH) return -1;
  if (!accept(r, "if")) {
    result = read_level(r, LEVEL_OR);
  } else {
    args[0] = read_expr(r);
    bool then = accept(r, "then");
    args[1] = then ? read_expr(r) : -1;
    args[2] = then && accept(r, "else") ? read_expr(r) : -1;
    result = uly_expr_op(r->b, ULY_SC_IF, args, 3);
  }
  r->depth--;
  return result;
}

// "t3 = " for the next temporary.
static bool accept_temp(reader *r) {
  const char *start = r->at;
  int32_t number;
  uly_scalar_type type;
  if (split_word(read_word(r), 't', false, &number, &type) && number == r->n_temps && number < ULY_EXPR_MAX_NODES && accept(r, "=") && !accept(r, "="))
    return true;
  r->at = start;
  return false;
}

uly_status uly_expr_parse(uly_arena *arena, uly_str text, const uly_str *symbols, int n_symbols, uly_expr *out_expr) {
  reader r = {.at = text.ptr, .end = text.ptr + text.len, .b = uly_expr_begin(arena), .symbols = symbols, .n_symbols = n_symbols};
  bool wide = accept(&r, "wide");
  r.temps = ULY_NEW_ARRAY(arena, int32_t, ULY_EXPR_MAX_NODES);
  while (accept_temp(&r)) {
    int32_t value = read_expr(&r);
    if (value < 0 || !accept(&r, ";")) return ULY_INVALID_INPUT;
    r.temps[r.n_temps++] = value;
  }
  int32_t result = read_expr(&r);
  skip_space(&r);
  if (result < 0 || r.at != r.end) return ULY_INVALID_INPUT;
  *out_expr = uly_expr_end(r.b, result);
  out_expr->wide = wide;
  return ULY_OK;
}
