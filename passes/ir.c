// Short names over MLIR's C API; see ir.h. Locations carry a place of the spec exactly: fused<array<i64: begin, end>>["file":line:column], so that an error of the
// last pass still prints the spec's line with a caret range; and, behind begin and end, the numbers of the graph's values that the operation makes.
#include "passes/ir.h"

#include <math.h>

#include "mlir-c/Diagnostics.h"
#include "mlir-c/Dialect/Arith.h"
#include "mlir-c/Dialect/Func.h"
#include "mlir-c/Dialect/IRDL.h"
#include "mlir-c/Dialect/SCF.h"

static MlirStringRef ref(uly_str s) { return mlirStringRefCreate(s.ptr, s.len); }
static MlirStringRef zref(const char *z) { return mlirStringRefCreateFromCString(z); }
static uly_str str(MlirStringRef s) { return (uly_str){s.data, s.length}; }

// ---- diagnostics

static void add_text(MlirStringRef s, void *text) { uly_text_add_str(text, str(s)); }

// Offset of a line and column in one of the diagnostics' sources.
static uly_loc find_place(const uly_diags *diags, uly_str file, uint32_t line, uint32_t column) {
  for (int32_t i = 0; i < diags->n_sources; i++) {
    const uly_source *source = &diags->sources[i];
    if (!uly_str_equal(source->name, file)) continue;
    size_t at = 0;
    for (uint32_t l = 1; l < line && at < source->text.len; at++)
      if (source->text.ptr[at] == '\n') l++;
    if (at + column > source->text.len) return (uly_loc){0};
    uint32_t begin = source->base + (uint32_t)at + column - 1;
    return (uly_loc){.begin = begin, .end = begin + 1, .line = line, .column = column};
  }
  return (uly_loc){0};
}

static uly_loc place_of(const uly_diags *diags, MlirLocation location) {
  if (mlirLocationIsAFused(location) && mlirLocationFusedGetNumLocations(location) > 0) {
    MlirAttribute range = mlirLocationFusedGetMetadata(location);
    unsigned n = mlirLocationFusedGetNumLocations(location);
    MlirLocation parts[8];
    if (n > 8) return (uly_loc){0};
    mlirLocationFusedGetLocations(location, parts);
    if (mlirAttributeIsNull(range) || !mlirAttributeIsADenseI64Array(range) || !mlirLocationIsAFileLineColRange(parts[0])) return place_of(diags, parts[0]);
    return (uly_loc){.begin = (uint32_t)mlirDenseI64ArrayGetElement(range, 0),
                     .end = (uint32_t)mlirDenseI64ArrayGetElement(range, 1),
                     .line = (uint32_t)mlirLocationFileLineColRangeGetStartLine(parts[0]),
                     .column = (uint32_t)mlirLocationFileLineColRangeGetStartColumn(parts[0])};
  }
  if (!mlirLocationIsAFileLineColRange(location)) return (uly_loc){0};
  int line = mlirLocationFileLineColRangeGetStartLine(location), column = mlirLocationFileLineColRangeGetStartColumn(location);
  if (line < 1 || column < 1) return (uly_loc){0};
  uly_str file = str(mlirIdentifierStr(mlirLocationFileLineColRangeGetFilename(location)));
  return find_place(diags, file, (uint32_t)line, (uint32_t)column);
}

static MlirLogicalResult handle(MlirDiagnostic diagnostic, void *context) {
  uly_ir *ir = context;
  MlirDiagnosticSeverity severity = mlirDiagnosticGetSeverity(diagnostic);
  if (severity != MlirDiagnosticError && severity != MlirDiagnosticWarning) return mlirLogicalResultSuccess();
  uly_text text = {.arena = ir->arena};
  mlirDiagnosticPrint(diagnostic, add_text, &text);
  uly_loc loc = place_of(ir->diags, mlirDiagnosticGetLocation(diagnostic));
  uly_diag *diag = severity == MlirDiagnosticError ? uly_diag_add(ir->diags, loc, ULY_D(IR_ERROR), ULY_STR_ARG(uly_text_str(&text)))
                                                   : uly_diag_add(ir->diags, loc, ULY_D(IR_WARNING), ULY_STR_ARG(uly_text_str(&text)));
  for (intptr_t i = 0; i < mlirDiagnosticGetNumNotes(diagnostic); i++) {
    MlirDiagnostic note = mlirDiagnosticGetNote(diagnostic, i);
    uly_text words = {.arena = ir->arena};
    mlirDiagnosticPrint(note, add_text, &words);
    uly_loc place = place_of(ir->diags, mlirDiagnosticGetLocation(note));
    if (place.line) uly_diag_note(ir->diags, diag, place, ULY_D(IR_NOTE), ULY_STR_ARG(uly_text_str(&words)));
  }
  return mlirLogicalResultSuccess();
}

static uly_str format(uly_ir *ir, const char *fmt, va_list args) {
  char buffer[1024];
  int n = vsnprintf(buffer, sizeof buffer, fmt, args);
  size_t len = n < 0 ? 0 : (size_t)n < sizeof buffer ? (size_t)n : sizeof buffer - 1;
  return uly_str_copy(ir->arena, (uly_str){buffer, len});
}

void uly_op_error(uly_ir *ir, MlirOperation op, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  uly_str message = format(ir, fmt, args);
  va_end(args);
  uly_diag_add(ir->diags, uly_op_loc(ir, op), ULY_D(IR_ERROR), ULY_STR_ARG(message));
}

void uly_op_error_value(uly_ir *ir, MlirOperation op, MlirValue value, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  uly_str message = format(ir, fmt, args);
  va_end(args);
  uly_diag *diag = uly_diag_add(ir->diags, uly_op_loc(ir, op), ULY_D(IR_ERROR), ULY_STR_ARG(message));
  MlirOperation source = uly_value_op(value);
  uly_loc place = mlirOperationIsNull(source) ? (uly_loc){0} : uly_op_loc(ir, source);
  if (place.line) uly_diag_note(ir->diags, diag, place, ULY_D(IR_NOTE), ULY_STR_ARG(ULY_STR("this value")));
}

// ---- context and modules

uly_ir *uly_ir_create(uly_arena *arena, uly_diags *diags) {
  uly_ir *ir = ULY_NEW(arena, uly_ir);
  ir->arena = arena;
  ir->diags = diags;
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__func__(), registry);
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__scf__(), registry);
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__arith__(), registry);
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__irdl__(), registry);
  ir->context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  mlirContextLoadAllAvailableDialects(ir->context);
  ir->handler = mlirContextAttachDiagnosticHandler(ir->context, handle, ir, NULL);
#define DTYPE(id, name, code, bytes, mlir, ...) ir->dtypes[ULY_##id] = mlirTypeParseGet(ir->context, zref(mlir));
#include "runtime/base/dtype.def"
  bool loaded = uly_dialect_load(ir);
  ULY_ASSERT(loaded);
  return ir;
}

void uly_ir_destroy(uly_ir *ir) {
  if (!ir) return;
  mlirContextDetachDiagnosticHandler(ir->context, ir->handler);
  mlirContextDestroy(ir->context);
}

bool uly_ir_dtype(const uly_ir *ir, MlirType type, uly_dtype *out_dtype) {
  for (int i = 0; i < ULY_N_DTYPES; i++) {
    if (!mlirTypeEqual(ir->dtypes[i], type)) continue;
    *out_dtype = (uly_dtype)i;
    return true;
  }
  return false;
}

MlirModule uly_ir_module_create(const uly_ir *ir) { return mlirModuleCreateEmpty(uly_ir_loc(ir, (uly_loc){.line = 1, .column = 1})); }

MlirModule uly_ir_parse(uly_ir *ir, uly_str name, uly_str text) {
  MlirOperation op = mlirOperationCreateParse(ir->context, ref(uly_str_copy(ir->arena, text)), ref(name));
  if (mlirOperationIsNull(op)) return (MlirModule){NULL};
  MlirModule module = mlirModuleFromOperation(op);
  if (mlirModuleIsNull(module)) {
    uly_op_error(ir, op, "a file holds one module");
    mlirOperationDestroy(op);
  }
  return module;
}

static void write_stream(MlirStringRef s, void *stream) { fwrite(s.data, 1, s.length, stream); }

void uly_ir_print(MlirOperation op, FILE *stream) {
  mlirOperationPrint(op, write_stream, stream);
  fputc('\n', stream);
}

uly_str uly_ir_print_text(const uly_ir *ir, MlirOperation op) {
  uly_text text = {.arena = ir->arena};
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  mlirOpPrintingFlagsUseLocalScope(flags); // else it looks at the whole module around |op|
  mlirOpPrintingFlagsAssumeVerified(flags);
  mlirOperationPrintWithFlags(op, flags, add_text, &text);
  mlirOpPrintingFlagsDestroy(flags);
  return uly_text_str(&text);
}

bool uly_ir_verify(MlirOperation op) { return mlirOperationVerify(op); }

void uly_ir_write_names(uly_ir *ir, MlirOperation module, const uly_names *names) {
  MlirAttribute axes[ULY_MAX_AXES];
  ULY_ASSERT(names->n_axes <= ULY_MAX_AXES);
  for (int32_t x = 0; x < names->n_axes; x++) {
    const uly_grid_axis *axis = &names->axes[x];
    uly_str words[1 + sizeof axis->symbols / sizeof *axis->symbols] = {axis->name};
    for (int32_t s = 0; s < axis->n_symbols; s++) words[1 + s] = names->symbols[axis->symbols[s]];
    axes[x] = uly_ir_strs(ir, words, 1 + axis->n_symbols);
  }
  uly_op_set(module, "uly.symbols", uly_ir_strs(ir, names->symbols, names->n_symbols));
  uly_op_set(module, "uly.grid", uly_ir_array(ir, axes, names->n_axes));
  ir->names = *names;
}

static bool read_strs(uly_ir *ir, MlirAttribute attr, uly_str **out_strs, int32_t *out_n) {
  if (mlirAttributeIsNull(attr) || !mlirAttributeIsAArray(attr)) return false;
  *out_n = (int32_t)mlirArrayAttrGetNumElements(attr);
  *out_strs = ULY_NEW_ARRAY(ir->arena, uly_str, *out_n);
  for (int32_t i = 0; i < *out_n; i++) {
    MlirAttribute item = mlirArrayAttrGetElement(attr, i);
    if (!mlirAttributeIsAString(item)) return false;
    (*out_strs)[i] = uly_attr_str(item);
  }
  return true;
}

static bool read_axis(uly_ir *ir, MlirAttribute attr, uly_grid_axis *axis) {
  uly_str *words;
  int32_t n;
  if (!read_strs(ir, attr, &words, &n) || n < 1 || n - 1 > (int32_t)(sizeof axis->symbols / sizeof *axis->symbols)) return false;
  axis->name = words[0];
  for (int32_t i = 1; i < n; i++) {
    int32_t symbol = -1;
    for (int32_t s = 0; s < ir->names.n_symbols; s++)
      if (uly_str_equal(ir->names.symbols[s], words[i])) symbol = s;
    if (symbol < 0) return false;
    axis->symbols[axis->n_symbols++] = symbol;
  }
  return true;
}

bool uly_ir_read_names(uly_ir *ir, MlirOperation module) {
  uly_str *symbols = NULL;
  uly_grid_axis *axes;
  ir->names = (uly_names){0};
  bool ok = read_strs(ir, uly_op_attr(module, "uly.symbols"), &symbols, &ir->names.n_symbols);
  ir->names.symbols = symbols;
  MlirAttribute grid = uly_op_attr(module, "uly.grid");
  ok = ok && !mlirAttributeIsNull(grid) && mlirAttributeIsAArray(grid) && mlirArrayAttrGetNumElements(grid) <= ULY_MAX_AXES;
  if (ok) {
    ir->names.n_axes = (int32_t)mlirArrayAttrGetNumElements(grid);
    ir->names.axes = axes = ULY_NEW_ARRAY(ir->arena, uly_grid_axis, ir->names.n_axes);
    for (int32_t x = 0; ok && x < ir->names.n_axes; x++) ok = read_axis(ir, mlirArrayAttrGetElement(grid, x), &axes[x]);
  }
  if (!ok) uly_op_error(ir, module, "a module names its symbols and grid: {uly.symbols = [\"B\", \"S\"], uly.grid = [[\"sp\", \"S\"]]}");
  return ok;
}

// ---- places

// The source that an offset lies in: the spec, the prelude, a -D value.
static uly_str source_name(const uly_ir *ir, uint32_t offset) {
  uly_str name = ir->file.len ? ir->file : ULY_STR("-");
  for (int32_t i = 0; i < ir->diags->n_sources; i++)
    if (ir->diags->sources[i].base <= offset) name = ir->diags->sources[i].name;
  return name;
}

MlirLocation uly_ir_loc(const uly_ir *ir, uly_loc loc) { return uly_ir_loc_of(ir, loc, NULL, 0); }

MlirLocation uly_ir_loc_of(const uly_ir *ir, uly_loc loc, const int32_t *values, int n) {
  MlirLocation place = mlirLocationFileLineColGet(ir->context, ref(source_name(ir, loc.begin)), loc.line, loc.column);
  int64_t numbers[2 + ULY_MAX_OPERANDS] = {loc.begin, loc.end};
  ULY_ASSERT(n <= ULY_MAX_OPERANDS);
  for (int i = 0; i < n; i++) numbers[2 + i] = values[i];
  return mlirLocationFusedGet(ir->context, 1, &place, uly_ir_i64s(ir, numbers, 2 + n));
}

// How many numbers stand behind begin and end.
static int count_numbers(MlirLocation location) {
  if (!mlirLocationIsAFused(location)) return 0;
  MlirAttribute numbers = mlirLocationFusedGetMetadata(location);
  bool ours = !mlirAttributeIsNull(numbers) && mlirAttributeIsADenseI64Array(numbers) && mlirDenseArrayGetNumElements(numbers) >= 2;
  return ours ? (int)mlirDenseArrayGetNumElements(numbers) - 2 : 0;
}

int32_t uly_op_number(MlirOperation op, int result) {
  MlirLocation location = mlirOperationGetLocation(op);
  return result < count_numbers(location) ? (int32_t)mlirDenseI64ArrayGetElement(mlirLocationFusedGetMetadata(location), 2 + result) : -1;
}

void uly_op_set_number(const uly_ir *ir, MlirOperation op, int result, int32_t number) {
  int32_t numbers[ULY_MAX_OPERANDS];
  int n = count_numbers(mlirOperationGetLocation(op));
  if (result >= n) n = result + 1;
  for (int i = 0; i < n; i++) numbers[i] = i == result ? number : uly_op_number(op, i);
  mlirOperationSetLocation(op, uly_ir_loc_of(ir, uly_op_loc(ir, op), numbers, n));
}

uly_loc uly_op_loc(const uly_ir *ir, MlirOperation op) { return place_of(ir->diags, mlirOperationGetLocation(op)); }

// ---- attributes

MlirAttribute uly_ir_str(const uly_ir *ir, uly_str s) { return mlirStringAttrGet(ir->context, ref(s)); }
MlirAttribute uly_ir_symbol(const uly_ir *ir, uly_str name) { return mlirFlatSymbolRefAttrGet(ir->context, ref(name)); }
uly_str uly_ir_symbol_name(MlirAttribute symbol) { return str(mlirFlatSymbolRefAttrGetValue(symbol)); }
MlirAttribute uly_ir_dict_get(MlirAttribute dict, const char *name) { return mlirDictionaryAttrGetElementByName(dict, zref(name)); }
MlirAttribute uly_ir_i64(const uly_ir *ir, int64_t n) { return mlirIntegerAttrGet(mlirIntegerTypeGet(ir->context, 64), n); }
MlirAttribute uly_ir_f64(const uly_ir *ir, double x) { return mlirFloatAttrDoubleGet(ir->context, mlirF64TypeGet(ir->context), x); }
MlirAttribute uly_ir_dim(const uly_ir *ir, uly_dim dim) { return uly_ir_str(ir, uly_encoding_print_dim(ir->arena, &ir->names, dim)); }
MlirAttribute uly_ir_unit(const uly_ir *ir) { return mlirUnitAttrGet(ir->context); }
MlirAttribute uly_ir_i64s(const uly_ir *ir, const int64_t *n, int count) { return mlirDenseI64ArrayGet(ir->context, count, n); }
MlirAttribute uly_ir_array(const uly_ir *ir, const MlirAttribute *items, int count) { return mlirArrayAttrGet(ir->context, count, items); }

MlirAttribute uly_ir_strs(const uly_ir *ir, const uly_str *strs, int count) {
  MlirAttribute *items = ULY_NEW_ARRAY(ir->arena, MlirAttribute, count);
  for (int i = 0; i < count; i++) items[i] = uly_ir_str(ir, strs[i]);
  return uly_ir_array(ir, items, count);
}

MlirNamedAttribute uly_ir_attr(const uly_ir *ir, const char *name, MlirAttribute value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(ir->context, zref(name)), value);
}

uly_str uly_ir_name(MlirIdentifier name) { return str(mlirIdentifierStr(name)); }
uly_str uly_attr_str(MlirAttribute attr) { return str(mlirStringAttrGetValue(attr)); }
MlirAttribute uly_op_attr(MlirOperation op, const char *name) { return mlirOperationGetAttributeByName(op, zref(name)); }
bool uly_op_has(MlirOperation op, const char *name) { return !mlirAttributeIsNull(uly_op_attr(op, name)); }

int64_t uly_op_i64(MlirOperation op, const char *name, int64_t otherwise) {
  MlirAttribute attr = uly_op_attr(op, name);
  return mlirAttributeIsNull(attr) ? otherwise : mlirIntegerAttrGetValueInt(attr);
}

double uly_op_f64(MlirOperation op, const char *name, double otherwise) {
  MlirAttribute attr = uly_op_attr(op, name);
  return mlirAttributeIsNull(attr) ? otherwise : mlirFloatAttrGetValueDouble(attr);
}

uly_str uly_op_str(MlirOperation op, const char *name) {
  MlirAttribute attr = uly_op_attr(op, name);
  return mlirAttributeIsNull(attr) ? (uly_str){0} : uly_attr_str(attr);
}

bool uly_op_dim(const uly_ir *ir, MlirOperation op, const char *name, uly_dim *out_dim) {
  return uly_encoding_parse_dim(ir->arena, &ir->names, uly_op_str(op, name), out_dim);
}

void uly_op_set(MlirOperation op, const char *name, MlirAttribute value) {
  if (mlirAttributeIsNull(value))
    mlirOperationRemoveAttributeByName(op, zref(name));
  else
    mlirOperationSetAttributeByName(op, zref(name), value);
}

int32_t uly_op_access(MlirOperation op, int operand, int32_t d) {
  MlirAttribute row = mlirArrayAttrGetElement(uly_op_attr(op, "access"), operand);
  return (int32_t)mlirDenseI64ArrayGetElement(row, d);
}

// ---- operations

static void add_segments(const uly_ir *ir, MlirOperationState *state, const char *name, int used, int slots) {
  int32_t sizes[ULY_MAX_OPERANDS];
  ULY_ASSERT(used <= slots && slots <= ULY_MAX_OPERANDS);
  for (int i = 0; i < slots; i++) sizes[i] = i < used;
  MlirNamedAttribute attr = uly_ir_attr(ir, name, mlirDenseI32ArrayGet(ir->context, slots, sizes));
  mlirOperationStateAddAttributes(state, 1, &attr);
}

static uly_kind kind_of(uly_str name) {
  if (name.len < 5 || memcmp(name.ptr, "uly.", 4) != 0) return ULY_KIND_OTHER;
  for (uly_kind kind = 0; kind < ULY_N_KINDS; kind++)
    if (uly_str_is((uly_str){name.ptr + 4, name.len - 4}, uly_kind_get(kind).name)) return kind;
  return ULY_KIND_OTHER;
}

static uly_str name_of(MlirOperation op) { return str(mlirIdentifierStr(mlirOperationGetName(op))); }
uly_kind uly_op_kind(MlirOperation op) { return kind_of(name_of(op)); }

MlirOperation uly_op_build(const uly_ir *ir, const uly_op_spec *spec) {
  MlirOperationState state = mlirOperationStateGet(zref(spec->name), spec->loc);
  mlirOperationStateAddOperands(&state, spec->n_operands, spec->operands);
  mlirOperationStateAddResults(&state, spec->n_results, spec->results);
  for (int i = 0; i < ULY_OP_MAX_ATTRS && !mlirAttributeIsNull(spec->attrs[i].attribute); i++) mlirOperationStateAddAttributes(&state, 1, &spec->attrs[i]);
  if (spec->n_regions) mlirOperationStateAddOwnedRegions(&state, spec->n_regions, spec->regions);
  uly_kind kind = kind_of(uly_str_of(spec->name));
  if (kind != ULY_KIND_OTHER) {
    uly_kind_info info = uly_kind_get(kind);
    if (info.most_operands - info.least_operands > 1) add_segments(ir, &state, "operandSegmentSizes", spec->n_operands, info.most_operands);
    if (info.most_results - info.least_results > 1) add_segments(ir, &state, "resultSegmentSizes", spec->n_results, info.most_results);
  }
  MlirOperation op = mlirOperationCreate(&state);
  if (!mlirOperationIsNull(spec->before))
    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(spec->before), spec->before, op);
  else
    mlirBlockAppendOwnedOperation(spec->block, op);
  return op;
}

bool uly_op_is(MlirOperation op, const char *name) { return uly_str_is(name_of(op), name); }
MlirBlock uly_op_body(MlirOperation op) { return mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0)); }
MlirOperation uly_value_op(MlirValue value) { return mlirValueIsAOpResult(value) ? mlirOpResultGetOwner(value) : (MlirOperation){NULL}; }

int uly_value_n_uses(MlirValue value) {
  int n = 0;
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) n++;
  return n;
}

int64_t uly_op_n_items(MlirOperation op) {
  if (uly_op_kind(op) == ULY_KIND_PARAM) return mlirArrayAttrGetNumElements(uly_op_attr(op, "names"));
  return uly_op_kind(op) == ULY_KIND_TABLE ? mlirDenseArrayGetNumElements(uly_op_attr(op, "numbers")) : 1;
}

bool uly_op_unused(MlirOperation op) {
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
    if (!mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(op, i)))) return false;
  return true;
}

void uly_op_erase(MlirOperation op) {
  ULY_ASSERT(uly_op_unused(op));
  mlirOperationDestroy(op);
}

static bool constant(MlirValue value, int64_t *out_number) {
  MlirOperation op = uly_value_op(value);
  if (mlirOperationIsNull(op) || !uly_op_is(op, "arith.constant")) return false;
  *out_number = uly_op_i64(op, "value", 0);
  return true;
}

int64_t uly_loop_count(MlirOperation loop) {
  int64_t begin, end, step;
  if (!constant(mlirOperationGetOperand(loop, 0), &begin) || !constant(mlirOperationGetOperand(loop, 1), &end)) return -1;
  if (!constant(mlirOperationGetOperand(loop, 2), &step) || step != 1 || begin != 0) return -1;
  return end;
}

typedef struct op_list {
  const uly_ir *ir;
  uly_ops ops;
  int cap;
} op_list;

static void push(op_list *list, MlirOperation op) {
  ULY_MAKE_ROOM(list->ir->arena, list->ops.at, list->ops.n, list->cap, 64);
  list->ops.at[list->ops.n++] = op;
}

static MlirWalkResult collect(MlirOperation op, void *list) {
  push(list, op);
  return MlirWalkResultAdvance;
}

uly_ops uly_ir_collect(const uly_ir *ir, MlirOperation root) {
  op_list list = {.ir = ir};
  mlirOperationWalk(root, collect, &list, MlirWalkPreOrder);
  return list.ops;
}

uly_ops uly_block_ops(const uly_ir *ir, MlirBlock block) {
  op_list list = {.ir = ir};
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) push(&list, op);
  return list.ops;
}
