#include "runtime/arena_plan.h"

#include <stdlib.h>

static int by_turn(const void *a, const void *b) {
  const uly_block *x = *(uly_block *const *)a, *y = *(uly_block *const *)b;
  if (x->first != y->first) return x->first ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x < y ? -1 : x > y;
}

static bool overlap(const uly_block *a, const uly_block *b) { return a->live_from <= b->live_to && b->live_from <= a->live_to; }

// The lowest offset where |block| meets none of |placed|, which stand in order of their offsets.
static bool place(uly_block *block, uly_block *const *placed, uint32_t n) {
  int64_t at = 0, end;
  for (uint32_t i = 0; i < n; i++) {
    if (!overlap(block, placed[i])) continue;
    if (placed[i]->offset - at >= block->bytes) break;
    end = placed[i]->offset + placed[i]->bytes;
    if (end > at) at = end;
  }
  block->offset = at;
  return !__builtin_add_overflow(at, block->bytes, &end) && end <= (int64_t)1 << 47;
}

uly_status uly_arena_plan(uly_block *blocks, uint32_t n, uly_error *error, int64_t *out_bytes, int64_t *out_first) {
  *out_bytes = *out_first = 0;
  uly_block **order = malloc(sizeof *order * 2 * (n + (size_t)1));
  if (!order) return uly_fail(error, ULY_EXHAUSTED, "no memory to plan %u buffers", n);
  uly_block **placed = order + n;
  for (uint32_t i = 0; i < n; i++) {
    blocks[i].bytes = (blocks[i].bytes + ULY_ARENA_ALIGN - 1) & ~(int64_t)(ULY_ARENA_ALIGN - 1);
    order[i] = &blocks[i];
  }
  qsort(order, n, sizeof *order, by_turn);
  uly_status status = ULY_OK;
  for (uint32_t i = 0; i < n; i++) {
    if (!place(order[i], placed, i)) {
      status = uly_fail(error, ULY_OVERFLOW, "buffers need more than 2^47 bytes");
      break;
    }
    int64_t end = order[i]->offset + order[i]->bytes;
    if (end > *out_bytes) *out_bytes = end;
    if (order[i]->first) *out_first = *out_bytes;
    uint32_t at = i;
    for (; at > 0 && placed[at - 1]->offset > order[i]->offset; at--) placed[at] = placed[at - 1];
    placed[at] = order[i];
  }
  free(order);
  return status;
}
