#include "runtime/machine.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/poison.h"
#include "runtime/watch.h"

// One operand of a prepared step.
typedef struct place {
  const uly_operand *operand;
  int64_t offset;
  int32_t slots;
  bool fixed; // the same in every run and iteration
  uint32_t n; // pointers
  void **pointers;
} place;

struct uly_prepared {
  int64_t items, scratch, n_peers;
  bool skip;
  uint32_t n_places;
  place *places;
  uly_arg *op;
  const int64_t **val;
};

typedef struct counters {
  uint32_t depth;
  int64_t at[ULY_MAX_LOOPS];
} counters;

// ---- prepare ------------------------------------------------------------------------------------------------------------------------------

// A bump allocator over one calloc; NULL base: measures.
typedef struct pool {
  unsigned char *base;
  size_t used;
} pool;

static void *take(pool *p, size_t bytes) {
  void *at = p->base ? p->base + p->used : NULL;
  p->used += (bytes + 15) & ~(size_t)15;
  return at;
}

static uint32_t axis_size(const uly_machine *m, uint32_t axis) { return axis < m->nodes->grid.n_axes ? (uint32_t)m->nodes->grid.size[axis] : 1; }

static uint32_t n_pointers(const uly_machine *m, const uly_operand *o) {
  switch ((uly_operand_kind)o->kind) {
  case ULY_OPERAND_BUFFER:
  case ULY_OPERAND_TENSOR: return 1;
  case ULY_OPERAND_PEERS:
  case ULY_OPERAND_SEGMENTS: return axis_size(m, m->loaded->tables.exchanges[o->index].axis);
  case ULY_OPERAND_ABSENT: break;
  }
  return 0;
}

static bool is_message(const uly_operand *o) { return o->kind == ULY_OPERAND_PEERS || o->kind == ULY_OPERAND_SEGMENTS; }

static int32_t n_slots(const uly_tables *t, const uly_operand *o) {
  switch ((uly_operand_kind)o->kind) {
  case ULY_OPERAND_BUFFER: return (int32_t)t->buffers[o->index].slots;
  case ULY_OPERAND_TENSOR: return (int32_t)t->tensors[o->index].names.count;
  case ULY_OPERAND_PEERS:
  case ULY_OPERAND_SEGMENTS: return (int32_t)t->buffers[t->exchanges[o->index].receive].slots;
  case ULY_OPERAND_ABSENT: break;
  }
  return 1;
}

// Places and arrays of one step; the first of two passes measures only.
static void lay_out(uly_machine *m, const uly_step *s, uly_prepared *p, pool *mem) {
  const uly_tables *t = &m->loaded->tables;
  place *places = take(mem, sizeof *places * s->operands.count);
  uly_arg *op = take(mem, sizeof *op * s->operands.count);
  const int64_t **val = take(mem, sizeof *val * s->values.count);
  if (mem->base) {
    p->n_places = s->operands.count;
    p->places = places;
    p->op = op;
    p->val = val;
    p->n_peers = 1;
  }
  for (uint32_t k = 0; k < s->operands.count; k++) {
    const uly_operand *o = &t->operands[s->operands.first + k];
    uint32_t n = n_pointers(m, o);
    void **pointers = take(mem, sizeof *pointers * n);
    if (!mem->base) continue;
    places[k] = (place){.operand = o, .slots = n_slots(t, o), .n = n, .pointers = pointers};
    places[k].fixed = places[k].slots == 1 && (o->kind != ULY_OPERAND_TENSOR || t->tensors[o->index].role == ULY_PARAM);
    op[k] = (uly_arg){n ? pointers : NULL, n};
    if (is_message(o)) p->n_peers = n;
  }
  for (uint32_t k = 0; k < s->values.count; k++) {
    const uly_call_value *v = &t->values[s->values.first + k];
    int64_t *numbers = take(mem, sizeof *numbers * (v->axis == ULY_NONE ? 1 : axis_size(m, v->axis)));
    if (mem->base) val[k] = numbers;
  }
}

static uly_status fill_values(uly_machine *m, const uly_step *s, uly_prepared *p, uly_error *error) {
  for (uint32_t k = 0; k < s->values.count; k++) {
    const uly_call_value *v = &m->loaded->tables.values[s->values.first + k];
    int64_t *numbers = (int64_t *)(uintptr_t)p->val[k];
    uint32_t n = v->axis == ULY_NONE ? 1 : axis_size(m, v->axis);
    if (v->axis != ULY_NONE && v->axis >= m->nodes->grid.n_axes) return uly_fail(error, ULY_INVALID_INPUT, "a value of the load phase is asked for every rank");
    for (uint32_t j = 0; j < n; j++) {
      int64_t rank = v->axis == ULY_NONE ? m->rank : uly_grid_peer(&m->nodes->grid, m->rank, v->axis, j);
      ULY_TRY(uly_nodes_get(m->nodes, v->node, rank, error, &numbers[j]));
    }
  }
  return ULY_OK;
}

static void resolve(const uly_machine *m, const place *p, const counters *c);

static uly_status prepare_step(uly_machine *m, uint32_t index, uly_prepared *p, uly_error *error) {
  const uly_step *s = &m->loaded->tables.steps[index];
  static const counters outside;
  int64_t predicate = 1;
  if (s->predicate != ULY_NONE) ULY_TRY(uly_nodes_get(m->nodes, s->predicate, m->rank, error, &predicate));
  p->skip = predicate == 0 || (m->skip && m->skip[index]);
  if (p->skip) return ULY_OK;
  if (s->kind == ULY_STEP_KERNEL || s->kind == ULY_STEP_LOOP || s->kind == ULY_STEP_COPY)
    ULY_TRY(uly_nodes_size(m->nodes, s->items, m->rank, error, &p->items));
  if (s->kind == ULY_STEP_KERNEL && s->scratch != ULY_NONE) ULY_TRY(uly_nodes_size(m->nodes, s->scratch, m->rank, error, &p->scratch));
  ULY_TRY(fill_values(m, s, p, error));
  for (uint32_t k = 0; k < p->n_places; k++) {
    place *at = &p->places[k];
    if (at->operand->kind == ULY_OPERAND_ABSENT) continue;
    if (at->operand->offset != ULY_NONE) ULY_TRY(uly_nodes_get(m->nodes, at->operand->offset, m->rank, error, &at->offset));
    if (at->fixed) resolve(m, at, &outside);
  }
  return ULY_OK;
}

// Whether loops end in a time that is worth waiting for.
static uly_status check_loops(const uly_machine *m, uly_error *error) {
  int64_t turns[ULY_MAX_LOOPS + 1] = {1};
  uint32_t depth = 0;
  for (uint32_t i = 0; i < m->steps.count; i++) {
    const uly_step *s = &m->loaded->tables.steps[m->steps.first + i];
    if (s->kind == ULY_STEP_END) depth--;
    if (s->kind != ULY_STEP_LOOP) continue;
    if (m->prepared[i].items > ULY_MAX_TURNS || turns[depth] * m->prepared[i].items > ULY_MAX_TURNS)
      return uly_fail(error, ULY_OVERFLOW, "step %u, spec line %u: a loop of %lld iterations, %lld times, exceeds %d", m->steps.first + i, s->spec_line,
                      (long long)m->prepared[i].items, (long long)turns[depth], ULY_MAX_TURNS);
    turns[depth + 1] = turns[depth] * m->prepared[i].items;
    depth++;
  }
  return ULY_OK;
}

uly_status uly_machine_prepare(uly_machine *m, uly_error *error) {
  const uly_tables *t = &m->loaded->tables;
  pool mem = {0};
  for (int pass = 0; pass < 2; pass++) {
    mem.used = 0;
    uly_prepared *prepared = take(&mem, sizeof *prepared * m->steps.count);
    if (pass) m->prepared = prepared;
    for (uint32_t i = 0; i < m->steps.count; i++) lay_out(m, &t->steps[m->steps.first + i], pass ? &prepared[i] : NULL, &mem);
    if (pass) break;
    m->pool = mem.base = calloc(1, mem.used + 16);
    if (!mem.base) return uly_fail(error, ULY_EXHAUSTED, "no memory for %zu bytes of steps", mem.used);
  }
  for (uint32_t i = 0; i < m->steps.count; i++) {
    uint32_t index = m->steps.first + i;
    uly_status status = prepare_step(m, index, &m->prepared[i], error);
    if (status != ULY_OK) {
      uly_str name = uly_tables_name(t, t->steps[index].name);
      uly_error_prefix(error, "step %u (%.*s, spec line %u): ", index, ULY_STR_ARG(name), t->steps[index].spec_line);
      return status;
    }
  }
  return check_loops(m, error);
}

void uly_machine_finish(uly_machine *m) {
  free(m->pool);
  m->pool = NULL;
  m->prepared = NULL;
}

int64_t uly_machine_items(const uly_machine *m, uint32_t step, bool *out_skipped) {
  *out_skipped = m->prepared[step].skip;
  return m->prepared[step].items;
}

int64_t uly_machine_scratch(const uly_machine *m) {
  int64_t most = 0;
  for (uint32_t i = 0; i < m->steps.count; i++)
    if (m->prepared[i].scratch > most) most = m->prepared[i].scratch;
  return most;
}

// ---- run ----------------------------------------------------------------------------------------------------------------------------------

static int64_t slot_of(const uly_operand *o, int32_t slots, const counters *c) {
  int64_t k = o->slot_add;
  for (uint32_t d = 0; d < c->depth; d++) k += c->at[d] * o->slot[d];
  k %= slots;
  return k < 0 ? k + slots : k;
}

// What has no memory, as a buffer without bytes, has none at any offset.
static void *plus(const void *base, int64_t bytes) { return base ? (unsigned char *)(uintptr_t)base + bytes : NULL; }

static void resolve(const uly_machine *m, const place *p, const counters *c) {
  const uly_operand *o = p->operand;
  int64_t k = p->slots > 1 ? slot_of(o, p->slots, c) : 0;
  const uly_link *x = is_message(o) ? &m->links[o->index] : NULL;
  switch ((uly_operand_kind)o->kind) {
  case ULY_OPERAND_BUFFER: p->pointers[0] = plus(m->memory[o->index], k * m->slot_bytes[o->index] + p->offset); return;
  case ULY_OPERAND_TENSOR:
    p->pointers[0] = plus(
        m->loaded->tables.tensors[o->index].role == ULY_PARAM ? m->loaded->params[m->loaded->first_param[o->index] + k].data : m->tensors[o->index], p->offset);
    return;
  case ULY_OPERAND_PEERS:
    for (uint32_t j = 0; j < p->n; j++) p->pointers[j] = plus(x->to[j], k * ((int)j == x->comm->rank ? x->from_slot : x->to_slot) + p->offset);
    return;
  case ULY_OPERAND_SEGMENTS:
    for (uint32_t j = 0; j < p->n; j++) p->pointers[j] = plus(x->from[j], k * x->from_slot + p->offset);
    return;
  case ULY_OPERAND_ABSENT: return;
  }
}

uint32_t uly_machine_pointers(const uly_machine *m, const uly_operand *o) { return n_pointers(m, o); }

void uly_machine_locate(const uly_machine *m, const uly_operand *o, const int64_t *at, uint32_t depth, void **out) {
  place p = {.operand = o, .slots = n_slots(&m->loaded->tables, o), .n = n_pointers(m, o), .pointers = out};
  counters c = {.depth = depth};
  memcpy(c.at, at, depth * sizeof *at);
  resolve(m, &p, &c);
}

static uly_status comm_failed(const uly_machine *m, uint32_t step, const uly_link *x, uly_status status, uly_error *error) {
  const uly_step *s = &m->loaded->tables.steps[step];
  return uly_fail(error, status, "%s (step %u, spec line %u)", x->comm->error, step, s->spec_line);
}

static uly_status make_ready(uly_machine *m, uint32_t step, uly_link *x, uly_error *error) {
  if (x->is_ready) return ULY_OK;
  uly_status status = x->comm->ops->ready(x->comm, x->channel, &x->route);
  x->is_ready = true;
  return status == ULY_OK ? ULY_OK : comm_failed(m, step, x, status, error);
}

static uly_status run_kernel(uly_machine *m, uint32_t step, const uly_prepared *p, const counters *c, uly_error *error) {
  const uly_step *s = &m->loaded->tables.steps[step];
  for (uint32_t k = 0; k < p->n_places; k++) {
    const uly_operand *o = p->places[k].operand;
    if (!p->places[k].fixed) resolve(m, &p->places[k], c);
    if (o->kind == ULY_OPERAND_PEERS) ULY_TRY(make_ready(m, step, &m->links[o->index], error));
  }
  uly_call call = {.op = p->op, .val = p->val, .n_peers = p->n_peers, .fault = &m->fault};
  m->device->ops->launch(m->device, m->kernels[s->a], &call, p->items);
  if (m->fault.code && m->fault.step == ULY_NONE) m->fault.step = step;
  return ULY_OK;
}

static uly_status run_exchange(uly_machine *m, uint32_t step, const uly_prepared *p, const counters *c, uly_error *error) {
  const uly_step *s = &m->loaded->tables.steps[step];
  uly_link *x = &m->links[s->a];
  uly_status status;
  int64_t k = p->n_places && p->places[0].slots > 1 ? slot_of(p->places[0].operand, p->places[0].slots, c) : 0;
  x->route.receive = plus(x->receive, k * x->from_slot);
  x->route.send = x->send ? plus(x->send, k * x->to_slot) : NULL;
  switch (s->kind) {
  case ULY_STEP_POST:
    x->is_ready = false;
    status = x->comm->ops->post(x->comm, x->channel, &x->route);
    break;
  case ULY_STEP_SEND:
    ULY_TRY(make_ready(m, step, x, error));
    status = x->comm->ops->send(x->comm, x->channel, &x->route);
    break;
  default: status = x->comm->ops->wait(x->comm, x->channel, &x->route);
  }
  return status == ULY_OK ? ULY_OK : comm_failed(m, step, x, status, error);
}

static void log_step(const uly_machine *m, uint32_t step, const uly_prepared *p) {
  static const char *const names[] = {
#define X(name) #name,
      ULY_STEP_KINDS(X)
#undef X
  };
  const uly_step *s = &m->loaded->tables.steps[step];
  uly_str name = uly_tables_name(&m->loaded->tables, s->name);
  fprintf(stderr, "ulyrt: rank %lld: step %u %s %.*s, %lld items, spec line %u\n", (long long)m->rank, step, names[s->kind], ULY_STR_ARG(name),
          (long long)p->items, s->spec_line);
}

uly_status uly_machine_run(uly_machine *m, uly_error *error) {
  const uly_step *steps = m->loaded->tables.steps;
  counters c = {0};
  int64_t count[ULY_MAX_LOOPS];
  m->fault = (uly_fault){.step = ULY_NONE};
  for (uint32_t i = m->steps.first; i < m->steps.first + m->steps.count; i++) {
    const uly_step *s = &steps[i];
    uly_prepared *p = &m->prepared[i - m->steps.first];
    if (m->log > 1) log_step(m, i, p);
    if (m->poison) uly_poison_step(m, i);
    if (s->kind == ULY_STEP_LOOP) {
      if (p->skip || p->items == 0) {
        i = s->b;
        continue;
      }
      count[c.depth] = p->items;
      c.at[c.depth++] = 0;
    } else if (s->kind == ULY_STEP_END) {
      if (++c.at[c.depth - 1] < count[c.depth - 1]) {
        i = s->b;
        continue;
      }
      c.depth--;
    } else if (p->skip) {
      continue;
    } else if (s->kind == ULY_STEP_KERNEL) {
      ULY_TRY(run_kernel(m, i, p, &c, error));
    } else if (s->kind == ULY_STEP_COPY) {
      for (uint32_t k = 0; k < 2; k++) resolve(m, &p->places[k], &c);
      if (p->items) m->device->ops->copy(m->device, p->places[1].pointers[0], p->places[0].pointers[0], (size_t)p->items);
    } else {
      ULY_TRY(run_exchange(m, i, p, &c, error));
    }
    if (m->watch) uly_watch_step(m->watch, m, i, c.at, c.depth);
  }
  return ULY_OK;
}
