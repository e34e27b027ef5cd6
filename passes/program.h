// The last form of a compilation: what the passes hand to codegen. Plain C, no MLIR: the program's tables (rows of runtime/abi.h, sizes as nodes) and a
// description of every kernel. Codegen turns kernels into machine code and the tables into the blob, and needs nothing else.
#ifndef ULY_PASSES_PROGRAM_H
#define ULY_PASSES_PROGRAM_H

#include "frontend/expr.h"
#include "frontend/graph.h"
#include "runtime/abi.h"
#include "runtime/kernel_abi.h"

_Static_assert(ULY_GRAPH_MAX_DIMS == ULY_MAX_DIMS && ULY_GRAPH_MAX_SYMBOLS == ULY_MAX_SYMBOLS && ULY_GRAPH_MAX_AXES == ULY_MAX_AXES,
               "what a spec may have, a file has room for");

enum { ULY_HOOK_MAX_OPERANDS = ULY_MAX_OPERANDS + 2, ULY_HOOK_INDICES = ULY_ROWS_OUTER + 1 }; // a MAP's, and scale and shift of a norm

// How a hook reads or writes one tensor at an index (i0 … i4, c): address = call.op[op] + Σ stride_d · i_d (+ c). Strides are in elements.
typedef struct uly_hook_operand {
  int32_t op; // operand slot of the call
  uly_dtype dtype;
  int32_t stride[ULY_HOOK_INDICES]; // value slots of the strides over i0 … i4, c; -1: 0 (not indexed by it), -2: 1 (contiguous)
} uly_hook_operand;

// Elementwise code inside a kernel. Leaves of the expression:
//   x0 … x(n_inputs − 1)   what the kernel computed (accumulators, the normalised value), n_inputs of them
//   x(n_inputs + j)        operands[j] at the index
//   iD                     index d plus the number in value slot start[d] (-1: plus 0)
//   SIZE j                 value slot size[j]
// In ROWS and ROWSUM the result is stored through `out` where it has an op ≥ 0; elsewhere the kernel stores it.
typedef struct uly_hook {
  bool present;
  uly_expr expr;
  int32_t n_inputs, n_operands;
  uly_hook_operand operands[ULY_HOOK_MAX_OPERANDS];
  int32_t start[ULY_HOOK_INDICES];
  int32_t size[ULY_MAX_SYMBOLS];
  uly_hook_operand out;
} uly_hook;

// A tensor captured by a mask or score: read at integer indices, each checked against what is here of the dim: [start, start + dim).
typedef struct uly_capture {
  int32_t op;
  uly_dtype dtype;
  int32_t rank;
  int32_t stride[ULY_GRAPH_MAX_DIMS]; // value slots; -1 and -2 as above
  int32_t dim[ULY_GRAPH_MAX_DIMS];    // value slots
  int32_t start[ULY_GRAPH_MAX_DIMS];  // value slots; -1: 0
} uly_capture;

typedef struct uly_gemm_part {
  uly_gemm_mode mode;
  int64_t n_groups, group, rope; // columns = n_groups · group; rope: R, 0 without
  uly_dtype out;                 // of what is stored
  uly_hook epilogue;             // index (s, b, ·, column); inputs: the accumulator, two for PAIR. For ROPE it comes before the rotation
} uly_gemm_part;

typedef struct uly_gemm_desc {
  int64_t k;
  int32_t n_parts;
  bool message;   // output goes to peers
  int32_t labels; // bytes of a label where the part goes into a loss, else 0
  uly_dtype x, w; // of x and of the packed weights
  uly_gemm_part parts[ULY_GEMM_MAX_PARTS];
} uly_gemm_desc;

typedef struct uly_pack_desc { // of one group; how many there are is known from the items
  int64_t k;
  uly_gemm_mode mode;
  int64_t group, rope;
  uly_dtype dtype; // of weights and panels
} uly_pack_desc;

typedef struct uly_attention_desc {
  int64_t dh, dv, group; // group: query heads a kv head
  double scale;
  uly_dtype dtype; // of q, k, v and o
  bool has_sink, has_lse, has_score;
  uly_expr mask, score; // over b h q k s (all global), captures as LOADs
  int32_t n_captures;
  uly_capture captures[ULY_HOOK_MAX_OPERANDS];
  int32_t size[ULY_MAX_SYMBOLS]; // value slots of SIZE leaves
} uly_attention_desc;

typedef struct uly_rows_desc {
  uly_rows_mode mode;
  int64_t cols; // of the last dim where it is constant, else 0
  double eps;
  uly_hook in;  // value at an index; for MAP it stores
  uly_hook out; // norms, softmax and sums: from the normalised value (or the sum, at c = 0) to the result
} uly_rows_desc;

typedef struct uly_rowsum_desc {
  bool ints; // the term is an int or bool; i64 sums
  uly_hook term;
} uly_rowsum_desc;

typedef struct uly_nll_desc {
  uly_dtype labels; // ULY_I32 or ULY_I64
  int64_t ignore;
  bool stats;  // x's statistics are there already
  uly_hook in; // else x
} uly_nll_desc;

typedef struct uly_round_desc {
  uly_dtype dtype; // of the sum
} uly_round_desc;

typedef struct uly_gather_desc {
  uly_dtype ids; // ULY_I32 or ULY_I64
} uly_gather_desc;

typedef struct uly_kernel_desc {
  uly_kernel_kind kind;
  int32_t n_ops, n_vals; // slots that a call has
  uly_loc loc;
  union {
    uly_gemm_desc gemm;
    uly_pack_desc pack;
    uly_attention_desc attention;
    uly_rows_desc rows;
    uly_rowsum_desc rowsum;
    uly_round_desc round;
    uly_gather_desc gather;
    uly_nll_desc nll;
  } u; // MOVE needs none
} uly_kernel_desc;

// Growing tables. All memory is the arena's. Adders return the row's number; nodes and names are shared where equal.
typedef struct uly_program {
  uly_arena *arena;
#define TABLE(kind, type, name)                                                                                                                                \
  type *name;                                                                                                                                                  \
  uint32_t n_##name, cap_##name;
  ULY_PROGRAM_TABLES(TABLE)
  TABLE(, uly_kernel_desc *, kernels)
#undef TABLE
  uint32_t used_symbols; // a bit for each that a node was asked for: entries begin at 0
  uly_str source_name;   // of the spec's file, without folders: no part of what ranks compare
} uly_program;

uly_program *uly_program_create(uly_arena *arena);
uint32_t uly_program_name(uly_program *p, uly_str name);  // row of the name table
uint32_t uly_program_node(uly_program *p, uly_node node); // folded where operands are constant, shared where equal
uint32_t uly_program_const(uly_program *p, int64_t value);
uint32_t uly_program_op(uly_program *p, uly_node_kind kind, uint32_t a, uint32_t b);
#define TABLE(kind, type, name) uint32_t uly_program_add_##name(uly_program *p, type row);
ULY_PROGRAM_TABLES(TABLE)
TABLE(, uly_kernel_desc *, kernels)
#undef TABLE

// What passes.def does with a program.
typedef void uly_program_pass(uly_program *program);
#define PROGRAM(name, doc) uly_program_pass uly_program_##name;
#include "passes/passes.def"

// A buffer that the file fills: n slots of 8 bytes.
uint32_t uly_program_add_constants(uly_program *p, const uint64_t *slots, uint32_t n, uly_str name);

// The numbers that a kernel's code is made for (kernel_constants.def).
enum { ULY_KERNEL_MAX_CONSTANTS = 16 };
typedef struct uly_kernel_constant {
  const char *name; // as the template declares it
  int n;            // 1, or a number for each of ULY_GEMM_MAX_PARTS parts
  bool is_float;    // f, else i
  int64_t i[ULY_GEMM_MAX_PARTS];
  double f;
} uly_kernel_constant;
typedef struct uly_kernel_constants {
  uly_kernel_constant at[ULY_KERNEL_MAX_CONSTANTS];
  int n;
} uly_kernel_constants;
uly_kernel_constants uly_kernel_constants_of(const uly_kernel_desc *desc);
// The whole description as text: kernels are the same where it is.
uly_str uly_kernel_print(uly_arena *arena, const uly_kernel_desc *desc);

const char *uly_kernel_kind_name(uly_kernel_kind kind); // "GEMM"
const char *uly_rows_mode_name(uly_rows_mode mode);     // "softmax"

#endif
