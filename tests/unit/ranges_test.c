// Tiles of masks as the emitted interval code classifies them, against every pair of the tile: EMPTY and FULL must be true (soundness); for masks of comparisons that are
// listed as exact, PARTIAL must be true too.
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/kernel_loader.h"

enum { B = 2, H = 3, S = 64, FULL = 1, EMPTY = 0, PARTIAL = 2 };

// Captures: c0 i32 [B], c1 i64 [H], c2 i32 [B, S], c3 f32 [H], c4 bool [B].
static int32_t lengths[B] = {40, 71}, documents[B * S];
static int64_t windows[H] = {5, 1, 200};
static float slopes[H] = {0.5f, -1, 2};
static uint8_t flags[B] = {0, 1};
static void *const captured[] = {lengths, windows, documents, slopes, flags};
enum { N_CAPTURES = 5, VAL_DIM = ULY_ATTENTION_N_VALS, VAL_STRIDE = VAL_DIM + 2 * N_CAPTURES, VAL_SIZE = VAL_STRIDE + 2 * N_CAPTURES };
static const struct {
  uly_dtype dtype;
  int rank;
  int64_t dims[2];
} shapes[N_CAPTURES] = {{ULY_I32, 1, {B}}, {ULY_I64, 1, {H}}, {ULY_I32, 2, {B, S}}, {ULY_F32, 1, {H}}, {ULY_BOOL, 1, {B}}};

typedef int32_t range_hook(const uly_call *call, int64_t b, int64_t h, int64_t q0, int64_t q1, int64_t k0, int64_t k1);

typedef struct mask_case {
  const char *text;
  int exact; // WRAPS: for some pairs, whose tiles are PARTIAL
} mask_case;
enum { WRAPS = -1 };

static const mask_case masks[] = {
    {"true", true},
    {"false", true},
    {"k <= q", true},
    {"not (k > q)", true},
    {"k < q + 1 and q - 17 < k", true},
    {"0 <= q - k and q - k < 16", true},
    {"0 <= q - k and q - k < 16 or k < 4 and k <= q", true},
    {"k <= q or k < 20", true},
    {"k < 20", true},
    {"k <= q or k < c0i[b]", true},
    {"k < c0i[b]", true},
    {"0 <= q - k and q - k < c1i[h]", true},
    {"c2i[b, q] == c2i[b, k] and k <= q", false},
    {"q // 16 == k // 16", true},
    {"q // 16 >= k // 16", true},
    {"q // c1i[h] >= k // c1i[h]", false},
    {"(q - k) % 4 == 0 and k <= q", false},
    {"abs(q - k) <= 9", true},
    {"hash(q, k) % 2 == 0", false},
    {"q == k", true},
    {"q != k", true},
    {"min(q, 30) >= k", false},
    {"max(k, 10) <= q", true},
    {"if q < 16 then k < 16 else k >= 16", false},
    {"float(q - k) * 0.5 < 3.0", false},
    {"c3[h] * 2.0 > 0.0 and k <= q", true},
    {"c4b[b] or k <= q", true},
    {"2 * q - 3 * k < 10", true},
    {"q * k < 500", true},
    {"k <= q + size(T)", true},
    {"q % 32 >= k % 32", false},
    {"k * 9223372036854775807 < q", WRAPS},
    {"k + 9223372036854775807 < q", WRAPS},
    {"k + 9223372036854775807 > q", WRAPS},
    {"q * 2 - 9223372036854775807 <= k - 9223372036854775800", WRAPS},
    {"h == 1 and k <= q or h != 1 and k > q", false},
    {"int(q < k) + int(k < 8) > 0", false},
};
enum { N_MASKS = sizeof masks / sizeof *masks };

static uly_kernel_desc attention_of(uly_arena *arena, const char *text) {
  uly_kernel_desc desc = {.kind = ULY_KERNEL_ATTENTION};
  uly_attention_desc *a = &desc.u.attention;
  *a = (uly_attention_desc){.dh = 16, .dv = 16, .group = 1, .scale = 1, .mask = uly_test_expr(arena, text), .n_captures = N_CAPTURES};
  for (int c = 0; c < N_CAPTURES; c++) {
    a->captures[c] = (uly_capture){.op = ULY_ATTENTION_N_OPS + c, .dtype = shapes[c].dtype, .rank = shapes[c].rank};
    for (int d = 0; d < shapes[c].rank; d++)
      a->captures[c].dim[d] = VAL_DIM + 2 * c + d, a->captures[c].stride[d] = VAL_STRIDE + 2 * c + d, a->captures[c].start[d] = -1;
  }
  a->size[0] = VAL_SIZE, a->size[1] = VAL_SIZE + 1;
  return desc;
}

static void set_call(uly_test_call *c) {
  uly_test_call_init(c);
  for (int i = 0; i < N_CAPTURES; i++) {
    c->pointers[ULY_ATTENTION_N_OPS + i] = captured[i];
    for (int d = 0; d < shapes[i].rank; d++) {
      c->numbers[VAL_DIM + 2 * i + d] = shapes[i].dims[d];
      c->numbers[VAL_STRIDE + 2 * i + d] = d == shapes[i].rank - 1 ? 1 : shapes[i].dims[1];
    }
  }
  c->numbers[VAL_SIZE] = S, c->numbers[VAL_SIZE + 1] = 3;
  c->call = (uly_call){.op = c->args, .val = c->vals, .n_peers = 1, .fault = &c->fault};
}

static uly_number load(void *context, int32_t operand, const int64_t *indices, int n) {
  (void)context;
  int64_t i = indices[0];
  if (n == 2) i = i * shapes[operand].dims[1] + indices[1];
  return uly_number_of(uly_dtype_load(shapes[operand].dtype, captured[operand], i));
}

// 1 allowed, 0 masked, -1 where the evaluator refuses (overflow).
static int pair(const uly_expr *mask, int64_t b, int64_t h, int64_t q, int64_t k) {
  int64_t coords[ULY_COORD_MAX] = {0}, sizes[] = {S, 3};
  coords[ULY_COORD_B] = b, coords[ULY_COORD_H] = h, coords[ULY_COORD_Q] = q, coords[ULY_COORD_K] = k;
  uly_number n;
  uly_expr_env env = {.coords = coords, .sizes = sizes, .load = load};
  return uly_expr_eval(mask, &env, &n) == ULY_OK ? (int)n.i : -1;
}

typedef struct count {
  int tiles, vague; // PARTIAL that is not
} count;

static void check_tiles(range_hook *range, const mask_case *m, const uly_expr *mask, count *n) {
  static const int64_t q_sizes[] = {1, 8, 16, 13}, k_sizes[] = {1, 16, 24, 64};
  static int8_t allowed[S][S];
  uly_test_call c;
  set_call(&c);
  for (int bh = 0; bh < B * H; bh++) {
    int64_t b = bh / H, h = bh % H;
    for (int64_t q = 0; q < S; q++)
      for (int64_t k = 0; k < S; k++) allowed[q][k] = (int8_t)pair(mask, b, h, q, k);
    for (int size = 0; size < 4; size++)
      for (int64_t q0 = 0; q0 < S; q0 += q_sizes[size])
        for (int64_t k0 = 0; k0 < S; k0 += k_sizes[size]) {
          int64_t q1 = q0 + q_sizes[size] < S ? q0 + q_sizes[size] : S, k1 = k0 + k_sizes[size] < S ? k0 + k_sizes[size] : S, yes = 0, no = 0;
          for (int64_t q = q0; q < q1; q++)
            for (int64_t k = k0; k < k1; k++) yes += allowed[q][k] == 1, no += allowed[q][k] == 0;
          int32_t got = range(&c.call, b, h, q0, q1, k0, k1);
          bool wraps = m->exact == WRAPS && yes + no < (q1 - q0) * (k1 - k0); // what code for pairs makes of it is not known here
          if ((got == EMPTY && yes) || (got == FULL && no) || (wraps && got != PARTIAL) || got < EMPTY || got > PARTIAL)
            fail_msg("%s: b %d, h %d, queries [%d, %d), keys [%d, %d): %d, but %d pairs allowed, %d masked", m->text, (int)b, (int)h, (int)q0, (int)q1, (int)k0,
                     (int)k1, got, (int)yes, (int)no);
          n->tiles++;
          n->vague += got == PARTIAL && (yes == 0 || no == 0);
        }
  }
  assert_int_equal(c.fault.code, ULY_FAULT_NONE);
}

static void classify(const char *level, const mask_case *m, count *n) {
  uly_program *p = uly_test_program();
  uly_kernel_desc desc = attention_of(p->arena, m->text);
  uly_test_add_kernel(p, &desc);
  uly_test_model model = uly_test_load_with(p, &(uly_codegen_options){.march = level, .object = {.verify = true, .export_hooks = true, .passes = "globaldce"}});
  range_hook *range = (range_hook *)(uintptr_t)dlsym(model.library, "uly_hook_attention_range");
  assert_non_null(range);
  *n = (count){0};
  check_tiles(range, m, &desc.u.attention.mask, n);
  uly_test_unload(&model);
}

static void tiles(void **state) {
  (void)state;
  for (int i = 0; i < B * S; i++) documents[i] = i % S / 30;
  for (int i = 0; i < N_MASKS; i++) {
    count n;
    classify("x86-64-v3", &masks[i], &n);
    print_message("%-48s %5d tiles, %4d PARTIAL without need\n", masks[i].text, n.tiles, n.vague);
    if (masks[i].exact == true) assert_int_equal(n.vague, 0);
  }
}

// Random masks: soundness alone.
static uint64_t seed = 362436069362436069u;
static unsigned pick(unsigned n) {
  seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
  return (unsigned)(seed >> 33) % n;
}
static void random_form(uly_text *t, char type, int depth) {
  static const char *const int_leaves[] = {"q", "k", "q", "k", "b", "h", "7", "-3", "c0i[b]", "c2i[b, q]", "c2i[b, k]", "c1i[h]"};
  static const char *const int_forms[] = {
      "(I + I)", "(I - I)", "(I * I)", "(I // 5)", "(I % 6)", "min(I, I)", "max(I, I)", "abs(I)", "(-I)", "(I // I)", "(if B then I else I)", "int(B)"};
  static const char *const bool_forms[] = {"(I < I)",   "(I <= I)", "(I > I)", "(I >= I)", "(I == I)", "(I != I)",
                                           "(B and B)", "(B or B)", "(not B)", "(B == B)", "(B != B)", "(if B then B else B)"};
  if (type == 'I' && depth <= 0) {
    uly_text_add(t, "%s", int_leaves[pick(12)]);
    return;
  }
  for (const char *f = type == 'I' ? int_forms[pick(12)] : bool_forms[depth <= 0 ? pick(6) : pick(12)]; *f; f++)
    if (*f == 'I' || *f == 'B')
      random_form(t, *f, depth - 1);
    else
      uly_text_add(t, "%c", *f);
}

static void random_masks(void **state) {
  (void)state;
  uly_arena *arena = uly_arena_create();
  int useful = 0;
  for (int i = 0; i < 40; i++) {
    uly_text text = {.arena = arena};
    uly_expr parsed;
    do {
      text.len = 0;
      random_form(&text, 'B', 3);
    } while (uly_expr_parse(arena, uly_text_str(&text), NULL, 0, &parsed) != ULY_OK);
    count n;
    classify(i % 2 ? "x86-64-v3" : "x86-64-v4", &(mask_case){text.ptr, false}, &n);
    useful += n.vague < n.tiles / 2;
  }
  print_message("%d of 40 masks classified mostly without doubt\n", useful);
  uly_arena_destroy(arena);
}

// A per-batch index out of range is reported once, and reads as 0.
static void reports_faults(void **state) {
  (void)state;
  uly_program *p = uly_test_program();
  uly_kernel_desc desc = attention_of(p->arena, "k < c0i[b + 5]");
  uly_test_add_kernel(p, &desc);
  uly_test_model model = uly_test_load_with(p, &(uly_codegen_options){.march = "x86-64-v3", .object = {.verify = true, .export_hooks = true}});
  range_hook *range = (range_hook *)(uintptr_t)dlsym(model.library, "uly_hook_attention_range");
  uly_test_call c;
  set_call(&c);
  assert_int_equal(range(&c.call, 1, 0, 8, 16, 32, 64), EMPTY);
  assert_int_equal(c.fault.code, ULY_FAULT_CAPTURE_RANGE);
  assert_true(c.fault.a == 6 && c.fault.at[0] == 1 && c.fault.at[1] == 8 && c.fault.at[2] == 32);
  range(&c.call, 0, 0, 0, 8, 0, 8);
  assert_true(c.fault.a == 6 && c.fault.at[0] == 1 && c.fault.at[1] == 8 && c.fault.at[2] == 32);
  uly_test_unload(&model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tiles), cmocka_unit_test(random_masks), cmocka_unit_test(reports_faults)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
