// The rows of kernel_constants.def, evaluated for a kernel.
#include "passes/program.h"

static void add(uly_kernel_constants *list, const char *name, bool is_float, int64_t i, double f) {
  ULY_ASSERT(list->n < ULY_KERNEL_MAX_CONSTANTS);
  list->at[list->n++] = (uly_kernel_constant){.name = name, .n = 1, .is_float = is_float, .i = {i}, .f = f};
}

// Whether a mask leaves anything out: it is not just `true`.
static bool has_mask(const uly_expr *mask) {
  const uly_expr_node *last = mask->n_nodes > 0 ? &mask->nodes[mask->n_nodes - 1] : NULL;
  return last && !(last->op == ULY_SC_CONST && last->value.i != 0);
}

uly_kernel_constants uly_kernel_constants_of(const uly_kernel_desc *desc) {
  uly_kernel_constants list = {.n = 0};
#define INT(id, name, value)                                                                                                                                   \
  if (desc->kind == ULY_KERNEL_##id) add(&list, #name, false, (int64_t)(value), 0);
#define FLOAT(id, name, value)                                                                                                                                 \
  if (desc->kind == ULY_KERNEL_##id) add(&list, #name, true, 0, value);
#define PART(name, value)                                                                                                                                      \
  if (desc->kind == ULY_KERNEL_GEMM) {                                                                                                                         \
    add(&list, #name, false, 0, 0);                                                                                                                            \
    list.at[list.n - 1].n = ULY_GEMM_MAX_PARTS;                                                                                                                \
    for (int p = 0; p < desc->u.gemm.n_parts; p++) {                                                                                                           \
      const uly_gemm_part *part = &desc->u.gemm.parts[p];                                                                                                      \
      list.at[list.n - 1].i[p] = (int64_t)(value);                                                                                                             \
    }                                                                                                                                                          \
  }
#include "passes/kernel_constants.def"
  return list;
}
