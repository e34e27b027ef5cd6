// Called by command_inspect.c.
//
//   f, forward
//     5  k4_ROWS rmsnorm (x, n.weight[i0]) -> b3, items share(S, sp) * B, scratch 512, line 9
//          values (share(S, sp), B, …)
//
// Operands by what they are: a tensor's name, b3 a buffer, x1.to the messages that go out in exchange 1, x1.from those that came in. [i0 …] is the slot, i0 the outermost loop's
// counter; +(…) an offset in bytes. Values in the order of runtime/kernel_abi.h; `each` are one a rank. share(n, a) and start(n, a) are what a rank of axis a has of n, cover(n / g, a) how many kv
// heads it needs for its n query heads, g to a kv head.
#include "driver/program_text.h"

#include <inttypes.h>

#include "runtime/base/dtype.h"
#include "runtime/base/escape.h"

enum { MAX_NODE_TEXT = 400, MAX_NODE_DEPTH = 200 };

typedef struct printer {
  uly_text *out;
  const uly_tables *t;
  size_t limit; // of the text, where a size is cut short
  int *depth;   // of the size within others
} printer;

// ---- sizes

typedef enum binding { BIND_SUM, BIND_PRODUCT, BIND_FACTOR } binding; // what stands around: how tightly an operand must hold together

static void add_node(const printer *p, uint32_t id, binding around);

static void add_axis_name(const printer *p, const char *before, int64_t axis) {
  uly_text_add(p->out, "%s", before);
  uly_text_add_escaped(p->out, uly_tables_text(p->t, p->t->axes[axis].name));
}

static bool is_kind(const uly_tables *t, uint32_t id, uly_node_kind kind, int64_t value) { return t->nodes[id].kind == kind && t->nodes[id].value == value; }

static void add_infix(const printer *p, const char *sign, const uly_node *n, binding own, binding around) {
  if (around > own) uly_text_add(p->out, "(");
  add_node(p, n->a, own);
  uly_text_add(p->out, " %s ", sign);
  add_node(p, n->b, own + 1);
  if (around > own) uly_text_add(p->out, ")");
}

static void add_call(const printer *p, const char *name, const uint32_t *args, int n) {
  uly_text_add(p->out, "%s(", name);
  for (int i = 0; i < n; i++) {
    if (i) uly_text_add(p->out, ", ");
    add_node(p, args[i], BIND_SUM);
  }
  uly_text_add(p->out, ")");
}

// share and start: of a rank of an axis, or, which nothing makes today, in general.
static void add_share(const printer *p, const char *name, const uly_node *n) {
  int64_t axis = p->t->nodes[n->b].value;
  if (!is_kind(p->t, n->b, ULY_NODE_AXIS_SIZE, axis) || !is_kind(p->t, n->c, ULY_NODE_AXIS_RANK, axis)) {
    add_call(p, name, (uint32_t[]){n->a, n->b, n->c}, 3);
    return;
  }
  uly_text_add(p->out, "%s(", name);
  add_node(p, n->a, BIND_SUM);
  add_axis_name(p, ", ", axis);
  uly_text_add(p->out, ")");
}

// The kv heads that a rank needs: ⌊h0/g⌋ … ⌈(h0 + h)/g⌉ of its query heads, none without any.
static bool is_cover(const uly_tables *t, const uly_node *n) {
  const uly_node *heads = &t->nodes[n->a], *count = &t->nodes[n->b];
  return heads->kind == ULY_NODE_SHARE && t->nodes[heads->b].kind == ULY_NODE_AXIS_SIZE && is_kind(t, n->c, ULY_NODE_CONST, 0) && count->kind == ULY_NODE_SUB &&
         t->nodes[count->a].kind == ULY_NODE_CDIV;
}

static void add_select(const printer *p, const uly_node *n) {
  if (!is_cover(p->t, n)) {
    add_call(p, "select", (uint32_t[]){n->a, n->b, n->c}, 3);
    return;
  }
  const uly_node *heads = &p->t->nodes[n->a], *end = &p->t->nodes[p->t->nodes[n->b].a];
  uly_text_add(p->out, "cover(");
  add_node(p, heads->a, BIND_SUM);
  uly_text_add(p->out, " / ");
  add_node(p, end->b, BIND_FACTOR);
  add_axis_name(p, ", ", p->t->nodes[heads->b].value);
  uly_text_add(p->out, ")");
}

static void add_axis(const printer *p, const char *name, const uly_node *n, bool operand) {
  uly_text_add(p->out, "%s", name);
  add_axis_name(p, ".", n->value);
  if (!operand) return;
  uly_text_add(p->out, "(");
  add_node(p, n->a, BIND_SUM);
  uly_text_add(p->out, ")");
}

static void add_inner(const printer *p, const uly_node *n, binding around) {
  switch ((uly_node_kind)n->kind) {
  case ULY_NODE_CONST: uly_text_add(p->out, "%" PRId64, n->value); return;
  case ULY_NODE_SYM: uly_text_add_escaped(p->out, uly_tables_text(p->t, p->t->symbols[n->value].name)); return;
  case ULY_NODE_AXIS_SIZE: add_axis(p, "ranks", n, false); return;
  case ULY_NODE_AXIS_RANK: add_axis(p, "rank", n, false); return;
  case ULY_NODE_ADD: add_infix(p, "+", n, BIND_SUM, around); return;
  case ULY_NODE_SUB: add_infix(p, "-", n, BIND_SUM, around); return;
  case ULY_NODE_MUL: add_infix(p, "*", n, BIND_PRODUCT, around); return;
  case ULY_NODE_FDIV: add_infix(p, "//", n, BIND_PRODUCT, around); return;
  case ULY_NODE_MOD: add_infix(p, "%", n, BIND_PRODUCT, around); return;
  case ULY_NODE_CDIV: add_call(p, "cdiv", (uint32_t[]){n->a, n->b}, 2); return;
  case ULY_NODE_MIN: add_call(p, "min", (uint32_t[]){n->a, n->b}, 2); return;
  case ULY_NODE_MAX: add_call(p, "max", (uint32_t[]){n->a, n->b}, 2); return;
  case ULY_NODE_SELECT: add_select(p, n); return;
  case ULY_NODE_SHARE: add_share(p, "share", n); return;
  case ULY_NODE_START: add_share(p, "start", n); return;
  case ULY_NODE_PEER_SUM: add_axis(p, "sum", n, true); return;
  case ULY_NODE_PEER_BEFORE: add_axis(p, "before", n, true); return;
  case ULY_NODE_PEER_MAX: add_axis(p, "most", n, true); return;
  case ULY_N_NODE_KINDS: break;
  }
  uly_text_add(p->out, "?");
}

static void add_node(const printer *p, uint32_t id, binding around) {
  if (p->out->len > p->limit || *p->depth == MAX_NODE_DEPTH) {
    if (!p->out->len || p->out->ptr[p->out->len - 1] != '.') uly_text_add(p->out, "...");
    return;
  }
  ++*p->depth;
  add_inner(p, &p->t->nodes[id], around);
  --*p->depth;
}

// Size |node|: "share(S, sp) * B * 256". Long ones end in "…".
static void print_node(uly_text *out, const uly_tables *tables, uint32_t node) {
  int depth = 0;
  printer p = {out, tables, out->len + MAX_NODE_TEXT, &depth};
  add_node(&p, node, BIND_SUM);
}

// ---- tensors

static void print_name(uly_text *out, const uly_tables *t, uint32_t row) { uly_text_add_escaped(out, uly_tables_name(t, row)); }

// The axis that cuts a size into |local|; ULY_NONE where it is whole. Looks at |*budget| nodes at most: a product of products has many.
static uint32_t cutting_axis(const uly_tables *t, uint32_t local, int *budget) {
  const uly_node *n = &t->nodes[local];
  if (n->kind == ULY_NODE_SHARE && t->nodes[n->b].kind == ULY_NODE_AXIS_SIZE) return (uint32_t)t->nodes[n->b].value;
  if (n->kind != ULY_NODE_MUL || --*budget <= 0) return ULY_NONE;
  uint32_t axis = cutting_axis(t, n->a, budget);
  return axis != ULY_NONE ? axis : cutting_axis(t, n->b, budget);
}

// Dim |d| of several: its size, and the axis that cuts it into |local|.
static void print_dim(uly_text *out, const uly_tables *t, uint32_t d, uint32_t size, uint32_t local) {
  int budget = 1000;
  uint32_t axis = local == size ? ULY_NONE : cutting_axis(t, local, &budget);
  if (d) uly_text_add(out, ", ");
  print_node(out, t, size);
  if (axis >= t->n_axes) return;
  uly_text_add(out, " over ");
  uly_text_add_escaped(out, uly_tables_text(t, t->axes[axis].name));
}

void uly_program_print_tensor(uly_text *out, const uly_tables *t, const uly_tensor *tensor, uint32_t name) {
  print_name(out, t, name);
  uly_text_add(out, " %s[", uly_dtype_name((uly_dtype)tensor->dtype));
  for (uint32_t d = 0; d < tensor->rank; d++) print_dim(out, t, d, tensor->dims[d], tensor->local[d]);
  uly_text_add(out, "]");
}

// ---- steps

static void print_slot(uly_text *out, const uly_operand *o) {
  bool any = false;
  for (int d = 0; d < ULY_MAX_LOOPS; d++) {
    if (!o->slot[d]) continue;
    uly_text_add(out, any ? " + " : "[");
    if (o->slot[d] != 1) uly_text_add(out, "%d * ", o->slot[d]);
    uly_text_add(out, "i%d", d);
    any = true;
  }
  if (o->slot_add) uly_text_add(out, any ? " + %d" : "[%d", o->slot_add), any = true;
  if (any) uly_text_add(out, "]");
}

static void print_operand(uly_text *out, const uly_tables *t, const uly_operand *o) {
  switch ((uly_operand_kind)o->kind) {
  case ULY_OPERAND_BUFFER: uly_text_add(out, "b%u", o->index); break;
  case ULY_OPERAND_TENSOR: print_name(out, t, t->tensors[o->index].names.first); break;
  case ULY_OPERAND_PEERS: uly_text_add(out, "x%u.to", o->index); break;
  case ULY_OPERAND_SEGMENTS: uly_text_add(out, "x%u.from", o->index); break;
  case ULY_OPERAND_ABSENT: break;
  }
  print_slot(out, o);
  if (o->offset == ULY_NONE || is_kind(t, o->offset, ULY_NODE_CONST, 0)) return;
  uly_text_add(out, " + (");
  print_node(out, t, o->offset);
  uly_text_add(out, ")");
}

static void print_operands(uly_text *out, const uly_tables *t, const uly_step *s) {
  for (uint32_t access = ULY_READ; access <= ULY_WRITE; access++) {
    bool any = false;
    for (uint32_t i = 0; i < s->operands.count; i++) {
      const uly_operand *o = &t->operands[s->operands.first + i];
      if (o->kind == ULY_OPERAND_ABSENT || !(o->access & access)) continue;
      uly_text_add(out, any ? ", " : access == ULY_READ ? " (" : " -> ");
      print_operand(out, t, o);
      any = true;
    }
    if (access == ULY_READ) uly_text_add(out, any ? ")" : " ()");
  }
}

static void print_values(uly_text *out, const uly_tables *t, const uly_step *s) {
  uly_text_add(out, "\n          values (");
  for (uint32_t i = 0; i < s->values.count; i++) {
    const uly_call_value *v = &t->values[s->values.first + i];
    uly_text_add(out, "%s%s", i ? ", " : "", v->axis == ULY_NONE ? "" : "each ");
    print_node(out, t, v->node);
  }
  uly_text_add(out, ")");
}

static void print_step(uly_text *out, const uly_tables *t, const uly_step *s) {
  switch ((uly_step_kind)s->kind) {
  case ULY_STEP_KERNEL:
    uly_text_add_escaped(out, uly_tables_text(t, t->kernels[s->a].name));
    uly_text_add(out, " ");
    print_name(out, t, s->name);
    print_operands(out, t, s);
    uly_text_add(out, ", items ");
    print_node(out, t, s->items);
    if (s->scratch != ULY_NONE) {
      uly_text_add(out, ", scratch ");
      print_node(out, t, s->scratch);
    }
    break;
  case ULY_STEP_LOOP:
    uly_text_add(out, "loop ");
    print_node(out, t, s->items);
    uly_text_add(out, " times");
    break;
  case ULY_STEP_END: uly_text_add(out, "}"); return;
  case ULY_STEP_POST: uly_text_add(out, "post x%u ", s->a), print_name(out, t, s->name); break;
  case ULY_STEP_SEND: uly_text_add(out, "send x%u", s->a); break;
  case ULY_STEP_WAIT: uly_text_add(out, "wait x%u", s->a); break;
  case ULY_STEP_COPY:
    uly_text_add(out, "copy");
    print_operands(out, t, s);
    uly_text_add(out, ", bytes ");
    print_node(out, t, s->items);
    break;
  default: uly_text_add(out, "?"); break;
  }
  if (s->predicate != ULY_NONE) {
    uly_text_add(out, ", where ");
    print_node(out, t, s->predicate);
  }
  if (s->spec_line) uly_text_add(out, ", line %u", s->spec_line);
  if (s->kind == ULY_STEP_LOOP) uly_text_add(out, " {");
  if (s->kind == ULY_STEP_KERNEL && s->values.count) print_values(out, t, s);
}

static void print_steps(uly_text *out, const uly_tables *t, const uly_entry *entry, int phase) {
  static const char *const phases[] = {"load", "bind", "forward", "backward", "step"};
  uly_span steps = entry->steps[phase];
  int indent = 1;
  if (!steps.count) return;
  print_name(out, t, entry->name);
  uly_text_add(out, ", %s\n", phases[phase]);
  for (uint32_t i = steps.first; i < steps.first + steps.count; i++) {
    if (t->steps[i].kind == ULY_STEP_END) indent--;
    uly_text_add(out, "%5u%*s", i, 2 * indent, "");
    print_step(out, t, &t->steps[i]);
    uly_text_add(out, "\n");
    if (t->steps[i].kind == ULY_STEP_LOOP) indent++;
  }
}

static void print_buffer(uly_text *out, const uly_tables *t, uint32_t i) {
  const uly_buffer *b = &t->buffers[i];
  uly_text_add(out, "  b%u ", i);
  print_name(out, t, b->name);
  uly_text_add(out, ", bytes ");
  print_node(out, t, b->bytes);
  if (b->slots > 1) uly_text_add(out, ", %u slots", b->slots);
  if (b->flags & ULY_BUFFER_RECEIVE) uly_text_add(out, ", peers write it");
  if (b->flags & ULY_BUFFER_CONSTANT)
    uly_text_add(out, ", in the file\n");
  else if (b->phase == ULY_PHASE_LOAD)
    uly_text_add(out, ", kept from load\n");
  else if (b->live_from == ULY_NONE)
    uly_text_add(out, ", unused\n");
  else
    uly_text_add(out, ", live %u to %u\n", b->live_from, b->live_to);
}

static void print_exchange(uly_text *out, const uly_tables *t, uint32_t i) {
  const uly_exchange *x = &t->exchanges[i];
  const struct {
    const char *name;
    uint32_t node;
  } sizes[] = {{"unit", x->unit}, {"rows", x->rows}, {"from row", x->row_start}, {"columns", x->cols}, {"from column", x->col_start}};
  uly_text_add(out, "  x%u ", i);
  print_name(out, t, x->name);
  uly_text_add(out, " over ");
  uly_text_add_escaped(out, uly_tables_text(t, t->axes[x->axis].name));
  uly_text_add(out, ": b%u receives", x->receive);
  if (x->send != ULY_NONE) uly_text_add(out, ", b%u sends", x->send);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    uly_text_add(out, ", %s ", sizes[k].name);
    print_node(out, t, sizes[k].node);
  }
  uly_text_add(out, ", line %u\n", x->spec_line);
}

//      4 rmsnorm f32[B, S over sp, 16], line 6:13, after step 5 in b3
static void print_value(uly_text *out, const uly_tables *t, const uly_probe *p) {
  uly_text_add(out, "%6u ", p->value);
  print_name(out, t, p->name);
  uly_text_add(out, " %s[", uly_dtype_name((uly_dtype)p->dtype));
  for (uint32_t d = 0; d < p->rank; d++) print_dim(out, t, d, p->dims[d], p->local[d]);
  uly_text_add(out, "]");
  if (p->spec_dtype != p->dtype) uly_text_add(out, ", %s in the spec", uly_dtype_name((uly_dtype)p->spec_dtype));
  uly_text_add(out, ", line %u:%u, after step %u in ", p->spec_line, p->spec_column, p->step);
  print_operand(out, t, &t->operands[p->operand]);
  uly_text_add(out, "\n");
}

void uly_program_print_values(uly_text *out, const uly_tables *t) {
  for (uint32_t i = 0; i < t->n_entries; i++) {
    print_name(out, t, t->entries[i].name);
    uly_text_add(out, " shows %u values\n", t->entries[i].probes.count);
    for (uint32_t k = 0; k < t->entries[i].probes.count; k++) print_value(out, t, &t->probes[t->entries[i].probes.first + k]);
  }
}

void uly_program_print(uly_text *out, const uly_tables *t) {
  for (uint32_t i = 0; i < t->n_entries; i++) {
    for (int phase = 0; phase < ULY_N_PHASES; phase++) print_steps(out, t, &t->entries[i], phase);
    if (t->entries[i].when == ULY_NONE) continue;
    uly_text_add(out, "  only where ");
    print_node(out, t, t->entries[i].when);
    uly_text_add(out, " is not 0\n");
  }
  if (t->n_buffers) uly_text_add(out, "buffers\n");
  for (uint32_t i = 0; i < t->n_buffers; i++) print_buffer(out, t, i);
  if (t->n_exchanges) uly_text_add(out, "exchanges: rank i sends unit * rows(i) * columns(j) bytes to rank j\n");
  for (uint32_t i = 0; i < t->n_exchanges; i++) print_exchange(out, t, i);
}
