// Static values: numbers, strings and lists known while a spec is checked, also those that differ from one iteration of a repeat to the next.
#include "frontend/checker.h"

#include <inttypes.h>

uly_value uly_static_int(int64_t value) { return (uly_value){.kind = ULY_VALUE_NUMBER, .u.number = {.type = ULY_SCALAR_INT, .i = value}}; }
uly_value uly_static_float(double value) { return (uly_value){.kind = ULY_VALUE_NUMBER, .u.number = {.type = ULY_SCALAR_FLOAT, .f = value}}; }
uly_value uly_static_bool(bool value) { return (uly_value){.kind = ULY_VALUE_NUMBER, .u.number = {.type = ULY_SCALAR_BOOL, .i = value}}; }
uly_value uly_static_string(uly_str value) { return (uly_value){.kind = ULY_VALUE_STRING, .u.string = value}; }

bool uly_value_is_static(const uly_value *value) {
  switch (value->kind) {
  case ULY_VALUE_NONE:
  case ULY_VALUE_NUMBER:
  case ULY_VALUE_STRING:
  case ULY_VALUE_DTYPE:
  case ULY_VALUE_MASK:
  case ULY_VALUE_SCORE:
  case ULY_VALUE_VARYING: return true;
  case ULY_VALUE_LIST:
    for (int32_t i = 0; i < value->u.list.n; i++)
      if (!uly_value_is_static(&value->u.list.items[i])) return false;
    return true;
  default: return false;
  }
}

const char *uly_value_describe(const uly_value *value) {
  static const char *const numbers[] = {"a bool", "an int", "a float"};
  switch (value->kind) {
  case ULY_VALUE_NONE: return "none";
  case ULY_VALUE_NUMBER: return numbers[value->u.number.type];
  case ULY_VALUE_STRING: return "a string";
  case ULY_VALUE_DTYPE: return "a dtype";
  case ULY_VALUE_LIST: return "a list";
  case ULY_VALUE_TYPE: return "a type";
  case ULY_VALUE_TUPLE: return "several results";
  case ULY_VALUE_SIZE: return "a size known only at bind";
  case ULY_VALUE_VARYING: return uly_value_describe(&value->u.list.items[0]);
  case ULY_VALUE_NODE: return "a number of scalar code";
  case ULY_VALUE_CAPTURE: return "a captured tensor";
  case ULY_VALUE_TENSOR: return "a tensor";
  case ULY_VALUE_MASK: return "a mask";
  case ULY_VALUE_SCORE: return "a score";
  case ULY_VALUE_POISON: break;
  }
  return "a wrong value";
}

static bool value_equal(const uly_value *a, const uly_value *b);

static bool closure_equal(const uly_closure *a, const uly_closure *b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind || a->decl != b->decl) return false;
  for (int32_t i = 0; a->decl && i < a->decl->u.body.n_captures; i++)
    if (!value_equal(&a->captures[i], &b->captures[i])) return false;
  return closure_equal(a->a, b->a) && closure_equal(a->b, b->b);
}

static bool value_equal(const uly_value *a, const uly_value *b) {
  if (a->kind != b->kind) return false;
  switch (a->kind) {
  case ULY_VALUE_NUMBER:
    return a->u.number.type == b->u.number.type && a->u.number.i == b->u.number.i && memcmp(&a->u.number.f, &b->u.number.f, sizeof(double)) == 0;
  case ULY_VALUE_STRING: return uly_str_equal(a->u.string, b->u.string);
  case ULY_VALUE_DTYPE: return a->dtype == b->dtype;
  case ULY_VALUE_TENSOR: return a->u.tensor == b->u.tensor;
  case ULY_VALUE_MASK:
  case ULY_VALUE_SCORE: return closure_equal(a->u.closure, b->u.closure);
  case ULY_VALUE_LIST:
    for (int32_t i = 0; i < a->u.list.n && a->u.list.n == b->u.list.n; i++)
      if (!value_equal(&a->u.list.items[i], &b->u.list.items[i])) return false;
    return a->u.list.n == b->u.list.n;
  default: return a->kind == ULY_VALUE_NONE;
  }
}

// ---- operations -----------------------------------------------------------------------------------------------------------------------------------------------

static void report_failed(uly_checker *c, uly_scope *scope, uly_loc loc, uly_scalar op, const uly_number *args, int n) {
  bool ints = true;
  for (int i = 0; i < n; i++) ints &= args[i].type == ULY_SCALAR_INT;
  if ((op == ULY_SC_FDIV || op == ULY_SC_MOD) && ints && args[1].i == 0)
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(DIVISION_BY_ZERO), args[0].i, uly_scalar_get(op)->text);
  else if (op == ULY_SC_POW && ints && args[1].i < 0)
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(NEGATIVE_POWER), args[0].i, args[1].i, args[0].i, args[1].i);
  else
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(INT_OVERFLOW), uly_scalar_get(op)->text);
}

static uly_value apply_numbers(uly_checker *c, uly_scope *scope, uly_loc loc, void *context, const uly_value *args, int n) {
  uly_scalar op = *(const uly_scalar *)context;
  uly_number numbers[3], result;
  uly_scalar_type types[3], type, arg_type;
  for (int i = 0; i < n; i++) {
    numbers[i] = args[i].u.number;
    types[i] = numbers[i].type;
  }
  if (!uly_scalar_result_type(op, types, n, &type, &arg_type)) {
    uly_static_report_types(c, scope, loc, op, types, n);
    return uly_poison();
  }
  if (uly_scalar_apply(op, numbers, n, &result) != ULY_OK) {
    report_failed(c, scope, loc, op, numbers, n);
    return uly_poison();
  }
  return (uly_value){.kind = ULY_VALUE_NUMBER, .u.number = result};
}

void uly_static_report_types(uly_checker *c, uly_scope *scope, uly_loc loc, uly_scalar op, const uly_scalar_type *types, int n) {
  static const char *const names[] = {"bool", "int", "float"};
  const char *text = uly_scalar_get(op)->text;
  if (op == ULY_SC_DIV && types[0] == ULY_SCALAR_INT && types[1] == ULY_SCALAR_INT)
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(INT_DIVISION));
  else if (op == ULY_SC_POW && types[0] == ULY_SCALAR_INT && types[1] == ULY_SCALAR_INT)
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(OPEN_POWER));
  else if (op == ULY_SC_IF && types[0] != ULY_SCALAR_BOOL)
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(IF_CONDITION), names[types[0]]);
  else if (op == ULY_SC_IF)
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(IF_ARMS), names[types[1]], names[types[2]]);
  else if (n == 1)
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(OPERAND_TYPE), text, names[types[0]]);
  else
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(OPERAND_TYPES), text, names[types[0]], names[types[1]]);
}

uly_value uly_static_apply(uly_checker *c, uly_scope *scope, uly_loc loc, uly_scalar op, const uly_value *args, int n) {
  return uly_static_each(c, scope, loc, apply_numbers, &op, args, n);
}

// ---- varying --------------------------------------------------------------------------------------------------------------------------------------------------

uly_value uly_static_at(const uly_value *value, int64_t i, int64_t total) {
  if (value->kind != ULY_VALUE_VARYING) return *value;
  return value->u.list.items[i / (total / value->u.list.n)];
}

uly_value uly_static_each(uly_checker *c, uly_scope *scope, uly_loc loc, uly_static_map map, void *context, const uly_value *args, int n) {
  uly_value items[ULY_EXPR_MAX_ARGS];
  int64_t total = 1;
  ULY_ASSERT(n <= ULY_EXPR_MAX_ARGS);
  for (int i = 0; i < n; i++)
    if (args[i].kind == ULY_VALUE_VARYING && args[i].u.list.n > total) total = args[i].u.list.n;
  if (total == 1) return map(c, scope, loc, context, args, n);
  uly_value result = {.kind = ULY_VALUE_VARYING, .u.list = {ULY_NEW_ARRAY(c->arena, uly_value, total), (int32_t)total}};
  bool same = true;
  for (int64_t k = 0; k < total; k++) {
    if (!uly_eval_step(c, loc)) return uly_poison();
    for (int i = 0; i < n; i++) items[i] = uly_static_at(&args[i], k, total);
    uly_value item = map(c, scope, loc, context, items, n);
    if (item.kind == ULY_VALUE_POISON) return item;
    result.u.list.items[k] = item;
    same &= value_equal(&item, &result.u.list.items[0]);
  }
  return same ? result.u.list.items[0] : result;
}

// The smallest shift in the index of a loop, with |inner| iterations inside one of its own, that leaves |value| as it is; the loop's count where there is none.
static int64_t find_period(const uly_value *value, int64_t count, int64_t inner) {
  int64_t n = value->u.list.n;
  for (int64_t p = 1; p < count; p++) {
    bool repeats = true;
    for (int64_t k = 0; k < n && repeats; k++)
      if (k / inner % count + p < count) repeats = value_equal(&value->u.list.items[k], &value->u.list.items[k + p * inner]);
    if (repeats) return p;
  }
  return count;
}

static int64_t common_multiple(int64_t a, int64_t b, int64_t most) {
  int64_t x = a, y = b;
  while (y) {
    int64_t r = x % y;
    x = y;
    y = r;
  }
  return a / x * b < most ? a / x * b : most;
}

uly_value uly_static_demand(uly_checker *c, uly_value value) {
  if (value.kind != ULY_VALUE_VARYING) return value;
  // Counted from the innermost loop that |value| knows of.
  for (uly_loop *loop = c->loop; loop; loop = loop->parent) {
    if (value.u.list.n % loop->total) continue;
    int64_t period = find_period(&value, loop->count, value.u.list.n / loop->total);
    if (period == 1) continue;
    loop->wanted = common_multiple(loop->wanted, period, loop->count);
    break;
  }
  return value.u.list.items[0];
}

// ---- typed access ---------------------------------------------------------------------------------------------------------------------------------------------

static bool get_number(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value value, const char *what, const char *wanted, uly_number *out) {
  value = uly_static_demand(c, value);
  if (value.kind == ULY_VALUE_NUMBER) return *out = value.u.number, true;
  if (value.kind != ULY_VALUE_POISON) ULY_CHECK_ERROR(c, scope, loc, ULY_D(STATIC_WANTED), what, wanted, uly_value_describe(&value));
  return false;
}

bool uly_static_get_int(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value value, const char *what, int64_t *out) {
  uly_number number;
  if (!get_number(c, scope, loc, value, what, "an int", &number)) return false;
  *out = number.i;
  if (number.type == ULY_SCALAR_INT) return true;
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(STATIC_WANTED), what, "an int", uly_value_describe(&value));
  return false;
}

bool uly_static_get_float(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value value, const char *what, double *out) {
  uly_number number;
  if (!get_number(c, scope, loc, value, what, "a float", &number)) return false;
  *out = number.type == ULY_SCALAR_FLOAT ? number.f : (double)number.i;
  if (number.type != ULY_SCALAR_BOOL) return true;
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(STATIC_WANTED), what, "a float", uly_value_describe(&value));
  return false;
}

bool uly_static_get_bool(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value value, const char *what, bool *out) {
  uly_number number;
  if (!get_number(c, scope, loc, value, what, "a bool", &number)) return false;
  *out = number.i != 0;
  if (number.type == ULY_SCALAR_BOOL) return true;
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(STATIC_WANTED), what, "a bool", uly_value_describe(&value));
  return false;
}
