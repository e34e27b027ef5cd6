// emit: kernel calls and hooks. A kernel whose description equals an earlier one's is that kernel.
#include "passes/emit.h"

uly_call_builder uly_call_begin(uly_emitter *e, MlirOperation op, uly_kernel_kind kind, int n_ops, int n_vals) {
  uly_call_builder c = {.e = e, .desc = ULY_NEW(e->arena, uly_kernel_desc), .op = op, .n_ops = n_ops, .n_vals = n_vals, .fixed_vals = n_vals};
  c.desc->kind = kind;
  c.desc->loc = uly_op_loc(e->ir, op);
  for (int i = 0; i < n_ops; i++) c.ops[i] = (uly_operand){.kind = ULY_OPERAND_ABSENT, .offset = ULY_NONE};
  for (int i = 0; i < n_vals; i++) c.vals[i] = (uly_call_value){uly_program_const(e->program, 0), ULY_NONE};
  return c;
}

void uly_call_set_op(uly_call_builder *c, int slot, uly_operand operand, uint32_t access) {
  operand.access = access;
  c->ops[slot] = operand;
}

void uly_call_set_val(uly_call_builder *c, int slot, uint32_t node) { c->vals[slot] = (uly_call_value){node, ULY_NONE}; }

void uly_call_set_peers(uly_call_builder *c, int slot, uint32_t node, int32_t axis) {
  c->vals[slot] = (uly_call_value){node, axis < 0 ? ULY_NONE : (uint32_t)axis};
}

int32_t uly_call_add_op(uly_call_builder *c, uly_operand operand, uint32_t access) {
  ULY_ASSERT(c->n_ops < ULY_CALL_MAX_OPS);
  operand.access = access;
  c->ops[c->n_ops] = operand;
  return c->n_ops++;
}

int32_t uly_call_add_val(uly_call_builder *c, uint32_t node) {
  for (int i = c->fixed_vals; i < c->n_vals; i++)
    if (c->vals[i].node == node && c->vals[i].axis == ULY_NONE) return i;
  ULY_ASSERT(c->n_vals < ULY_CALL_MAX_VALS);
  c->vals[c->n_vals] = (uly_call_value){node, ULY_NONE};
  return c->n_vals++;
}

static uint32_t kernel_row(uly_call_builder *c) {
  uly_emitter *e = c->e;
  c->desc->n_ops = c->n_ops;
  c->desc->n_vals = c->n_vals;
  uly_str text = uly_kernel_print(e->arena, c->desc);
  for (uint32_t k = 0; k < e->program->n_kernels; k++)
    if (uly_str_equal(e->kernel_texts[k], text)) return k;
  ULY_MAKE_ROOM(e->arena, e->kernel_texts, e->program->n_kernels, e->cap_kernel_texts, 32);
  e->kernel_texts[e->program->n_kernels] = text;
  return uly_program_add_kernels(e->program, c->desc);
}

static uly_step finish(uly_call_builder *c, uint32_t items, uint32_t scratch, const char *name) {
  uly_program *p = c->e->program;
  uly_step step = {.kind = ULY_STEP_KERNEL,
                   .a = kernel_row(c),
                   .items = items,
                   .scratch = scratch,
                   .predicate = ULY_NONE,
                   .name = uly_program_name(p, uly_str_of(name)),
                   .spec_line = c->desc->loc.line};
  step.operands = (uly_span){p->n_operands, (uint32_t)c->n_ops};
  for (int i = 0; i < c->n_ops; i++) uly_program_add_operands(p, c->ops[i]);
  step.values = (uly_span){p->n_values, (uint32_t)c->n_vals};
  for (int i = 0; i < c->n_vals; i++) uly_program_add_values(p, c->vals[i]);
  return step;
}

void uly_call_end(uly_call_builder *c, uint32_t items, uint32_t scratch, const char *name) { uly_emit_step(c->e, finish(c, items, scratch, name)); }

// ---- hooks

uly_space uly_space_along(uly_emitter *e, const uly_type *type, int32_t cols) {
  uly_space space = {.type = *type, .layout = uly_layout_of(e->program, &e->ir->names, type)};
  _Static_assert((int)ULY_GRAPH_MAX_DIMS <= (int)ULY_HOOK_INDICES, "an index for every dim");
  int32_t n = 0;
  for (int32_t i = 0; i < space.layout.rank; i++) {
    int32_t d = space.layout.order[i];
    space.index[d] = d == cols ? ULY_HOOK_INDICES - 1 : n++;
  }
  return space;
}

uly_space uly_space_of(uly_emitter *e, const uly_type *type) {
  uly_layout layout = uly_layout_of(e->program, &e->ir->names, type);
  return uly_space_along(e, type, layout.rank ? layout.order[layout.rank - 1] : -1);
}

uint32_t uly_rows_set_space(uly_call_builder *c, const uly_space *space) {
  uly_program *p = c->e->program;
  uint32_t size[ULY_HOOK_INDICES], rows = uly_program_const(p, 1);
  for (int i = 0; i < ULY_HOOK_INDICES; i++) size[i] = uly_program_const(p, 1);
  for (int32_t d = 0; d < space->layout.rank; d++) size[space->index[d]] = space->layout.local[d];
  for (int i = 0; i < ULY_HOOK_INDICES; i++) uly_call_set_val(c, ULY_ROWS_N0 + i, size[i]);
  for (int i = 0; i < ULY_HOOK_INDICES - 1; i++) rows = uly_mul(p, rows, size[i]);
  return rows;
}

uly_place uly_site_place(const uly_site *site, MlirValue argument) {
  ULY_ASSERT(mlirValueIsABlockArgument(argument));
  return uly_emit_whole(site->e, mlirOperationGetOperand(site->call, mlirBlockArgumentGetArgNumber(argument)));
}

uly_place uly_site_dense(const uly_site *site, MlirValue argument, int32_t n) {
  uly_type type = uly_type_of(site->e->ir, argument);
  return uly_emit_dense(site->e, site->call, &type, uly_site_place(site, argument), n);
}

MlirValue uly_site_return(const uly_site *site, int i) { return mlirOperationGetOperand(mlirBlockGetTerminator(site->body), i); }

static bool is_const(const uly_program *p, uint32_t node, int64_t value) { return p->nodes[node].kind == ULY_NODE_CONST && p->nodes[node].value == value; }

// The operand at index[d] over its dim d (-1: not indexed).
uly_hook_operand uly_hook_operand_of(uly_call_builder *c, const uly_place *place, const uly_type *type, const int32_t *index, uint32_t access) {
  uly_program *p = c->e->program;
  uly_hook_operand o = {.op = uly_call_add_op(c, place->operand, access), .dtype = type->tensor.dtype};
  uint32_t sum[ULY_HOOK_INDICES];
  for (int i = 0; i < ULY_HOOK_INDICES; i++) sum[i] = uly_program_const(p, 0);
  for (int32_t d = 0; d < type->tensor.rank; d++)
    if (index[d] >= 0) sum[index[d]] = uly_add(p, sum[index[d]], place->stride[d]);
  for (int i = 0; i < ULY_HOOK_INDICES; i++) o.stride[i] = is_const(p, sum[i], 0) ? -1 : is_const(p, sum[i], 1) ? -2 : uly_call_add_val(c, sum[i]);
  return o;
}

uly_hook uly_hook_empty(int n_inputs) {
  uly_hook hook = {.present = true, .n_inputs = n_inputs, .out = {.op = -1}};
  for (int i = 0; i < ULY_HOOK_INDICES; i++) hook.start[i] = -1;
  for (int i = 0; i < ULY_MAX_SYMBOLS; i++) hook.size[i] = -1;
  return hook;
}

typedef struct hook_context {
  uly_call_builder *c;
  const uly_site *site;
  MlirOperation map;
  const uly_space *space;
  const uly_hook_input *inputs;
  uly_hook *hook;
  int32_t operand[ULY_MAX_OPERANDS]; // of the map's operand: the hook's operand, -1 not yet
} hook_context;

static int32_t add_hook_operand(hook_context *h, MlirValue value, const int32_t *index) {
  uly_type type = uly_type_of(h->c->e->ir, value);
  uly_place place = uly_site_place(h->site, value);
  ULY_ASSERT(h->hook->n_operands < ULY_HOOK_MAX_OPERANDS);
  h->hook->operands[h->hook->n_operands] = uly_hook_operand_of(h->c, &place, &type, index, ULY_READ);
  return h->hook->n_inputs + h->hook->n_operands++;
}

static int32_t stored(uly_expr_builder *b, uly_dtype dtype, int32_t value) {
  uly_scalar op;
  return uly_scalar_stored(dtype, &op) ? uly_expr_op(b, op, &value, 1) : value;
}

// x_j, scaled and shifted by what is indexed by the column alone.
static int32_t input_leaf(hook_context *h, uly_expr_builder *b, int32_t j) {
  static const int32_t column[ULY_GRAPH_MAX_DIMS] = {ULY_HOOK_INDICES - 1};
  const uly_hook_input *in = &h->inputs[j];
  int32_t x = uly_expr_leaf(b, ULY_SC_OPERAND, ULY_SCALAR_FLOAT, j);
  if (!mlirValueIsNull(in->scale))
    x = uly_expr_op(b, ULY_SC_MUL, (int32_t[]){x, uly_expr_leaf(b, ULY_SC_OPERAND, ULY_SCALAR_FLOAT, add_hook_operand(h, in->scale, column))}, 2);
  if (!mlirValueIsNull(in->shift))
    x = uly_expr_op(b, ULY_SC_ADD, (int32_t[]){x, uly_expr_leaf(b, ULY_SC_OPERAND, ULY_SCALAR_FLOAT, add_hook_operand(h, in->shift, column))}, 2);
  return x;
}

static int32_t operand_leaf(hook_context *h, uly_expr_builder *b, const uly_expr_node *node) {
  int32_t i = node->index;
  MlirValue value = mlirOperationGetOperand(h->map, i);
  for (int32_t j = 0; j < h->hook->n_inputs; j++)
    if (mlirValueEqual(value, h->inputs[j].value)) {
      if (h->operand[i] < 0) h->operand[i] = stored(b, uly_type_of(h->c->e->ir, value).tensor.dtype, input_leaf(h, b, j));
      return h->operand[i];
    }
  if (h->operand[i] < 0) {
    int32_t index[ULY_GRAPH_MAX_DIMS], rank = uly_type_of(h->c->e->ir, value).tensor.rank;
    for (int32_t d = 0; d < rank; d++) {
      int32_t dim = uly_op_access(h->map, i, d);
      index[d] = dim < 0 ? -1 : h->space->index[dim];
    }
    h->operand[i] = add_hook_operand(h, value, index);
  }
  return uly_expr_leaf(b, ULY_SC_OPERAND, (uly_scalar_type)node->type, h->operand[i]);
}

static int32_t hook_leaf(void *context, uly_expr_builder *b, const uly_expr_node *node) {
  hook_context *h = context;
  uly_emitter *e = h->c->e;
  if (node->op == ULY_SC_OPERAND) return operand_leaf(h, b, node);
  if (node->op == ULY_SC_COORD) {
    int32_t dim = node->index - ULY_COORD_I0, index = h->space->index[dim];
    uint32_t start = h->space->layout.start[dim];
    if (!is_const(e->program, start, 0)) h->hook->start[index] = uly_call_add_val(h->c, start);
    return uly_expr_leaf(b, ULY_SC_COORD, ULY_SCALAR_INT, ULY_COORD_I0 + index);
  }
  if (node->op == ULY_SC_SIZE) {
    uint32_t symbol = uly_program_node(e->program, (uly_node){.kind = ULY_NODE_SYM, .value = node->index});
    h->hook->size[node->index] = uly_call_add_val(h->c, symbol);
  }
  return -1;
}

void uly_hook_build(uly_call_builder *c, const uly_site *site, MlirOperation map, const uly_space *space, const uly_hook_input *inputs, int n_inputs,
                    uly_hook *out_hook) {
  uly_emitter *e = c->e;
  *out_hook = uly_hook_empty(n_inputs);
  hook_context h = {.c = c, .site = site, .map = map, .space = space, .inputs = inputs, .hook = out_hook};
  for (int i = 0; i < ULY_MAX_OPERANDS; i++) h.operand[i] = -1;
  uly_expr_builder *b = uly_expr_begin(e->arena);
  if (mlirOperationIsNull(map)) {
    out_hook->expr = uly_expr_end(b, input_leaf(&h, b, 0));
    return;
  }
  uly_expr expr;
  uly_status status = uly_expr_parse(e->arena, uly_op_str(map, "expr"), e->ir->names.symbols, e->ir->names.n_symbols, &expr);
  ULY_ASSERT(status == ULY_OK);
  out_hook->expr = uly_expr_end(b, uly_expr_graft(b, &expr, hook_leaf, &h));
  out_hook->expr.wide = expr.wide;
}

static int32_t same_leaf(void *context, uly_expr_builder *b, const uly_expr_node *node) {
  (void)context, (void)b, (void)node;
  return -1;
}

void uly_hook_store(uly_call_builder *c, uly_dtype dtype, uly_hook *hook) {
  uly_expr_builder *b = uly_expr_begin(c->e->arena);
  bool wide = hook->expr.wide;
  hook->expr = uly_expr_end(b, stored(b, dtype, uly_expr_graft(b, &hook->expr, same_leaf, NULL)));
  hook->expr.wide = wide;
}

void uly_hook_load(uly_call_builder *c, const uly_site *site, MlirValue value, const uly_space *space, uly_hook *out_hook) {
  uly_type type = uly_type_of(c->e->ir, value);
  uly_place place = uly_site_place(site, value);
  *out_hook = uly_hook_empty(0);
  out_hook->operands[out_hook->n_operands++] = uly_hook_operand_of(c, &place, &type, space->index, ULY_READ);
  uly_expr_builder *b = uly_expr_begin(c->e->arena);
  uly_scalar_type scalar = uly_dtype_get(type.tensor.dtype)->is_float ? ULY_SCALAR_FLOAT : type.tensor.dtype == ULY_BOOL ? ULY_SCALAR_BOOL : ULY_SCALAR_INT;
  out_hook->expr = uly_expr_end(b, uly_expr_leaf(b, ULY_SC_OPERAND, scalar, 0));
}

void uly_hook_input_of(uly_call_builder *c, const uly_site *site, MlirOperation op, const uly_space *space, uly_hook *out_hook) {
  MlirValue x = uly_op_operand(op, 0);
  if (mlirValueIsABlockArgument(x)) {
    uly_hook_load(c, site, x, space, out_hook);
    return;
  }
  uly_hook_build(c, site, uly_value_op(x), space, NULL, 0, out_hook);
  uly_hook_store(c, uly_type_of(c->e->ir, x).tensor.dtype, out_hook);
}
