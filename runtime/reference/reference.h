// The second opinion: every operation of the language as its definition says, on whole tensors, floats in float64 and integers in int64, in no other order than that of its
// formula. `ulyc --target=reference` makes programs of these functions; they share nothing with the kernels.
//
// All have one form: a function computes rows [begin, end) of op->out, a row being the last dim (one number where there is none), and writes nothing else. Its operands and
// numbers are those that its row of reference.def names. Shapes have been checked.
#ifndef ULY_RUNTIME_REFERENCE_REFERENCE_H
#define ULY_RUNTIME_REFERENCE_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ULY_REF_DIMS = 6, ULY_REF_NUMBERS = 4 };

typedef union uly_ref_cell {
  double f;
  int64_t i;
} uly_ref_cell;

// Dense and row-major.
typedef struct uly_ref_tensor {
  uly_ref_cell *data;
  bool is_int; // of an integer type, or bool
  int32_t rank;
  int64_t dims[ULY_REF_DIMS];
} uly_ref_tensor;

typedef struct uly_ref_op uly_ref_op;

// What the expressions of an operation give; the caller evaluates them (codegen/reference/).
typedef struct uly_ref_code {
  void *context;
  uly_ref_cell (*element)(void *context, const int64_t *index);                         // MAP: of the result
  bool (*mask)(void *context, int64_t b, int64_t h, int64_t q, int64_t k);              // ATTENTION; NULL: all
  double (*score)(void *context, int64_t b, int64_t h, int64_t q, int64_t k, double s); // NULL: as it is
} uly_ref_code;

typedef struct uly_ref_fault {
  bool found;
  int64_t index, limit;
  int32_t n_at;
  int64_t at[ULY_REF_DIMS]; // where the index stands; of a captured tensor's: batch, query row, key row
} uly_ref_fault;

struct uly_ref_op {
  uly_ref_tensor out;
  const uly_ref_tensor *in;
  int32_t n_in;
  int64_t begin, end;
  int64_t i[ULY_REF_NUMBERS];
  double f[ULY_REF_NUMBERS];
  uly_ref_code code;
  double *work;        // ATTENTION: room for a number a key
  uly_ref_fault fault; // the first index that is out of range
};
typedef void uly_ref_function(uly_ref_op *op);

#define REF(id, function, ints, floats) uly_ref_function uly_ref_##function;
#include "runtime/reference/reference.def"

static inline int64_t uly_ref_product(const uly_ref_tensor *t, int32_t begin, int32_t end) {
  int64_t n = 1;
  for (int32_t d = begin; d < end; d++) n *= t->dims[d];
  return n;
}
static inline int64_t uly_ref_width(const uly_ref_tensor *t) { return t->rank ? t->dims[t->rank - 1] : 1; }
static inline int64_t uly_ref_rows(const uly_ref_tensor *t) { return uly_ref_product(t, 0, t->rank - 1); }

// Element |flat| of |t| is |index|, which is not below |limit|, or below 0.
static inline void uly_ref_fail(uly_ref_op *op, int64_t index, int64_t limit, const uly_ref_tensor *t, int64_t flat) {
  if (op->fault.found) return;
  op->fault = (uly_ref_fault){.found = true, .index = index, .limit = limit, .n_at = t->rank};
  for (int32_t d = t->rank - 1; d >= 0; d--) op->fault.at[d] = flat % t->dims[d], flat /= t->dims[d];
}

// A view of float64 numbers; a whole operation.
static inline uly_ref_tensor uly_ref_floats(const double *data, int32_t rank, const int64_t *dims) {
  uly_ref_tensor t = {.data = (uly_ref_cell *)(uintptr_t)data, .rank = rank};
  for (int32_t d = 0; d < rank; d++) t.dims[d] = dims[d];
  return t;
}
static inline void uly_ref_run(uly_ref_function *function, uly_ref_op *op) {
  op->begin = 0, op->end = uly_ref_rows(&op->out);
  function(op);
}

#endif
