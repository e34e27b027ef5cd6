// Lays blocks with life times out in one stretch of memory, so that blocks that live at the same time do not overlap.
#ifndef ULY_RUNTIME_ARENA_PLAN_H
#define ULY_RUNTIME_ARENA_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"

enum { ULY_ARENA_ALIGN = 64 };

typedef struct uly_block {
  int64_t bytes;
  uint32_t live_from, live_to; // steps, inclusive
  bool first;                  // placed before all others
  int64_t offset;              // the result, a multiple of ULY_ARENA_ALIGN
} uly_block;

// First fit, the largest block first; equal inputs give equal offsets. |out_bytes|: size of the stretch; |out_first|: of the part that has the blocks to place first.
ULY_MUST_USE uly_status uly_arena_plan(uly_block *blocks, uint32_t n, uly_error *error, int64_t *out_bytes, int64_t *out_first);

#endif
