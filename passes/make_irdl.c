// Build tool: writes the uly dialect as IRDL, once as a file for stock mlir-opt and once as the bytes of a C string for dialect.c.
//   make_irdl uly.irdl.mlir uly_irdl.inc
// One variable a slot: in IRDL a variable that is used twice means equal types.
#include <stdio.h>

#include "passes/kinds.h"

static const char *attr_base(uly_attr_kind kind) {
  switch (kind) {
  case ULY_ATTR_STRING: return "#builtin.string";
  case ULY_ATTR_INT: return "#builtin.integer";
  case ULY_ATTR_FLOAT: return "#builtin.float";
  case ULY_ATTR_STRINGS:
  case ULY_ATTR_ACCESSES: return "#builtin.array";
  case ULY_ATTR_NUMBERS: return "#builtin.dense_array";
  case ULY_ATTR_UNIT: return "#builtin.unit";
  }
  return "";
}

static void write_slots(FILE *out, const char *what, char prefix, int least, int most) {
  if (most == 0) return;
  fprintf(out, "    irdl.%s(", what);
  for (int i = 0; i < most; i++) fprintf(out, "%s%c%d: %s%%%c%d", i ? ", " : "", prefix, i, i < least ? "" : "optional ", prefix, i);
  fprintf(out, ")\n");
}

static void write_attributes(FILE *out, uly_kind kind) {
  int n = 0;
  for (int i = 0; i < uly_n_attrs(); i++) {
    const uly_attr_info *attr = uly_attr_at(i);
    if (attr->kind != kind || !attr->required) continue;
    fprintf(out, "%s\"%s\" = %%%s", n++ ? ", " : "    irdl.attributes {", attr->name, attr->name);
  }
  if (n) fprintf(out, "}\n");
}

static void write_op(FILE *out, uly_kind kind) {
  uly_kind_info info = uly_kind_get(kind);
  fprintf(out, "  irdl.operation @%s {\n", info.name);
  for (int i = 0; i < info.most_operands; i++) fprintf(out, "    %%x%d = irdl.base \"!builtin.tensor\"\n", i);
  for (int i = 0; i < info.most_results; i++) fprintf(out, "    %%y%d = irdl.base \"!builtin.tensor\"\n", i);
  for (int i = 0; i < uly_n_attrs(); i++) {
    const uly_attr_info *attr = uly_attr_at(i);
    if (attr->kind == kind && attr->required) fprintf(out, "    %%%s = irdl.base \"%s\"\n", attr->name, attr_base(attr->type));
  }
  write_slots(out, "operands", 'x', info.least_operands, info.most_operands);
  write_slots(out, "results", 'y', info.least_results, info.most_results);
  write_attributes(out, kind);
  fprintf(out, "  }\n");
}

static int write_dialect(const char *path) {
  FILE *out = fopen(path, "w");
  if (!out) return 1;
  fprintf(out, "// The uly dialect. Written by make_irdl from frontend/ops.def, passes/casts.def and passes/attributes.def.\nmodule {\nirdl.dialect @uly {\n");
  for (int kind = 0; kind < ULY_N_KINDS; kind++)
    if (uly_kind_get((uly_kind)kind).in_dialect) write_op(out, (uly_kind)kind);
  fprintf(out, "}\n}\n");
  return fclose(out);
}

static int write_bytes(const char *from, const char *to) {
  FILE *in = fopen(from, "r"), *out = fopen(to, "w");
  int c, n = 0, bad = !in || !out;
  while (!bad && (c = fgetc(in)) != EOF) fprintf(out, "%d,%s", c, ++n % 32 ? "" : "\n");
  if (in && fclose(in)) bad = 1;
  if (out && fclose(out)) bad = 1;
  return bad;
}

int main(int argc, char **argv) {
  if (argc != 3 || write_dialect(argv[1]) || write_bytes(argv[1], argv[2])) {
    fprintf(stderr, "make_irdl: cannot write %s\n", argc > 1 ? argv[1] : "the dialect: two file names are needed");
    return 1;
  }
  return 0;
}
