// Parameters and their names: strings with holes, prefixes, one name an iteration inside repeats, no name twice.
#include "frontend/checker.h"

#include <inttypes.h>

static uly_value text_of(uly_checker *c, uly_scope *scope, uly_loc loc, const uly_value *value) {
  if (value->kind == ULY_VALUE_STRING) return *value;
  if (value->kind != ULY_VALUE_NUMBER) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(HOLE_VALUE), uly_value_describe(value));
    return uly_poison();
  }
  uly_number n = value->u.number;
  if (n.type == ULY_SCALAR_INT) return uly_static_string(uly_str_format(c->arena, "%" PRId64, n.i));
  if (n.type == ULY_SCALAR_BOOL) return uly_static_string(n.i ? ULY_STR("true") : ULY_STR("false"));
  return uly_static_string(uly_str_format(c->arena, "%.17g", n.f));
}

static uly_value join(uly_checker *c, uly_scope *scope, uly_loc loc, void *context, const uly_value *args, int n) {
  uly_value a = text_of(c, scope, loc, &args[0]), b = text_of(c, scope, loc, &args[1]);
  (void)n;
  if (a.kind == ULY_VALUE_POISON || b.kind == ULY_VALUE_POISON) return uly_poison();
  if (!a.u.string.len) return b;
  if (!b.u.string.len) return a;
  return uly_static_string(uly_str_format(c->arena, "%.*s%s%.*s", ULY_STR_ARG(a.u.string), (const char *)context, ULY_STR_ARG(b.u.string)));
}

uly_value uly_param_string(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr) {
  uly_value text = uly_static_string(ULY_STR(""));
  for (int32_t i = 0; i < expr->u.string.n && text.kind != ULY_VALUE_POISON; i++) {
    const uly_ast_piece *piece = &expr->u.string.pieces[i];
    uly_value args[2] = {text, uly_static_string(piece->text)};
    if (piece->text.len) args[0] = uly_static_each(c, scope, expr->loc, join, "", args, 2);
    if (!piece->hole) {
      text = args[0];
      continue;
    }
    args[1] = uly_eval(c, scope, piece->hole);
    if (args[1].kind == ULY_VALUE_POISON) return args[1];
    text = uly_static_each(c, scope, piece->hole->loc, join, "", args, 2);
  }
  return text;
}

uly_value uly_param_join(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value prefix, uly_value name) {
  if (prefix.kind == ULY_VALUE_POISON || name.kind == ULY_VALUE_POISON) return uly_poison();
  return uly_static_each(c, scope, loc, join, ".", (uly_value[]){prefix, name}, 2);
}

// ---- names in use ---------------------------------------------------------------------------------------------------------------------------------------------

static int32_t *name_slot(uly_checker *c, uly_str name) {
  for (uint64_t h = uly_str_hash(name);; h++) {
    int32_t *slot = &c->param_slots[h & (uint64_t)(c->n_param_slots - 1)];
    if (!*slot || uly_str_equal(c->params[*slot - 1].name, name)) return slot;
  }
}

static void add_name(uly_checker *c, uly_str name, uly_graph_value *value, uly_loc loc) {
  if (c->n_params == c->cap_params) {
    int32_t cap = c->cap_params ? c->cap_params * 2 : 64;
    c->params = uly_arena_grow(c->arena, c->params, sizeof *c->params * (size_t)c->cap_params, sizeof *c->params * (size_t)cap);
    c->cap_params = cap;
  }
  c->params[c->n_params++] = (uly_param_name){name, value, loc};
  if (c->n_params * 2 > c->n_param_slots)
    uly_param_forget(c, c->n_params);
  else
    *name_slot(c, name) = c->n_params;
}

// Also makes room.
void uly_param_forget(uly_checker *c, int32_t n_kept) {
  c->n_params = n_kept;
  while (c->n_param_slots < 64 || c->n_param_slots < 2 * n_kept + 2) c->n_param_slots = c->n_param_slots ? c->n_param_slots * 2 : 64;
  c->param_slots = ULY_NEW_ARRAY(c->arena, int32_t, c->n_param_slots);
  for (int32_t i = 0; i < n_kept; i++) *name_slot(c, c->params[i].name) = i + 1;
}

static uly_param_name *find_name(uly_checker *c, uly_str name) {
  if (!c->n_param_slots) return NULL;
  int32_t number = *name_slot(c, name);
  return number ? &c->params[number - 1] : NULL;
}

static bool is_visible(const uly_checker *c, const uly_graph_value *value) {
  for (const uly_region *region = c->region; region; region = region->parent)
    for (int32_t i = region->n; i-- > 0;)
      if (region->values[i] == value) return true;
  return false;
}

static void report_twice(uly_checker *c, uly_scope *scope, uly_loc loc, const uly_param_name *other) {
  uly_diag *d = ULY_CHECK_ERROR(c, scope, loc, ULY_D(PARAM_TWICE), ULY_STR_ARG(other->name));
  if (other->loc.begin != loc.begin) uly_diag_note(c->diags, d, other->loc, ULY_D(FIRST_HERE), ULY_STR_ARG(other->name));
}

// The names of a parameter created here, one an iteration of the open repeats; one alone where it does not vary.
static bool list_names(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value full, uly_str **out_names, int64_t *out_n) {
  int64_t total = c->loop && full.kind == ULY_VALUE_VARYING ? c->loop->total : 1;
  *out_names = ULY_NEW_ARRAY(c->arena, uly_str, total);
  *out_n = total;
  for (int64_t i = 0; i < total; i++) {
    uly_value item = uly_static_at(&full, i, total);
    if (item.kind != ULY_VALUE_STRING || !item.u.string.len) {
      ULY_CHECK_ERROR(c, scope, loc, ULY_D(PARAM_NAME), item.kind == ULY_VALUE_STRING ? "an empty one" : uly_value_describe(&item));
      return false;
    }
    if (memchr(item.u.string.ptr, '*', item.u.string.len)) {
      ULY_CHECK_ERROR(c, scope, loc, ULY_D(LATER_STACKED), ULY_STR_ARG(item.u.string));
      return false;
    }
    (*out_names)[i] = item.u.string;
  }
  return true;
}

// The parameter that already has the name, where it may be used again; *out_failed with an error.
static uly_graph_value *find_tied(uly_checker *c, uly_scope *scope, uly_loc loc, const uly_str *names, int64_t n, const uly_tensor_type *type, bool tie,
                                  bool *out_failed) {
  *out_failed = false;
  for (int64_t i = 0; i < n; i++) {
    uly_param_name *other = find_name(c, names[i]);
    if (!other) continue;
    if (!tie) {
      report_twice(c, scope, loc, other);
      *out_failed = true;
    } else if (!uly_tensor_type_equal(&other->value->type, type)) {
      uly_str a = uly_shape_text(c, type), b = uly_shape_text(c, &other->value->type);
      uly_diag *d = ULY_CHECK_ERROR(c, scope, loc, ULY_D(TIE_TYPE), ULY_STR_ARG(names[i]), ULY_STR_ARG(a), ULY_STR_ARG(b));
      uly_diag_note(c->diags, d, other->loc, ULY_D(FIRST_HERE), ULY_STR_ARG(names[i]));
      *out_failed = true;
    } else if (other->value->u.param.n_names == n && uly_str_equal(other->value->u.param.names[0], names[0]) && is_visible(c, other->value)) {
      return other->value;
    }
    if (*out_failed) return NULL;
  }
  return NULL;
}

uly_value uly_param_create(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value name, const uly_tensor_type *type, double init, bool train, bool tie) {
  uly_value full = uly_param_join(c, scope, loc, scope->frame->path, name);
  uly_str *names;
  int64_t n;
  bool failed;
  const uly_value *own = uly_static_first(&name);
  if (own->kind != ULY_VALUE_STRING) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(PARAM_NAME), uly_value_describe(own));
    return uly_poison();
  }
  if (full.kind == ULY_VALUE_POISON || !list_names(c, scope, loc, full, &names, &n)) return uly_poison();
  if (n == 1 && c->loop && !tie) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(PARAM_IN_REPEAT), ULY_STR_ARG(names[0]), c->loop->total);
    return uly_poison();
  }
  uly_graph_value *tied = find_tied(c, scope, loc, names, n, type, tie, &failed);
  if (failed) return uly_poison();
  if (tied) return uly_build_tensor(tied, true);
  uly_region *region = n == 1 ? uly_build_outermost(c, NULL, 0) : c->region;
  uly_graph_value *value = uly_build_in(c, region, ULY_OP_PARAM, loc, type, NULL, 0);
  value->u.param.names = names;
  value->u.param.n_names = (int32_t)n;
  value->u.param.init = init;
  value->u.param.train = train;
  for (int64_t i = 0; i < n && uly_eval_step(c, loc); i++) {
    uly_param_name *other = find_name(c, names[i]);
    if (other && !tie) {
      report_twice(c, scope, loc, other);
      return uly_poison();
    }
    if (!other) add_name(c, names[i], value, loc);
  }
  return uly_build_tensor(value, true);
}

uly_value uly_param_short(uly_checker *c, uly_scope *scope, uly_loc loc, const char *op, uly_value name, const char *suffix, const int64_t *dims, int32_t rank,
                          double init) {
  if (name.kind == ULY_VALUE_NONE) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(UNNAMED_PARAM), op, suffix);
    return uly_poison();
  }
  uly_tensor_type type = {.dtype = c->dtype, .rank = rank};
  for (int32_t i = 0; i < rank; i++) type.dims[i] = uly_dim_const(dims[i]);
  uly_value own = uly_param_join(c, scope, loc, name, uly_static_string(uly_str_of(suffix)));
  if (own.kind == ULY_VALUE_POISON) return own;
  return uly_param_create(c, scope, loc, own, &type, init, true, false);
}
