// The uly dialect in a context: IRDL text (make_irdl.c) loaded as a dialect, and the checks that IRDL cannot say: optional attributes, unknown ones, elements of arrays.
#include "mlir-c/Dialect/IRDL.h"
#include "passes/ir.h"

static const char irdl[] = {
#include "uly_irdl.inc"
    0};

bool uly_dialect_load(uly_ir *ir) {
  MlirModule module = uly_ir_parse(ir, ULY_STR("uly.irdl.mlir"), uly_str_of(irdl));
  if (mlirModuleIsNull(module)) return false;
  bool ok = mlirLogicalResultIsSuccess(mlirLoadIRDLDialects(module));
  mlirModuleDestroy(module);
  return ok;
}

static bool fits(MlirAttribute attr, uly_attr_kind kind) {
  switch (kind) {
  case ULY_ATTR_STRING: return mlirAttributeIsAString(attr);
  case ULY_ATTR_INT: return mlirAttributeIsAInteger(attr);
  case ULY_ATTR_FLOAT: return mlirAttributeIsAFloat(attr);
  case ULY_ATTR_UNIT: return mlirAttributeIsAUnit(attr);
  case ULY_ATTR_NUMBERS: return mlirAttributeIsADenseF64Array(attr) || mlirAttributeIsADenseI64Array(attr);
  case ULY_ATTR_STRINGS:
  case ULY_ATTR_ACCESSES:
    if (!mlirAttributeIsAArray(attr)) return false;
    for (intptr_t i = 0; i < mlirArrayAttrGetNumElements(attr); i++) {
      MlirAttribute item = mlirArrayAttrGetElement(attr, i);
      if (kind == ULY_ATTR_STRINGS ? !mlirAttributeIsAString(item) : !mlirAttributeIsADenseI64Array(item)) return false;
    }
    return true;
  }
  return false;
}

static bool added_by_mlir(uly_str name) {
  return uly_str_is(name, "operandSegmentSizes") || uly_str_is(name, "resultSegmentSizes") || memchr(name.ptr, '.', name.len);
}

static const uly_attr_info *find_attr(uly_kind kind, uly_str name) {
  for (int i = 0; i < uly_n_attrs(); i++)
    if (uly_attr_at(i)->kind == kind && uly_str_is(name, uly_attr_at(i)->name)) return uly_attr_at(i);
  return NULL;
}

bool uly_dialect_check(uly_ir *ir, MlirOperation op) {
  static const char *const kinds[] = {[ULY_ATTR_STRING] = "a string",
                                      [ULY_ATTR_INT] = "an integer",
                                      [ULY_ATTR_FLOAT] = "a float",
                                      [ULY_ATTR_UNIT] = "a unit",
                                      [ULY_ATTR_STRINGS] = "an array of strings",
                                      [ULY_ATTR_ACCESSES] = "an array of array<i64>",
                                      [ULY_ATTR_NUMBERS] = "an array<f64> or array<i64>"};
  uly_kind kind = uly_op_kind(op);
  bool ok = true;
  for (intptr_t i = 0; kind != ULY_KIND_OTHER && i < mlirOperationGetNumAttributes(op); i++) {
    MlirNamedAttribute attr = mlirOperationGetAttribute(op, i);
    uly_str name = uly_ir_name(attr.name);
    if (added_by_mlir(name)) continue;
    const uly_attr_info *info = find_attr(kind, name);
    if (info && fits(attr.attribute, info->type)) continue;
    ok = false;
    if (info)
      uly_op_error(ir, op, "uly.%s: attribute `%s` is %s", uly_kind_get(kind).name, info->name, kinds[info->type]);
    else
      uly_op_error(ir, op, "uly.%s has no attribute `%.*s`", uly_kind_get(kind).name, ULY_STR_ARG(name));
  }
  return ok;
}
