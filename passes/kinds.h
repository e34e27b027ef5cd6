// What the rows of ops.def, casts.def and attributes.def say about an operation of the IR. Without MLIR: also part of the generator of the dialect's IRDL.
#ifndef ULY_PASSES_KINDS_H
#define ULY_PASSES_KINDS_H

#include "frontend/graph.h"

typedef enum uly_kind {
#define OP(id, ...) ULY_KIND_##id,
#include "frontend/ops.def"
#define CAST(id, ...) ULY_KIND_##id,
#include "passes/casts.def"
  ULY_KIND_OTHER,
  ULY_N_KINDS = ULY_KIND_OTHER
} uly_kind;

typedef enum uly_attr_kind {
  ULY_ATTR_STRING,
  ULY_ATTR_INT,
  ULY_ATTR_FLOAT,
  ULY_ATTR_UNIT,
  ULY_ATTR_STRINGS,
  ULY_ATTR_ACCESSES,
  ULY_ATTR_NUMBERS
} uly_attr_kind;

typedef struct uly_attr_info {
  uly_kind kind;
  const char *name;
  uly_attr_kind type;
  bool required;
} uly_attr_info;

// Operands beyond |least| are optional slots; where there are several of them, operandSegmentSizes says how many are there. The same for results.
typedef struct uly_kind_info {
  const char *name;
  bool in_dialect; // has an operation; the others are arguments, results and scf.for
  int least_operands, most_operands;
  int least_results, most_results;
} uly_kind_info;

enum { ULY_EXCHANGE_SLOTS = 8 };

// Rows of casts.def: they change how a value is distributed, not what it is.
static inline bool uly_kind_is_cast(uly_kind kind) { return kind >= ULY_KIND_RESHARD && kind < ULY_KIND_OTHER; }
uly_kind_info uly_kind_get(uly_kind kind);
int uly_n_attrs(void);
const uly_attr_info *uly_attr_at(int i);

#endif
