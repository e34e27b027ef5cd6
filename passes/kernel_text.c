// A kernel's description as text, by which emit knows equal kernels: its constants, which kernel_constants.def lists, and its hooks. All that makes a difference to its code is in it.
#include "passes/program.h"

static void add_constants(uly_text *text, const uly_kernel_desc *desc) {
  uly_kernel_constants list = uly_kernel_constants_of(desc);
  for (int i = 0; i < list.n; i++) {
    const uly_kernel_constant *c = &list.at[i];
    uly_text_add(text, " %s", c->name);
    if (c->is_float) uly_text_add(text, "=%a", c->f);
    for (int p = 0; !c->is_float && p < c->n; p++) uly_text_add(text, "%c%lld", p ? ',' : '=', (long long)c->i[p]);
  }
}

static void add_slots(uly_text *text, const char *name, const int32_t *slots, int n) {
  uly_text_add(text, " %s", name);
  for (int i = 0; i < n; i++) uly_text_add(text, "%c%d", i ? ',' : '=', slots[i]);
}

// Free symbols are numbers here: kernels know no names.
static void add_expr(uly_text *text, const uly_expr *expr) {
  uly_str symbols[ULY_MAX_SYMBOLS];
  for (int i = 0; i < ULY_MAX_SYMBOLS; i++) symbols[i] = uly_str_format(text->arena, "S%d", i);
  uly_text_add_str(text, uly_expr_print(text->arena, expr, symbols, ULY_MAX_SYMBOLS));
}

// Slots of the symbols that are used.
static void add_sizes(uly_text *text, const int32_t *size) {
  for (int i = 0; i < ULY_MAX_SYMBOLS; i++)
    if (size[i] >= 0) uly_text_add(text, " S%d=%d", i, size[i]);
}

static void add_operand(uly_text *text, const uly_hook_operand *o) {
  uly_text_add(text, " op%d:%s", o->op, uly_dtype_name(o->dtype));
  add_slots(text, "stride", o->stride, ULY_HOOK_INDICES);
}

static void add_hook(uly_text *text, const char *name, const uly_hook *hook) {
  if (!hook->present) return;
  uly_text_add(text, "\n  %s: ", name);
  add_expr(text, &hook->expr);
  uly_text_add(text, " inputs %d;", hook->n_inputs);
  for (int i = 0; i < hook->n_operands; i++) add_operand(text, &hook->operands[i]);
  add_slots(text, "start", hook->start, ULY_HOOK_INDICES);
  add_sizes(text, hook->size);
  if (hook->out.op >= 0) {
    uly_text_add(text, " out");
    add_operand(text, &hook->out);
  }
}

static void add_attention(uly_text *text, const uly_attention_desc *a) {
  uly_text_add(text, "\n  mask: ");
  add_expr(text, &a->mask);
  if (a->has_score) {
    uly_text_add(text, "\n  score: ");
    add_expr(text, &a->score);
  }
  for (int i = 0; i < a->n_captures; i++) {
    const uly_capture *c = &a->captures[i];
    uly_text_add(text, "\n  c%d op%d:%s", i, c->op, uly_dtype_name(c->dtype));
    add_slots(text, "stride", c->stride, c->rank);
    add_slots(text, "dim", c->dim, c->rank);
    add_slots(text, "start", c->start, c->rank);
  }
  add_sizes(text, a->size);
}

uly_str uly_kernel_print(uly_arena *arena, const uly_kernel_desc *desc) {
  uly_text text = {.arena = arena};
  uly_text_add(&text, "%s ops=%d vals=%d", uly_kernel_kind_name(desc->kind), desc->n_ops, desc->n_vals);
  add_constants(&text, desc);
  switch (desc->kind) {
  case ULY_KERNEL_GEMM:
    for (int i = 0; i < desc->u.gemm.n_parts; i++) add_hook(&text, "epilogue", &desc->u.gemm.parts[i].epilogue);
    break;
  case ULY_KERNEL_ATTENTION: add_attention(&text, &desc->u.attention); break;
  case ULY_KERNEL_ROWS:
    add_hook(&text, "in", &desc->u.rows.in);
    add_hook(&text, "out", &desc->u.rows.out);
    break;
  case ULY_KERNEL_ROWSUM: add_hook(&text, "term", &desc->u.rowsum.term); break;
  case ULY_KERNEL_NLL: add_hook(&text, "in", &desc->u.nll.in); break;
  case ULY_KERNEL_PACK:
  case ULY_KERNEL_GATHER:
  case ULY_KERNEL_MOVE:
  case ULY_KERNEL_ROUND:
  case ULY_KERNEL_REFERENCE:
  case ULY_N_KERNEL_KINDS: break;
  }
  return uly_text_str(&text);
}
