// Checks the bits contract of ARCHITECTURE.md for any kernel: what a row's result is does not depend on the other rows' contents, on how many rows or heads a
// call has, or on how its items are split over threads. A test describes its kernel as a uly_bits_subject; the harness makes the variants and compares.
#ifndef ULY_TESTS_NUMERICS_BITS_HARNESS_H
#define ULY_TESTS_NUMERICS_BITS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"

// Seeded numbers for tests: the same everywhere.
uint64_t uly_bits_random(uint64_t *state);
// In [lo, hi].
int64_t uly_bits_range(uint64_t *state, int64_t lo, int64_t hi);
// Roughly normal, mean 0, variance 1.
float uly_bits_normal(uint64_t *state);

// Runs all |n_items| of a call, cut into chunks at random places, by |n_threads| threads (at most 16). Each thread has scratch of |scratch_bytes| between guard pages,
// filled with NaN before every chunk, and FTZ and DAZ set, as the runtime's workers have. |call|'s lo, hi and scratch are ignored.
void uly_bits_run(uly_kernel kernel, const uly_call *call, int64_t n_items, size_t scratch_bytes, int n_threads, uint64_t seed);

// How a call differs from the plain one.
typedef struct uly_bits_variant {
  int64_t first_row, n_rows; // the call has these rows of the subject's
  int64_t first_head, n_heads;
  int64_t keep;        // row to compare; −1: all rows of the call
  uint64_t other_rows; // not 0: seed of new contents of all rows but |keep|
  int n_threads;
  uint64_t seed; // of the item split
} uly_bits_variant;

enum { ULY_BITS_ROWS = 1, ULY_BITS_HEADS = 2, ULY_BITS_OTHER_ROWS = 4, ULY_BITS_THREADS = 8 };

typedef struct uly_bits_subject {
  const char *name;
  void *user;
  int64_t rows, heads;  // heads: 1 where there are none
  size_t row_bytes;     // of a row's result in one head
  unsigned may_vary;    // ULY_BITS_*: what run() can do
  bool first_rows_only; // a cut keeps row 0: positions count
  // Writes the results of all the call's rows to out[head][row], counted from the call's first.
  void (*run)(void *user, const uly_bits_variant *variant, void *out);
} uly_bits_subject;

// Runs the plain call once and |trials| variants; returns how many had different bits, and prints the first.
int uly_bits_check(const uly_bits_subject *subject, int trials, uint64_t seed);

#endif
