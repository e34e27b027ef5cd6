// Evaluation of scalar expressions in float64 and 64-bit ints: constants of a spec, and the oracle of every other emitter. Not fast: a walk over the nodes.
#include "frontend/expr.h"

#include <math.h>

static const uly_scalar_info infos[ULY_N_SCALARS] = {
#define SCALAR(id, text, n_args, class, doc) {text, n_args, ULY_SCALAR_##class, doc},
#include "frontend/scalar.def"
};

const uly_scalar_info *uly_scalar_get(uly_scalar op) {
  ULY_ASSERT((unsigned)op < ULY_N_SCALARS);
  return &infos[op];
}

static bool find(uly_str name, uly_scalar_class class, uly_scalar *out_op) {
  for (int i = 0; i < ULY_N_SCALARS; i++)
    if (infos[i].class == class && uly_str_is(name, infos[i].text)) return *out_op = (uly_scalar)i, true;
  return false;
}

bool uly_scalar_result_type(uly_scalar op, const uly_scalar_type *args, int n_args, uly_scalar_type *out_type, uly_scalar_type *out_arg_type) {
  bool any_float = false, any_bool = false, all_bool = true;
  for (int i = op == ULY_SC_IF; i < n_args; i++) {
    any_float |= args[i] == ULY_SCALAR_FLOAT;
    any_bool |= args[i] == ULY_SCALAR_BOOL;
    all_bool &= args[i] == ULY_SCALAR_BOOL;
  }
  uly_scalar_type common = all_bool ? ULY_SCALAR_BOOL : any_float ? ULY_SCALAR_FLOAT : ULY_SCALAR_INT;
  *out_type = *out_arg_type = common;
  switch (op) {
  case ULY_SC_NOT:
  case ULY_SC_AND:
  case ULY_SC_OR: return all_bool;
  case ULY_SC_EQ:
  case ULY_SC_NE: *out_type = ULY_SCALAR_BOOL; return all_bool || !any_bool;
  case ULY_SC_LT:
  case ULY_SC_LE:
  case ULY_SC_GT:
  case ULY_SC_GE: *out_type = ULY_SCALAR_BOOL; return !any_bool;
  case ULY_SC_IF: return args[0] == ULY_SCALAR_BOOL && (all_bool || !any_bool);
  case ULY_SC_HASH: return common == ULY_SCALAR_INT && !any_bool;
  case ULY_SC_FLOOR:
  case ULY_SC_CEIL: *out_type = ULY_SCALAR_INT; return !any_bool;
  case ULY_SC_FLOAT: *out_type = ULY_SCALAR_FLOAT; return true;
  case ULY_SC_INT: *out_type = ULY_SCALAR_INT; return true;
  case ULY_SC_DIV: return common == ULY_SCALAR_FLOAT && !any_bool;
  case ULY_SC_NEG:
  case ULY_SC_ADD:
  case ULY_SC_SUB:
  case ULY_SC_MUL:
  case ULY_SC_FDIV:
  case ULY_SC_MOD:
  case ULY_SC_POW:
  case ULY_SC_MIN:
  case ULY_SC_MAX:
  case ULY_SC_ABS: return !any_bool;
  case ULY_SC_EXP:
  case ULY_SC_EXP2:
  case ULY_SC_LOG:
  case ULY_SC_LOG2:
  case ULY_SC_SQRT:
  case ULY_SC_RSQRT:
  case ULY_SC_SIN:
  case ULY_SC_COS:
  case ULY_SC_TANH:
  case ULY_SC_SIGMOID:
  case ULY_SC_ERF: *out_type = *out_arg_type = ULY_SCALAR_FLOAT; return !any_bool;
  case ULY_SC_BF16:
  case ULY_SC_F16: return common == ULY_SCALAR_FLOAT && !any_bool;
  case ULY_SC_I32:
  case ULY_SC_U8: return common == ULY_SCALAR_INT && !any_bool;
  case ULY_SC_CONST:
  case ULY_SC_COORD:
  case ULY_SC_SIZE:
  case ULY_SC_OPERAND:
  case ULY_SC_LOAD:
  case ULY_N_SCALARS: break;
  }
  return false;
}

bool uly_scalar_by_name(uly_str name, uly_scalar *out_op) { return find(name, ULY_SCALAR_CALL, out_op); }

uly_dtype uly_scalar_dtype(uly_scalar op) {
  uly_dtype dtype = ULY_N_DTYPES;
  bool known = uly_scalar_get(op)->class == ULY_SCALAR_STORED && uly_dtype_by_name(uly_str_of(uly_scalar_get(op)->text), &dtype);
  ULY_ASSERT(known);
  return dtype;
}

bool uly_scalar_stored(uly_dtype dtype, uly_scalar *out_op) { return find(uly_str_of(uly_dtype_name(dtype)), ULY_SCALAR_STORED, out_op); }

static uint32_t mix(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

uint32_t uly_scalar_hash(int64_t a, int64_t b) {
  uint32_t x = mix((uint32_t)a + 0x9e3779b9u);
  x = mix(x ^ (uint32_t)((uint64_t)a >> 32));
  x = mix(x + (uint32_t)b);
  return mix(x ^ (uint32_t)((uint64_t)b >> 32));
}

static uly_status int_power(int64_t base, int64_t power, int64_t *out) {
  bool overflow = false;
  *out = power >= 0;
  for (; power > 0; power >>= 1) {
    if (power & 1) overflow |= __builtin_mul_overflow(*out, base, out);
    if (power > 1) overflow |= __builtin_mul_overflow(base, base, &base);
  }
  return overflow || power < 0 ? ULY_INVALID_ARGUMENT : ULY_OK;
}

static uly_status apply_int(uly_scalar op, int64_t a, int64_t b, int64_t *out) {
  bool overflow = false;
  switch (op) {
  case ULY_SC_NEG: overflow = __builtin_sub_overflow(0, a, out); break;
  case ULY_SC_ADD: overflow = __builtin_add_overflow(a, b, out); break;
  case ULY_SC_SUB: overflow = __builtin_sub_overflow(a, b, out); break;
  case ULY_SC_MUL: overflow = __builtin_mul_overflow(a, b, out); break;
  case ULY_SC_FDIV:
  case ULY_SC_MOD:
    *out = b == -1 && op == ULY_SC_FDIV ? a : 0; // the one quotient that does not fit
    if (b == 0 || (a == INT64_MIN && b == -1)) return ULY_INVALID_ARGUMENT;
    *out = op == ULY_SC_FDIV ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    break;
  case ULY_SC_POW: return int_power(a, b, out);
  case ULY_SC_LT: *out = a < b; break;
  case ULY_SC_LE: *out = a <= b; break;
  case ULY_SC_GT: *out = a > b; break;
  case ULY_SC_GE: *out = a >= b; break;
  case ULY_SC_EQ: *out = a == b; break;
  case ULY_SC_NE: *out = a != b; break;
  case ULY_SC_AND: *out = a && b; break;
  case ULY_SC_OR: *out = a || b; break;
  case ULY_SC_NOT: *out = !a; break;
  case ULY_SC_MIN: *out = a < b ? a : b; break;
  case ULY_SC_MAX: *out = a > b ? a : b; break;
  case ULY_SC_ABS:
    *out = a;
    if (a < 0) overflow = __builtin_sub_overflow(0, a, out);
    break;
  case ULY_SC_FLOOR:
  case ULY_SC_CEIL:
  case ULY_SC_INT: *out = a; break;
  case ULY_SC_HASH: *out = uly_scalar_hash(a, b); break;
  default: return ULY_INVALID_ARGUMENT;
  }
  return overflow ? ULY_INVALID_ARGUMENT : ULY_OK;
}

static double float_mod(double a, double b) {
  double r = fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}

static double apply_float(uly_scalar op, double a, double b) {
  switch (op) {
  case ULY_SC_NEG: return -a;
  case ULY_SC_ADD: return a + b;
  case ULY_SC_SUB: return a - b;
  case ULY_SC_MUL: return a * b;
  case ULY_SC_DIV: return a / b;
  case ULY_SC_FDIV: return floor(a / b);
  case ULY_SC_MOD: return float_mod(a, b);
  case ULY_SC_POW: return pow(a, b);
  case ULY_SC_MIN: return isnan(a) || a < b ? a : b;
  case ULY_SC_MAX: return isnan(a) || a > b ? a : b;
  case ULY_SC_ABS: return fabs(a);
  case ULY_SC_EXP: return exp(a);
  case ULY_SC_EXP2: return exp2(a);
  case ULY_SC_LOG: return log(a);
  case ULY_SC_LOG2: return log2(a);
  case ULY_SC_SQRT: return sqrt(a);
  case ULY_SC_RSQRT: return 1.0 / sqrt(a);
  case ULY_SC_SIN: return sin(a);
  case ULY_SC_COS: return cos(a);
  case ULY_SC_TANH: return tanh(a);
  case ULY_SC_SIGMOID: return 1.0 / (1.0 + exp(-a));
  case ULY_SC_ERF: return erf(a);
  default: ULY_ASSERT(false && "a float operation"); return 0;
  }
}

static bool compare_float(uly_scalar op, double a, double b) {
  switch (op) {
  case ULY_SC_LT: return a < b;
  case ULY_SC_LE: return a <= b;
  case ULY_SC_GT: return a > b;
  case ULY_SC_GE: return a >= b;
  case ULY_SC_EQ: return a == b;
  default: return a != b;
  }
}

// What memory of the dtype keeps: of an int its low bits.
static void apply_stored(uly_scalar op, const uly_number *a, uly_number *out) {
  uly_dtype dtype = uly_scalar_dtype(op);
  uint64_t element = 0;
  if (a->type != ULY_SCALAR_FLOAT) {
    out->i = dtype == ULY_U8 ? (uint8_t)a->i : (int32_t)(uint32_t)(uint64_t)a->i;
    return;
  }
  uly_dtype_store(dtype, &element, 0, a->f);
  out->f = uly_dtype_load(dtype, &element, 0);
}

static uly_status float_to_int(uly_scalar op, double a, int64_t *out) {
  a = op == ULY_SC_FLOOR ? floor(a) : op == ULY_SC_CEIL ? ceil(a) : trunc(a);
  *out = a < 0 ? INT64_MIN : isnan(a) ? 0 : INT64_MAX;
  if (!(a >= -0x1p63 && a < 0x1p63)) return ULY_INVALID_ARGUMENT;
  *out = (int64_t)a;
  return ULY_OK;
}

static double as_float(const uly_number *n) { return n->type == ULY_SCALAR_FLOAT ? n->f : (double)n->i; }

uly_status uly_scalar_apply(uly_scalar op, const uly_number *args, int n_args, uly_number *out_value) {
  uly_scalar_type types[ULY_EXPR_MAX_ARGS], type, arg_type;
  ULY_ASSERT(n_args >= 1 && n_args <= 3);
  for (int i = 0; i < n_args; i++) types[i] = args[i].type;
  if (!uly_scalar_result_type(op, types, n_args, &type, &arg_type)) return ULY_INVALID_ARGUMENT;
  const uly_number *a = &args[0], *b = &args[n_args > 1 ? 1 : 0];
  uly_number out = {.type = type};
  uly_status status = ULY_OK;
  if (op == ULY_SC_IF) {
    const uly_number *arm = &args[a->i ? 1 : 2];
    if (type == ULY_SCALAR_FLOAT)
      out.f = as_float(arm);
    else
      out.i = arm->i;
  } else if (op == ULY_SC_FLOAT) {
    out.f = as_float(a);
  } else if (uly_scalar_get(op)->class == ULY_SCALAR_STORED) {
    apply_stored(op, a, &out);
  } else if (arg_type == ULY_SCALAR_FLOAT && type == ULY_SCALAR_INT) {
    status = float_to_int(op, as_float(a), &out.i);
  } else if (arg_type == ULY_SCALAR_FLOAT && type == ULY_SCALAR_BOOL) {
    out.i = compare_float(op, as_float(a), as_float(b));
  } else if (type == ULY_SCALAR_FLOAT) {
    out.f = apply_float(op, as_float(a), as_float(b));
  } else {
    status = apply_int(op, a->i, b->i, &out.i);
  }
  *out_value = out;
  return status;
}

uly_number uly_expr_node_value(const uly_expr_node *node) {
  uly_number number = {.type = (uly_scalar_type)node->type};
  if (node->type == ULY_SCALAR_FLOAT)
    number.f = node->value.f;
  else
    number.i = node->value.i;
  return number;
}

static uly_number eval_leaf(const uly_expr_node *node, const uly_expr_env *env, const int64_t *indices) {
  uly_number n = {.type = (uly_scalar_type)node->type}, value = n;
  switch ((uly_scalar)node->op) {
  case ULY_SC_CONST: return uly_expr_node_value(node);
  case ULY_SC_SIZE: n.i = env->sizes[node->index]; return n;
  case ULY_SC_COORD:
    if (node->index == ULY_COORD_S)
      n.f = env->score;
    else
      n.i = env->coords[node->index];
    return n;
  case ULY_SC_OPERAND: value = env->operand(env->context, node->index); break;
  case ULY_SC_LOAD: value = env->load(env->context, node->index, indices, node->n_args); break;
  default: ULY_ASSERT(false && "a leaf");
  }
  if (node->type == ULY_SCALAR_FLOAT)
    n.f = value.f;
  else
    n.i = value.i;
  return n;
}

enum { LOCAL_NODES = 64 };

uly_status uly_expr_eval(const uly_expr *expr, const uly_expr_env *env, uly_number *out_value) {
  uly_number local[LOCAL_NODES], *values = env->work ? env->work : local, args[ULY_EXPR_MAX_ARGS];
  uly_status status = ULY_OK;
  if (values == local && expr->n_nodes > LOCAL_NODES) return ULY_EXHAUSTED;
  for (int32_t i = 0; i < expr->n_nodes && status == ULY_OK; i++) {
    const uly_expr_node *node = &expr->nodes[i];
    int64_t indices[ULY_EXPR_MAX_ARGS] = {0};
    for (int j = 0; j < node->n_args; j++) {
      args[j] = values[node->args[j]];
      indices[j] = args[j].i;
    }
    if (node->n_args && node->op != ULY_SC_LOAD)
      status = uly_scalar_apply((uly_scalar)node->op, args, node->n_args, &values[i]);
    else
      values[i] = eval_leaf(node, env, indices);
    if (env->running) status = ULY_OK;
  }
  if (status == ULY_OK) *out_value = values[expr->n_nodes - 1];
  return status;
}
