#include "passes/rules.h"

typedef struct rule {
  const uly_ir *ir;
  const uly_view *v;
  int32_t axis;
  int operand;
  uly_str error;
} rule;

static uly_dist in(const rule *r, int i) { return r->v->in[i].dist[r->axis]; }
static uly_dist out(const rule *r, int i) { return r->v->out[i].dist[r->axis]; }
static uly_str axis_name(const rule *r) { return r->ir->names.axes[r->axis].name; }
static uly_str text(const rule *r, uly_dist d) { return uly_dist_print(r->ir->arena, d); }

ULY_PRINTF(3, 4) static bool fail(rule *r, int operand, const char *format, ...) {
  if (r->error.len) return false;
  uly_text message = {.arena = r->ir->arena};
  va_list args;
  va_start(args, format);
  char buffer[512];
  int n = vsnprintf(buffer, sizeof buffer, format, args);
  va_end(args);
  ULY_ASSERT(n >= 0);
  uly_text_add(&message, "over %.*s: %s", ULY_STR_ARG(axis_name(r)), buffer);
  r->error = uly_text_str(&message);
  r->operand = operand;
  return false;
}

static bool expect(rule *r, int result, uly_dist dist) {
  if (uly_dist_equal(out(r, result), dist)) return true;
  return fail(r, -1, "result %d is `%.*s`, but its operands make it `%.*s`", result, ULY_STR_ARG(text(r, out(r, result))), ULY_STR_ARG(text(r, dist)));
}

static bool expect_replicated(rule *r, int i, const char *what) {
  if (in(r, i).kind == ULY_DIST_REPLICATED) return true;
  return fail(r, i, "%s must be whole on every rank, but is `%.*s`", what, ULY_STR_ARG(text(r, in(r, i))));
}

// ---- operations that follow their dims

static bool linear_in(rule *r, uint32_t partial) {
  const uly_view *v = r->v;
  uly_str why = ULY_STR("it is not linear");
  switch (v->kind) {
  case ULY_KIND_HEADS:
  case ULY_KIND_MERGE:
  case ULY_KIND_SUM:
  case ULY_KIND_RESHAPE:
  case ULY_KIND_SLICE: return true;
  case ULY_KIND_ROPE:
  case ULY_KIND_GATHER:
    if (partial == 1) return true;
    break;
  case ULY_KIND_LINEAR:
    if ((partial & 3) == 3) break;
    if (v->n_in < 3 || (partial & 4)) return true;
    why = ULY_STR("it adds a bias that every rank holds, which would be counted once a rank");
    break;
  case ULY_KIND_MAP:
    why = uly_rule_linear_map(r->ir, v, partial);
    if (!why.len) return true;
    break;
  default: break;
  }
  int operand = 0;
  while (!(partial >> operand & 1)) operand++;
  return fail(r, operand, "uly.%s of a partial sum, but %.*s; a reduction is missing", uly_kind_get(v->kind).name, ULY_STR_ARG(why));
}

typedef struct flow {
  uly_dist cut; // of result 0, by the operands that are cut; kind REPLICATED without
  int cut_by;
  uint32_t partial, contracted;
  bool sliced;
} flow;

static bool read_cut(rule *r, int i, flow *f) {
  uly_dist d = in(r, i);
  int32_t to = uly_view_dim(r->v, i, d.dim);
  if (to == ULY_DIM_WHOLE) return fail(r, i, "operand %d is cut along dim %d, which uly.%s needs whole", i, d.dim, uly_kind_get(r->v->kind).name);
  if (d.kind == ULY_DIST_COVER_PARTIAL) f->partial |= 1u << i;
  if (to == ULY_DIM_SLICED) f->sliced = true;
  if (to == ULY_DIM_CONTRACTED) {
    f->contracted |= 1u << i;
    if (d.kind != ULY_DIST_SPLIT) return fail(r, i, "operand %d is summed over a cover, whose shares overlap: some terms would count twice", i);
  }
  if (to < 0) return true;
  uly_dist cut = {.kind = d.kind, .dim = to, .group = d.group};
  if (f->cut.kind != ULY_DIST_REPLICATED && !uly_dist_equal(f->cut, cut))
    return fail(r, i, "operands %d and %d are cut differently: the result would be `%.*s` by one and `%.*s` by the other", f->cut_by, i,
                ULY_STR_ARG(text(r, f->cut)), ULY_STR_ARG(text(r, cut)));
  f->cut = cut;
  f->cut_by = i;
  return true;
}

static bool read_operand(rule *r, int i, flow *f) {
  switch (in(r, i).kind) {
  case ULY_DIST_REPLICATED: return true;
  case ULY_DIST_PARTIAL: f->partial |= 1u << i; return true;
  case ULY_DIST_SPLIT:
  case ULY_DIST_COVER:
  case ULY_DIST_COVER_PARTIAL: return read_cut(r, i, f);
  case ULY_DIST_FLAT: return fail(r, i, "operand %d is flat, a form of storage: it must be gathered first", i);
  case ULY_DIST_GLOBAL: break;
  }
  return fail(r, i, "operand %d is not distributed", i);
}

// Operands that are not cut although they have a dim that the result's share is indexed by, or that is summed in shares.
static bool check_alignment(rule *r, const flow *f) {
  for (int i = 0; i < r->v->n_in; i++) {
    bool has_contracted = false;
    for (int32_t d = 0; d < r->v->in[i].tensor.rank; d++) {
      int32_t to = uly_view_dim(r->v, i, d);
      has_contracted |= to == ULY_DIM_CONTRACTED;
      if (f->cut.kind != ULY_DIST_REPLICATED && to == f->cut.dim && !uly_dist_cuts(in(r, i), d))
        return fail(r, i, "operand %d holds all of dim %d, but operand %d a share of it: indices would not match", i, d, f->cut_by);
    }
    if (!f->contracted || (f->contracted >> i & 1)) continue;
    if (has_contracted) return fail(r, i, "operand %d holds all of the dim that is summed in shares", i);
    return fail(r, i, "operand %d is added on every rank to a partial sum: it would be counted once a rank", i);
  }
  return true;
}

static bool check_dims(rule *r) {
  flow f = {.cut = uly_dist_of(ULY_DIST_REPLICATED)};
  for (int i = 0; i < r->v->n_in; i++)
    if (!read_operand(r, i, &f)) return false;
  if (!check_alignment(r, &f)) return false;
  bool cut = f.cut.kind != ULY_DIST_REPLICATED;
  if (cut && f.contracted) return fail(r, f.cut_by, "operand %d is cut along a dim of the result while another one is summed", f.cut_by);
  if (f.partial && !linear_in(r, f.partial)) return false;
  if (cut && f.partial && f.cut.kind != ULY_DIST_COVER_PARTIAL) return fail(r, f.cut_by, "a partial sum meets operand %d, which is cut", f.cut_by);
  if (cut) return expect(r, 0, f.cut);
  if (f.partial || f.contracted) return expect(r, 0, uly_dist_of(ULY_DIST_PARTIAL));
  uly_dist result = out(r, 0);
  if (result.kind == ULY_DIST_SPLIT && uly_view_dim_is_free(r->v, result.dim)) return true; // only its own indices: a rank may make any share
  return expect(r, 0, uly_dist_of(ULY_DIST_REPLICATED));
}

// ---- attention

static bool check_kv(rule *r, int i, const char *name) {
  uly_dist d = in(r, i);
  int64_t heads = r->v->in[0].tensor.dims[2].add, kv = r->v->in[1].tensor.dims[2].add;
  uly_dist need = uly_dist_cover(2, heads / kv);
  if (d.kind == ULY_DIST_REPLICATED || uly_dist_equal(d, need)) return true;
  return fail(r, i, "%s is `%.*s`, but shares of %lld query heads need `%.*s` of %lld kv heads", name, ULY_STR_ARG(text(r, d)), (long long)heads,
              ULY_STR_ARG(text(r, need)), (long long)kv);
}

static bool check_captures(rule *r) {
  int64_t first = uly_op_i64(r->v->op, "captures", r->v->n_in);
  uly_dist batch = uly_dist_split(0);
  for (int i = 3; i < r->v->n_in; i++) {
    if (in(r, i).kind == ULY_DIST_REPLICATED) continue;
    if (uly_dist_equal(in(r, 0), batch) && in(r, i).kind == ULY_DIST_SPLIT && in(r, i).dim == uly_view_batch_dim(r->ir, r->v, i)) continue;
    if (i < first) return expect_replicated(r, i, i == uly_op_i64(r->v->op, "sink", -1) ? "sink" : "q_offset");
    return fail(r, i, "c%d is read at global indices, but a rank holds only `%.*s` of it: indices would be local", i - (int)first,
                ULY_STR_ARG(text(r, in(r, i))));
  }
  return true;
}

static bool check_attention(rule *r) {
  uly_dist q = in(r, 0);
  if (!check_captures(r)) return false;
  for (int i = 0; i < 3; i++)
    if (uly_dist_is_partial(in(r, i))) return fail(r, i, "uly.attention of a partial sum, but it is not linear; a reduction is missing");
  if (q.kind == ULY_DIST_SPLIT && q.dim == 1)
    return fail(r, 0, "queries are split by rows, but attention needs all rows of a rank's heads: an exchange is missing");
  if (q.kind == ULY_DIST_SPLIT && q.dim == 2) {
    if (!check_kv(r, 1, "k") || !check_kv(r, 2, "v")) return false;
  } else if (q.kind == ULY_DIST_REPLICATED || (q.kind == ULY_DIST_SPLIT && q.dim == 0)) {
    for (int i = 1; i < 3; i++)
      if (!uly_dist_equal(in(r, i), q))
        return fail(r, i, "q is `%.*s`, so %s must be too, but is `%.*s`", ULY_STR_ARG(text(r, q)), i == 1 ? "k" : "v", ULY_STR_ARG(text(r, in(r, i))));
  } else {
    return fail(r, 0, "q is `%.*s`: attention takes heads, the batch or everything", ULY_STR_ARG(text(r, q)));
  }
  return expect(r, 0, q) && expect(r, 1, q);
}

// ---- casts

static bool check_reduce(rule *r, uly_dist from, uly_dist to) {
  if (from.kind == ULY_DIST_REPLICATED)
    return fail(r, 0, "every rank already holds the whole sum: adding once more would make it as many times too large as there are ranks");
  if (from.kind != ULY_DIST_PARTIAL) return fail(r, 0, "only a partial sum is reduced, and this is `%.*s`", ULY_STR_ARG(text(r, from)));
  return to.kind == ULY_DIST_REPLICATED || fail(r, -1, "a reduced value is whole on every rank, not `%.*s`", ULY_STR_ARG(text(r, to)));
}

static bool check_exchange(rule *r, int i, uly_dist from, uly_dist to) {
  if (from.kind == ULY_DIST_COVER) return fail(r, i, "operand %d is a cover: what two ranks hold would arrive twice", i);
  bool ok = (from.kind == ULY_DIST_SPLIT && uly_dist_is_cut(to)) || (from.kind == ULY_DIST_COVER_PARTIAL && to.kind == ULY_DIST_SPLIT);
  if (ok && from.dim != to.dim) return true;
  return fail(r, i, "an exchange moves from one cut dim to another, not from `%.*s` to `%.*s`", ULY_STR_ARG(text(r, from)), ULY_STR_ARG(text(r, to)));
}

static bool check_change(rule *r, int i, uly_dist from, uly_dist to) {
  switch (r->v->kind) {
  case ULY_KIND_RESHARD:
    if (uly_dist_is_partial(to) && !uly_dist_equal(from, to))
      return fail(r, i, "nothing makes a partial sum `%.*s` of `%.*s`", ULY_STR_ARG(text(r, to)), ULY_STR_ARG(text(r, from)));
    return true;
  case ULY_KIND_EXCHANGE: return check_exchange(r, i, from, to);
  case ULY_KIND_REDUCE: return check_reduce(r, from, to);
  case ULY_KIND_ALL_GATHER:
    if ((uly_dist_is_cut(from) || from.kind == ULY_DIST_FLAT) && to.kind == ULY_DIST_REPLICATED) return true;
    return fail(r, i, "a gather makes shares whole, not `%.*s` of `%.*s`", ULY_STR_ARG(text(r, to)), ULY_STR_ARG(text(r, from)));
  default: // CUT
    if (from.kind == ULY_DIST_REPLICATED && (uly_dist_is_cut(to) || to.kind == ULY_DIST_FLAT)) return true;
    return fail(r, i, "a cut takes a share of a whole value, not `%.*s` of `%.*s`", ULY_STR_ARG(text(r, to)), ULY_STR_ARG(text(r, from)));
  }
}

static bool check_cast(rule *r) {
  uly_str axis = uly_op_str(r->v->op, "axis");
  bool acts = r->v->kind == ULY_KIND_RESHARD || uly_str_equal(axis, axis_name(r));
  bool known = r->v->kind == ULY_KIND_RESHARD;
  for (int32_t x = 0; x < r->ir->names.n_axes; x++) known |= uly_str_equal(axis, r->ir->names.axes[x].name);
  if (!known) return fail(r, -1, "`%.*s` is no axis of the grid", ULY_STR_ARG(axis));
  for (int i = 0; i < r->v->n_in; i++) {
    if (!acts && !uly_dist_equal(in(r, i), out(r, i)))
      return fail(r, i, "operand %d changes from `%.*s` to `%.*s`, but the axis of this %s is `%.*s`", i, ULY_STR_ARG(text(r, in(r, i))),
                  ULY_STR_ARG(text(r, out(r, i))), uly_kind_get(r->v->kind).name, ULY_STR_ARG(axis));
    if (acts && !check_change(r, i, in(r, i), out(r, i))) return false;
  }
  return true;
}

uly_str uly_rule_check(const uly_ir *ir, const uly_view *view, int32_t axis, int *out_operand) {
  rule r = {.ir = ir, .v = view, .axis = axis, .operand = -1};
  switch (view->kind) {
  case ULY_KIND_PARAM:
    if (uly_dist_is_partial(out(&r, 0))) fail(&r, -1, "a parameter is no partial sum");
    break;
  case ULY_KIND_ATTENTION: check_attention(&r); break;
  case ULY_KIND_RESHARD:
  case ULY_KIND_EXCHANGE:
  case ULY_KIND_ALL_GATHER:
  case ULY_KIND_REDUCE:
  case ULY_KIND_CUT: check_cast(&r); break;
  default: check_dims(&r); break;
  }
  *out_operand = r.operand;
  return r.error;
}
