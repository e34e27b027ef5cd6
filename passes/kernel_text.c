// A kernel's description as text: equal kernels have equal text, which is how emit shares them; `ulyc inspect --kernels` shows it.
#include "passes/emit.h"

static const char *const gemm_modes[] = {"plain", "pair", "rope half", "rope interleaved"};

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

static void add_gemm(uly_text *text, const uly_gemm_desc *gemm) {
  uly_text_add(text, " K=%lld%s x:%s w:%s", (long long)gemm->k, gemm->message ? " message" : "", uly_dtype_name(gemm->x), uly_dtype_name(gemm->w));
  if (gemm->labels) uly_text_add(text, " loss of %d-byte labels", gemm->labels);
  for (int i = 0; i < gemm->n_parts; i++) {
    const uly_gemm_part *part = &gemm->parts[i];
    uly_text_add(text, "\n  part %s %lld x %lld:%s", gemm_modes[part->mode], (long long)part->n_groups, (long long)part->group, uly_dtype_name(part->out));
    if (part->rope) uly_text_add(text, " rope %lld", (long long)part->rope);
    add_hook(text, "epilogue", &part->epilogue);
  }
}

static void add_attention(uly_text *text, const uly_attention_desc *a) {
  uly_text_add(text, " %s Dh=%lld Dv=%lld group=%lld scale=%a%s%s\n  mask: ", uly_dtype_name(a->dtype), (long long)a->dh, (long long)a->dv, (long long)a->group,
               a->scale, a->has_sink ? " sink" : "", a->has_lse ? " lse" : "");
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

uly_str uly_kernel_print(uly_arena *arena, const uly_kernel_desc *kernel) {
  uly_text text = {.arena = arena};
  uly_text_add(&text, "%s ops=%d vals=%d", uly_kernel_kind_name(kernel->kind), kernel->n_ops, kernel->n_vals);
  switch (kernel->kind) {
  case ULY_KERNEL_GEMM: add_gemm(&text, &kernel->u.gemm); break;
  case ULY_KERNEL_PACK: {
    const uly_pack_desc *p = &kernel->u.pack;
    uly_text_add(&text, " K=%lld %s %lld rope %lld %s", (long long)p->k, gemm_modes[p->mode], (long long)p->group, (long long)p->rope, uly_dtype_name(p->dtype));
    break;
  }
  case ULY_KERNEL_ATTENTION: add_attention(&text, &kernel->u.attention); break;
  case ULY_KERNEL_ROWS: {
    const uly_rows_desc *r = &kernel->u.rows;
    uly_text_add(&text, " %s cols=%lld eps=%a", uly_rows_mode_name(r->mode), (long long)r->cols, r->eps);
    add_hook(&text, "in", &r->in);
    add_hook(&text, "out", &r->out);
    break;
  }
  case ULY_KERNEL_ROWSUM:
    if (kernel->u.rowsum.ints) uly_text_add(&text, " ints");
    add_hook(&text, "term", &kernel->u.rowsum.term);
    break;
  case ULY_KERNEL_ROUND: uly_text_add(&text, " %s", uly_dtype_name(kernel->u.round.dtype)); break;
  case ULY_KERNEL_GATHER: uly_text_add(&text, " ids=%s", uly_dtype_name(kernel->u.gather.ids)); break;
  case ULY_KERNEL_NLL: {
    const uly_nll_desc *n = &kernel->u.nll;
    uly_text_add(&text, " labels=%s ignore=%lld%s", uly_dtype_name(n->labels), (long long)n->ignore, n->stats ? " of statistics" : "");
    add_hook(&text, "in", &n->in);
    break;
  }
  case ULY_KERNEL_MOVE:
  case ULY_KERNEL_REFERENCE:
  case ULY_N_KERNEL_KINDS: break;
  }
  return uly_text_str(&text);
}
