#include "passes/kinds.h"

#include <stdlib.h>

static const struct {
  const char *name;
  int n_operands, n_results;
} rows[ULY_N_KINDS] = {
#define OP(id, name, n_operands, n_results, split, doc) {name, n_operands, n_results},
#include "frontend/ops.def"
#define CAST(id, name, n_operands, n_results, doc) {name, n_operands, n_results},
#include "passes/casts.def"
};

static const uly_attr_info attrs[] = {
#define ATTR(op, name, kind, required, doc) {ULY_KIND_##op, #name, ULY_ATTR_##kind, required},
#include "passes/attributes.def"
};

// How many operands a row with a free number may have.
static int most_operands(uly_kind kind) {
  switch (kind) {
  case ULY_KIND_LINEAR:
  case ULY_KIND_LAYERNORM: return 3; // a bias
  case ULY_KIND_MAP:
  case ULY_KIND_ATTENTION:
  case ULY_KIND_CONCAT: return ULY_MAX_OPERANDS;
  case ULY_KIND_EXCHANGE: return ULY_EXCHANGE_SLOTS;
  default: return abs(rows[kind].n_operands);
  }
}

uly_kind_info uly_kind_get(uly_kind kind) {
  uly_kind_info info = {.name = rows[kind].name, .in_dialect = true};
  info.least_operands = abs(rows[kind].n_operands);
  info.most_operands = most_operands(kind);
  info.least_results = abs(rows[kind].n_results);
  info.most_results = rows[kind].n_results >= 0 ? rows[kind].n_results : kind == ULY_KIND_EXCHANGE ? ULY_EXCHANGE_SLOTS : ULY_MAX_OPERANDS;
  if (kind == ULY_KIND_INPUT || kind == ULY_KIND_BODY_ARG || kind == ULY_KIND_RESULT || kind == ULY_KIND_REPEAT) info.in_dialect = false;
  return info;
}

int uly_n_attrs(void) { return (int)(sizeof attrs / sizeof *attrs); }
const uly_attr_info *uly_attr_at(int i) { return &attrs[i]; }
