// Masks and scores with captured tensors, and epilogues, through whole kernels compiled by codegen: attention against the float64 reference, linear layers against a plain
// sum; captured tensors of every dtype with NaN, wrong ids and unreadable pages where nothing may look; faults with the pair that met them.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runtime/reference/ref_attention.h"
#include "tests/unit/kernel_loader.h"

static uint64_t seed = 521288629521288629u;
static uint64_t random_bits(void) {
  seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
  return seed;
}
static double uniform(double lo, double hi) { return lo + (hi - lo) * (double)(random_bits() >> 11) * 0x1p-53; }

// ---- attention -------------------------------------------------------------------------------------------------------------------------------

enum { B = 2, H = 3, S = 77, T = 77, DH = 24, DV = 20, GROUP = 3, VAL_DIM = ULY_ATTENTION_N_VALS, VAL_STRIDE = VAL_DIM + 12, VAL_SIZE = VAL_STRIDE + 12 };

// The batch here is [B0, B0 + B) of a larger one, and so are captures of it.
enum { B0 = 3 };
// Captures: documents i32 [B, S]; bias f32 [H, S + T], read at q − k + T; slopes bf16 [H]; kept bool [B, T]; offsets i64 [S].
enum { DOCUMENTS, BIAS, SLOPES, KEPT, OFFSETS, N_CAPTURES };
static const struct {
  uly_dtype dtype;
  int rank;
  int64_t dims[2];
} shapes[N_CAPTURES] = {{ULY_I32, 2, {B, S}}, {ULY_F32, 2, {H, S + T}}, {ULY_BF16, 1, {H}}, {ULY_BOOL, 2, {B, T}}, {ULY_I64, 1, {S}}};
static void *captured[N_CAPTURES];
static int64_t start_of(int c, int d) { return (c == DOCUMENTS || c == KEPT) && d == 0 ? B0 : 0; }

static void make_captures(void) {
  for (int c = 0; c < N_CAPTURES; c++) {
    int64_t n = shapes[c].dims[0] * (shapes[c].rank == 2 ? shapes[c].dims[1] : 1);
    captured[c] = uly_test_guarded((size_t)n * (size_t)uly_dtype_bytes(shapes[c].dtype));
    for (int64_t i = 0; i < n; i++) {
      double v = uniform(-1, 1);
      if (c == DOCUMENTS) v = (double)(i % S / 20);
      if (c == KEPT) v = v > -0.7;
      if (c == OFFSETS) v = floor(v * 4);
      uly_dtype_store(shapes[c].dtype, captured[c], i, v);
    }
  }
}

typedef struct attention_case {
  const char *mask, *score;
  bool aligned; // captures' last stride is known to be 1
  uint32_t fault;
} attention_case;

static const attention_case cases[] = {
    {"k <= q", NULL, false, 0},
    {"k <= q and c0i[b, q] == c0i[b, k]", NULL, false, 0},
    {"k <= q and c0i[b, q] == c0i[b, k]", NULL, true, 0},
    {"c3b[b, k] or k == q", NULL, false, 0},
    {"k <= q + c4i[q]", "s + c2[h] * float(k - q)", true, 0},
    {"k <= q", "s + c1[h, q - k + 77]", false, 0},
    {"true", "30.0 * tanh(s / 30.0)", false, 0},
    {"true", "s + c1[h, q - k + 77]", true, 0},
    {"k <= q", "s + c1[h, k - q + 77]", false, 0}, // in range for allowed pairs
    {"k <= q", "s + c1[h, 2 * (q - k) + 77]", false, ULY_FAULT_CAPTURE_RANGE},
    {"c0i[b, q + 1] == 0", NULL, false, ULY_FAULT_CAPTURE_RANGE}, // of the last query alone
    {"c4i[k + h] < 9", NULL, false, ULY_FAULT_CAPTURE_RANGE},
    {"(b + q + k) % 3 != 0 and b >= 3", "s * float(b)", false, 0},
    {"c0i[b - 1, q] == 0", NULL, false, ULY_FAULT_CAPTURE_RANGE}, // of another rank's batch
    {"(q + k) % 3 == 0 and q // 7 == k // 7", "min(s, 0.5) ** 2.0", false, 0},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static uly_kernel_desc attention_of(uly_arena *arena, const attention_case *t) {
  uly_kernel_desc desc = {.kind = ULY_KERNEL_ATTENTION};
  uly_attention_desc *a = &desc.u.attention;
  *a = (uly_attention_desc){.dh = DH,
                            .dv = DV,
                            .group = GROUP,
                            .scale = 0.3,
                            .has_lse = true,
                            .has_score = t->score != NULL,
                            .mask = uly_test_expr(arena, t->mask),
                            .n_captures = N_CAPTURES};
  if (t->score) a->score = uly_test_expr(arena, t->score);
  for (int c = 0; c < N_CAPTURES; c++) {
    a->captures[c] = (uly_capture){.op = ULY_ATTENTION_N_OPS + c, .dtype = shapes[c].dtype, .rank = shapes[c].rank};
    for (int d = 0; d < shapes[c].rank; d++) {
      bool last = d == shapes[c].rank - 1;
      a->captures[c].dim[d] = VAL_DIM + 2 * c + d;
      a->captures[c].start[d] = start_of(c, d) ? ULY_ATTENTION_B0 : -1;
      a->captures[c].stride[d] = last && t->aligned ? -2 : VAL_STRIDE + 2 * c + d;
    }
  }
  return desc;
}

typedef struct pair_user {
  const uly_attention_desc *desc;
  bool out_of_range;
} pair_user;

static uly_number load(void *context, int32_t operand, const int64_t *indices, int n) {
  pair_user *u = context;
  int64_t at = 0;
  for (int d = 0; d < n; d++) {
    int64_t index = indices[d] - start_of(operand, d);
    if (index < 0 || index >= shapes[operand].dims[d]) {
      u->out_of_range = true;
      return uly_number_of(0);
    }
    at = at * shapes[operand].dims[d] + index;
  }
  return uly_number_of(uly_dtype_load(shapes[operand].dtype, captured[operand], at));
}

static uly_number at_pair(pair_user *u, const uly_expr *e, int64_t b, int64_t h, int64_t q, int64_t k, double s) {
  int64_t coords[ULY_COORD_MAX] = {0};
  uly_number n;
  coords[ULY_COORD_B] = B0 + b, coords[ULY_COORD_H] = h, coords[ULY_COORD_Q] = q, coords[ULY_COORD_K] = k;
  uly_expr_env env = {.context = u, .coords = coords, .score = s, .load = load};
  assert_int_equal(uly_expr_eval(e, &env, &n), ULY_OK);
  return n;
}
static bool mask_at(void *user, int64_t b, int64_t h, int64_t q, int64_t k) {
  pair_user *u = user;
  return at_pair(u, &u->desc->mask, b, h, q, k, 0).i != 0;
}
static double score_at(void *user, int64_t b, int64_t h, int64_t q, int64_t k, double s) {
  pair_user *u = user;
  return at_pair(u, &u->desc->score, b, h, q, k, s).f;
}

// Inputs [row][batch][head][feature].
typedef struct tensors {
  float *q, *k, *v, *o, *lse;
  double *wide[4];
} tensors;

static float *floats(int64_t n, double **out_wide) {
  float *p = uly_test_guarded((size_t)n * 4);
  if (out_wide) *out_wide = malloc((size_t)n * 8);
  for (int64_t i = 0; i < n; i++) {
    p[i] = out_wide ? (float)uniform(-1.5, 1.5) : NAN;
    if (out_wide) (*out_wide)[i] = (double)p[i];
  }
  return p;
}

static void set_attention_call(uly_test_call *c, const tensors *t) {
  uly_test_call_init(c);
  void *pointers[] = {[ULY_ATTENTION_Q] = t->q, [ULY_ATTENTION_K] = t->k, [ULY_ATTENTION_V] = t->v, [ULY_ATTENTION_OUT] = t->o, [ULY_ATTENTION_LSE] = t->lse};
  memcpy(c->pointers, pointers, sizeof pointers);
  c->args[ULY_ATTENTION_SINK].n = c->args[ULY_ATTENTION_Q_OFFSET].n = 0;
  for (int i = 0; i < N_CAPTURES; i++) {
    c->pointers[ULY_ATTENTION_N_OPS + i] = captured[i];
    for (int d = 0; d < shapes[i].rank; d++) {
      c->numbers[VAL_DIM + 2 * i + d] = shapes[i].dims[d];
      c->numbers[VAL_STRIDE + 2 * i + d] = d == shapes[i].rank - 1 ? 1 : shapes[i].dims[1];
    }
  }
  int64_t *v = c->numbers;
  v[ULY_ATTENTION_S] = S, v[ULY_ATTENTION_T] = T, v[ULY_ATTENTION_B] = B, v[ULY_ATTENTION_B0] = B0, v[ULY_ATTENTION_H] = H;
  v[ULY_ATTENTION_Q_S] = B * H * DH, v[ULY_ATTENTION_Q_B] = H * DH, v[ULY_ATTENTION_Q_H] = DH;
  v[ULY_ATTENTION_K_S] = B * DH, v[ULY_ATTENTION_K_B] = DH, v[ULY_ATTENTION_V_S] = B * DV, v[ULY_ATTENTION_V_B] = DV;
  v[ULY_ATTENTION_O_S] = B * H * DV, v[ULY_ATTENTION_O_B] = H * DV, v[ULY_ATTENTION_O_H] = DV;
  v[ULY_ATTENTION_L_S] = B * H, v[ULY_ATTENTION_L_B] = H, v[ULY_ATTENTION_L_H] = 1;
}

static void check_attention(const uly_test_model *m, uint32_t level, uint32_t kernel, const attention_case *t, const uly_attention_desc *desc,
                            const tensors *x) {
  uly_test_call c;
  set_attention_call(&c, x);
  static double o[S * B * H * DV], lse[S * B * H], work[T];
  pair_user user = {.desc = desc};
  uly_ref_attention_args ref = {
      .s = S, .t = T, .b = B, .h = H, .group = GROUP, .dh = DH, .dv = DV, .scale = 0.3, .mask = mask_at, .score = t->score ? score_at : NULL, .user = &user};
  ref.q = (uly_ref_view){x->wide[0], B * H * DH, H * DH, DH}, ref.k = (uly_ref_view){x->wide[1], B * DH, DH, 0},
  ref.v = (uly_ref_view){x->wide[2], B * DV, DV, 0};
  ref.out = (uly_ref_view){o, B * H * DV, H * DV, DV}, ref.lse = (uly_ref_view){lse, B * H, H, 1};
  uly_ref_attention_run(&ref, work);
  c.scratch = aligned_alloc(64, (size_t)(uly_attention_scratch(DH, DV) + 63) / 64 * 64);
  uly_test_run(m, level, kernel, &c, 0, B * H * uly_cdiv(S, ULY_ATTENTION_ITEM_ROWS));
  free(c.scratch);
  assert_int_equal(c.fault.code, t->fault);
  assert_int_equal(user.out_of_range, t->fault != 0);
  if (t->fault) return;
  for (int i = 0; i < S * B * H * DV; i++)
    if (!(fabs((double)x->o[i] - o[i]) <= 3e-6 * fmax(1, fabs(o[i]))))
      fail_msg("%s | %s: o[%d] is %g, not %g", t->mask, t->score ? t->score : "", i, (double)x->o[i], o[i]);
  for (int i = 0; i < S * B * H; i++)
    if (!(fabs((double)x->lse[i] - lse[i]) <= 3e-6 * fmax(1, fabs(lse[i])) || (isinf(lse[i]) && (double)x->lse[i] == lse[i])))
      fail_msg("%s | %s: lse[%d] is %g, not %g", t->mask, t->score ? t->score : "", i, (double)x->lse[i], lse[i]);
}

static void attention(void **state) {
  (void)state;
  uly_program *p = uly_test_program();
  make_captures();
  for (int i = 0; i < N_CASES; i++) {
    uly_kernel_desc desc = attention_of(p->arena, &cases[i]);
    uly_test_add_kernel(p, &desc);
  }
  uly_test_model m = uly_test_load(p);
  tensors x = {0};
  x.q = floats(S * B * H * DH, &x.wide[0]), x.k = floats(T * B * DH, &x.wide[1]), x.v = floats(T * B * DV, &x.wide[2]);
  x.o = floats(S * B * H * DV, NULL), x.lse = floats(S * B * H, NULL);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t k = 0; k < N_CASES; k++) check_attention(&m, l, k, &cases[k], &p->kernels[k]->u.attention, &x);
  for (int i = 0; i < 3; i++) free(x.wide[i]);
  uly_test_unload(&m);
}

// ---- epilogues -------------------------------------------------------------------------------------------------------------------------------

enum { ROWS = 13, BATCH = 2, K = 40, N = 37, OP_BIAS = ULY_GEMM_N_OPS, OP_RESIDUAL, VAL_S = ULY_GEMM_N_VALS, VAL_B, VAL_START };

typedef struct epilogue_case {
  const char *text;
  uly_dtype residual;
} epilogue_case;
// x0: the sum, x1: bias [N], x2: residual [S, B, N], x3: one number a row
static const epilogue_case epilogues[] = {{"x0 + x1", ULY_F32},
                                          {"x0 + x1 + x2", ULY_F32},
                                          {"(x0 + x1) * sigmoid(x0 + x1) + x2", ULY_BF16},
                                          {"x0 * x3 + float(i0 * 10 + i1 + i5)", ULY_F32},
                                          {"max(x0, 0.0) + x2", ULY_F16}};
enum { N_EPILOGUES = sizeof epilogues / sizeof *epilogues };

static void add_linear(uly_program *p, const epilogue_case *t) {
  uly_kernel_desc pack = {.kind = ULY_KERNEL_PACK, .u.pack = {.k = K, .mode = ULY_GEMM_PLAIN, .group = N}}, gemm = {.kind = ULY_KERNEL_GEMM};
  gemm.u.gemm = (uly_gemm_desc){.k = K, .n_parts = 1, .parts = {{.mode = ULY_GEMM_PLAIN, .n_groups = 1, .group = N}}};
  uly_hook *h = &gemm.u.gemm.parts[0].epilogue;
  *h = (uly_hook){.present = true, .expr = uly_test_expr(p->arena, t->text), .n_inputs = 1, .n_operands = 3, .start = {VAL_START, -1, -1, -1, -1, -1}};
  h->operands[0] = (uly_hook_operand){.op = OP_BIAS, .dtype = ULY_F32, .stride = {-1, -1, -1, -1, -1, -2}};
  h->operands[1] = (uly_hook_operand){.op = OP_RESIDUAL, .dtype = t->residual, .stride = {VAL_S, VAL_B, -1, -1, -1, -2}};
  h->operands[2] = (uly_hook_operand){.op = OP_RESIDUAL, .dtype = t->residual, .stride = {VAL_S, VAL_B, -1, -1, -1, -1}};
  uly_test_add_kernel(p, &pack);
  uly_test_add_kernel(p, &gemm);
}

static uly_number operand_of(void *context, int32_t operand) { return uly_number_of(((const double *)context)[operand]); }

static void check_linear(const uly_test_model *m, uint32_t level, uint32_t kernel, const epilogue_case *t, const uly_expr *expr) {
  float *x = floats(ROWS * BATCH * K, NULL), *w = floats(N * K, NULL), *bias = floats(N, NULL), *out = floats(ROWS * BATCH * N, NULL);
  int64_t panels = uly_part_panels(ULY_GEMM_PLAIN, 1, N, 0);
  float *packed = uly_test_guarded((size_t)(panels * K * ULY_PANEL) * 4);
  void *residual = uly_test_guarded((size_t)(ROWS * BATCH * N * uly_dtype_bytes(t->residual)));
  for (int i = 0; i < ROWS * BATCH * K; i++) x[i] = (float)uniform(-1, 1);
  for (int i = 0; i < N * K; i++) w[i] = (float)uniform(-1, 1);
  for (int i = 0; i < N; i++) bias[i] = (float)uniform(-1, 1);
  for (int i = 0; i < ROWS * BATCH * N; i++) uly_dtype_store(t->residual, residual, i, uniform(-1, 1));
  uly_test_call c;
  uly_test_call_init(&c);
  c.pointers[ULY_PACK_W0] = w, c.pointers[ULY_PACK_OUT] = packed;
  c.args[ULY_PACK_W1].n = 0;
  c.numbers[ULY_PACK_COLUMN_0] = K, c.numbers[ULY_PACK_TERM_0] = 1;
  uly_test_run(m, level, kernel, &c, 0, panels);
  uly_test_call_init(&c);
  c.pointers[ULY_GEMM_X] = x, c.pointers[ULY_GEMM_W] = packed, c.pointers[ULY_GEMM_OUT] = out, c.pointers[OP_BIAS] = bias, c.pointers[OP_RESIDUAL] = residual;
  c.numbers[ULY_GEMM_ROWS] = ROWS, c.numbers[ULY_GEMM_BATCH] = BATCH, c.numbers[ULY_GEMM_X_S] = BATCH * K, c.numbers[ULY_GEMM_X_B] = K,
  c.numbers[ULY_GEMM_X_K] = K;
  c.numbers[ULY_GEMM_OUT_S] = BATCH * N, c.numbers[ULY_GEMM_OUT_B] = N, c.numbers[VAL_S] = BATCH * N, c.numbers[VAL_B] = N, c.numbers[VAL_START] = 500;
  c.scratch = aligned_alloc(64, ULY_GEMM_SCRATCH_BYTES);
  uly_test_run(m, level, kernel + 1, &c, 0, uly_cdiv(panels, ULY_GEMM_ITEM_PANELS) * uly_cdiv(ROWS * BATCH, ULY_GEMM_ITEM_ROWS));
  free(c.scratch);
  for (int64_t row = 0; row < ROWS * BATCH; row++)
    for (int64_t n = 0; n < N; n++) {
      double sum = 0, data[4];
      for (int64_t k = 0; k < K; k++) sum += (double)x[row * K + k] * (double)w[n * K + k];
      data[0] = sum, data[1] = (double)bias[n], data[2] = uly_dtype_load(t->residual, residual, row * N + n),
      data[3] = uly_dtype_load(t->residual, residual, row * N);
      int64_t coords[ULY_COORD_MAX] = {0};
      coords[ULY_COORD_I0] = 500 + row / BATCH, coords[ULY_COORD_I0 + 1] = row % BATCH, coords[ULY_COORD_I0 + ULY_HOOK_INDICES - 1] = n;
      uly_number want;
      uly_expr_env env = {.context = data, .coords = coords, .operand = operand_of};
      assert_int_equal(uly_expr_eval(expr, &env, &want), ULY_OK);
      if (!(fabs((double)out[row * N + n] - want.f) <= 2e-6 * fmax(1, fabs(want.f))))
        fail_msg("%s: [%d, %d] is %g, not %g", t->text, (int)row, (int)n, (double)out[row * N + n], want.f);
    }
}

static void linears(void **state) {
  (void)state;
  uly_program *p = uly_test_program();
  for (int i = 0; i < N_EPILOGUES; i++) add_linear(p, &epilogues[i]);
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t i = 0; i < N_EPILOGUES; i++) check_linear(&m, l, 2 * i, &epilogues[i], &p->kernels[2 * i + 1]->u.gemm.parts[0].epilogue.expr);
  uly_test_unload(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(attention), cmocka_unit_test(linears)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
