// What the files of emit share. emit turns the fused module into a uly_program: steps in the order of the IR, a place for every value, sizes as nodes. What
// passes.def has behind it then reads the steps.
#ifndef ULY_PASSES_EMIT_H
#define ULY_PASSES_EMIT_H

#include "passes/ir.h"
#include "passes/layout.h"

// How a value stands that a reverse exchange brought: dim |dim| is cut into one segment a rank of the axis, [first, first + count) at that rank, and every node is that rank's.
typedef struct uly_segments {
  int32_t axis, dim;
  uint32_t first, count;
  uint32_t base;   // what |first| counts as the value's index 0, the own rank's; 0: the same
  uint32_t offset; // where the value begins in each segment, elements
} uly_segments;

// Where a value stands and how to find an element: operand + Σ stride_d · i_d over the logical dims, in elements of its dtype.
typedef struct uly_place {
  uly_operand operand;
  uint32_t stride[ULY_GRAPH_MAX_DIMS]; // in segments: nodes of the segment's rank
  bool segmented;
  uly_segments segments; // if segmented
} uly_place;

typedef struct uly_value_entry {
  const void *key;
  uly_place place;
} uly_value_entry;

// An exchange while its kernels are emitted: posted, then written by one or more kernels, then sent and awaited.
typedef struct uly_sending {
  MlirOperation op; // the cast in the IR
  uint32_t exchange;
  int32_t axis;
  uint32_t row_elems; // elements of one message row: cols · unit of the receiver (rows to heads), or of the sender (heads to rows)
  bool to_heads;
  uint32_t part_offset[ULY_EXCHANGE_SLOTS];                                // of operand j in a message row, elements
  uint32_t part_first[ULY_EXCHANGE_SLOTS], part_count[ULY_EXCHANGE_SLOTS]; // heads of operand j that the receiver gets
  uint32_t part_width[ULY_EXCHANGE_SLOTS];                                 // elements of one head
  uint32_t batch;                                                          // rows of the dims between the row dim and the heads
  uint32_t stride[ULY_GRAPH_MAX_DIMS];                                     // of the dims before the heads, elements of a message
  uint32_t receiver_row, receiver_rows;                                    // heads to rows: the rows that the receiver gets
  uint32_t written;                                                        // bit set of operands that a kernel has written
} uly_sending;

// An enclosing repeat.
typedef struct uly_emit_loop {
  uint32_t id; // from 1, in the order of the program
  int64_t count;
} uly_emit_loop;

typedef struct uly_load_step {
  uly_step step;
  uly_emit_loop loops[ULY_MAX_LOOPS]; // around it, outermost first; id 0 behind the last
  uint32_t order;
} uly_load_step;

// A row of the probe table that follows the load step of that order.
typedef struct uly_load_probe {
  uint32_t row, order;
} uly_load_probe;

typedef struct uly_emitter {
  uly_ir *ir;
  uly_arena *arena;
  uly_program *program;
  MlirOperation module;
  MlirOperation entry;
  uint32_t entry_row;
  uly_value_entry *values; // hash table by value
  uint32_t n_values, cap_values;
  uly_sending **sendings;
  int n_sendings, cap_sendings;
  uly_emit_loop loops[ULY_MAX_LOOPS]; // enclosing ones, outermost first
  int n_loops;
  uint32_t last_loop; // id
  int load_loops;     // what is being emitted belongs to load, once an iteration of that many outermost loops; -1: to the forward
  uly_load_step *load_steps;
  uint32_t n_load_steps, cap_load_steps;
  uly_load_probe *load_probes;
  uint32_t n_load_probes, cap_load_probes;
  uly_str *kernel_texts; // by kernel
  uint32_t cap_kernel_texts;
  uint32_t first_step;              // of the forward
  uint32_t first_output;            // tensor row of result 0
  const uly_graph_value **numbered; // the graph's values, by number; NULL without a graph
  int32_t n_numbered;
  uint32_t when; // node: whether the entry can run at these sizes, as in uly_entry
} uly_emitter;

// ---- values
uly_place uly_emit_place(uly_emitter *e, MlirValue value); // of a value that has been emitted
void uly_emit_set_place(uly_emitter *e, MlirValue value, uly_place place);
// Where the operation that makes |value| should write it: an output of the entry, the next iteration's carried value, or a new buffer.
uly_place uly_emit_dest(uly_emitter *e, MlirValue value);
// A new dense buffer for a value of this type.
uly_place uly_emit_buffer(uly_emitter *e, const uly_type *type, const char *name);
uint32_t uly_emit_bytes(uly_emitter *e, uint32_t bytes, uint32_t flags, const char *name); // buffer row
uly_operand uly_emit_buffer_operand(const uly_emitter *e, uint32_t buffer);                // of a buffer made in this phase
// |place| moved by |elements| along.
uly_place uly_emit_offset(uly_emitter *e, uly_place place, uint32_t elements, uly_dtype dtype);
// The value in one piece: itself, or a copy of its segments.
uly_place uly_emit_whole(uly_emitter *e, MlirValue value);
// A row of the tensor table, and where the caller's tensor stands.
uint32_t uly_emit_tensor(uly_emitter *e, uly_tensor_role role, uly_span names, const uly_type *type, uint32_t line);
uly_place uly_emit_tensor_place(uly_emitter *e, uint32_t tensor, const uly_type *type);
uly_span uly_emit_chars(uly_emitter *e, uly_str name);
uint32_t uly_emit_name(uly_emitter *e, uly_str name); // a row of the name table
void uly_emit_block(uly_emitter *e, MlirBlock block);
bool uly_emit_unsupported(uly_emitter *e, MlirOperation op, const char *what); // a diagnostic; false

// ---- the load phase
// From here on steps and buffers are those of |op|'s phase.
void uly_emit_enter_phase(uly_emitter *e, MlirOperation op);
// Adds a step to the phase.
void uly_emit_step(uly_emitter *e, uly_step step);
// What stands in memory once the model is loaded: parameters, and what load computes.
bool uly_emit_at_load(const uly_emitter *e, const uly_place *place);
// Slots of what there is one of an iteration of the |n_loops| outermost loops: how many; their strides.
int uly_emit_slots(const uly_emitter *e, int n_loops, int32_t *out_slot);
int uly_emit_loops_of(const uly_operand *operand); // the other way round
bool uly_emit_table(uly_emitter *e, MlirOperation op);
uly_span uly_emit_load_steps(uly_emitter *e); // of the entry, appended to the program

// ---- probes: which values of the graph can be looked at, where and when
void uly_emit_number_values(uly_emitter *e);                                           // of the entry
void uly_emit_probes(uly_emitter *e, MlirOperation op);                                // of the results of |op|, which has been emitted
bool uly_emit_find_place(const uly_emitter *e, MlirValue value, uly_place *out_place); // false: it stands nowhere

// ---- kernel calls
enum { ULY_CALL_MAX_OPS = 160, ULY_CALL_MAX_VALS = 640 }; // room for ULY_GEMM_MAX_PARTS hooks
typedef struct uly_call_builder {
  uly_emitter *e;
  uly_kernel_desc *desc;
  MlirOperation op; // names the place in the spec
  uly_operand ops[ULY_CALL_MAX_OPS];
  uly_call_value vals[ULY_CALL_MAX_VALS];
  int n_ops, n_vals, fixed_vals;
} uly_call_builder;
uly_call_builder uly_call_begin(uly_emitter *e, MlirOperation op, uly_kernel_kind kind, int n_ops, int n_vals);
void uly_call_set_op(uly_call_builder *c, int slot, uly_operand operand, uint32_t access);
void uly_call_set_val(uly_call_builder *c, int slot, uint32_t node);
void uly_call_set_peers(uly_call_builder *c, int slot, uint32_t node, int32_t axis);
int32_t uly_call_add_op(uly_call_builder *c, uly_operand operand, uint32_t access);
int32_t uly_call_add_val(uly_call_builder *c, uint32_t node); // equal nodes share a slot
void uly_call_end(uly_call_builder *c, uint32_t items, uint32_t scratch, const char *name);

// ---- hooks
// How logical dims become the indices i0 … i4, c of a kernel.
typedef struct uly_space {
  uly_type type;
  uly_layout layout;
  int32_t index[ULY_GRAPH_MAX_DIMS]; // by logical dim
} uly_space;
// In storage order, the innermost dim as c.
uly_space uly_space_of(uly_emitter *e, const uly_type *type);
// The same with dim |cols| as c.
uly_space uly_space_along(uly_emitter *e, const uly_type *type, int32_t cols);
// Sets the sizes of a ROWS call's index space (those of ROWSUM have the same slots); returns the number of rows.
uint32_t uly_rows_set_space(uly_call_builder *c, const uly_space *space);
// A call of an outlined function: its operations, and the places of its arguments.
typedef struct uly_site {
  uly_emitter *e;
  MlirOperation call, function;
  MlirBlock body;
} uly_site;
uly_place uly_site_place(const uly_site *site, MlirValue argument);
uly_place uly_site_dense(const uly_site *site, MlirValue argument, int32_t n); // see uly_emit_dense
MlirValue uly_site_return(const uly_site *site, int i);
// A value that the kernel itself computes, x_j of its hook: what the body calls |value| is x_j · scale[c] + shift[c] (null where absent: arguments [N]), as its dtype
// stores it.
typedef struct uly_hook_input {
  MlirValue value, scale, shift;
} uly_hook_input;
uly_hook uly_hook_empty(int n_inputs); // without expression, operands and output
// The hook of |map| over |space|. A null map is the identity of input 0.
void uly_hook_build(uly_call_builder *c, const uly_site *site, MlirOperation map, const uly_space *space, const uly_hook_input *inputs, int n_inputs,
                    uly_hook *out_hook);
// The hook's result as |dtype| stores it: for what the kernel goes on with.
void uly_hook_store(uly_call_builder *c, uly_dtype dtype, uly_hook *hook);
// Reads |value| (an argument of the body) over |space|, dim by dim: a hook for an input without a map.
void uly_hook_load(uly_call_builder *c, const uly_site *site, MlirValue value, const uly_space *space, uly_hook *out_hook);
// The input of |op|, a norm, sum or loss of the site's body: the map that makes its first operand, or that operand itself.
void uly_hook_input_of(uly_call_builder *c, const uly_site *site, MlirOperation op, const uly_space *space, uly_hook *out_hook);
uly_hook_operand uly_hook_operand_of(uly_call_builder *c, const uly_place *place, const uly_type *type, const int32_t *index, uint32_t access);

// ---- emitters of operations; false after a diagnostic
bool uly_emit_gemm(const uly_site *site);
bool uly_emit_attention(const uly_site *site);
bool uly_emit_rows(const uly_site *site);
bool uly_emit_rowsum(const uly_site *site);
bool uly_emit_nll(const uly_site *site);
// |op|, an nll of the site's body; of the statistics of its logits where |stats| is not NULL.
bool uly_emit_nll_of(const uly_site *site, MlirOperation op, const uly_operand *stats);
bool uly_emit_gather(uly_emitter *e, MlirOperation op);
bool uly_emit_rope(uly_emitter *e, MlirOperation op);
bool uly_emit_view(uly_emitter *e, MlirOperation op);
bool uly_emit_slice(uly_emitter *e, MlirOperation op);
bool uly_emit_concat(uly_emitter *e, MlirOperation op);
bool uly_emit_shift(uly_emitter *e, MlirOperation op);
bool uly_emit_exchange(uly_emitter *e, MlirOperation op);
bool uly_emit_all_gather(uly_emitter *e, MlirOperation op);
bool uly_emit_reduce(uly_emitter *e, MlirOperation op);

// ---- exchanges
// The exchange of |op|, posted if it was not.
uly_sending *uly_emit_sending(uly_emitter *e, MlirOperation op);
uly_operand uly_emit_peers(const uly_sending *s);
// |bytes| of every rank, for everyone: one pointer a rank.
uly_operand uly_emit_gather_bytes(uly_emitter *e, MlirOperation op, int32_t axis, uly_operand from, uint32_t bytes);
// A part of a value for all: dim |dim| outermost, layout.local[dim] of it from this rank, which come behind |before| of the ranks in front of it; all of them |total|.
typedef struct uly_share {
  uly_dtype dtype;
  uly_layout layout;
  int32_t dim;
  uint32_t before, total;
  uly_place from;
} uly_share;
// Where the shares of all ranks stand then, as one value. |out_exchange| (or NULL) gets the exchange's row: its segments are the shares, rank by rank.
uly_place uly_emit_gather_shares(uly_emitter *e, MlirOperation op, int32_t axis, const uly_share *share, uint32_t *out_exchange);
// The exchange that |value| goes into and nowhere else, and as which operand: what makes |value| writes the message. Null where there is none, or nothing is fused.
MlirOperation uly_emit_message_of(const uly_emitter *e, MlirValue value, int *out_operand);

// ---- moves
typedef struct uly_move_end {
  uly_place place; // strides of the dims; segmented or not
  bool peers;      // destination: P pointers; cut along dim |cut| into [first, first + count), nodes of the peer, or whole to everyone where cut < 0
  int32_t axis, cut;
  uint32_t first, count, offset; // offset: elements, of the peer; ULY_NONE: 0
  bool peer_strides;             // strides are nodes of the peer
} uly_move_end;
// Copies a value with these local sizes, dims in the order given (outermost first).
void uly_emit_move(uly_emitter *e, MlirOperation op, uly_dtype dtype, int32_t rank, const int32_t *order, const uint32_t *sizes, const uly_move_end *from,
                   const uly_move_end *to);
void uly_emit_copy(uly_emitter *e, MlirOperation op, const uly_type *type, const uly_place *from, const uly_place *to);
// A copy whose dims follow each other as the spec writes them.
uly_place uly_emit_row_major(uly_emitter *e, MlirOperation op, const uly_type *type, const uly_place *from);
// Whether dims order[first, end) stand in memory as one dim would.
bool uly_is_flat(uly_emitter *e, const uly_layout *layout, const uint32_t *stride, int32_t first, int32_t end);
// The value with its last |n| dims like that: itself, or a copy. What kernels that take no strides of them want.
bool uly_place_is_dense(uly_emitter *e, const uly_type *type, const uly_place *place, int32_t n);
uly_place uly_emit_dense(uly_emitter *e, MlirOperation op, const uly_type *type, uly_place place, int32_t n);

#endif
