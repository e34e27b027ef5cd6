// Kernels that work row by row: norms and sums in float64's neighbourhood, equal bits however rows are cut, exact sums over rows, gathers with bad ids, moves to and from
// messages. NaN stands in everything that must not be read, unreadable pages behind every tensor.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/kernel_loader.h"

static uint64_t seed = 1234567890123456789u;
static uint64_t random_bits(void) {
  seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
  return seed;
}
static double uniform(double lo, double hi) { return lo + (hi - lo) * (double)(random_bits() >> 11) * 0x1p-53; }

// ---- norms and sums --------------------------------------------------------------------------------------------------------------------------

// Operands: x [rows, cols], r [rows, cols] (added to x), weight [cols], bias [cols], out [rows, cols] or [rows].
enum { X, R, WEIGHT, BIAS, OUT, VAL_ROW = ULY_ROWS_N_VALS, VAL_ONE };
static const double eps = 1e-5;

static void set_hook(uly_hook *h, uly_arena *arena, const char *text, int n_inputs, const int *ops, int n) {
  *h = (uly_hook){.present = true, .expr = uly_test_expr(arena, text), .n_inputs = n_inputs, .n_operands = n, .start = {-1, -1, -1, -1, -1, -1}};
  for (int j = 0; j < n; j++)
    h->operands[j] = (uly_hook_operand){.op = ops[j], .dtype = ULY_F32, .stride = {ops[j] < WEIGHT ? VAL_ROW : -1, -1, -1, -1, -1, -2}};
}

static uint32_t add_norm(uly_program *p, uly_rows_mode mode, int64_t cols) {
  uly_kernel_desc desc = {.kind = ULY_KERNEL_ROWS, .u.rows = {.mode = mode, .cols = cols, .eps = eps}};
  set_hook(&desc.u.rows.in, p->arena, "x0 + x1", 0, (int[]){X, R}, 2);
  if (mode == ULY_ROWS_SUM)
    set_hook(&desc.u.rows.out, p->arena, "2.0 * x0", 1, NULL, 0);
  else
    set_hook(&desc.u.rows.out, p->arena, "x0 * x1 + x2", 1, (int[]){WEIGHT, BIAS}, 2);
  desc.u.rows.out.out = (uly_hook_operand){.op = OUT, .dtype = ULY_F32, .stride = {mode == ULY_ROWS_SUM ? VAL_ONE : VAL_ROW, -1, -1, -1, -1, -2}};
  return uly_test_add_kernel(p, &desc);
}

static void expected(uly_rows_mode mode, const float *x, const float *r, const float *w, const float *b, int64_t cols, double *out) {
  double sum = 0, squares = 0, mean = 0;
  for (int64_t c = 0; c < cols; c++) sum += (double)(x[c] + r[c]);
  if (mode == ULY_ROWS_LAYERNORM) mean = sum / (double)cols;
  for (int64_t c = 0; c < cols; c++) squares += ((double)(x[c] + r[c]) - mean) * ((double)(x[c] + r[c]) - mean);
  out[0] = 2 * sum;
  if (mode == ULY_ROWS_SUM) return;
  for (int64_t c = 0; c < cols; c++) out[c] = ((double)(x[c] + r[c]) - mean) / sqrt(squares / (double)cols + eps) * (double)w[c] + (double)b[c];
}

typedef struct norm_data {
  int64_t rows, cols;
  float *x, *r, *w, *b, *out;
} norm_data;

static float *random_floats(int64_t n, double shift) {
  float *p = uly_test_guarded((size_t)n * sizeof *p);
  for (int64_t i = 0; i < n; i++) p[i] = (float)(uniform(-2, 2) + shift);
  return p;
}

static void run_norm(const uly_test_model *m, uint32_t level, uint32_t kernel, const norm_data *d, int64_t lo, int64_t hi) {
  uly_test_call c;
  uly_test_call_init(&c);
  void *pointers[] = {d->x, d->r, d->w, d->b, d->out};
  memcpy(c.pointers, pointers, sizeof pointers);
  uly_test_space(&c, d->rows, 1, d->cols);
  c.numbers[VAL_ROW] = d->cols, c.numbers[VAL_ONE] = 1;
  uly_test_run(m, level, kernel, &c, lo, hi);
}

static double check_norm(const uly_test_model *m, uint32_t level, uint32_t kernel, uly_rows_mode mode, const norm_data *d) {
  double *want = malloc(sizeof *want * (size_t)d->cols), worst = 0;
  int64_t width = mode == ULY_ROWS_SUM ? 1 : d->cols;
  float *whole = malloc(sizeof *whole * (size_t)(d->rows * width));
  for (int64_t i = 0; i < d->rows * width; i++) d->out[i] = NAN;
  run_norm(m, level, kernel, d, 0, d->rows);
  memcpy(whole, d->out, sizeof *whole * (size_t)(d->rows * width));
  for (int64_t i = 0; i < d->rows; i++) {
    expected(mode, d->x + i * d->cols, d->r + i * d->cols, d->w, d->b, d->cols, want);
    for (int64_t c = 0; c < width; c++) worst = fmax(worst, fabs((double)whole[i * width + c] - want[c]) / fmax(1, fabs(want[c])));
  }
  for (int64_t i = 0; i < d->rows * width; i++) d->out[i] = NAN;
  for (int64_t i = d->rows; i-- > 0;) run_norm(m, level, kernel, d, i, i + 1); // one by one, backwards: the same bits
  assert_memory_equal(whole, d->out, sizeof *whole * (size_t)(d->rows * width));
  free(want), free(whole);
  return worst;
}

static void norms(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 7, 8, 16, 31, 64, 100, 384, 1000, 4096};
  enum { N_WIDTHS = sizeof widths / sizeof *widths, ROWS = 5 };
  uly_program *p = uly_test_program();
  for (int mode = ULY_ROWS_RMSNORM; mode <= ULY_ROWS_SUM; mode++) {
    add_norm(p, (uly_rows_mode)mode, 0);
    add_norm(p, (uly_rows_mode)mode, 384);
  }
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t k = 0; k < p->n_kernels; k++)
      for (int i = 0; i < N_WIDTHS; i++) {
        const uly_rows_desc *desc = &p->kernels[k]->u.rows;
        if (desc->cols && desc->cols != widths[i]) continue;
        norm_data d = {
            ROWS, widths[i], random_floats(ROWS * widths[i], 3), random_floats(ROWS * widths[i], 0), random_floats(widths[i], 0), random_floats(widths[i], 0),
            NULL};
        d.out = random_floats(ROWS * (desc->mode == ULY_ROWS_SUM ? 1 : widths[i]), 0);
        double error = check_norm(&m, l, k, desc->mode, &d);
        if (error > 1.5e-6) fail_msg("mode %d, %d columns: error %g", desc->mode, (int)widths[i], error);
      }
  uly_test_unload(&m);
}

// ---- softmax ---------------------------------------------------------------------------------------------------------------------------------

static uint32_t add_softmax(uly_program *p) {
  uly_kernel_desc desc = {.kind = ULY_KERNEL_ROWS, .u.rows = {.mode = ULY_ROWS_SOFTMAX}};
  set_hook(&desc.u.rows.in, p->arena, "x0 + x1", 0, (int[]){X, R}, 2);
  set_hook(&desc.u.rows.out, p->arena, "x0", 1, NULL, 0);
  desc.u.rows.out.out = (uly_hook_operand){.op = OUT, .dtype = ULY_F32, .stride = {VAL_ROW, -1, -1, -1, -1, -2}};
  return uly_test_add_kernel(p, &desc);
}

static void softmax_rows(const uly_test_model *m, uint32_t level, const float *x, const float *r, int64_t rows, int64_t cols, float *out) {
  uly_test_call c;
  uly_test_call_init(&c);
  float *scratch = uly_test_guarded((size_t)(cols + 64) * 4);
  for (int64_t i = 0; i < cols + 64; i++) scratch[i] = NAN;
  c.pointers[X] = (void *)(uintptr_t)x, c.pointers[R] = (void *)(uintptr_t)r, c.pointers[OUT] = out;
  c.scratch = scratch;
  uly_test_space(&c, rows, 1, cols);
  c.numbers[VAL_ROW] = cols;
  uly_test_run(m, level, 0, &c, 0, rows);
}

static double softmax_of(const float *x, const float *r, int64_t n, int64_t c) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, (double)(x[i] + r[i]));
  for (int64_t i = 0; i < n; i++) sum += exp((double)(x[i] + r[i]) - most);
  return exp((double)(x[c] + r[c]) - most) / sum;
}

// Close to float64 whatever is added to all of a row; its bits are its own. −Inf gives 0; NaN, +Inf and nothing but −Inf give NaN.
static void softmaxes(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 5, 8, 17, 64, 100, 1000};
  enum { N_WIDTHS = sizeof widths / sizeof *widths, ROWS = 8 };
  uly_program *p = uly_test_program();
  add_softmax(p);
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (int w = 0; w < N_WIDTHS; w++) {
      const int64_t n = widths[w];
      float *x = random_floats(ROWS * n, 0), *r = random_floats(ROWS * n, 0), *out = random_floats(ROWS * n, 0), *again = random_floats(n, 0);
      for (int64_t c = 0; c < n; c++) {
        x[n + c] *= 40, x[2 * n + c] += 1e6f, x[3 * n + c] -= 3e4f;
        if (c % 3) x[4 * n + c] = -INFINITY;
        x[5 * n + c] = -INFINITY;
      }
      x[6 * n + n / 2] = NAN, x[7 * n + n - 1] = INFINITY;
      softmax_rows(&m, l, x, r, ROWS, n, out);
      for (int64_t row = 0; row < ROWS; row++) {
        for (int64_t c = 0; c < n; c++) {
          double got = (double)out[row * n + c], want = softmax_of(x + row * n, r + row * n, n, c);
          if (row >= 5 ? !isnan(got) : !(fabs(got - want) < 2e-7 + 1e-5 * want))
            fail_msg("row %d of %d, column %d: %g, not %g", (int)row, (int)n, (int)c, got, want);
        }
        softmax_rows(&m, l, x + row * n, r + row * n, 1, n, again);
        if (row < 5) assert_memory_equal(out + row * n, again, (size_t)n * 4);
      }
    }
  uly_test_unload(&m);
}

// ---- exact sums ------------------------------------------------------------------------------------------------------------------------------

enum { VAL_SUM_0 = ULY_ROWSUM_N_VALS, VAL_SUM_1 };

static uint32_t add_rowsum(uly_program *p) {
  uly_kernel_desc desc = {.kind = ULY_KERNEL_ROWSUM}, round = {.kind = ULY_KERNEL_ROUND};
  uly_hook *h = &desc.u.rowsum.term;
  *h = (uly_hook){.present = true, .expr = uly_test_expr(p->arena, "x0"), .n_operands = 1, .start = {-1, -1, -1, -1, -1, -1}};
  h->operands[0] = (uly_hook_operand){.op = 1, .dtype = ULY_F32, .stride = {VAL_SUM_0, VAL_SUM_1, -1, -1, -1, -2}};
  uint32_t first = uly_test_add_kernel(p, &desc);
  uly_test_add_kernel(p, &round);
  return first;
}

// x [rows][outer][cols] cut into |n_parts| runs of rows.
static void sum_rows(const uly_test_model *m, uint32_t level, const float *x, int64_t rows, int64_t outer, int64_t cols, int n_parts, float *out) {
  enum { MAX_PARTS = 8 };
  void *parts[MAX_PARTS];
  for (int p = 0; p < n_parts; p++) {
    int64_t from = rows * p / n_parts, to = rows * (p + 1) / n_parts, items = outer * ((cols + 15) / 16);
    uly_test_call c;
    uly_test_call_init(&c);
    parts[p] = uly_test_guarded((size_t)(outer * cols * ULY_EXACT_LIMBS) * 8);
    memset(parts[p], 0xff, (size_t)(outer * cols * ULY_EXACT_LIMBS) * 8);
    c.pointers[0] = parts[p], c.pointers[1] = (void *)(uintptr_t)(x + from * outer * cols);
    uly_test_space(&c, to - from, outer, cols);
    c.numbers[VAL_SUM_0] = outer * cols, c.numbers[VAL_SUM_1] = cols;
    uly_test_run(m, level, 0, &c, 0, items / 2);
    uly_test_run(m, level, 0, &c, items / 2, items);
  }
  uly_test_call c;
  uly_test_call_init(&c);
  c.args[ULY_ROUND_PARTS] = (uly_arg){parts, n_parts};
  c.pointers[ULY_ROUND_OUT] = out;
  uly_test_run(m, level, 1, &c, 0, outer * cols);
}

static void exact_sums(void **state) {
  (void)state;
  enum { ROWS = 50, OUTER = 3, COLS = 21, N = OUTER * COLS };
  uly_program *p = uly_test_program();
  add_rowsum(p);
  uly_test_model m = uly_test_load(p);
  float *x = uly_test_guarded(sizeof(float) * ROWS * N), out[N], again[N];
  for (int trial = 0; trial < 20; trial++) {
    for (int i = 0; i < ROWS * N; i++) x[i] = (float)ldexp(uniform(-1, 1), (int)(random_bits() % (trial < 10 ? 30 : 8)) - (trial % 5 == 4 ? 140 : 10));
    if (trial == 3) // cancels but for the smallest term
      for (int c = 0; c < N; c++) x[7 * N + c] = 1e30f, x[33 * N + c] = -1e30f;
    for (uint32_t l = 0; l < uly_test_levels(&m); l++) {
      sum_rows(&m, l, x, ROWS, OUTER, COLS, 1, out);
      for (int parts = 2; parts <= 8; parts += 3) {
        sum_rows(&m, l, x, ROWS, OUTER, COLS, parts, again);
        assert_memory_equal(out, again, sizeof out);
      }
      for (int c = 0; c < N; c++) {
        __float128 exact = 0; // 113 bits hold all of it, but for trial 3, where both large terms come and go
        for (int i = 0; i < ROWS; i++)
          if (trial != 3 || (i != 7 && i != 33)) exact += (__float128)x[i * N + c];
        float want = (float)exact;
        assert_true(memcmp(&want, &out[c], 4) == 0 || want == out[c]);
      }
    }
  }
  uly_test_unload(&m);
}

static void sums_of_special_values(void **state) {
  (void)state;
  static const struct {
    float terms[3], sum;
  } cases[] = {{{1, NAN, 2}, NAN},
               {{INFINITY, 1, 2}, INFINITY},
               {{-INFINITY, 1, 2}, -INFINITY},
               {{INFINITY, 1, -INFINITY}, NAN},
               {{3e38f, 3e38f, -3e38f}, 3e38f},
               {{3e38f, 3e38f, 0}, INFINITY},
               {{-3e38f, -3e38f, 0}, -INFINITY},
               {{0, 0, 0}, 0},
               {{-1, 0.5f, 0.5f}, 0},
               {{16777216, 1, 0}, 16777216},
               {{16777216, 1, 1}, 16777218},
               {{16777218, 1, 0}, 16777220},
               {{-16777216, -1, -0.0625f}, -16777218},
               {{0x1p-126f, 0x1p-126f, -0x1p-126f}, 0x1p-126f},
               {{0x1.fffffep-126f, 0x1p-125f, 0}, 0x1.ffffffp-125f}};
  enum { CASES = sizeof cases / sizeof *cases };
  uly_program *p = uly_test_program();
  add_rowsum(p);
  uly_test_model m = uly_test_load(p);
  float x[3 * CASES], out[CASES];
  for (int i = 0; i < CASES; i++)
    for (int t = 0; t < 3; t++) x[t * CASES + i] = cases[i].terms[t];
  for (uint32_t l = 0; l < uly_test_levels(&m); l++) {
    sum_rows(&m, l, x, 3, 1, CASES, 2, out);
    for (int i = 0; i < CASES; i++)
      if (!(isnan(cases[i].sum) ? isnan(out[i]) : out[i] == cases[i].sum)) fail_msg("case %d: %a, not %a", i, (double)out[i], (double)cases[i].sum);
  }
  uly_test_unload(&m);
}

// ---- sums of ints ----------------------------------------------------------------------------------------------------------------------------

static const struct {
  uly_dtype dtype;
  const char *term;
} int_terms[] = {{ULY_I32, "x0i"}, {ULY_I64, "x0i * 3"}, {ULY_U8, "x0i"}, {ULY_BOOL, "x0b"}};
enum { INT_TERMS = sizeof int_terms / sizeof *int_terms, INT_ROWS = 37, INT_OUTER = 3, INT_COLS = 21, INTS = INT_OUTER * INT_COLS, INT_PARTS = 3 };

static uly_test_model load_int_sums(void) {
  uly_program *p = uly_test_program();
  for (int t = 0; t < INT_TERMS; t++) {
    uly_kernel_desc desc = {.kind = ULY_KERNEL_ROWSUM, .u.rowsum.ints = true};
    uly_hook *h = &desc.u.rowsum.term;
    *h = (uly_hook){.present = true, .expr = uly_test_expr(p->arena, int_terms[t].term), .n_operands = 1, .start = {-1, -1, -1, -1, -1, -1}};
    h->operands[0] = (uly_hook_operand){.op = 1, .dtype = int_terms[t].dtype, .stride = {VAL_SUM_0, -1, -1, VAL_SUM_1, -1, -2}};
    uly_test_add_kernel(p, &desc);
  }
  uly_kernel_desc round = {.kind = ULY_KERNEL_ROUND, .u.round.dtype = ULY_I64};
  uly_test_add_kernel(p, &round);
  return uly_test_load(p);
}

static void sum_ints(const uly_test_model *m, uint32_t level, uint32_t t, char *x, int64_t *out) {
  static int64_t parts[INT_PARTS][INTS];
  void *pointers[INT_PARTS] = {parts[0], parts[1], parts[2]};
  uly_test_call c;
  for (int64_t part = 0; part < INT_PARTS; part++) {
    int64_t from = INT_ROWS * part / INT_PARTS, to = INT_ROWS * (part + 1) / INT_PARTS;
    uly_test_call_init(&c);
    c.pointers[0] = parts[part], c.pointers[1] = x + from * INTS * uly_dtype_bytes(int_terms[t].dtype);
    uly_test_space(&c, to - from, 1, INT_COLS);
    c.numbers[ULY_ROWSUM_N3] = INT_OUTER;
    c.numbers[VAL_SUM_0] = INTS, c.numbers[VAL_SUM_1] = INT_COLS;
    uly_test_run(m, level, t, &c, 0, 3), uly_test_run(m, level, t, &c, 3, 2 * INT_OUTER);
  }
  uly_test_call_init(&c);
  c.args[ULY_ROUND_PARTS] = (uly_arg){pointers, INT_PARTS};
  c.pointers[ULY_ROUND_OUT] = out;
  uly_test_run(m, level, INT_TERMS, &c, 0, INTS);
}

static uint64_t int_term(uint32_t t, const char *at) {
  int32_t narrow;
  int64_t wide;
  if (int_terms[t].dtype == ULY_I32) return memcpy(&narrow, at, 4), (uint64_t)(int64_t)narrow;
  if (int_terms[t].dtype == ULY_I64) return memcpy(&wide, at, 8), 3 * (uint64_t)wide;
  return *(const unsigned char *)at;
}

// Of every width, and bools: 64 bits that wrap, in parts that are added.
static void sums_of_ints(void **state) {
  (void)state;
  uly_test_model m = load_int_sums();
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t t = 0; t < INT_TERMS; t++) {
      int64_t bytes = uly_dtype_bytes(int_terms[t].dtype), sum[INTS];
      char *x = uly_test_guarded((size_t)(INT_ROWS * INTS * bytes));
      for (int64_t i = 0; i < INT_ROWS * INTS * bytes; i++) x[i] = (char)(int_terms[t].dtype == ULY_BOOL ? random_bits() & 1 : random_bits());
      sum_ints(&m, l, t, x, sum);
      for (int64_t i = 0; i < INTS; i++) {
        uint64_t want = 0;
        for (int64_t row = 0; row < INT_ROWS; row++) want += int_term(t, x + (row * INTS + i) * bytes);
        assert_true((uint64_t)sum[i] == want);
      }
    }
  uly_test_unload(&m);
}

// ---- gather ----------------------------------------------------------------------------------------------------------------------------------

static void gathers(void **state) {
  (void)state;
  uly_program *p = uly_test_program();
  for (int wide = 0; wide < 2; wide++) {
    uly_kernel_desc desc = {.kind = ULY_KERNEL_GATHER, .u.gather = {.ids = wide ? ULY_I64 : ULY_I32}};
    uly_test_add_kernel(p, &desc);
  }
  uly_test_model m = uly_test_load(p);
  enum { LIMIT = 9, N0 = 4, N1 = 3 };
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t k = 0; k < 2; k++)
      for (int bytes = 1; bytes < 200; bytes += 13) {
        const int pitch = bytes + (k ? 0 : 5), *at = (const int[3][2]){{0, 1}, {1, 4}, {3, 5}}[bytes % 3]; // where the two dims stand among the kernel's
        unsigned char *table = uly_test_guarded((size_t)((LIMIT - 1) * pitch + bytes)), *out = uly_test_guarded((size_t)(N0 * N1 * bytes));
        int64_t ids64[N1 * N0];
        int32_t ids32[N1 * N0];
        for (int i = 0; i < (LIMIT - 1) * pitch + bytes; i++) table[i] = (unsigned char)random_bits();
        for (int i = 0; i < N0 * N1; i++) ids64[i] = (int64_t)(random_bits() % LIMIT);
        ids64[5] = k ? LIMIT + (1ll << 40) : LIMIT;
        for (int i = 0; i < N0 * N1; i++) ids32[i] = (int32_t)ids64[i];
        memset(out, 0xee, (size_t)(N0 * N1 * bytes));
        uly_test_call c;
        uly_test_call_init(&c);
        c.pointers[ULY_GATHER_IDS] = k ? (void *)ids64 : ids32, c.pointers[ULY_GATHER_W] = table, c.pointers[ULY_GATHER_OUT] = out;
        for (int d = 0; d < ULY_GATHER_DIMS; d++) c.numbers[ULY_GATHER_N0 + d] = 1, c.numbers[ULY_GATHER_DIM_0 + d] = -1;
        c.numbers[ULY_GATHER_ROW_BYTES] = bytes, c.numbers[ULY_GATHER_LIMIT] = LIMIT, c.numbers[ULY_GATHER_W_0] = pitch;
        c.numbers[ULY_GATHER_N0 + at[0]] = N0, c.numbers[ULY_GATHER_N0 + at[1]] = N1;
        c.numbers[ULY_GATHER_IDS_0 + at[0]] = 1, c.numbers[ULY_GATHER_IDS_0 + at[1]] = N0; // ids [N1][N0]
        c.numbers[ULY_GATHER_OUT_0 + at[0]] = N1 * bytes, c.numbers[ULY_GATHER_OUT_0 + at[1]] = bytes, c.numbers[ULY_GATHER_START_0 + at[0]] = 1000,
                                     c.numbers[ULY_GATHER_START_0 + at[1]] = 50, c.numbers[ULY_GATHER_DIM_0 + at[0]] = k,
                                     c.numbers[ULY_GATHER_DIM_0 + at[1]] = 1 - k;
        uly_test_run(&m, l, k, &c, 0, N0 * N1 / 2 + 1), uly_test_run(&m, l, k, &c, N0 * N1 / 2 + 1, N0 * N1);
        int bad = 0;
        for (int i = 0; i < N0 * N1; i++) {
          int64_t id = ids64[i % N1 * N0 + i / N1];
          for (int b = 0; b < bytes; b++) assert_int_equal(out[i * bytes + b], id < LIMIT ? table[id * pitch + b] : 0);
          if (id >= LIMIT) bad = i;
        }
        assert_int_equal(c.fault.code, ULY_FAULT_INDEX_RANGE);
        assert_true(c.fault.a == ids64[5] && c.fault.b == LIMIT && c.fault.n_at == 2 && c.fault.at[k] == 1000 + bad / N1 && c.fault.at[1 - k] == 50 + bad % N1);
      }
  uly_test_unload(&m);
}

// ---- losses ----------------------------------------------------------------------------------------------------------------------------------

enum { VAL_LOGITS = ULY_NLL_N_VALS, OP_LOGITS = ULY_NLL_N_OPS };

static void run_nll(const uly_test_model *m, uint32_t level, uint32_t kernel, const float *x, const void *labels, int64_t rows, int64_t cols, float *out,
                    bool apart, uly_fault *fault) {
  uly_test_call c;
  uly_test_call_init(&c);
  c.scratch = uly_test_guarded((size_t)uly_nll_row(uly_nll_tiles(cols)) * sizeof(float));
  c.pointers[ULY_NLL_LABELS] = (void *)(uintptr_t)labels, c.pointers[ULY_NLL_OUT] = out, c.pointers[OP_LOGITS] = (void *)(uintptr_t)x;
  for (int d = ULY_NLL_N1; d <= ULY_NLL_N4; d++) c.numbers[d] = 1;
  c.numbers[ULY_NLL_N0] = rows, c.numbers[ULY_NLL_COLS] = cols, c.numbers[VAL_LOGITS] = cols;
  c.numbers[ULY_NLL_LABELS_0] = c.numbers[ULY_NLL_OUT_0] = 1, c.numbers[ULY_NLL_START_0] = 1000;
  for (int d = 1; d < 5; d++) c.numbers[ULY_NLL_DIM_0 + d] = -1;
  if (!apart) uly_test_run(m, level, kernel, &c, 0, rows);
  for (int64_t i = rows; apart && i-- > 0;) uly_test_run(m, level, kernel, &c, i, i + 1);
  *fault = c.fault;
}

static void losses(void **state) {
  (void)state;
  enum { IGNORE = 3, ROWS = 9, IGNORED = 0, WITH_NAN, WITH_INFINITY, FIRST_CLOSED, ALL_CLOSED, OUTSIDE };
  static const int64_t widths[] = {5, 8, 63, 64, 65, 128, 200, 1000, 5000};
  uly_program *p = uly_test_program();
  for (int wide = 0; wide < 2; wide++) {
    uly_kernel_desc desc = {.kind = ULY_KERNEL_NLL, .u.nll = {.labels = wide ? ULY_I64 : ULY_I32, .ignore = IGNORE}};
    desc.u.nll.in = (uly_hook){.present = true, .expr = uly_test_expr(p->arena, "x0"), .n_operands = 1, .start = {-1, -1, -1, -1, -1, -1}};
    desc.u.nll.in.operands[0] = (uly_hook_operand){.op = OP_LOGITS, .dtype = ULY_F32, .stride = {VAL_LOGITS, -1, -1, -1, -1, -2}};
    uly_test_add_kernel(p, &desc);
  }
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t k = 0; k < 2; k++)
      for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        int64_t n = widths[w], labels64[ROWS];
        int32_t labels32[ROWS];
        float *x = random_floats(ROWS * n, 0), out[ROWS], apart[ROWS];
        for (int64_t i = 0; i < ROWS * n; i++) x[i] *= i / n % 2 ? 40.0f : 1.0f;
        for (int i = 0; i < ROWS; i++) labels64[i] = i == IGNORED ? IGNORE : i % 2 ? n - 1 : (int64_t)(random_bits() % 3);
        labels64[OUTSIDE] = k ? n + (1ll << 40) : n;
        for (int64_t c = 0; c < n; c++) {
          x[IGNORED * n + c] = NAN;
          if (c < 64 && c < n - 1) x[FIRST_CLOSED * n + c] = -INFINITY;
          x[ALL_CLOSED * n + c] = -INFINITY;
        }
        x[WITH_NAN * n + n / 2] = NAN, x[WITH_INFINITY * n + n / 3] = INFINITY;
        for (int i = 0; i < ROWS; i++) labels32[i] = (int32_t)labels64[i];
        uly_fault fault, again;
        run_nll(&m, l, k, x, k ? (void *)labels64 : labels32, ROWS, n, out, false, &fault);
        run_nll(&m, l, k, x, k ? (void *)labels64 : labels32, ROWS, n, apart, true, &again);
        assert_memory_equal(out, apart, sizeof out);
        assert_true(fault.code == ULY_FAULT_INDEX_RANGE && fault.a == labels64[OUTSIDE] && fault.b == n && fault.n_at == 1 && fault.at[0] == 1000 + OUTSIDE);
        assert_true(out[IGNORED] == 0.0f && isnan(out[WITH_NAN]) && isnan(out[WITH_INFINITY]) && isnan(out[ALL_CLOSED]));
        for (int i = FIRST_CLOSED; i < ROWS; i++) {
          if (i == ALL_CLOSED || i == OUTSIDE) continue;
          double most = -INFINITY, sum = 0;
          for (int64_t c = 0; c < n; c++) most = fmax(most, (double)x[i * n + c]);
          for (int64_t c = 0; c < n; c++) sum += exp((double)x[i * n + c] - most);
          double want = most + log(sum) - (double)x[i * n + labels64[i]];
          if (!(fabs((double)out[i] - want) <= 1e-6 * fmax(1, fabs(want)))) fail_msg("row %d of %d columns: %g, not %g", i, (int)n, (double)out[i], want);
        }
      }
  uly_test_unload(&m);
}

// ---- moves -----------------------------------------------------------------------------------------------------------------------------------

// [n0][n1][n2] elements with their index in them, at dims |at| of the kernel's, from |sources| pointers cut along a dim to |targets|, overlapping.
static void move_case(const uly_test_model *m, uint32_t level, int64_t src_dim, int64_t dst_dim, const int *at_dims) {
  enum { P = 3, N0 = 5, N1 = 4, N2 = 6, N = N0 * N1 * N2, BYTES = 4, BASE = 11 };
  static const int64_t n[3] = {N0, N1, N2}, none[P] = {0};
  int64_t first[2][P], count[2][P], stride[2][3][P], offset[2][P], dims[2] = {src_dim, dst_dim}, n_pointers[2];
  int32_t *data[2][P];
  void *pointers[2][P];
  uly_test_call c;
  uly_test_call_init(&c);
  for (int d = 0; d < ULY_MOVE_DIMS; d++) c.numbers[ULY_MOVE_N0 + d] = 1, c.vals[ULY_MOVE_SRC_0 + d] = c.vals[ULY_MOVE_DST_0 + d] = none;
  for (int side = 0; side < 2; side++) {
    int64_t dim = dims[side];
    n_pointers[side] = dim < 0 ? 1 : P;
    for (int p = 0; p < P; p++) {
      int64_t size[3] = {N0, N1, N2};
      first[side][p] = dim < 0 ? 0 : p * n[dim] / P;
      count[side][p] = dim < 0 ? 0 : (p + 1) * n[dim] / P - first[side][p] + (side && p + 1 < P); // destinations overlap by one
      if (dim >= 0) size[dim] = count[side][p];
      offset[side][p] = 8 * p;
      stride[side][2][p] = BYTES, stride[side][1][p] = BYTES * size[2], stride[side][0][p] = BYTES * size[2] * size[1];
      size_t bytes = (size_t)(size[0] * stride[side][0][p] + offset[side][p]);
      data[side][p] = uly_test_guarded(bytes);
      memset(data[side][p], 0xff, bytes);
      pointers[side][p] = data[side][p];
    }
    c.args[side] = (uly_arg){pointers[side], n_pointers[side]};
    c.numbers[side ? ULY_MOVE_DST_EACH : ULY_MOVE_SRC_EACH] = dim >= 0;
    c.numbers[side ? ULY_MOVE_DST_DIM : ULY_MOVE_SRC_DIM] = dim < 0 ? -1 : at_dims[dim];
    for (int d = 0; d < 3; d++) c.vals[(side ? ULY_MOVE_DST_0 : ULY_MOVE_SRC_0) + at_dims[d]] = stride[side][d];
    c.vals[side ? ULY_MOVE_DST_OFFSET : ULY_MOVE_SRC_OFFSET] = offset[side];
    c.vals[side ? ULY_MOVE_DST_FIRST : ULY_MOVE_SRC_FIRST] = first[side];
    c.vals[side ? ULY_MOVE_DST_COUNT : ULY_MOVE_SRC_COUNT] = count[side];
  }
  for (int d = 0; d < 3; d++) c.numbers[ULY_MOVE_N0 + at_dims[d]] = n[d];
  int64_t counted[P]; // from BASE on
  for (int p = 0; p < P; p++) counted[p] = first[0][p] + BASE;
  c.vals[ULY_MOVE_SRC_FIRST] = counted;
  c.numbers[ULY_MOVE_SRC_BASE] = BASE;
  c.numbers[ULY_MOVE_BYTES] = BYTES;
  const int64_t items = c.numbers[ULY_MOVE_N0];
  for (int pass = 0; pass < 2; pass++) {
    if (pass) uly_test_run(m, level, 0, &c, 0, items / 2), uly_test_run(m, level, 0, &c, items / 2, items);
    for (int64_t e = 0; e < N; e++) {
      int64_t i[3] = {e / N2 / N1, e / N2 % N1, e % N2};
      for (int p = 0; p < n_pointers[pass]; p++) {
        int64_t at = offset[pass][p];
        if (dims[pass] >= 0 && (i[dims[pass]] < first[pass][p] || i[dims[pass]] >= first[pass][p] + count[pass][p])) continue;
        for (int d = 0; d < 3; d++) at += (i[d] - (d == dims[pass] ? first[pass][p] : 0)) * stride[pass][d][p];
        int32_t *element = &data[pass][p][at / BYTES];
        if (pass == 0)
          *element = (int32_t)e;
        else
          assert_int_equal(*element, e);
      }
    }
  }
}

static void moves(void **state) {
  (void)state;
  uly_program *p = uly_test_program();
  uly_kernel_desc desc = {.kind = ULY_KERNEL_MOVE};
  uly_test_add_kernel(p, &desc);
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (int64_t s = -1; s < 3; s++)
      for (int64_t d = -1; d < 3; d++)
        for (int i = 0; i < 4; i++) move_case(&m, l, s, d, (const int[4][3]){{0, 1, 2}, {0, 3, 5}, {2, 3, 4}, {1, 4, 5}}[i]);
  uly_test_unload(&m);
}

// ---- what is stored where -----------------------------------------------------------------------------------------------------------------------

// Rows of every dtype and width, the width known when the kernel is compiled, written from the last to the first: one that wrote too much would spoil the row behind it.
// What a row of |dtype| is computed from: u8 from more bits, which are cut.
static uly_dtype source_of(int dtype) { return dtype == ULY_U8 ? ULY_I32 : (uly_dtype)dtype; }

static void stores_stay_in_their_row(void **state) {
  (void)state;
  enum { ROWS = 3, N_WIDTHS = 8 };
  static const int64_t widths[N_WIDTHS] = {1, 2, 7, 8, 9, 16, 17, 31};
  uly_program *p = uly_test_program();
  for (int dtype = 0; dtype < ULY_F64; dtype++)
    for (int k = 0; k < N_WIDTHS; k++) {
      int64_t cols = widths[k];
      bool is_float = uly_dtype_get((uly_dtype)dtype)->is_float;
      uly_kernel_desc desc = {.kind = ULY_KERNEL_ROWS, .u.rows = {.mode = ULY_ROWS_MAP, .cols = cols}};
      uly_hook *h = &desc.u.rows.in;
      *h = (uly_hook){.present = true, .n_operands = 1, .start = {-1, -1, -1, -1, -1, -1}};
      h->expr = uly_test_expr(p->arena, is_float ? "x0 * 2.0" : dtype == ULY_BOOL ? "not x0b" : dtype == ULY_U8 ? "x0i" : "x0i + 1");
      h->operands[0] = h->out = (uly_hook_operand){.dtype = (uly_dtype)dtype, .stride = {VAL_ROW, -1, -1, -1, -1, -2}};
      h->operands[0].dtype = source_of(dtype);
      h->out.op = 1;
      uly_test_add_kernel(p, &desc);
    }
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (int dtype = 0; dtype < ULY_F64; dtype++)
      for (int k = 0; k < N_WIDTHS; k++) {
        int64_t cols = widths[k];
        void *x = uly_test_guarded((size_t)(ROWS * cols * uly_dtype_bytes(source_of(dtype)))),
             *y = uly_test_guarded((size_t)(ROWS * cols * uly_dtype_bytes((uly_dtype)dtype)));
        uly_test_call c;
        uly_test_call_init(&c);
        c.pointers[0] = x, c.pointers[1] = y;
        c.numbers[ULY_ROWS_COLS] = c.numbers[VAL_ROW] = cols;
        for (int d = 0; d < 5; d++) c.numbers[ULY_ROWS_N0 + d] = d ? 1 : ROWS;
        for (int64_t i = 0; i < ROWS * cols; i++) uly_dtype_store(source_of(dtype), x, i, dtype == ULY_BOOL ? (double)(i % 3 == 0) : (double)(i + 1));
        for (int64_t row = ROWS; row-- > 0;) uly_test_run(&m, l, (uint32_t)(dtype * N_WIDTHS + k), &c, row, row + 1);
        for (int64_t i = 0; i < ROWS * cols; i++) {
          double value = uly_dtype_load(source_of(dtype), x, i), got = uly_dtype_load((uly_dtype)dtype, y, i);
          double want = uly_dtype_get((uly_dtype)dtype)->is_float ? 2 * value : dtype == ULY_BOOL ? (double)(value == 0) : dtype == ULY_U8 ? value : value + 1;
          if (got != want) fail_msg("%s, %lld columns: element %lld is %g, not %g", uly_dtype_name((uly_dtype)dtype), (long long)cols, (long long)i, got, want);
        }
      }
  uly_test_unload(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(norms),
                                     cmocka_unit_test(softmaxes),
                                     cmocka_unit_test(exact_sums),
                                     cmocka_unit_test(sums_of_special_values),
                                     cmocka_unit_test(sums_of_ints),
                                     cmocka_unit_test(gathers),
                                     cmocka_unit_test(losses),
                                     cmocka_unit_test(moves),
                                     cmocka_unit_test(stores_stay_in_their_row)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
