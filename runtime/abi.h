// What a compiled model is: the tables that codegen writes into model.so and that the runtime reads.
//
// One exported symbol, ULY_QUERY_SYMBOL, returns a uly_model. Its blob holds every table as an array of fixed-width rows, found by
// offset: no pointers, so the bytes depend on the spec alone. All sizes are *nodes*: expressions over the symbols (B, S …) and the
// place of a rank on the grid, evaluated at bind for every rank. Nothing here depends on how many ranks there will be.
//
// Minor versions append fields and rows and never change the meaning of existing ones; a reader refuses a larger major version, and step
// or node kinds that it does not know.
#ifndef ULY_RUNTIME_ABI_H
#define ULY_RUNTIME_ABI_H

// clang-format off: rows and lists, laid out by hand
#include <stddef.h>
#include <stdint.h>

#define ULY_ABI_MAJOR 1
#define ULY_ABI_MINOR 1 // 1: probes, sources
#define ULY_QUERY_SYMBOL "ulyc_model"
#define ULY_NOTE_SECTION ".note.ulyc"
#define ULY_NOTE_TYPE 1

#define ULY_MAX_DIMS 6
#define ULY_MAX_AXES 4
#define ULY_MAX_SYMBOLS 32 // uly_entry.symbols has a bit for each
#define ULY_MAX_LOOPS 4
#define ULY_MAX_TURNS 1000000 // of a loop, times those of the loops around it
#define ULY_MAX_LEVELS 4
#define ULY_NONE UINT32_MAX

// Size expressions. Operands a, b, c are ids of earlier nodes unless the row says otherwise. Division floors; every operation is overflow-checked.
//   name        value at rank r
#define ULY_NODE_KINDS(X)                                                                                              \
  X(CONST)      /* value */                                                                                            \
  X(SYM)        /* symbol number `value` */                                                                            \
  X(AXIS_SIZE)  /* number of ranks P on axis `value` */                                                                \
  X(AXIS_RANK)  /* r's place on axis `value` */                                                                        \
  X(ADD) X(SUB) X(MUL) X(FDIV) X(CDIV) X(MOD) X(MIN) X(MAX)                                                            \
  X(SHARE)      /* share(n=a, P=b, r=c) = ⌊n/P⌋ + (r < n mod P) */                                                     \
  X(START)      /* start(n=a, P=b, r=c) = r·⌊n/P⌋ + min(r, n mod P) */                                                 \
  X(SELECT)     /* a != 0 ? b : c */                                                                                   \
  X(PEER_SUM)   /* Σ of node a over all ranks of axis `value` that share r's other coordinates */                      \
  X(PEER_BEFORE)/* the same over the ranks before r */                                                                 \
  X(PEER_MAX)   /* the largest instead of the sum */

typedef enum uly_node_kind {
#define X(name) ULY_NODE_##name,
  ULY_NODE_KINDS(X)
#undef X
      ULY_N_NODE_KINDS
} uly_node_kind;

typedef struct uly_node {
  uint32_t kind;
  uint32_t a, b, c;
  int64_t value;
} uly_node;

// A run of rows of another table, or of characters: [first, first + count).
typedef struct uly_span {
  uint32_t first, count;
} uly_span;

typedef struct uly_symbol {
  uly_span name;
  int64_t least; // smallest legal value
} uly_symbol;

// A grid axis. Its size is known only at bind.
typedef struct uly_axis {
  uly_span name;
} uly_axis;

typedef enum uly_tensor_role { ULY_INPUT, ULY_OUTPUT, ULY_PARAM } uly_tensor_role;

// What a caller passes: inputs and outputs of an entry, and parameters. Global shape; a rank holds [start, start + local) of each dim.
// Inputs and outputs are dense row-major in the *local* shape. A parameter in a loop stands for `names.count` file tensors, one an iteration.
typedef struct uly_tensor {
  uint32_t role, dtype; // uly_dtype
  uint32_t entry;       // ULY_NONE for parameters
  uint32_t rank;
  uly_span names;       // rows of the name table
  uint32_t dims[ULY_MAX_DIMS];  // nodes: global sizes
  uint32_t start[ULY_MAX_DIMS]; // nodes
  uint32_t local[ULY_MAX_DIMS]; // nodes
  int64_t id_limit;     // integer input used as an index: legal values are [0, id_limit), 0 = unchecked
  double init;          // parameters without a file: constant, or NaN = seeded random
  uint32_t flags, spec_line;
} uly_tensor;
enum { ULY_TENSOR_TRAINABLE = 1u };

// Program time: which part of a model's life a step or a buffer belongs to.
typedef enum uly_phase { ULY_PHASE_LOAD, ULY_PHASE_BIND, ULY_PHASE_FORWARD, ULY_PHASE_BACKWARD, ULY_PHASE_STEP, ULY_N_PHASES } uly_phase;

// A stretch of memory. LOAD buffers belong to the loaded model, depend on no symbol or rank and are shared by its binds; BIND buffers live as long
// as the bind; the others live in the arena during [live_from, live_to] (step numbers, inclusive) and may share addresses.
// `bytes` is one slot; the arena places the largest size of any rank, so offsets agree on all of them.
typedef struct uly_buffer {
  uint32_t phase;
  uint32_t bytes; // node
  uint32_t slots; // number of slots, at least 1
  uint32_t live_from, live_to;
  uint32_t flags;
  uint32_t name; // row of the name table, for inspection
  uint32_t words; // CONSTANT: the row of the index table where its slots' contents begin, as 32-bit words; a multiple of 2
} uly_buffer;
enum {
  ULY_BUFFER_RECEIVE = 1u, // peers write into it: lives in memory that they can map
  ULY_BUFFER_CONSTANT = 2u // LOAD: the file has what is in it; `bytes` is a constant multiple of 8. No step writes it
};

// One all-to-all. The message from rank i to rank j is unit · rows(i) · cols(j) bytes (unit in bytes), where rows and cols are nodes evaluated at the
// sender and at the receiver. It stands in j's receive buffer at unit · row_start(i) · cols(j), and in i's send buffer, which exists where peers
// cannot map each other's memory, at unit · rows(i) · col_start(j). An all-gather is cols = 1, col_start = 0: everyone gets the same bytes.
typedef struct uly_exchange {
  uint32_t axis;
  uint32_t receive;           // buffer
  uint32_t send;              // buffer, used only where memory is not mapped
  uint32_t unit;              // node
  uint32_t rows, row_start;   // nodes, of the sender
  uint32_t cols, col_start;   // nodes, of the receiver
  uint32_t dtype, name, spec_line, flags;
} uly_exchange;
enum { ULY_EXCHANGE_GATHER = 1u };

// What a kernel is given for one operand.
typedef enum uly_operand_kind {
  ULY_OPERAND_BUFFER,  // index: buffer; one pointer
  ULY_OPERAND_TENSOR,  // index: tensor (input, output, parameter); one pointer
  ULY_OPERAND_PEERS,   // index: exchange; P pointers: where the message to each peer starts
  ULY_OPERAND_SEGMENTS,// index: exchange; P pointers: where the message from each peer starts in the own receive buffer
  ULY_OPERAND_ABSENT   // an optional operand that is not there; no pointer
} uly_operand_kind;

typedef struct uly_operand {
  uint32_t kind, index;
  uint32_t offset;                 // node: bytes from the start of the slot, or ULY_NONE
  int32_t slot[ULY_MAX_LOOPS];     // slot (or name, for parameters) = (Σ i_d · slot[d] + slot_add) mod slots, i_d the enclosing loops' counters, outermost first
  int32_t slot_add;
  uint32_t access;                 // ULY_READ | ULY_WRITE
} uly_operand;
enum { ULY_READ = 1u, ULY_WRITE = 2u };

// A number that a kernel is given: one, or one a rank of the axis.
typedef struct uly_call_value {
  uint32_t node;
  uint32_t axis; // ULY_NONE: at the own rank; else P values, one a rank of that axis
} uly_call_value;

#define ULY_STEP_KINDS(X)                                                                                              \
  X(KERNEL)   /* kernel a; items, scratch */                                                                           \
  X(LOOP)     /* repeat `items` times up to the matching END (step number b) */                                        \
  X(END)      /* of the loop that starts at step b */                                                                  \
  X(POST)     /* exchange a: the receive buffer may be written from now on */                                          \
  X(SEND)     /* exchange a: what was written for the peers is complete; sends it where memory is not mapped */        \
  X(WAIT)     /* exchange a: every peer's message is here */                                                           \
  X(REDUCE) X(ALL_GATHER) X(REDUCE_SCATTER) /* reserved */                                                             \
  X(COPY)     /* `items` bytes from operand 0 to operand 1 */

typedef enum uly_step_kind {
#define X(name) ULY_STEP_##name,
  ULY_STEP_KINDS(X)
#undef X
      ULY_N_STEP_KINDS
} uly_step_kind;

typedef struct uly_step {
  uint32_t kind;
  uint32_t a, b;
  uint32_t items;   // node: a kernel's work items, a loop's count
  uint32_t scratch; // node: bytes that each thread needs, or ULY_NONE
  uint32_t predicate; // node: skip the step where it is 0, or ULY_NONE
  uly_span operands, values;
  uint32_t name;    // row of the name table, for inspection and errors
  uint32_t spec_line;
} uly_step;

// An entry: what can be run. Its steps of each phase are a span of the step table. `when` lets one entry have variants: the first whose predicate is
// above 0 is used. A predicate that is not says in which line of the spec, −when, something does not fit the sizes; 0: unknown.
typedef struct uly_entry {
  uint32_t name;
  uint32_t when;              // node, or ULY_NONE
  uly_span tensors;           // its inputs and outputs, in the order of the spec
  uly_span params;            // rows of the index table: tensors it needs
  uly_span steps[ULY_N_PHASES];
  uint32_t symbols;           // bit set of the symbols it needs
  uint32_t pad;
  uly_span probes;            // since 1.1
} uly_entry;

// What a step has made: a value of the spec's program, or this rank's part of it. For whoever looks (runtime/watch.h); nothing is computed from it. Values that live in
// registers alone, as those inside a fused kernel, have none.
typedef struct uly_probe {
  uint32_t value;   // its number in the entry's graph: the same in every build of the spec
  uint32_t step;    // after which it is there; after an END: once the loop has ended
  uint32_t operand; // row of the operand table: a buffer, a tensor or segments
  uint32_t dtype, spec_dtype; // in memory; in the spec
  uint32_t rank;
  uint32_t dims[ULY_MAX_DIMS], start[ULY_MAX_DIMS], local[ULY_MAX_DIMS]; // nodes: global sizes, this rank's part
  uint32_t stride[ULY_MAX_DIMS]; // nodes: elements
  uint32_t offset;               // node: elements from where the operand points, or ULY_NONE
  uint32_t axis, cut;            // segments: pointer p shows the piece of dim `cut` that rank p of the axis sent. Its start and local, all strides and the offset are nodes of that rank
  uint32_t name;                 // row of the name table: the operation
  uint32_t spec_line, spec_column;
} uly_probe;

// The spec.
typedef struct uly_source_row {
  uly_span name;    // of its file, without folders
  uly_span text;    // empty but where --target=reference puts it
  uint8_t hash[16]; // of the checked program: text, consts and all
} uly_source_row;

// A kernel: its name, and a hash of its code at every level, which tells one build of a model from another.
typedef struct uly_kernel_row {
  uly_span name; // of chars
  uint32_t kind; // uly_kernel_kind
  uint32_t spec_line;
  uint8_t code[16];
} uly_kernel_row;

// TABLE(kind, row type, name), in the order of the file: later minor versions append. ULY_PROGRAM_TABLES are those that the passes fill; codegen adds the kernels.
#define ULY_FIRST_TABLES(TABLE)                                                                                        \
  TABLE(CHARS, char, chars)                                                                                            \
  TABLE(NAMES, uly_span, names)             /* of chars */                                                             \
  TABLE(NODES, uly_node, nodes)             /* operands before users */                                                \
  TABLE(SYMBOLS, uly_symbol, symbols)                                                                                  \
  TABLE(AXES, uly_axis, axes)                                                                                          \
  TABLE(TENSORS, uly_tensor, tensors)                                                                                  \
  TABLE(BUFFERS, uly_buffer, buffers)                                                                                  \
  TABLE(EXCHANGES, uly_exchange, exchanges)                                                                            \
  TABLE(OPERANDS, uly_operand, operands)                                                                               \
  TABLE(VALUES, uly_call_value, values)                                                                                     \
  TABLE(STEPS, uly_step, steps)                                                                                        \
  TABLE(ENTRIES, uly_entry, entries)                                                                                   \
  TABLE(INDICES, uint32_t, indices)
#define ULY_LATER_TABLES(TABLE) /* since 1.1 */                                                                        \
  TABLE(PROBES, uly_probe, probes)                                                                                     \
  TABLE(SOURCES, uly_source_row, sources)
#define ULY_PROGRAM_TABLES(TABLE) ULY_FIRST_TABLES(TABLE) ULY_LATER_TABLES(TABLE)
#define ULY_TABLES(TABLE)                                                                                              \
  ULY_FIRST_TABLES(TABLE)                                                                                              \
  TABLE(KERNELS, uly_kernel_row, kernels)   /* kernel k is function k of each level */                                 \
  ULY_LATER_TABLES(TABLE)

typedef enum uly_table_kind {
#define TABLE(kind, type, name) ULY_TABLE_##kind,
  ULY_TABLES(TABLE)
#undef TABLE
      ULY_N_TABLES
} uly_table_kind;

typedef struct uly_table {
  uint64_t offset; // bytes from the start of the blob, a multiple of 8
  uint32_t count, row_bytes;
} uly_table;

#define ULY_BLOB_MAGIC 0x31796c75u // "uly1"

typedef struct uly_blob {
  uint32_t magic;
  uint16_t abi_major, abi_minor;
  uint64_t bytes;       // of the whole blob
  uint8_t program[32];  // BLAKE2b of the tables' rows, but for the name of the spec's file: what the ranks of a bind compare
  uint32_t n_tables, pad;
  uly_table tables[ULY_N_TABLES]; // n_tables of them
} uly_blob;
enum { ULY_LEAST_TABLES = ULY_TABLE_KERNELS + 1 }; // of version 1.0

// Written by kernels, read when the caller waits. The first fault wins: `code` goes from 0 by compare-and-swap, then the rest is filled.
typedef struct uly_fault {
  uint32_t code; // uly_fault_code, 0 = none
  uint32_t step; // filled by the runtime
  int64_t a, b;
  int64_t n_at, at[ULY_MAX_DIMS]; // a place, global
} uly_fault;
typedef enum uly_fault_code {
  ULY_FAULT_NONE,
  ULY_FAULT_INDEX_RANGE,   // a: index, b: limit, at: where it stands in the tensor of indices
  ULY_FAULT_CAPTURE_RANGE  // a: index, at: batch, query row and key row
} uly_fault_code;

// One operand or value of a kernel call: n pointers or numbers.
typedef struct uly_arg {
  void *const *p;
  int64_t n;
} uly_arg;

// A kernel call. Kernels compute work items [lo, hi), write only their outputs and scratch, keep no state and call nothing. A step's items may be split
// over threads in any way: the result's bits do not depend on it.
typedef struct uly_call {
  const uly_arg *op;
  const int64_t *const *val; // val[i]: one number, or one a rank (uly_call_value.axis)
  int64_t n_peers;           // ranks on the axis of the call's exchange, 1 without one
  int64_t lo, hi;
  void *scratch;             // 64-byte aligned, private to the thread
  uly_fault *fault;
} uly_call;
typedef void (*uly_kernel)(const uly_call *call);

// One CPU level that the file has code for, best last.
typedef struct uly_level {
  char name[24];      // "x86-64-v3"
  uint32_t features;  // bit set of uly_cpu_feature: all needed
  uint32_t pad;
} uly_level;
typedef enum uly_cpu_feature {
  ULY_CPU_AVX2 = 1,
  ULY_CPU_FMA = 2,
  ULY_CPU_AVX512 = 4, // F, BW, CD, DQ, VL
  ULY_CPU_F16C = 8,
  ULY_CPU_BMI2 = 16,
  ULY_CPU_AMX = 32 // tiles of bf16, which the kernel lets this process use, and what else Sapphire Rapids has
} uly_cpu_feature;

// Also stands, byte for byte, as the descriptor of the ELF note (name "ulyc", type ULY_NOTE_TYPE), where the loader reads it before it maps the file.
typedef struct uly_note {
  uint32_t struct_size;
  uint16_t abi_major, abi_minor;
  uint64_t blob_bytes;
  uint32_t n_levels, n_kernels;
  uly_level levels[ULY_MAX_LEVELS];
  uint8_t program[32];
  uint64_t contents;  // uly_contents_hash of the file, 0 in one that is made by hand and not checked
} uly_note;

typedef struct uly_model {
  uint32_t struct_size;
  uint16_t abi_major, abi_minor;
  const uly_blob *blob;
  uint32_t n_levels, n_kernels;
  const uly_kernel *kernels[ULY_MAX_LEVELS]; // [level][kernel]
  const uly_level *levels;
} uly_model;
typedef const uly_model *(*uly_query)(void);

#endif
