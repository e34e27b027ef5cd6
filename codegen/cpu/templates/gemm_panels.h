// Which columns of a part each of its panels holds, in the order that kernel_abi.h fixes. Shared by pack.c, which fills panels, by gemm.c,
// which takes results out of them, and by tests. Plain C, no vectors.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_GEMM_PANELS_H
#define ULY_CODEGEN_CPU_TEMPLATES_GEMM_PANELS_H

#include <stdbool.h>

#include "runtime/kernel_abi.h"

// Lane l of a panel is column |column| + l · |step| of its group for l < |n|; the other lanes are padding. |paired|: this panel and its neighbour are
// the two accumulators of one result, |second| says which one this is.
typedef struct uly_panel {
  int64_t column, step, n;
  bool paired, second;
} uly_panel;

static inline int64_t uly_panel_lanes(int64_t left) { return left < ULY_PANEL ? left : ULY_PANEL; }

// Panel |q| of a group of |group| columns, of which rope turns the first |rope|.
static inline uly_panel uly_panel_at(int64_t mode, int64_t group, int64_t rope, int64_t q) {
  int64_t half = q / 2 * ULY_PANEL, pairs = rope / 2, turned = 2 * uly_cdiv(pairs, ULY_PANEL);
  bool second = (q & 1) != 0;
  if (mode == ULY_GEMM_PAIR) return (uly_panel){half, 1, uly_panel_lanes(group - half), true, second};
  if (mode == ULY_GEMM_PLAIN) return (uly_panel){q * ULY_PANEL, 1, uly_panel_lanes(group - q * ULY_PANEL), false, false};
  if (q >= turned) {
    int64_t column = rope + (q - turned) * ULY_PANEL;
    return (uly_panel){column, 1, uly_panel_lanes(group - column), false, false};
  }
  if (mode == ULY_GEMM_ROPE_HALF) return (uly_panel){second ? pairs + half : half, 1, uly_panel_lanes(pairs - half), true, second};
  return (uly_panel){2 * half + second, 2, uly_panel_lanes(pairs - half), true, second};
}

#endif
