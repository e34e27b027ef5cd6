// The IR as passes see it: a context with the uly dialect, and short names for what they do with MLIR's C API. ir.c is the only file that spells string
// references, operation states and diagnostic handlers; passes read as algorithms.
//
// Ownership is MLIR's: types and attributes belong to the context, operations to their block. Texts live in the module's arena.
#ifndef ULY_PASSES_IR_H
#define ULY_PASSES_IR_H

#include "frontend/diag.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/IR.h"
#include "passes/kinds.h"
#include "passes/type.h"

struct uly_ir {
  MlirContext context;
  uly_arena *arena; // of the compilation
  uly_diags *diags;
  uly_names names; // of the module: see uly_ir_read_names
  MlirType dtypes[ULY_N_DTYPES];
  const uly_graph *graph; // what build_ir reads, or NULL
  uly_str file;           // the spec's name in locations
  bool unfused;           // every operation is a kernel of its own
  uint64_t handler;
};

// One context, without threads, with func, scf, arith and uly loaded. MLIR's diagnostics go to |diags|. Both arguments must outlive the context.
uly_ir *uly_ir_create(uly_arena *arena, uly_diags *diags);
void uly_ir_destroy(uly_ir *ir); // accepts NULL
// Defined in dialect.c: teaches a context the dialect. False, with diagnostics, where it does not load.
bool uly_dialect_load(uly_ir *ir);
// Attributes of |op| against attributes.def. False, with diagnostics, where one is missing, unknown or of another kind.
bool uly_dialect_check(uly_ir *ir, MlirOperation op);
uly_kind uly_op_kind(MlirOperation op);

// Modules carry their names: {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"], ["dp", "B"]]}.
bool uly_ir_read_names(uly_ir *ir, MlirOperation module);
void uly_ir_write_names(uly_ir *ir, MlirOperation module, const uly_names *names);
MlirModule uly_ir_module_create(const uly_ir *ir);
MlirModule uly_ir_parse(uly_ir *ir, uly_str name, uly_str text); // null, with diagnostics, where it is no valid module
void uly_ir_print(MlirOperation op, FILE *stream);
uly_str uly_ir_print_text(const uly_ir *ir, MlirOperation op);
bool uly_ir_dtype(const uly_ir *ir, MlirType type, uly_dtype *out_dtype);
bool uly_ir_verify(MlirOperation op); // MLIR's verifier; diagnostics where false

// ---- places
MlirLocation uly_ir_loc(const uly_ir *ir, uly_loc loc);
uly_loc uly_op_loc(const uly_ir *ir, MlirOperation op); // line 0 without one
// Locations also say which values of the graph, by number, the results of an operation are: what is built in the place of another operation takes that over with its place.
// −1: none.
MlirLocation uly_ir_loc_of(const uly_ir *ir, uly_loc loc, const int32_t *values, int n);
int32_t uly_op_number(MlirOperation op, int result);
void uly_op_set_number(const uly_ir *ir, MlirOperation op, int result, int32_t number);
// An error at the operation's place in the spec.
void uly_op_error(uly_ir *ir, MlirOperation op, const char *format, ...) ULY_PRINTF(3, 4);
// The same, with a note at the place where |value| comes from.
void uly_op_error_value(uly_ir *ir, MlirOperation op, MlirValue value, const char *format, ...) ULY_PRINTF(4, 5);

// ---- attributes
MlirAttribute uly_ir_str(const uly_ir *ir, uly_str s);
MlirAttribute uly_ir_symbol(const uly_ir *ir, uly_str name); // @name
uly_str uly_ir_symbol_name(MlirAttribute symbol);
MlirAttribute uly_ir_dict_get(MlirAttribute dict, const char *name); // null where it has none
MlirAttribute uly_ir_i64(const uly_ir *ir, int64_t n);
MlirAttribute uly_ir_f64(const uly_ir *ir, double x);
MlirAttribute uly_ir_dim(const uly_ir *ir, uly_dim dim);
MlirAttribute uly_ir_unit(const uly_ir *ir);
MlirAttribute uly_ir_i64s(const uly_ir *ir, const int64_t *n, int count);
MlirAttribute uly_ir_array(const uly_ir *ir, const MlirAttribute *items, int count);
MlirAttribute uly_ir_strs(const uly_ir *ir, const uly_str *strs, int count);
MlirNamedAttribute uly_ir_attr(const uly_ir *ir, const char *name, MlirAttribute value);
uly_str uly_attr_str(MlirAttribute attr);
uly_str uly_ir_name(MlirIdentifier name);
// Null where |op| has none.
MlirAttribute uly_op_attr(MlirOperation op, const char *name);
bool uly_op_has(MlirOperation op, const char *name);
int64_t uly_op_i64(MlirOperation op, const char *name, int64_t otherwise);
double uly_op_f64(MlirOperation op, const char *name, double otherwise);
uly_str uly_op_str(MlirOperation op, const char *name);                                  // empty without one
bool uly_op_dim(const uly_ir *ir, MlirOperation op, const char *name, uly_dim *out_dim); // false where the text is no dim
void uly_op_set(MlirOperation op, const char *name, MlirAttribute value);                // null: removes it
// Access row |operand| of a map: the result dim that indexes dim |d| of the operand.
int32_t uly_op_access(MlirOperation op, int operand, int32_t d);

// ---- operations
enum { ULY_OP_MAX_ATTRS = 12 };
typedef struct uly_op_spec {
  const char *name; // "uly.linear"
  MlirLocation loc;
  const MlirValue *operands;
  int n_operands;
  const MlirType *results;
  int n_results;
  MlirNamedAttribute attrs[ULY_OP_MAX_ATTRS]; // up to the first with a null value
  const MlirRegion *regions;                  // moved in
  int n_regions;
  MlirBlock block;      // where: at this block's end,
  MlirOperation before; // or, where not null, before this operation
} uly_op_spec;
// Segment sizes of operations with optional slots are added here: operands and results fill the first slots.
MlirOperation uly_op_build(const uly_ir *ir, const uly_op_spec *spec);
static inline MlirValue uly_op_operand(MlirOperation op, intptr_t i) { return mlirOperationGetOperand(op, i); }
static inline MlirValue uly_op_result(MlirOperation op, int i) { return mlirOperationGetResult(op, i); }
bool uly_op_is(MlirOperation op, const char *name);
MlirBlock uly_op_body(MlirOperation op);     // first block of the first region
MlirOperation uly_value_op(MlirValue value); // null for arguments
int uly_value_n_uses(MlirValue value);
// How many things it stands for, one an iteration of the loops around it: a parameter's names, a table's numbers. 1 for others.
int64_t uly_op_n_items(MlirOperation op);
bool uly_op_unused(MlirOperation op);
void uly_op_erase(MlirOperation op); // without uses
// Trip count of an scf.for between constants, -1 for another.
int64_t uly_loop_count(MlirOperation loop);

// All operations inside |root|, outer before inner, in order. The array is the arena's; operations may be erased while one goes over it.
typedef struct uly_ops {
  MlirOperation *at;
  int n;
} uly_ops;
uly_ops uly_ir_collect(const uly_ir *ir, MlirOperation root);
uly_ops uly_block_ops(const uly_ir *ir, MlirBlock block); // only the block's own

#endif
