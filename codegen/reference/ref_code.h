// The expressions of an operation of the reference, evaluated one element or pair at a time by frontend/expr_eval.c. Part of what `--target=reference` links into a model.
#ifndef ULY_CODEGEN_REFERENCE_REF_CODE_H
#define ULY_CODEGEN_REFERENCE_REF_CODE_H

#include "frontend/expr.h"
#include "runtime/base/dtype.h"
#include "runtime/reference/reference.h"

enum { ULY_REF_EXPRS = 2 };

// Of an operand of a MAP, the result dim that indexes each dim; -1: none.
typedef struct uly_ref_access {
  int8_t dim[ULY_REF_DIMS];
} uly_ref_access;

typedef struct uly_ref_exprs {
  uly_expr expr[ULY_REF_EXPRS]; // MAP: the element; ATTENTION: mask and, where there are two, score
  int32_t n;
  const uly_ref_access *access; // MAP, by operand
  const int64_t *sizes;         // by symbol, where the expressions read any
  uly_dtype out;                // MAP: what the element is stored as
  uly_number *work;             // room for the nodes of the longest
  uly_ref_op *op;
} uly_ref_exprs;

// Makes op->code evaluate |exprs|, which must live as long.
void uly_ref_exprs_attach(uly_ref_exprs *exprs, uly_ref_op *op);

#endif
