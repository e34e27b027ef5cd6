// Kernels are shared where their descriptions have one text. So whatever is changed in a description changes its text: every field of every kind is changed here, one at a time, and
// every byte of a description is a field's, so that a field that somebody adds is missed here first.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "passes/program.h"

// A field: where it is, its bytes, and those of its bytes that say something. The first byte of each item is changed.
typedef struct field {
  size_t at, item, n;
} field;

#define FIELD(type, name) {offsetof(type, name), sizeof(((type *)0)->name), 1}
#define ITEMS(type, name) {offsetof(type, name), sizeof(*((type *)0)->name), sizeof(((type *)0)->name) / sizeof(*((type *)0)->name)}
#define END {0, 0, 0}

static uly_arena *arena;
static uly_kernel_desc *desc;

static uly_expr parse(const char *text) {
  const uly_str symbols[] = {ULY_STR("S")};
  uly_expr expr;
  assert_int_equal(uly_expr_parse(arena, uly_str_of(text), symbols, 1, &expr), ULY_OK);
  return expr;
}

static uly_str text(void) { return uly_kernel_print(arena, desc); }

// Changes every item of |fields| of the struct at |base|, of which all |bytes| but |padding| have to be theirs.
static void change_each(const char *what, void *base, size_t bytes, size_t padding, const field *fields) {
  uly_str before = text();
  size_t covered = 0;
  for (const field *f = fields; f->n; f++) {
    covered += f->item * f->n;
    for (size_t i = 0; i < f->n; i++) {
      unsigned char *byte = (unsigned char *)base + f->at + i * f->item;
      *byte ^= 1;
      if (uly_str_equal(text(), before)) fail_msg("%s: the text does not tell byte %zu, item %zu of a field", what, f->at, i);
      *byte ^= 1;
    }
  }
  assert_true(uly_str_equal(text(), before));
  if (covered + padding != bytes) fail_msg("%s has %zu bytes, fields %zu, padding %zu: a field is not tested", what, bytes, covered, padding);
}

static void change_expr(const char *what, uly_expr *expr) {
  uly_expr was = *expr;
  uly_str before = text();
  *expr = parse("3.0");
  if (uly_str_equal(text(), before)) fail_msg("%s: the text does not tell the expression", what);
  *expr = was;
  expr->wide = !expr->wide;
  if (uly_str_equal(text(), before)) fail_msg("%s: the text does not tell whether the expression is wide", what);
  *expr = was;
}

static void change_operand(const char *what, uly_hook_operand *o) {
  static const field fields[] = {FIELD(uly_hook_operand, op), FIELD(uly_hook_operand, dtype), ITEMS(uly_hook_operand, stride), END};
  change_each(what, o, sizeof *o, 0, fields);
}

static uly_hook make_hook(void) {
  uly_hook h = {.present = true, .expr = parse("x0 + 1.0"), .n_inputs = 2, .n_operands = 1, .operands = {{.op = 2}}, .out = {.op = 2}};
  return h;
}

static void change_hook(const char *what, uly_hook *h) {
  static const field fields[] = {FIELD(uly_hook, present), FIELD(uly_hook, n_inputs), FIELD(uly_hook, n_operands),
                                 ITEMS(uly_hook, start),   ITEMS(uly_hook, size),     END};
  *h = make_hook();
  change_each(what, h, sizeof *h, sizeof h->expr + sizeof h->operands + sizeof h->out + 7, fields);
  change_expr(what, &h->expr);
  change_operand(what, &h->operands[0]);
  change_operand(what, &h->out);
  *h = (uly_hook){.present = false};
}

static void begin(uly_kernel_kind kind) { *desc = (uly_kernel_desc){.kind = kind}; }

static void slots(void **state) {
  (void)state;
  static const field fields[] = {FIELD(uly_kernel_desc, kind), FIELD(uly_kernel_desc, n_ops), FIELD(uly_kernel_desc, n_vals), END};
  begin(ULY_KERNEL_MOVE);
  change_each("a kernel", desc, sizeof *desc, sizeof desc->loc + sizeof desc->u + 4, fields); // a place is no difference
}

static void pack(void **state) {
  (void)state;
  static const field fields[] = {FIELD(uly_pack_desc, k),    FIELD(uly_pack_desc, mode),  FIELD(uly_pack_desc, group),
                                 FIELD(uly_pack_desc, rope), FIELD(uly_pack_desc, dtype), END};
  begin(ULY_KERNEL_PACK);
  change_each("PACK", &desc->u.pack, sizeof desc->u.pack, 8, fields);
}

static void gemm(void **state) {
  (void)state;
  static const field fields[] = {FIELD(uly_gemm_desc, k),
                                 FIELD(uly_gemm_desc, n_parts),
                                 FIELD(uly_gemm_desc, message),
                                 FIELD(uly_gemm_desc, labels),
                                 FIELD(uly_gemm_desc, x),
                                 FIELD(uly_gemm_desc, w),
                                 END};
  static const field of_part[] = {FIELD(uly_gemm_part, mode), FIELD(uly_gemm_part, n_groups), FIELD(uly_gemm_part, group),
                                  FIELD(uly_gemm_part, rope), FIELD(uly_gemm_part, out),      END};
  begin(ULY_KERNEL_GEMM);
  uly_gemm_desc *g = &desc->u.gemm;
  g->n_parts = 2;
  change_each("GEMM", g, sizeof *g, sizeof g->parts + 7, fields);
  for (int p = 0; p < 2; p++) {
    change_each("a part", &g->parts[p], sizeof g->parts[p], sizeof g->parts[p].epilogue + 8, of_part);
    change_hook("an epilogue", &g->parts[p].epilogue);
  }
  // An epilogue of one part is not that of another.
  g->parts[0].epilogue = make_hook();
  uly_str first = text();
  g->parts[0].epilogue = (uly_hook){.present = false};
  g->parts[1].epilogue = make_hook();
  assert_false(uly_str_equal(first, text()));
}

static void attention(void **state) {
  (void)state;
  static const field fields[] = {FIELD(uly_attention_desc, dh),
                                 FIELD(uly_attention_desc, dv),
                                 FIELD(uly_attention_desc, group),
                                 FIELD(uly_attention_desc, scale),
                                 FIELD(uly_attention_desc, dtype),
                                 FIELD(uly_attention_desc, has_sink),
                                 FIELD(uly_attention_desc, has_lse),
                                 FIELD(uly_attention_desc, has_score),
                                 FIELD(uly_attention_desc, n_captures),
                                 ITEMS(uly_attention_desc, size),
                                 END};
  begin(ULY_KERNEL_ATTENTION);
  uly_attention_desc *a = &desc->u.attention;
  *a = (uly_attention_desc){.has_score = true, .mask = parse("k <= q"), .score = parse("s * 2.0"), .n_captures = 1};
  a->captures[0].rank = 2;
  change_each("ATTENTION", a, sizeof *a, 2 * sizeof(uly_expr) + sizeof a->captures + 5, fields);
  change_expr("a mask", &a->mask);
  change_expr("a score", &a->score);
  uly_str masked = text();
  a->mask = parse("true");
  assert_false(uly_str_equal(masked, text()));
  const field of_capture[] = {FIELD(uly_capture, op),
                              FIELD(uly_capture, dtype),
                              FIELD(uly_capture, rank),
                              {offsetof(uly_capture, stride), sizeof(int32_t), 2},
                              {offsetof(uly_capture, dim), sizeof(int32_t), 2},
                              {offsetof(uly_capture, start), sizeof(int32_t), 2},
                              END};
  change_each("a captured tensor", &a->captures[0], sizeof a->captures[0], 3 * (ULY_GRAPH_MAX_DIMS - 2) * sizeof(int32_t), of_capture);
}

static void rows(void **state) {
  (void)state;
  static const field fields[] = {FIELD(uly_rows_desc, mode), FIELD(uly_rows_desc, cols), FIELD(uly_rows_desc, eps), END};
  begin(ULY_KERNEL_ROWS);
  change_each("ROWS", &desc->u.rows, sizeof desc->u.rows, 2 * sizeof(uly_hook) + 4, fields);
  change_hook("what rows read", &desc->u.rows.in);
  change_hook("what rows give", &desc->u.rows.out);
  desc->u.rows.in = make_hook();
  uly_str in = text();
  desc->u.rows.out = desc->u.rows.in, desc->u.rows.in = (uly_hook){.present = false};
  assert_false(uly_str_equal(in, text()));
}

static void sums(void **state) {
  (void)state;
  static const field of_sum[] = {FIELD(uly_rowsum_desc, ints), END}, of_nll[] = {FIELD(uly_nll_desc, ignore), FIELD(uly_nll_desc, stats), END};
  begin(ULY_KERNEL_ROWSUM);
  change_each("ROWSUM", &desc->u.rowsum, sizeof desc->u.rowsum, sizeof(uly_hook) + 7, of_sum);
  change_hook("a term", &desc->u.rowsum.term);
  begin(ULY_KERNEL_NLL);
  change_each("NLL", &desc->u.nll, sizeof desc->u.nll, sizeof(uly_hook) + sizeof desc->u.nll.labels + 4 + 7, of_nll);
  change_hook("logits", &desc->u.nll.in);
}

// Dtypes of which a kernel takes two, or several.
static void dtypes(void **state) {
  (void)state;
  uly_str of[ULY_N_DTYPES];
  static const uly_dtype ints[] = {ULY_I32, ULY_I64};
  for (int i = 0; i < 2; i++) {
    begin(ULY_KERNEL_GATHER);
    desc->u.gather.ids = ints[i];
    of[i] = text();
    begin(ULY_KERNEL_NLL);
    desc->u.nll.labels = ints[i];
    of[2 + i] = text();
  }
  assert_false(uly_str_equal(of[0], of[1]));
  assert_false(uly_str_equal(of[2], of[3]));
  for (int d = 0; d < ULY_N_DTYPES; d++) {
    begin(ULY_KERNEL_ROUND);
    desc->u.round.dtype = (uly_dtype)d;
    of[d] = text();
    for (int other = 0; other < d; other++) assert_false(uly_str_equal(of[d], of[other]));
  }
  assert_int_equal(sizeof(uly_gather_desc), sizeof(uly_dtype));
  assert_int_equal(sizeof(uly_round_desc), sizeof(uly_dtype));
}

int main(void) {
  arena = uly_arena_create();
  desc = ULY_NEW(arena, uly_kernel_desc);
  const struct CMUnitTest tests[] = {cmocka_unit_test(slots), cmocka_unit_test(pack), cmocka_unit_test(gemm),  cmocka_unit_test(attention),
                                     cmocka_unit_test(rows),  cmocka_unit_test(sums), cmocka_unit_test(dtypes)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  uly_arena_destroy(arena);
  return failed;
}
