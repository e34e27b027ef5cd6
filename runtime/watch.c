#include "runtime/watch.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/dtype.h"

typedef struct view {
  uly_seen seen;
  int64_t offset; // bytes from the operand's pointer
  uint32_t pointer;
} view;

struct uly_watch {
  uly_watcher watcher;
  uint32_t first_step, n_steps;
  uint32_t *first; // [n_steps + 1]: where a step's views begin
  view *views;
  void **pointers; // room for those of any operand
};

typedef struct maker {
  const uly_machine *m;
  const uly_probe *probe;
  const uly_operand *operand;
  uly_error *error;
} maker;

static int64_t rank_of(const maker *k, uint32_t pointer) {
  return k->probe->axis == ULY_NONE ? k->m->rank : uly_grid_peer(&k->m->nodes->grid, k->m->rank, k->probe->axis, pointer);
}

// Bytes that the operand has from where pointer |pointer| points, offset of the operand not counted.
static uly_status room_of(const maker *k, uint32_t pointer, int64_t *out_bytes) {
  const uly_tables *t = &k->m->loaded->tables;
  const uly_operand *o = k->operand;
  if (o->kind == ULY_OPERAND_BUFFER) return *out_bytes = k->m->slot_bytes[o->index], ULY_OK;
  if (o->kind == ULY_OPERAND_SEGMENTS) {
    const uly_link *x = &k->m->links[o->index];
    *out_bytes = k->m->slot_bytes[t->exchanges[o->index].receive] - ((const unsigned char *)x->from[pointer] - (const unsigned char *)x->receive);
    return ULY_OK;
  }
  const uly_tensor *tensor = &t->tensors[o->index];
  *out_bytes = uly_dtype_bytes((uly_dtype)tensor->dtype);
  for (uint32_t d = 0; d < tensor->rank; d++) {
    int64_t n;
    ULY_TRY(uly_nodes_size(k->m->nodes, tensor->local[d], k->m->rank, k->error, &n));
    if (__builtin_mul_overflow(*out_bytes, n, out_bytes)) return uly_fail(k->error, ULY_OVERFLOW, "a tensor is too large");
  }
  return ULY_OK;
}

static uly_status check_room(const maker *k, const view *v) {
  int64_t last = 0, bytes = uly_dtype_bytes((uly_dtype)k->probe->dtype), room, term;
  bool fits = v->offset >= 0;
  for (uint32_t d = 0; d < k->probe->rank; d++) {
    if (v->seen.local[d] == 0) return ULY_OK;
    fits = fits && v->seen.stride[d] >= 0 && v->seen.start[d] + v->seen.local[d] <= v->seen.dims[d];
    fits = fits && !__builtin_mul_overflow(v->seen.local[d] - 1, v->seen.stride[d], &term) && !__builtin_add_overflow(last, term, &last);
  }
  fits = fits && !__builtin_add_overflow(last, 1, &last) && !__builtin_mul_overflow(last, bytes, &last) && !__builtin_add_overflow(last, v->offset, &last);
  ULY_TRY(room_of(k, v->pointer, &room));
  if (fits && last <= room) return ULY_OK;
  return uly_fail(k->error, ULY_INVALID_INPUT, "corrupt model: value %u (spec line %u) does not lie in its memory", k->probe->value, k->probe->spec_line);
}

// The piece behind pointer |pointer|: where pieces differ, the nodes of their rank say how.
static uly_status make_view(const maker *k, uint32_t pointer, view *out) {
  const uly_probe *p = k->probe;
  const uly_nodes *nodes = k->m->nodes;
  int64_t peer = rank_of(k, pointer), elements = 0, bytes = 0;
  *out = (view){.seen = {.probe = p, .step = &k->m->loaded->tables.steps[p->step]}, .pointer = pointer};
  for (uint32_t d = 0; d < p->rank; d++) {
    int64_t rank = p->axis != ULY_NONE && d == p->cut ? peer : k->m->rank;
    ULY_TRY(uly_nodes_size(nodes, p->dims[d], k->m->rank, k->error, &out->seen.dims[d]));
    ULY_TRY(uly_nodes_size(nodes, p->start[d], rank, k->error, &out->seen.start[d]));
    ULY_TRY(uly_nodes_size(nodes, p->local[d], rank, k->error, &out->seen.local[d]));
    ULY_TRY(uly_nodes_get(nodes, p->stride[d], peer, k->error, &out->seen.stride[d]));
  }
  if (p->offset != ULY_NONE) ULY_TRY(uly_nodes_size(nodes, p->offset, peer, k->error, &elements));
  if (k->operand->offset != ULY_NONE) ULY_TRY(uly_nodes_size(nodes, k->operand->offset, k->m->rank, k->error, &bytes));
  if (__builtin_mul_overflow(elements, (int64_t)uly_dtype_bytes((uly_dtype)p->dtype), &elements) || __builtin_add_overflow(elements, bytes, &out->offset))
    return uly_fail(k->error, ULY_OVERFLOW, "the place of value %u is too far", p->value);
  return check_room(k, out);
}

// Views in the order of the steps. The first of two passes counts.
static uly_status fill(uly_watch *w, const uly_machine *m, uly_span probes, uly_error *error, uint32_t *out_views, uint32_t *out_pointers) {
  const uly_tables *t = &m->loaded->tables;
  uint32_t n = 0, most = 1;
  for (uint32_t s = 0; s < w->n_steps; s++) {
    if (w->views) w->first[s] = n;
    for (uint32_t i = probes.first; i < probes.first + probes.count; i++) {
      const uly_probe *p = &t->probes[i];
      if (p->step != w->first_step + s) continue;
      maker k = {m, p, &t->operands[p->operand], error};
      uint32_t pointers = uly_machine_pointers(m, k.operand);
      if (pointers > most) most = pointers;
      for (uint32_t j = 0; w->views && j < pointers; j++) ULY_TRY(make_view(&k, j, &w->views[n + j]));
      n += pointers;
    }
  }
  if (w->views) w->first[w->n_steps] = n;
  *out_views = n;
  *out_pointers = most;
  return ULY_OK;
}

uly_status uly_watch_create(const uly_machine *m, uly_span probes, const uly_watcher *watcher, uly_error *error, uly_watch **out_watch) {
  uint32_t n = 0, most = 0;
  *out_watch = NULL;
  if (!watcher->see) return ULY_OK;
  uly_watch *w = calloc(1, sizeof *w);
  if (!w) return uly_fail(error, ULY_EXHAUSTED, "no memory to watch a run");
  *w = (uly_watch){.watcher = *watcher, .first_step = m->steps.first, .n_steps = m->steps.count};
  uly_status status = fill(w, m, probes, error, &n, &most);
  w->first = calloc(w->n_steps + (size_t)1, sizeof *w->first);
  w->views = calloc(n + (size_t)1, sizeof *w->views);
  w->pointers = calloc(most, sizeof *w->pointers);
  if (status == ULY_OK && (!w->first || !w->views || !w->pointers)) status = uly_fail(error, ULY_EXHAUSTED, "no memory to watch %u values", n);
  if (status == ULY_OK) status = fill(w, m, probes, error, &n, &most);
  if (status != ULY_OK) {
    uly_watch_destroy(w);
    return status;
  }
  *out_watch = w;
  return ULY_OK;
}

void uly_watch_destroy(uly_watch *w) {
  if (!w) return;
  free(w->first);
  free(w->views);
  free(w->pointers);
  free(w);
}

void uly_watch_step(uly_watch *w, const uly_machine *m, uint32_t step, const int64_t *at, uint32_t depth) {
  uint32_t s = step - w->first_step;
  for (uint32_t i = w->first[s]; i < w->first[s + 1]; i++) {
    view *v = &w->views[i];
    const uly_operand *o = &m->loaded->tables.operands[v->seen.probe->operand];
    if (v->pointer == 0) uly_machine_locate(m, o, at, depth, w->pointers);
    v->seen.data = (const unsigned char *)w->pointers[v->pointer] + v->offset;
    v->seen.iteration = at;
    v->seen.depth = depth;
    w->watcher.see(w->watcher.context, &v->seen);
  }
}
