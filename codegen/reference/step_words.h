// How an operation of the reference is handed to its kernel (ref_kernel.c) by the program (ref_program.c): the step's values, one after the other.
//
//   kind                        uly_ref_step_kind
//   tensors                     the result, then the operands: dtype, rank, dims. How many operands in front: n
//   ULY_REF_NUMBERS ints, ULY_REF_NUMBERS floats (their bits)
//   expressions                 how many; of each, how many nodes; of each: op, type, arguments (how many, then which), index, value (its bits)
//   MAP                         of each operand, a number a dim: its access
// Operand 0 of the call is the result, the others follow. Cells are 8 bytes: float64, or int64 where the dtype is an integer's; READ reads, WRITE writes what callers hold.
#ifndef ULY_CODEGEN_REFERENCE_STEP_WORDS_H
#define ULY_CODEGEN_REFERENCE_STEP_WORDS_H

#include "runtime/reference/reference.h"

typedef enum uly_ref_step_kind {
#define REF(id, function, ints, floats) ULY_REF_##id,
#include "runtime/reference/reference.def"
  ULY_REF_READ,  // an input or parameter, widened
  ULY_REF_WRITE, // a result: floats as f64
  ULY_N_REF_STEPS
} uly_ref_step_kind;

#endif
