// One linear-layer call for tests: sizes, strides, segments and peers drawn from a seed, operands in guarded memory, results brought into one
// dense array a part. Data is a function of a row's identity, not of its place, so that runs of different shapes can be compared row by row.
#ifndef ULY_TESTS_NUMERICS_GEMM_CASE_H
#define ULY_TESTS_NUMERICS_GEMM_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/dtype.h"
#include "runtime/kernel_abi.h"
#include "tests/numerics/gemm_native.h"

enum { GEMM_MAX_PEERS = 8, GEMM_MAX_ROWS = 400 };

typedef enum gemm_epilogue { GEMM_NONE, GEMM_BIAS, GEMM_RESIDUAL, GEMM_PRODUCT } gemm_epilogue;

typedef struct gemm_part {
  uly_gemm_mode mode;
  int64_t n_groups, group, rope;
  gemm_epilogue epilogue;
} gemm_part;

typedef struct gemm_case {
  uint64_t seed;                                 // of weights and values
  int64_t k, s, b, n_parts, n_segments, n_peers; // n_peers 0: plain output
  uly_dtype x, w, out;                           // f32, bf16 or f16
  uly_dtype values;                              // that x and w are rounded to where they are f32
  gemm_part parts[ULY_GEMM_MAX_PARTS];
  int64_t segment[GEMM_MAX_PEERS];
  int64_t g0[ULY_GEMM_MAX_PARTS][GEMM_MAX_PEERS], gn[ULY_GEMM_MAX_PARTS][GEMM_MAX_PEERS];
  int64_t ids[GEMM_MAX_ROWS]; // identity of row s · B + b
  int64_t far;                // not 0: stride of rows s, in sparse memory
  uint64_t layout;            // seed of strides, of how items are split, and of which side of a page memory lies
} gemm_case;

// Values of a case, those of x and w as they are stored.
float gemm_x(const gemm_case *c, int64_t id, int64_t k);
float gemm_w(const gemm_case *c, int64_t part, bool second, int64_t column, int64_t k);
float gemm_bias(const gemm_case *c, int64_t part, int64_t column);
float gemm_residual(const gemm_case *c, int64_t part, int64_t id, int64_t column);
float gemm_cos(const gemm_case *c, int64_t id, int64_t pair);
float gemm_sin(const gemm_case *c, int64_t id, int64_t pair);

int64_t gemm_columns(const gemm_case *c, int64_t part);

// Cuts K into |n| segments, and the groups of every part into shares of |n_peers| (parts after the first get what their share of the first needs).
void gemm_cut(gemm_case *c, uint64_t *r, int64_t n_segments, int64_t n_peers);

// Packs and runs. out[part] is [rows][columns], widened to f32, freed by the caller. Fails the running cmocka test where memory was written that is not the result, or peers
// were given different values.
void gemm_run(const gemm_case *c, const gemm_native *level, float *out[ULY_GEMM_MAX_PARTS]);

#endif
