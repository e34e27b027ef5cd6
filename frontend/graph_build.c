// Values of the graph under construction, in regions: the entry's body, and that of each open repeat.
#include "frontend/checker.h"
#include "frontend/graph_print.h"

static void append(uly_checker *c, uly_region *region, uly_graph_value *value) {
  ULY_MAKE_ROOM(c->arena, region->values, region->n, region->cap, 16);
  region->values[region->n++] = value;
  value->id = region->depth; // until numbered: how many repeats are around it
  if (++c->n_values > ULY_MAX_VALUES && !c->exhausted) {
    c->exhausted = true;
    uly_diag_add(c->diags, value->loc, ULY_D(TOO_MANY_VALUES), ULY_MAX_VALUES);
  }
}

uly_graph_value *uly_build_in(uly_checker *c, uly_region *region, uly_op op, uly_loc loc, const uly_tensor_type *type, uly_graph_value *const *operands,
                              int n) {
  ULY_ASSERT(n <= ULY_MAX_OPERANDS);
  uly_graph_value *value = ULY_NEW(c->arena, uly_graph_value);
  value->op = op;
  value->loc = loc;
  value->type = *type;
  value->n_operands = n;
  for (int i = 0; i < n; i++) value->operands[i] = operands[i];
  append(c, region, value);
  if (!uly_shape_fits(type) && !c->exhausted) {
    uly_str text = uly_shape_text(c, type);
    c->exhausted = true;
    uly_diag_add(c->diags, loc, ULY_D(TENSOR_TOO_LARGE), ULY_STR_ARG(text), ULY_MAX_TENSOR_LOG2_BYTES);
  }
  return value;
}

uly_graph_value *uly_build_value(uly_checker *c, uly_op op, uly_loc loc, const uly_tensor_type *type, uly_graph_value *const *operands, int n) {
  return uly_build_in(c, c->region, op, loc, type, operands, n);
}

uly_value uly_build_tensor(uly_graph_value *value, bool weak) { return (uly_value){.kind = ULY_VALUE_TENSOR, .weak = weak, .u.tensor = value}; }

uly_graph_value *uly_build_result(uly_checker *c, uly_graph_value *of, int32_t index, const uly_tensor_type *type) {
  if (index == 0) return of;
  uly_graph_value *result = uly_build_value(c, ULY_OP_RESULT, of->loc, type, &of, 1);
  result->u.arg.index = index;
  return result;
}

uly_region *uly_build_region(uly_checker *c) {
  uly_region *region = ULY_NEW(c->arena, uly_region);
  region->parent = c->region;
  region->depth = c->region ? c->region->depth + 1 : 0;
  return region;
}

uly_region *uly_build_outermost(uly_checker *c, uly_graph_value *const *operands, int n) {
  int32_t depth = 0;
  for (int i = 0; i < n; i++)
    if (operands[i]->id > depth) depth = operands[i]->id;
  uly_region *region = c->region;
  while (region->depth > depth) region = region->parent;
  return region;
}

// ---- the finished entry ---------------------------------------------------------------------------------------------------------------------------------------

enum { DEAD = -1, LIVE = -2 };

static void set_dead(const uly_graph_region *region) {
  for (int32_t i = 0; i < region->n_values; i++) {
    region->values[i]->id = DEAD;
    if (region->values[i]->op == ULY_OP_REPEAT) set_dead(region->values[i]->u.repeat.body);
  }
}

typedef struct worklist {
  uly_arena *arena;
  uly_graph_value **values;
  int32_t n, cap;
} worklist;

static void set_live(worklist *list, uly_graph_value *value) {
  if (value->id == LIVE) return;
  value->id = LIVE;
  ULY_MAKE_ROOM(list->arena, list->values, list->n, list->cap, 64);
  list->values[list->n++] = value;
}

static void drop_dead_and_number(uly_graph_region *region, int32_t *next) {
  int32_t n = 0;
  for (int32_t i = 0; i < region->n_values; i++) {
    uly_graph_value *value = region->values[i];
    if (value->id == DEAD && value->op != ULY_OP_INPUT && value->op != ULY_OP_BODY_ARG) continue;
    region->values[n++] = value;
    if (value->op == ULY_OP_REPEAT) drop_dead_and_number(value->u.repeat.body, next);
    value->id = (*next)++;
  }
  region->n_values = n;
}

// What no result needs goes: rope's angles, for example, live on in cos and sin.
void uly_build_finish(uly_checker *c, uly_graph_entry *entry) {
  worklist list = {.arena = c->arena};
  entry->body.values = c->region->values;
  entry->body.n_values = c->region->n;
  set_dead(&entry->body);
  for (int32_t i = 0; i < entry->n_results; i++) set_live(&list, entry->results[i].value);
  while (list.n) {
    uly_graph_value *value = list.values[--list.n];
    for (int32_t i = 0; i < value->n_operands; i++) set_live(&list, value->operands[i]);
    if (value->op != ULY_OP_REPEAT) continue;
    for (int32_t i = 0; i < value->u.repeat.body->n_yields; i++) set_live(&list, value->u.repeat.body->yields[i]);
  }
  drop_dead_and_number(&entry->body, &entry->n_values);
}
