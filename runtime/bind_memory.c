// Memory of a bind: which buffers it uses, where they stand (equal on all ranks, since each takes the largest size of any rank), and the routes of its exchanges.
#include <stdlib.h>
#include <string.h>

#include "runtime/arena_plan.h"
#include "runtime/bound.h"

// Stretch numbers: 0 is the arena, 1 + a what peers of axis a write to. The arena lies behind the largest of those (uly_bound.home), and where buffers there do not live: a buffer
// that peers write to lives from its POST on, and until they know of that they write nothing.
enum { UNUSED = -1, ARENA = 0 };

typedef struct use {
  int stretch; // UNUSED
  bool always; // lives through the whole bind
} use;

static uly_status use_exchange(uly_bound *b, use *uses, uint32_t x, uly_error *error) {
  const uly_exchange *e = &b->loaded->tables.exchanges[x];
  int stretch = 1 + (int)e->axis;
  if (uses[e->receive].stretch != UNUSED && uses[e->receive].stretch != stretch)
    return uly_fail(error, ULY_INVALID_INPUT, "corrupt model: buffer %u receives on two axes", e->receive);
  uses[e->receive].stretch = stretch;
  b->links[x].comm = b->comms[e->axis];
  b->exchanges_on[e->axis] = true;
  if (b->comms[e->axis]->ops->mapped) return ULY_OK;
  if (e->send == ULY_NONE) return uly_fail(error, ULY_INVALID_INPUT, "corrupt model: exchange %u has no send buffer", x);
  uses[e->send].stretch = ARENA;
  return ULY_OK;
}

static uly_status use_step(uly_bound *b, use *uses, uint32_t step, uly_phase phase, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  const uly_step *s = &t->steps[step];
  if (s->kind == ULY_STEP_POST || s->kind == ULY_STEP_SEND || s->kind == ULY_STEP_WAIT) ULY_TRY(use_exchange(b, uses, s->a, error));
  for (uint32_t k = 0; k < s->operands.count; k++) {
    const uly_operand *o = &t->operands[s->operands.first + k];
    if (o->kind == ULY_OPERAND_PEERS || o->kind == ULY_OPERAND_SEGMENTS) ULY_TRY(use_exchange(b, uses, o->index, error));
    if (o->kind == ULY_OPERAND_TENSOR && t->tensors[o->index].role != ULY_PARAM) {
      uly_span own = t->entries[b->entry].tensors;
      if (o->index < own.first || o->index >= own.first + own.count || phase == ULY_PHASE_BIND)
        return uly_fail(error, ULY_INVALID_INPUT, "corrupt model: step %u uses a tensor that its entry does not have", step);
    }
    if (o->kind != ULY_OPERAND_BUFFER || t->buffers[o->index].phase == ULY_PHASE_LOAD) continue;
    use *u = &uses[o->index];
    if (u->stretch == UNUSED && !(t->buffers[o->index].flags & ULY_BUFFER_RECEIVE)) u->stretch = ARENA;
    if (t->buffers[o->index].phase == ULY_PHASE_BIND || phase == ULY_PHASE_BIND) u->always = true;
  }
  return ULY_OK;
}

// The largest size that any rank gives buffer |i|.
static uly_status largest(uly_bound *b, uint32_t i, uly_error *error) {
  b->slot_bytes[i] = 0;
  for (int64_t r = 0; r < b->nodes.n_ranks; r++) {
    int64_t bytes;
    ULY_TRY(uly_nodes_size(&b->nodes, b->loaded->tables.buffers[i].bytes, r, error, &bytes));
    if (bytes > b->slot_bytes[i]) b->slot_bytes[i] = bytes;
  }
  b->slot_bytes[i] = (b->slot_bytes[i] + ULY_ARENA_ALIGN - 1) & ~(int64_t)(ULY_ARENA_ALIGN - 1);
  return ULY_OK;
}

// Lays out what axis |axis| receives, −1: nothing, and with |arena| what only this rank touches too, behind it and wherever that is free.
static uly_status plan_stretch(uly_bound *b, const use *uses, int axis, bool arena, uly_block *blocks, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  uint32_t n = 0;
  int64_t bytes, received;
  for (uint32_t i = 0; i < t->n_buffers; i++) {
    if (uses[i].stretch != 1 + axis && (uses[i].stretch != ARENA || !arena)) continue;
    ULY_TRY(largest(b, i, error));
    uly_block *k = &blocks[n++];
    *k = (uly_block){.live_from = uses[i].always ? 0 : t->buffers[i].live_from,
                     .live_to = uses[i].always ? UINT32_MAX : t->buffers[i].live_to,
                     .first = uses[i].stretch != ARENA};
    if (__builtin_mul_overflow(b->slot_bytes[i], (int64_t)t->buffers[i].slots, &k->bytes) || k->bytes > (int64_t)1 << 47)
      return uly_fail(error, ULY_OVERFLOW, "buffer %u needs %u slots of %lld bytes", i, t->buffers[i].slots, (long long)b->slot_bytes[i]);
  }
  ULY_TRY(uly_arena_plan(blocks, n, error, &bytes, &received));
  if (arena) b->arena.bytes = bytes - received;
  if (axis >= 0) b->received[axis].bytes = received;
  n = 0;
  for (uint32_t i = 0; i < t->n_buffers; i++)
    if (uses[i].stretch == 1 + axis || (uses[i].stretch == ARENA && arena)) b->offsets[i] = blocks[n++].offset;
  return ULY_OK;
}

static uly_status plan(uly_bound *b, use *uses, uly_block *blocks, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  for (uint32_t i = 0; i < t->n_buffers; i++) {
    uses[i] = (use){.stretch = UNUSED};
    b->offsets[i] = -1;
  }
  for (int phase = ULY_PHASE_BIND; phase <= ULY_PHASE_FORWARD; phase++) {
    uly_span steps = t->entries[b->entry].steps[phase];
    for (uint32_t i = steps.first; i < steps.first + steps.count; i++) ULY_TRY(use_step(b, uses, i, (uly_phase)phase, error));
  }
  b->home = -1;
  for (int a = 0; a < (int)t->n_axes; a++) {
    ULY_TRY(plan_stretch(b, uses, a, false, blocks, error));
    if (b->exchanges_on[a] && (b->home < 0 || b->received[a].bytes > b->received[b->home].bytes)) b->home = a;
  }
  return plan_stretch(b, uses, b->home, true, blocks, error);
}

uly_status uly_bind_plan(uly_bound *b, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  b->offsets = calloc(t->n_buffers + (size_t)1, sizeof *b->offsets);
  b->slot_bytes = calloc(t->n_buffers + (size_t)1, sizeof *b->slot_bytes);
  b->memory = calloc(t->n_buffers + (size_t)1, sizeof *b->memory);
  b->links = calloc(t->n_exchanges + (size_t)1, sizeof *b->links);
  use *uses = calloc(t->n_buffers + (size_t)1, sizeof *uses);
  uly_block *blocks = calloc(t->n_buffers + (size_t)1, sizeof *blocks);
  uly_status status = b->offsets && b->slot_bytes && b->memory && b->links && uses && blocks
                          ? plan(b, uses, blocks, error)
                          : uly_fail(error, ULY_EXHAUSTED, "no memory to plan %u buffers", t->n_buffers);
  free(uses);
  free(blocks);
  return status;
}

// Of the stretch of axis |axis|: what peers write to, and where the arena is with it, that too.
static int64_t stretch_bytes(const uly_bound *b, int axis) { return b->received[axis].bytes + (axis == b->home ? b->arena.bytes : 0); }

uly_status uly_bind_alloc(uly_bound *b, uly_error *error) {
  if (b->home < 0) ULY_TRY(b->device->ops->alloc(b->device, (size_t)b->arena.bytes, error, &b->arena.memory));
  for (uint32_t a = 0; a < b->loaded->tables.n_axes; a++) {
    uly_stretch *s = &b->received[a];
    if (!b->exchanges_on[a]) continue;
    s->peers = calloc((size_t)b->comms[a]->n_ranks, sizeof *s->peers);
    if (!s->peers) return uly_fail(error, ULY_EXHAUSTED, "no memory for %d peers", b->comms[a]->n_ranks);
    if (!b->comms[a]->ops->mapped) ULY_TRY(b->device->ops->alloc(b->device, (size_t)stretch_bytes(b, (int)a), error, &s->memory));
  }
  return ULY_OK;
}

// ---- routes -------------------------------------------------------------------------------------------------------------------------------

typedef struct cut {
  int64_t rows, row_start, cols, col_start;
} cut;

static uly_status cut_of(const uly_bound *b, const uly_exchange *e, int64_t rank, uly_error *error, cut *out) {
  ULY_TRY(uly_nodes_size(&b->nodes, e->rows, rank, error, &out->rows));
  ULY_TRY(uly_nodes_size(&b->nodes, e->row_start, rank, error, &out->row_start));
  ULY_TRY(uly_nodes_size(&b->nodes, e->cols, rank, error, &out->cols));
  return uly_nodes_size(&b->nodes, e->col_start, rank, error, &out->col_start);
}

static uly_status product(int64_t a, int64_t b, int64_t c, uly_error *error, int64_t *out) {
  if (__builtin_mul_overflow(a, b, out) || __builtin_mul_overflow(*out, c, out) || *out > (int64_t)1 << 47)
    return uly_fail(error, ULY_OVERFLOW, "size overflow: a message of %lld · %lld · %lld bytes", (long long)a, (long long)b, (long long)c);
  return ULY_OK;
}

static uly_status fits(const uly_bound *b, uint32_t buffer, int64_t offset, int64_t bytes, uint32_t x, uly_error *error) {
  if (offset + bytes <= b->slot_bytes[buffer] || bytes == 0) return ULY_OK;
  return uly_fail(error, ULY_INVALID_INPUT, "corrupt model: a message of exchange %u ends at %lld in a buffer of %lld bytes", x, (long long)(offset + bytes),
                  (long long)b->slot_bytes[buffer]);
}

// Fills the arrays of link |x|, of which peer |j| is the rank |peer| of the grid.
static uly_status route_peer(uly_bound *b, uint32_t x, int j, int64_t unit, const cut *mine, const cut *theirs, uly_error *error) {
  const uly_exchange *e = &b->loaded->tables.exchanges[x];
  uly_link *link = &b->links[x];
  int64_t *send_bytes = (int64_t *)(uintptr_t)link->route.send_bytes, *send_offset = (int64_t *)(uintptr_t)link->route.send_offset;
  int64_t *receive_bytes = (int64_t *)(uintptr_t)link->route.receive_bytes, *receive_offset = (int64_t *)(uintptr_t)link->route.receive_offset;
  int64_t there;
  ULY_TRY(product(unit, mine->rows, theirs->cols, error, &send_bytes[j]));
  ULY_TRY(product(unit, mine->rows, theirs->col_start, error, &send_offset[j]));
  ULY_TRY(product(unit, theirs->rows, mine->cols, error, &receive_bytes[j]));
  ULY_TRY(product(unit, theirs->row_start, mine->cols, error, &receive_offset[j]));
  ULY_TRY(product(unit, mine->row_start, theirs->cols, error, &there));
  ULY_TRY(fits(b, e->receive, receive_offset[j], receive_bytes[j], x, error));
  ULY_TRY(fits(b, e->receive, there, send_bytes[j], x, error));
  bool mapped = link->comm->ops->mapped, own = j == link->comm->rank;
  if (!mapped) ULY_TRY(fits(b, e->send, send_offset[j], send_bytes[j], x, error));
  unsigned char *base = mapped || own ? (unsigned char *)(mapped ? b->received[e->axis].peers[j] : b->received[e->axis].memory) + b->offsets[e->receive] + there
                                      : (unsigned char *)link->send + send_offset[j];
  link->to[j] = base;
  link->from[j] = (unsigned char *)link->receive + receive_offset[j];
  return ULY_OK;
}

static uly_status route(uly_bound *b, uint32_t x, uly_error *error) {
  const uly_exchange *e = &b->loaded->tables.exchanges[x];
  uly_link *link = &b->links[x];
  int64_t unit;
  cut mine, theirs;
  link->channel = b->channels[e->axis];
  link->receive = b->memory[e->receive];
  bool mapped = link->comm->ops->mapped;
  link->send = mapped ? NULL : b->memory[e->send];
  link->from_slot = b->slot_bytes[e->receive];
  link->to_slot = mapped ? link->from_slot : b->slot_bytes[e->send];
  link->route.exchange = x;
  link->route.dtype = e->dtype;
  link->route.receive = link->receive;
  link->route.send = link->send;
  if (!mapped && b->loaded->tables.buffers[e->send].slots != b->loaded->tables.buffers[e->receive].slots)
    return uly_fail(error, ULY_INVALID_INPUT, "corrupt model: exchange %u sends and receives with different numbers of slots", x);
  ULY_TRY(uly_nodes_size(&b->nodes, e->unit, b->rank, error, &unit));
  ULY_TRY(cut_of(b, e, b->rank, error, &mine));
  for (int j = 0; j < link->comm->n_ranks; j++) {
    ULY_TRY(cut_of(b, e, uly_grid_peer(&b->nodes.grid, b->rank, e->axis, j), error, &theirs));
    ULY_TRY(route_peer(b, x, j, unit, &mine, &theirs, error));
  }
  return ULY_OK;
}

// Arrays and names of all links in one piece.
static uly_status make_links(uly_bound *b, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  enum { NAME = 96 };
  size_t total = 16;
  for (uint32_t x = 0; x < t->n_exchanges; x++)
    if (b->links[x].comm) total += (size_t)b->links[x].comm->n_ranks * (2 * sizeof(void *) + 4 * sizeof(int64_t)) + NAME;
  unsigned char *at = b->link_memory = calloc(1, total);
  if (!at) return uly_fail(error, ULY_EXHAUSTED, "no memory for %u exchanges", t->n_exchanges);
  for (uint32_t x = 0; x < t->n_exchanges; x++) {
    uly_link *link = &b->links[x];
    if (!link->comm) continue;
    size_t n = (size_t)link->comm->n_ranks;
    uly_str name = uly_tables_name(t, t->exchanges[x].name);
    link->to = (void **)(void *)at;
    link->from = link->to + n;
    int64_t *numbers = (int64_t *)(void *)(link->from + n);
    link->route.send_bytes = numbers;
    link->route.send_offset = numbers + n;
    link->route.receive_bytes = numbers + 2 * n;
    link->route.receive_offset = numbers + 3 * n;
    char *text = (char *)(numbers + 4 * n);
    snprintf(text, NAME, "%.*s, spec line %u", ULY_STR_ARG(name), t->exchanges[x].spec_line);
    link->route.name = text;
    at = (unsigned char *)text + NAME;
    ULY_TRY(route(b, x, error));
  }
  return ULY_OK;
}

uly_status uly_bind_map(uly_bound *b, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  for (uint32_t a = 0; a < t->n_axes; a++) {
    uly_comm *comm = b->comms[a];
    uly_stretch *s = &b->received[a];
    if (!b->exchanges_on[a]) continue;
    if (comm->ops->mapped) {
      uly_status status = comm->ops->map(comm, (size_t)s->bytes, (size_t)stretch_bytes(b, (int)a), &s->memory, s->peers);
      if (status != ULY_OK) return uly_fail(error, status, "%s", comm->error);
    }
    uly_status status = comm->ops->open(comm, t->n_exchanges, t->program, &b->channels[a]);
    if (status != ULY_OK) return uly_fail(error, status, "%s", comm->error);
    b->opened[a] = true;
  }
  void *arena = b->home < 0 ? b->arena.memory : b->received[b->home].memory;
  for (uint32_t i = 0; i < t->n_buffers; i++) {
    b->memory[i] = b->loaded->memory[i];
    if (b->loaded->memory[i]) b->slot_bytes[i] = b->loaded->slot_bytes[i];
    if (b->offsets[i] >= 0 && !(t->buffers[i].flags & ULY_BUFFER_RECEIVE)) b->memory[i] = (unsigned char *)arena + b->offsets[i];
  }
  for (uint32_t x = 0; x < t->n_exchanges; x++)
    if (b->links[x].comm) b->memory[t->exchanges[x].receive] = (unsigned char *)b->received[t->exchanges[x].axis].memory + b->offsets[t->exchanges[x].receive];
  return make_links(b, error);
}

void uly_bind_unmap(uly_bound *b) {
  bool busy = false; // with send buffers, which stand in the arena
  for (uint32_t a = 0; a < b->loaded->tables.n_axes; a++) {
    if (b->opened[a]) b->comms[a]->ops->close(b->comms[a], b->channels[a]);
    busy = busy || (b->comms[a] && b->comms[a]->busy);
  }
  for (uint32_t a = 0; a < b->loaded->tables.n_axes; a++) {
    uly_comm *comm = b->comms[a];
    uly_stretch *s = &b->received[a];
    bool kept = !s->memory || ((int)a == b->home ? busy : comm->busy);
    if (!kept && comm->ops->mapped)
      comm->ops->unmap(comm, s->memory, s->peers, (size_t)s->bytes, (size_t)stretch_bytes(b, (int)a));
    else if (!kept)
      b->device->ops->free(b->device, s->memory, (size_t)stretch_bytes(b, (int)a));
    free(s->peers);
  }
  if (b->arena.memory && !busy) b->device->ops->free(b->device, b->arena.memory, (size_t)b->arena.bytes);
}
