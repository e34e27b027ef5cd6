// repeat: its body is expanded once, as the body of a loop, however often it runs. Where something else than a parameter's name differs between iterations (a mask, a
// scale), the loop gets as many copies of the body as there are different ones, and runs that much less often; what is left over stands behind the loop. Where it would stand in more
// loops than a program has, it is all copies.
#include "frontend/checker.h"

typedef struct carried {
  uly_binding *outer[ULY_MAX_OPERANDS];
  uly_value values[ULY_MAX_OPERANDS]; // now
  int32_t n;
} carried;

static bool collect(uly_checker *c, uly_scope *scope, const uly_ast_block *block, carried *list) {
  for (int32_t i = 0; i < block->n; i++) {
    const uly_ast_stmt *stmt = &block->stmts[i];
    if (stmt->kind == ULY_AST_REPEAT && !collect(c, scope, &stmt->u.repeat.body, list)) return false;
    if (stmt->kind != ULY_AST_LET) continue;
    for (int32_t j = 0; j < stmt->u.let.n_names; j++) {
      uly_binding *outer = uly_scopes_find(scope, stmt->u.let.names[j].text);
      int32_t known = 0;
      while (known < list->n && list->outer[known] != outer) known++;
      if (!outer || known < list->n) continue;
      if (outer->value.kind != ULY_VALUE_TENSOR) {
        if (outer->value.kind != ULY_VALUE_POISON)
          ULY_CHECK_ERROR(c, scope, stmt->u.let.names[j].loc, ULY_D(CARRIED_KIND), ULY_STR_ARG(outer->name), uly_value_describe(&outer->value));
        return false;
      }
      if (list->n == ULY_MAX_OPERANDS) {
        ULY_CHECK_ERROR(c, scope, stmt->u.let.names[j].loc, ULY_D(TOO_MANY_CARRIED), ULY_MAX_OPERANDS);
        return false;
      }
      list->values[list->n] = outer->value;
      list->outer[list->n++] = outer;
    }
  }
  return true;
}

// One copy of the body with the counter at |counter|.
static void run_copy(uly_checker *c, uly_scope *scope, const uly_ast_stmt *stmt, uly_value counter, carried *list) {
  uly_scope inner = {.parent = scope, .frame = scope->frame};
  for (int32_t i = 0; i < list->n; i++) {
    uly_ast_name name = {list->outer[i]->name, list->outer[i]->loc};
    uly_scopes_bind(c, &inner, name, list->values[i])->carried = true;
  }
  if (stmt->u.repeat.counter.text.len) uly_scopes_bind(c, &inner, stmt->u.repeat.counter, counter);
  for (int32_t i = 0; i < stmt->u.repeat.body.n && !c->exhausted; i++) uly_layer_statement(c, &inner, &stmt->u.repeat.body.stmts[i]);
  for (int32_t i = 0; i < list->n; i++) list->values[i] = inner.items[i].value;
}

static uly_value varying_counter(uly_checker *c, const uly_loop *loop, int64_t step, int64_t first) {
  uly_value counter = {.kind = ULY_VALUE_VARYING, .u.list = {ULY_NEW_ARRAY(c->arena, uly_value, loop->total), (int32_t)loop->total}};
  for (int64_t k = 0; k < loop->total; k++) counter.u.list.items[k] = uly_static_int(k % loop->count * step + first);
  return counter;
}

static void build_repeat(uly_checker *c, const uly_ast_stmt *stmt, int64_t count, uly_region *body, const carried *before, carried *list) {
  uly_graph_value *initial[ULY_MAX_OPERANDS];
  for (int32_t i = 0; i < list->n; i++) initial[i] = before->values[i].u.tensor;
  uly_graph_value *repeat = uly_build_value(c, ULY_OP_REPEAT, stmt->loc, &initial[0]->type, initial, list->n);
  uly_graph_region *region = ULY_NEW(c->arena, uly_graph_region);
  *region = (uly_graph_region){body->values, body->n, ULY_NEW_ARRAY(c->arena, uly_graph_value *, list->n), list->n};
  repeat->u.repeat.count = count;
  repeat->u.repeat.body = region;
  for (int32_t i = 0; i < list->n; i++) {
    region->yields[i] = list->values[i].u.tensor;
    list->values[i] = uly_build_tensor(uly_build_result(c, repeat, i, &initial[i]->type), false);
  }
}

// The loop proper. False where it must be expanded again, with loop->wanted times as many copies.
static bool run_loop(uly_checker *c, uly_scope *scope, const uly_ast_stmt *stmt, uly_loop *loop, carried *list) {
  carried before = *list;
  int32_t errors = c->diags->n_errors;
  c->region = uly_build_region(c);
  c->loop = loop;
  for (int32_t i = 0; i < list->n; i++) {
    uly_graph_value *arg = uly_build_value(c, ULY_OP_BODY_ARG, list->outer[i]->loc, &list->values[i].u.tensor->type, NULL, 0);
    arg->u.arg.index = i;
    list->values[i] = uly_build_tensor(arg, false);
  }
  for (int64_t r = 0; r < loop->period && !c->exhausted; r++) run_copy(c, scope, stmt, varying_counter(c, loop, loop->period, r), list);
  uly_region *body = c->region;
  c->region = body->parent;
  c->loop = loop->parent;
  if (errors != c->diags->n_errors || c->exhausted) {
    *list = before;
    return true;
  }
  if (loop->wanted > 1) return false;
  build_repeat(c, stmt, loop->count, body, &before, list);
  return true;
}

// What a trial adds, so that it can be taken back.
typedef struct snapshot {
  int32_t n_params;
  int64_t n_values;
  int32_t counts[64], n;
} snapshot;

static snapshot take(const uly_checker *c) {
  snapshot s = {c->n_params, c->n_values, {0}, 0};
  for (const uly_region *region = c->region; region && s.n < 64; region = region->parent) s.counts[s.n++] = region->n;
  return s;
}

static void restore(uly_checker *c, const snapshot *s) {
  int32_t i = 0;
  for (uly_region *region = c->region; region && i < s->n; region = region->parent) region->n = s->counts[i++];
  uly_param_forget(c, s->n_params);
  c->n_values = s->n_values;
}

static int depth_of(const uly_loop *loop) {
  int depth = 0;
  for (; loop; loop = loop->parent) depth++;
  return depth;
}

static void run(uly_checker *c, uly_scope *scope, const uly_ast_stmt *stmt, int64_t count, carried *list) {
  carried before = *list;
  snapshot start = take(c);
  int64_t period = depth_of(c->loop) < ULY_GRAPH_MAX_LOOPS ? 1 : count;
  for (;;) {
    int64_t main_count = count / period;
    uly_loop loop = {.parent = c->loop, .count = main_count, .total = (c->loop ? c->loop->total : 1) * main_count, .period = period, .wanted = 1};
    if (loop.total > ULY_MAX_ITERATIONS) {
      c->exhausted = true;
      ULY_CHECK_ERROR(c, scope, stmt->loc, ULY_D(TOO_MANY_ITERATIONS), loop.total, ULY_MAX_ITERATIONS);
      return;
    }
    if (main_count == 1) break;
    if (run_loop(c, scope, stmt, &loop, list)) break;
    restore(c, &start);
    *list = before;
    period = period * loop.wanted < count ? period * loop.wanted : count;
  }
  int64_t done = count / period == 1 ? 0 : count / period * period;
  for (int64_t i = done; i < count && !c->exhausted; i++) run_copy(c, scope, stmt, uly_static_int(i), list);
}

void uly_repeat(uly_checker *c, uly_scope *scope, const uly_ast_stmt *stmt) {
  int64_t count;
  carried list = {.n = 0};
  uly_loc count_loc = stmt->u.repeat.count->loc;
  if (!uly_static_get_int(c, scope, count_loc, uly_eval(c, scope, stmt->u.repeat.count), "the count of a repeat", &count)) return;
  if (count < 0 || count > ULY_MAX_REPEAT) {
    ULY_CHECK_ERROR(c, scope, count_loc, ULY_D(REPEAT_COUNT), count, ULY_MAX_REPEAT);
    return;
  }
  uly_binding *shadowed = stmt->u.repeat.counter.text.len ? uly_scopes_find(scope, stmt->u.repeat.counter.text) : NULL;
  if (shadowed) {
    uly_diag *d = ULY_CHECK_ERROR(c, scope, stmt->u.repeat.counter.loc, ULY_D(REBOUND), ULY_STR_ARG(shadowed->name));
    uly_diag_note(c->diags, d, shadowed->loc, ULY_D(FIRST_HERE), ULY_STR_ARG(shadowed->name));
    return;
  }
  if (!collect(c, scope, &stmt->u.repeat.body, &list)) return;
  if (!list.n) {
    ULY_CHECK_ERROR(c, scope, stmt->loc, ULY_D(NOTHING_CARRIED));
    return;
  }
  if (count == 0) return;
  int32_t errors = c->diags->n_errors;
  run(c, scope, stmt, count, &list);
  for (int32_t i = 0; i < list.n; i++) {
    // After an error the name keeps its old value, which has the right type.
    if (errors == c->diags->n_errors) list.outer[i]->value = list.values[i];
    list.outer[i]->was_read = true;
  }
}
