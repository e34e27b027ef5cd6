// Reshards become what moves the data. Reshards that stand together and go from cut to cut travel together: one exchange, one message a peer.
//
//   %qh = "uly.reshard"(%q) : sp=1 -> sp=2         %e:3 = "uly.exchange"(%q, %k, %v) {axis = "sp"} : (sp=1, sp=1, sp=1) -> (sp=2, sp=2/4, sp=2/4)
//   %kc = "uly.reshard"(%k) : sp=1 -> sp=2/4
//   %vc = "uly.reshard"(%v) : sp=1 -> sp=2/4         rank 0  [q0 k0 v0 | q1 k1 v1]  ──┐ ┌──  rows 0  heads 0 ·  rows 1  heads 0
//                                                    rank 1  [q0 k0 v0 | q1 k1 v1]  ──┘ └──  rows 0  heads 1 ·  rows 1  heads 1
//   %d  = "uly.reshard"(%doc) : sp=1 -> sp=*       %d = "uly.all_gather"(%doc) {axis = "sp"}
//   %s  = "uly.reshard"(%sum) : sp=+ -> sp=*       %s = "uly.reduce"(%sum) {axis = "sp"}
//   %c  = "uly.reshard"(%x)   : sp=* -> sp=1       %c = "uly.cut"(%x) {axis = "sp"}
// Afterwards no reshard is left; one that nothing can do is an error at its place in the spec.
#include "passes/pipeline.h"
#include "passes/view.h"

typedef struct move {
  MlirOperation op;
  int32_t axis;
  uly_dist from, to;
} move;

// The one axis that a reshard changes.
static bool read_move(uly_ir *ir, MlirOperation op, move *m) {
  uly_view view;
  int n = 0;
  if (!uly_view_read(ir, op, &view)) return false;
  *m = (move){.op = op};
  for (int32_t x = 0; x < ir->names.n_axes; x++) {
    if (uly_dist_equal(view.in[0].dist[x], view.out[0].dist[x])) continue;
    m->axis = x;
    m->from = view.in[0].dist[x];
    m->to = view.out[0].dist[x];
    n++;
  }
  if (n > 1) uly_op_error(ir, op, "uly.reshard changes %d axes at once; one at a time can be moved", n);
  return n <= 1;
}

// What carries out a move; NULL where nothing does.
static const char *carrier(const move *m) {
  bool partial = uly_dist_is_partial(m->from);
  if (m->from.kind == ULY_DIST_GLOBAL || m->to.kind == ULY_DIST_GLOBAL || uly_dist_is_partial(m->to)) return NULL;
  if (m->to.kind == ULY_DIST_REPLICATED) return m->from.kind == ULY_DIST_PARTIAL ? "uly.reduce" : partial ? NULL : "uly.all_gather";
  if (m->from.kind == ULY_DIST_REPLICATED) return "uly.cut";
  if (m->from.kind == ULY_DIST_SPLIT && uly_dist_is_cut(m->to) && m->from.dim != m->to.dim) return "uly.exchange";
  if (m->from.kind == ULY_DIST_COVER_PARTIAL && m->to.kind == ULY_DIST_SPLIT && m->from.dim != m->to.dim) return "uly.exchange";
  return NULL;
}

// One operation for |n| moves of an axis, before |before|.
static void build_carrier(const uly_ir *ir, const char *name, const move *moves, int n, MlirOperation before) {
  MlirValue operands[ULY_EXCHANGE_SLOTS];
  MlirType results[ULY_EXCHANGE_SLOTS];
  for (int i = 0; i < n; i++) {
    operands[i] = mlirOperationGetOperand(moves[i].op, 0);
    results[i] = mlirValueGetType(uly_op_result(moves[i].op, 0));
  }
  uly_op_spec spec = {.name = name,
                      .loc = mlirOperationGetLocation(moves[0].op),
                      .operands = operands,
                      .n_operands = n,
                      .results = results,
                      .n_results = n,
                      .attrs = {uly_ir_attr(ir, "axis", uly_ir_str(ir, ir->names.axes[moves[0].axis].name))},
                      .before = before};
  MlirOperation op = uly_op_build(ir, &spec);
  for (int i = 0; i < n; i++) mlirValueReplaceAllUsesOfWith(uly_op_result(moves[i].op, 0), uly_op_result(op, i));
}

// Does one of the first |n| moves make this one's operand? Then they cannot travel together.
static bool depends(const move *moves, int n, MlirOperation op) {
  for (int i = 0; i < n; i++)
    if (mlirValueEqual(uly_op_result(moves[i].op, 0), mlirOperationGetOperand(op, 0))) return true;
  return false;
}

// One message row holds all that travels together: the same rows of the same batch, cut at the same dims, of one dtype.
static bool travels_with(const uly_ir *ir, const move *a, const move *b) {
  if (a->axis != b->axis || a->from.dim != b->from.dim || a->to.dim != b->to.dim) return false;
  uly_type x = uly_type_of(ir, mlirOperationGetOperand(a->op, 0)), y = uly_type_of(ir, mlirOperationGetOperand(b->op, 0));
  int32_t last = a->from.dim > a->to.dim ? a->from.dim : a->to.dim;
  for (int32_t d = 0; d < last; d++)
    if (!uly_dim_equal(x.tensor.dims[d], y.tensor.dims[d])) return false;
  return x.tensor.dtype == y.tensor.dtype;
}

// Carries out a run of reshards that stand one behind the other and do not use each other. |before|: what follows them.
static bool carry_run(uly_ir *ir, move *moves, int n, MlirOperation before) {
  bool done[ULY_MAX_OPERANDS] = {false};
  for (int i = 0; i < n; i++) {
    const char *name = carrier(&moves[i]);
    if (done[i]) continue;
    if (uly_dist_equal(moves[i].from, moves[i].to)) { // changes nothing
      mlirValueReplaceAllUsesOfWith(uly_op_result(moves[i].op, 0), mlirOperationGetOperand(moves[i].op, 0));
      continue;
    }
    if (!name) {
      uly_op_error(ir, moves[i].op, "over %.*s: nothing moves a value from `%.*s` to `%.*s` yet", ULY_STR_ARG(ir->names.axes[moves[i].axis].name),
                   ULY_STR_ARG(uly_dist_print(ir->arena, moves[i].from)), ULY_STR_ARG(uly_dist_print(ir->arena, moves[i].to)));
      return false;
    }
    move together[ULY_EXCHANGE_SLOTS] = {moves[i]};
    int k = 1;
    for (int j = i + 1; j < n && k < ULY_EXCHANGE_SLOTS && strcmp(name, "uly.exchange") == 0; j++) {
      const char *other = carrier(&moves[j]);
      if (done[j] || !other || strcmp(other, name) != 0 || !travels_with(ir, &moves[i], &moves[j])) continue;
      together[k++] = moves[j];
      done[j] = true;
    }
    build_carrier(ir, name, together, k, before);
  }
  for (int i = 0; i < n; i++) uly_op_erase(moves[i].op);
  return true;
}

static bool carry_block(uly_ir *ir, MlirBlock block) {
  move moves[ULY_MAX_OPERANDS];
  int n = 0;
  uly_ops ops = uly_block_ops(ir, block);
  for (int i = 0; i < ops.n; i++) {
    bool reshard = uly_op_kind(ops.at[i]) == ULY_KIND_RESHARD;
    if (n && (!reshard || n == ULY_MAX_OPERANDS || depends(moves, n, ops.at[i]))) {
      if (!carry_run(ir, moves, n, ops.at[i])) return false;
      n = 0;
    }
    if (reshard && !read_move(ir, ops.at[i], &moves[n++])) return false;
    for (int r = 0; r < mlirOperationGetNumRegions(ops.at[i]); r++) {
      MlirBlock inner = mlirRegionGetFirstBlock(mlirOperationGetRegion(ops.at[i], r));
      if (!mlirBlockIsNull(inner) && !carry_block(ir, inner)) return false;
    }
  }
  ULY_ASSERT(n == 0); // a block ends in a terminator
  return true;
}

bool uly_pass_insert_all_to_all(uly_ir *ir, MlirOperation module) { return carry_block(ir, uly_op_body(module)); }
