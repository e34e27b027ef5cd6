// Checks that tables keep the rules of abi.h, as far as memory safety and termination of bind and run depend on them: a table that passes can be wrong, but
// it cannot make the runtime read out of range. Reports the first broken rule.
#include "runtime/base/dtype.h"
#include "runtime/tables.h"

#define REQUIRE(cond, ...)                                                                                                                                     \
  do {                                                                                                                                                         \
    if (!(cond)) return uly_fail(error, ULY_INVALID_INPUT, "corrupt model: " __VA_ARGS__);                                                                     \
  } while (0)

static bool span_in(uly_span s, uint32_t n) { return s.first <= n && s.count <= n - s.first; }
static bool node_or_none(const uly_tables *t, uint32_t node) { return node == ULY_NONE || node < t->n_nodes; }

static uly_status check_nodes(const uly_tables *t, uly_error *error) {
  for (uint32_t i = 0; i < t->n_nodes; i++) {
    const uly_node *n = &t->nodes[i];
    REQUIRE(n->kind < ULY_N_NODE_KINDS, "node %u has unknown kind %u; a newer runtime may read it", i, n->kind);
    bool has_a = n->kind >= ULY_NODE_ADD, has_b = has_a && n->kind < ULY_NODE_PEER_SUM, has_c = has_b && n->kind >= ULY_NODE_SHARE;
    REQUIRE((!has_a || n->a < i) && (!has_b || n->b < i) && (!has_c || n->c < i), "node %u uses a later one", i);
    int64_t limit = n->kind == ULY_NODE_SYM                                                                          ? (int64_t)t->n_symbols
                    : n->kind == ULY_NODE_AXIS_SIZE || n->kind == ULY_NODE_AXIS_RANK || n->kind >= ULY_NODE_PEER_SUM ? (int64_t)t->n_axes
                                                                                                                     : -1;
    REQUIRE(limit < 0 || (n->value >= 0 && n->value < limit), "node %u names symbol or axis %lld of %lld", i, (long long)n->value, (long long)limit);
  }
  return ULY_OK;
}

static uly_status check_names(const uly_tables *t, uly_error *error) {
  for (uint32_t i = 0; i < t->n_names; i++) REQUIRE(span_in(t->names[i], t->n_chars), "name %u is out of range", i);
  REQUIRE(t->n_symbols <= ULY_MAX_SYMBOLS, "%u symbols, at most %d", t->n_symbols, ULY_MAX_SYMBOLS);
  for (uint32_t i = 0; i < t->n_symbols; i++) REQUIRE(span_in(t->symbols[i].name, t->n_chars), "symbol %u has no name", i);
  REQUIRE(t->n_axes <= ULY_MAX_AXES, "%u grid axes, at most %d", t->n_axes, ULY_MAX_AXES);
  for (uint32_t i = 0; i < t->n_axes; i++) REQUIRE(span_in(t->axes[i].name, t->n_chars), "axis %u has no name", i);
  for (uint32_t i = 0; i < t->n_kernels; i++) REQUIRE(span_in(t->kernels[i].name, t->n_chars), "kernel %u has no name", i);
  for (uint32_t i = 0; i < t->n_sources; i++)
    REQUIRE(span_in(t->sources[i].name, t->n_chars) && span_in(t->sources[i].text, t->n_chars), "source %u has no name", i);
  return ULY_OK;
}

static uly_status check_tensors(const uly_tables *t, uly_error *error) {
  for (uint32_t i = 0; i < t->n_tensors; i++) {
    const uly_tensor *x = &t->tensors[i];
    REQUIRE(x->role <= ULY_PARAM && x->dtype < ULY_N_DTYPES && x->rank <= ULY_MAX_DIMS, "tensor %u has role %u, dtype %u, rank %u", i, x->role, x->dtype,
            x->rank);
    REQUIRE(span_in(x->names, t->n_names) && x->names.count >= 1, "tensor %u has no name", i);
    REQUIRE(x->role == ULY_PARAM ? x->entry == ULY_NONE : x->entry < t->n_entries && x->names.count == 1, "tensor %u belongs to entry %u", i, x->entry);
    for (uint32_t d = 0; d < x->rank; d++)
      REQUIRE(x->dims[d] < t->n_nodes && x->start[d] < t->n_nodes && x->local[d] < t->n_nodes, "tensor %u has no size in dim %u", i, d);
  }
  return ULY_OK;
}

static bool holds_constant(const uly_tables *t, const uly_buffer *b) {
  const uly_node *bytes = &t->nodes[b->bytes];
  if (b->phase != ULY_PHASE_LOAD || b->words % 2 || bytes->kind != ULY_NODE_CONST || bytes->value < 0 || bytes->value % 8) return false;
  return bytes->value <= 4 * (int64_t)t->n_indices && b->words + (uint64_t)b->slots * (uint64_t)bytes->value / 4 <= t->n_indices;
}

static uly_status check_memory(const uly_tables *t, uly_error *error) {
  for (uint32_t i = 0; i < t->n_buffers; i++) {
    const uly_buffer *b = &t->buffers[i];
    REQUIRE(b->phase < ULY_N_PHASES && b->bytes < t->n_nodes && b->slots >= 1 && b->live_from <= b->live_to, "buffer %u is malformed", i);
    REQUIRE(!(b->flags & ULY_BUFFER_CONSTANT) || holds_constant(t, b), "buffer %u is no constant", i);
    REQUIRE(!(b->flags & ULY_BUFFER_RECEIVE) || b->phase > ULY_PHASE_LOAD, "buffer %u receives in the load phase", i);
  }
  for (uint32_t i = 0; i < t->n_exchanges; i++) {
    const uly_exchange *x = &t->exchanges[i];
    REQUIRE(x->axis < t->n_axes && x->receive < t->n_buffers && (x->send == ULY_NONE || x->send < t->n_buffers), "exchange %u is malformed", i);
    REQUIRE(t->buffers[x->receive].flags & ULY_BUFFER_RECEIVE, "exchange %u receives into buffer %u, which is not marked", i, x->receive);
    const uly_buffer *send = x->send == ULY_NONE ? NULL : &t->buffers[x->send];
    REQUIRE(!send || (!(send->flags & ULY_BUFFER_RECEIVE) && send->phase > ULY_PHASE_LOAD), "exchange %u sends from buffer %u, which is none of the arena", i,
            x->send);
    REQUIRE(x->unit < t->n_nodes && x->rows < t->n_nodes && x->row_start < t->n_nodes && x->cols < t->n_nodes && x->col_start < t->n_nodes &&
                x->dtype < ULY_N_DTYPES,
            "exchange %u has no sizes", i);
  }
  return ULY_OK;
}

static uly_status check_operands(const uly_tables *t, uly_error *error) {
  for (uint32_t i = 0; i < t->n_operands; i++) {
    const uly_operand *o = &t->operands[i];
    uint32_t limit = 0;
    switch ((uly_operand_kind)o->kind) {
    case ULY_OPERAND_BUFFER: limit = t->n_buffers; break;
    case ULY_OPERAND_TENSOR: limit = t->n_tensors; break;
    case ULY_OPERAND_PEERS:
    case ULY_OPERAND_SEGMENTS: limit = t->n_exchanges; break;
    case ULY_OPERAND_ABSENT: continue;
    }
    REQUIRE(o->index < limit, "operand %u (kind %u) names row %u of %u", i, o->kind, o->index, limit);
    REQUIRE(node_or_none(t, o->offset), "operand %u has no offset", i);
  }
  for (uint32_t i = 0; i < t->n_values; i++)
    REQUIRE(t->values[i].node < t->n_nodes && (t->values[i].axis == ULY_NONE || t->values[i].axis < t->n_axes), "value %u is malformed", i);
  return ULY_OK;
}

static uly_status check_step(const uly_tables *t, uint32_t i, uly_error *error) {
  const uly_step *s = &t->steps[i];
  REQUIRE(s->kind < ULY_N_STEP_KINDS, "step %u has unknown kind %u; a newer runtime may read it", i, s->kind);
  REQUIRE(span_in(s->operands, t->n_operands) && span_in(s->values, t->n_values) && node_or_none(t, s->predicate), "step %u is malformed", i);
  switch ((uly_step_kind)s->kind) {
  case ULY_STEP_KERNEL:
    REQUIRE(s->a < t->n_kernels && s->items < t->n_nodes && node_or_none(t, s->scratch), "step %u calls kernel %u of %u", i, s->a, t->n_kernels);
    break;
  case ULY_STEP_LOOP: REQUIRE(s->items < t->n_nodes, "loop %u has no count", i); break;
  case ULY_STEP_POST:
  case ULY_STEP_SEND:
  case ULY_STEP_WAIT: REQUIRE(s->a < t->n_exchanges, "step %u names exchange %u of %u", i, s->a, t->n_exchanges); break;
  case ULY_STEP_COPY:
    REQUIRE(s->items < t->n_nodes && s->operands.count == 2, "copy %u is malformed", i);
    for (uint32_t k = 0; k < 2; k++) REQUIRE(t->operands[s->operands.first + k].kind <= ULY_OPERAND_TENSOR, "copy %u is not between buffers or tensors", i);
    break;
  case ULY_STEP_REDUCE:
  case ULY_STEP_ALL_GATHER:
  case ULY_STEP_REDUCE_SCATTER: return uly_fail(error, ULY_UNSUPPORTED, "the model uses a reserved step (%u at %u)", s->kind, i);
  case ULY_STEP_END:
  case ULY_N_STEP_KINDS: break;
  }
  return ULY_OK;
}

// Buffers are read and written only while they live.
static uly_status check_live(const uly_tables *t, uint32_t i, uly_phase phase, uly_error *error) {
  const uly_step *s = &t->steps[i];
  for (uint32_t k = 0; k < s->operands.count; k++) {
    const uly_operand *o = &t->operands[s->operands.first + k];
    bool message = o->kind == ULY_OPERAND_PEERS || o->kind == ULY_OPERAND_SEGMENTS, tensor = o->kind == ULY_OPERAND_TENSOR;
    REQUIRE(phase > ULY_PHASE_BIND || !(message || (tensor && t->tensors[o->index].role != ULY_PARAM)),
            "step %u uses messages, inputs or outputs before the forward phase", i);
    uint32_t buffer = o->kind == ULY_OPERAND_BUFFER ? o->index : o->kind == ULY_OPERAND_SEGMENTS ? t->exchanges[o->index].receive : ULY_NONE;
    if (buffer == ULY_NONE) continue;
    const uly_buffer *b = &t->buffers[buffer];
    REQUIRE(phase != ULY_PHASE_LOAD || b->phase == ULY_PHASE_LOAD, "step %u of the load phase uses buffer %u, which does not exist yet", i, buffer);
    REQUIRE(!(b->flags & ULY_BUFFER_CONSTANT) || !(o->access & ULY_WRITE), "step %u writes buffer %u, a constant", i, buffer);
    if (b->phase >= ULY_PHASE_FORWARD)
      REQUIRE(i >= b->live_from && i <= b->live_to, "step %u uses buffer %u, which lives in steps %u … %u", i, buffer, b->live_from, b->live_to);
  }
  return ULY_OK;
}

static uly_status check_phase(const uly_tables *t, uly_span steps, uly_phase phase, uly_error *error) {
  uint32_t open[ULY_MAX_LOOPS], depth = 0;
  for (uint32_t i = steps.first; i < steps.first + steps.count; i++) {
    const uly_step *s = &t->steps[i];
    ULY_TRY(check_live(t, i, phase, error));
    if (s->kind == ULY_STEP_LOOP) {
      REQUIRE(depth < ULY_MAX_LOOPS, "more than %d nested loops at step %u", ULY_MAX_LOOPS, i);
      REQUIRE(s->b > i && s->b < steps.first + steps.count && t->steps[s->b].kind == ULY_STEP_END, "loop %u has no end", i);
      open[depth++] = i;
    } else if (s->kind == ULY_STEP_END) {
      REQUIRE(depth > 0 && s->b == open[depth - 1] && t->steps[s->b].b == i, "end %u has no loop", i);
      depth--;
    } else if (s->kind == ULY_STEP_POST || s->kind == ULY_STEP_SEND || s->kind == ULY_STEP_WAIT) {
      REQUIRE(phase > ULY_PHASE_BIND, "step %u exchanges before the forward phase", i);
    }
  }
  REQUIRE(depth == 0, "loop %u has no end", open[depth - 1]);
  return ULY_OK;
}

// A value is shown only where, and while, it is there.
static uly_status check_probe(const uly_tables *t, const uly_entry *e, uint32_t i, uly_error *error) {
  const uly_probe *p = &t->probes[i];
  REQUIRE(p->operand < t->n_operands && p->dtype < ULY_N_DTYPES && p->spec_dtype < ULY_N_DTYPES && p->rank <= ULY_MAX_DIMS && node_or_none(t, p->offset) &&
              p->name < t->n_names,
          "probe %u is malformed", i);
  for (uint32_t d = 0; d < p->rank; d++)
    REQUIRE(p->dims[d] < t->n_nodes && p->start[d] < t->n_nodes && p->local[d] < t->n_nodes && p->stride[d] < t->n_nodes, "probe %u has no size in dim %u", i,
            d);
  const uly_operand *o = &t->operands[p->operand];
  bool segments = o->kind == ULY_OPERAND_SEGMENTS;
  REQUIRE(segments || o->kind == ULY_OPERAND_BUFFER || o->kind == ULY_OPERAND_TENSOR, "probe %u shows nothing", i);
  REQUIRE(segments ? p->axis == t->exchanges[o->index].axis && p->cut < p->rank : p->axis == ULY_NONE, "probe %u has axis %u", i, p->axis);
  const uly_span *load = &e->steps[ULY_PHASE_LOAD], *forward = &e->steps[ULY_PHASE_FORWARD];
  bool at_load = p->step - load->first < load->count;
  REQUIRE(at_load || p->step - forward->first < forward->count, "probe %u follows step %u, which its entry does not have", i, p->step);
  const uly_buffer *b = o->kind == ULY_OPERAND_BUFFER ? &t->buffers[o->index] : segments ? &t->buffers[t->exchanges[o->index].receive] : NULL;
  if (b && b->phase != ULY_PHASE_LOAD)
    REQUIRE(!at_load && p->step >= b->live_from && p->step <= b->live_to, "probe %u shows a buffer that does not live at step %u", i, p->step);
  if (o->kind == ULY_OPERAND_TENSOR)
    REQUIRE(t->tensors[o->index].role == ULY_OUTPUT && o->index - e->tensors.first < e->tensors.count, "probe %u shows a tensor that its entry does not make",
            i);
  return ULY_OK;
}

static uly_status check_entries(const uly_tables *t, uly_error *error) {
  REQUIRE(t->n_entries > 0, "it has no entry");
  for (uint32_t i = 0; i < t->n_entries; i++) {
    const uly_entry *e = &t->entries[i];
    REQUIRE(e->name < t->n_names && node_or_none(t, e->when) && span_in(e->tensors, t->n_tensors) && span_in(e->params, t->n_indices) &&
                span_in(e->probes, t->n_probes),
            "entry %u is malformed", i);
    for (uint32_t k = 0; k < e->tensors.count; k++) REQUIRE(t->tensors[e->tensors.first + k].role != ULY_PARAM, "entry %u takes a parameter", i);
    for (uint32_t k = 0; k < e->params.count; k++) {
      uint32_t row = t->indices[e->params.first + k];
      REQUIRE(row < t->n_tensors && t->tensors[row].role == ULY_PARAM, "entry %u needs row %u, which is no parameter", i, row);
    }
    for (int phase = 0; phase < ULY_N_PHASES; phase++) {
      REQUIRE(span_in(e->steps[phase], t->n_steps), "entry %u has no steps", i);
      ULY_TRY(check_phase(t, e->steps[phase], (uly_phase)phase, error));
    }
    for (uint32_t k = 0; k < e->probes.count; k++) ULY_TRY(check_probe(t, e, e->probes.first + k, error));
  }
  return ULY_OK;
}

// Names of parameters, and operands and values of steps, that several rows share count each time: state is made for each.
static uly_status check_totals(const uly_tables *t, uly_error *error) {
  const uint64_t most = 1u << 26;
  uint64_t params = 0, operands = 0, values = 0;
  for (uint32_t i = 0; i < t->n_tensors; i++) params += t->tensors[i].names.count;
  for (uint32_t i = 0; i < t->n_steps; i++) operands += t->steps[i].operands.count, values += t->steps[i].values.count;
  REQUIRE(params <= most && operands <= most && values <= most, "%llu parameters, %llu operands and %llu values", (unsigned long long)params,
          (unsigned long long)operands, (unsigned long long)values);
  return ULY_OK;
}

uly_status uly_tables_check(const uly_tables *t, uly_error *error) {
  ULY_TRY(check_names(t, error));
  ULY_TRY(check_nodes(t, error));
  ULY_TRY(check_tensors(t, error));
  ULY_TRY(check_memory(t, error));
  ULY_TRY(check_operands(t, error));
  for (uint32_t i = 0; i < t->n_steps; i++) ULY_TRY(check_step(t, i, error));
  ULY_TRY(check_totals(t, error));
  return check_entries(t, error);
}
