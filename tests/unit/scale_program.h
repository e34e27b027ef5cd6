// A small model with everything but heads: parameters in a loop, a load phase that packs them, an input and an output split over rows, and an all-gather.
//   y = x · w0 · w1 · w2 + Σ over all rows of (x · w0 · w1 · w2)[…, 0]
#ifndef ULY_TESTS_UNIT_SCALE_PROGRAM_H
#define ULY_TESTS_UNIT_SCALE_PROGRAM_H

#include "tests/unit/program_fixture.h"

enum { SCALE_LAYERS = 3, SCALE_D = 5 };
enum { SCALE_X, SCALE_Y, SCALE_W }; // tensors x, y [B, S, D], layers.{i}.weight [D]
enum { SCALE_B, SCALE_S, SCALE_N_SYMBOLS };
enum { SCALE_PACK, SCALE_MULTIPLY, SCALE_PARTIAL, SCALE_FINISH }; // kernels, in the order of scale_kernels.h

fx_program *scale_program(void);

#endif
