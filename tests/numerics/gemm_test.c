// Linear layers on CPU against float64, and their bits contract: the same row gives the same bits whatever the number of rows, the segments of K, the
// split of items, the layout of memory and the peers.

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <xmmintrin.h>

#include "runtime/base/features.h"
#include "runtime/reference/reference.h"
#include "tests/numerics/bits_harness.h"
#include "tests/numerics/gemm_case.h"

enum { ACCURACY_CASES = 400, BITS_CASES = 16 };

static const gemm_native *const levels[] = {&gemm_native_v3, &gemm_native_v4, &gemm_native_amx};
enum { N_LEVELS = sizeof levels / sizeof *levels };

static bool runs_here(const gemm_native *level) {
  if (level->tiles) return uly_cpu_features(ULY_CPU_AMX) != 0;
  return level == &gemm_native_v4 ? __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
                                  : __builtin_cpu_supports("avx2");
}

// ---- float64 ----------------------------------------------------------------------------------------------------------------------------------

enum { CHECKED_ROWS = 8 };

// Results of some rows of a part, and how far an f32 evaluation may be from them.
typedef struct oracle {
  int64_t n, columns;
  int64_t rows[CHECKED_ROWS];
  double *value, *bound;
} oracle;

static double *doubles(int64_t n) { return calloc((size_t)n + 1, sizeof(double)); }

// value = Σ x · w, size = Σ |x · w|.
static void dot_rows(const gemm_case *c, int64_t part, bool second, const oracle *o, double *value, double *size) {
  double *x = doubles(o->n * c->k), *w = doubles(o->columns * c->k);
  for (int absolute = 0; absolute < 2; absolute++) {
    for (int64_t i = 0; i < o->n * c->k; i++) x[i] = (double)gemm_x(c, c->ids[o->rows[i / c->k]], i % c->k);
    for (int64_t i = 0; i < o->columns * c->k; i++) w[i] = (double)gemm_w(c, part, second, i / c->k, i % c->k);
    for (int64_t i = 0; absolute && i < o->n * c->k; i++) x[i] = fabs(x[i]);
    for (int64_t i = 0; absolute && i < o->columns * c->k; i++) w[i] = fabs(w[i]);
    const uly_ref_tensor in[] = {uly_ref_floats(x, 2, (int64_t[]){o->n, c->k}), uly_ref_floats(w, 2, (int64_t[]){o->columns, c->k})};
    uly_ref_op op = {.out = uly_ref_floats(absolute ? size : value, 2, (int64_t[]){o->n, o->columns}), .in = in, .n_in = 2};
    uly_ref_run(uly_ref_linear, &op);
  }
  free(x);
  free(w);
}

static void add_epilogue(const gemm_case *c, int64_t part, const oracle *o) {
  int64_t n = o->n * o->columns;
  gemm_epilogue kind = c->parts[part].epilogue;
  double *other = doubles(n), *other_size = doubles(n);
  dot_rows(c, part, c->parts[part].mode == ULY_GEMM_PAIR, o, other, other_size);
  for (int64_t i = 0; i < n; i++) {
    int64_t column = i % o->columns;
    double *y = &o->value[i], *e = &o->bound[i];
    double bias = (double)gemm_bias(c, part, column), residual = (double)gemm_residual(c, part, c->ids[o->rows[i / o->columns]], column);
    *e = 1e-6 * *e + 1e-12;
    if (kind == GEMM_PRODUCT) {
      double factor = other[i] + bias, factor_bound = 1e-6 * other_size[i] + 2e-7 * fabs(factor);
      *e = *e * fabs(factor) + factor_bound * fabs(*y) + *e * factor_bound;
      *y *= factor;
    }
    if (kind == GEMM_BIAS || kind == GEMM_RESIDUAL) *y += bias;
    if (kind == GEMM_RESIDUAL) *y += residual;
    *e += 2e-7 * (fabs(*y) + fabs(bias) + fabs(residual));
  }
  free(other);
  free(other_size);
}

static void add_rope(const gemm_case *c, int64_t part, const oracle *o) {
  const gemm_part *p = &c->parts[part];
  if (p->mode < ULY_GEMM_ROPE_HALF) return;
  int64_t pairs = p->rope / 2;
  double *x = doubles(o->n * o->columns), *cosine = doubles(o->n * pairs), *sine = doubles(o->n * pairs);
  memcpy(x, o->value, (size_t)(o->n * o->columns) * sizeof *x);
  for (int64_t i = 0; i < o->n * pairs; i++) {
    cosine[i] = (double)gemm_cos(c, c->ids[o->rows[i / pairs]], i % pairs);
    sine[i] = (double)gemm_sin(c, c->ids[o->rows[i / pairs]], i % pairs);
  }
  const int64_t dims[] = {1, o->n, p->n_groups, p->group}, angle[] = {1, o->n, pairs};
  const uly_ref_tensor in[] = {uly_ref_floats(x, 4, dims), uly_ref_floats(cosine, 3, angle), uly_ref_floats(sine, 3, angle)};
  uly_ref_op op = {.out = uly_ref_floats(o->value, 4, dims), .in = in, .n_in = 3, .i = {p->mode == ULY_GEMM_ROPE_INTERLEAVED}};
  uly_ref_run(uly_ref_rope, &op);
  for (int64_t i = 0; i < o->n * o->columns; i++) { // both partners' errors, and those of the rotation
    if (i % p->group >= p->rope) continue;
    bool half = p->mode == ULY_GEMM_ROPE_HALF, second = half ? i % p->group >= pairs : i % p->group % 2;
    int64_t distance = half ? pairs : 1, partner = second ? i - distance : i + distance;
    if (second)
      o->bound[i] = o->bound[partner]; // the first one's is both's sum already
    else
      o->bound[i] += o->bound[partner] + 3e-7 * (fabs(x[i]) + fabs(x[partner]));
  }
  free(x);
  free(cosine);
  free(sine);
}

static oracle expect(const gemm_case *c, int64_t part, uint64_t *r) {
  int64_t rows = c->s * c->b;
  oracle o = {.n = rows < CHECKED_ROWS ? rows : CHECKED_ROWS, .columns = gemm_columns(c, part)};
  for (int64_t i = 0; i < o.n; i++) o.rows[i] = rows <= CHECKED_ROWS ? i : i == 0 ? rows - 1 : uly_bits_range(r, 0, rows - 1);
  o.value = doubles(o.n * o.columns);
  o.bound = doubles(o.n * o.columns);
  dot_rows(c, part, false, &o, o.value, o.bound);
  add_epilogue(c, part, &o);
  add_rope(c, part, &o);
  for (int64_t i = 0; c->out != ULY_F32 && i < o.n * o.columns; i++) o.bound[i] += uly_dtype_get(c->out)->tolerance * (fabs(o.value[i]) + o.bound[i]) + 0x1p-25;
  return o;
}

// ---- drawing ----------------------------------------------------------------------------------------------------------------------------------

static int64_t pick(uint64_t *r, const int64_t *from, int64_t n) { return from[uly_bits_range(r, 0, n - 1)]; }
#define PICK(r, ...) pick(r, (const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static gemm_part draw_part(uint64_t *r, uly_gemm_mode mode, int64_t rope) {
  gemm_part p = {mode, uly_bits_range(r, 1, 6), PICK(r, 1, 3, 8, 15, 16, 17, 24, 32, 48, 64, 80), 0,
                 (gemm_epilogue)uly_bits_range(r, GEMM_NONE, GEMM_RESIDUAL)};
  if (mode == ULY_GEMM_PLAIN && uly_bits_range(r, 0, 3) == 0) p = (gemm_part){mode, 1, uly_bits_range(r, 1, 700), 0, p.epilogue};
  if (mode == ULY_GEMM_PAIR) p = (gemm_part){mode, 1, uly_bits_range(r, 1, 400), 0, GEMM_PRODUCT};
  if (mode >= ULY_GEMM_ROPE_HALF) {
    p.rope = rope;
    p.group = rope + (uly_bits_range(r, 0, 1) ? uly_bits_range(r, 0, 70) : 0);
  }
  return p;
}

// Half of the cases are f32 throughout.
static void draw_dtypes(gemm_case *c, uint64_t *r) {
  static const uly_dtype dtypes[] = {ULY_F32, ULY_BF16, ULY_F16};
  if (uly_bits_range(r, 0, 1)) return;
  c->x = dtypes[uly_bits_range(r, 0, 2)];
  c->w = uly_bits_range(r, 0, 2) ? c->x : dtypes[uly_bits_range(r, 0, 2)];
  c->out = uly_bits_range(r, 0, 2) ? c->x : dtypes[uly_bits_range(r, 0, 2)];
}

static gemm_case draw(uint64_t *r) {
  gemm_case c = {.seed = uly_bits_random(r), .layout = uly_bits_random(r)};
  c.k = PICK(r, 1, 2, 3, 5, 17, 64, 100, 384, 511, 512, 513, 640, 1024, 1100);
  c.s = PICK(r, 0, 1, 1, 2, 3, 5, 7, 13, 32, 97);
  c.b = PICK(r, 1, 1, 2, 3);
  draw_dtypes(&c, r);
  if (uly_bits_range(r, 0, 3) == 0) c.x = c.w = ULY_BF16;
  c.n_parts = uly_bits_range(r, 1, ULY_GEMM_MAX_PARTS);
  uly_gemm_mode rope_mode = (uly_gemm_mode)uly_bits_range(r, ULY_GEMM_ROPE_HALF, ULY_GEMM_ROPE_INTERLEAVED);
  int64_t rope = PICK(r, 2, 4, 14, 16, 20, 32, 40, 64, 96), heads = uly_bits_range(r, 1, 4);
  bool message = uly_bits_range(r, 0, 1);
  for (int64_t p = 0; p < c.n_parts; p++) {
    int64_t kind = uly_bits_range(r, 0, message ? 1 : 2);
    c.parts[p] = draw_part(r, kind == 0 ? ULY_GEMM_PLAIN : kind == 1 ? rope_mode : ULY_GEMM_PAIR, rope);
    if (message) c.parts[p].n_groups = p == 0 ? heads * uly_bits_range(r, 1, 3) : heads;
    while (gemm_columns(&c, p) * c.k > 150000 && c.parts[p].n_groups > 1 && !message) c.parts[p].n_groups--;
  }
  while (c.k * c.s * c.b > 40000) c.s = (c.s + 1) / 2;
  for (int64_t i = 0; i < c.s * c.b; i++) c.ids[i] = uly_bits_range(r, 0, 1000000);
  gemm_cut(&c, r, uly_bits_range(r, 0, 1) ? 1 : uly_bits_range(r, 1, 5), message ? uly_bits_range(r, 1, 5) : 0);
  return c;
}

// ---- tests ------------------------------------------------------------------------------------------------------------------------------------

static void check_part(const gemm_case *c, const gemm_native *level, int64_t part, const oracle *o, const float *out, int number, double *worst) {
  for (int64_t i = 0; i < o->n * o->columns; i++) {
    int64_t row = o->rows[i / o->columns], column = i % o->columns;
    double got = (double)out[row * o->columns + column], error = fabs(got - o->value[i]);
    if (!(error <= o->bound[i]))
      fail_msg("%s case %d part %lld row %lld column %lld: %g, not %g (K %lld)", level->name, number, (long long)part, (long long)row, (long long)column, got,
               o->value[i], (long long)c->k);
    *worst = fmax(*worst, error / o->bound[i]);
  }
}

static void is_accurate(void **state) {
  (void)state;
  uint64_t r = 1;
  double worst = 0;
  for (int i = 0; i < ACCURACY_CASES; i++) {
    gemm_case c = draw(&r);
    oracle o[ULY_GEMM_MAX_PARTS];
    for (int64_t p = 0; p < c.n_parts; p++) o[p] = expect(&c, p, &r);
    for (int l = 0; l < N_LEVELS; l++) {
      float *out[ULY_GEMM_MAX_PARTS];
      if (!runs_here(levels[l]) || (levels[l]->tiles && (c.x != ULY_BF16 || c.w != ULY_BF16))) continue;
      gemm_run(&c, levels[l], out);
      for (int64_t p = 0; p < c.n_parts; p++) {
        check_part(&c, levels[l], p, &o[p], out[p], i, &worst);
        free(out[p]);
      }
    }
    for (int64_t p = 0; p < c.n_parts; p++) {
      free(o[p].value);
      free(o[p].bound);
    }
  }
  print_message("%d cases, largest error %.2f of its bound\n", ACCURACY_CASES, worst);
}

// Each identity's result, as computed alone, in one segment, for one peer at most; runs of all sizes must repeat it.
enum { N_IDS = 100 };

static void same_bits_as_alone(const gemm_case *shape, const gemm_native *level, uint64_t *r) {
  float *alone[N_IDS][ULY_GEMM_MAX_PARTS], *out[ULY_GEMM_MAX_PARTS];
  for (int64_t id = 0; id < N_IDS; id++) {
    gemm_case c = *shape;
    c.s = c.b = 1;
    c.ids[0] = id;
    gemm_cut(&c, r, 1, 0);
    gemm_run(&c, level, alone[id]);
  }
  for (int64_t rows = 1; rows <= 100; rows += rows < 14 ? 1 : uly_bits_range(r, 1, 9)) {
    gemm_case c = *shape;
    c.layout = uly_bits_random(r);
    c.b = uly_bits_range(r, 1, 3);
    c.s = uly_cdiv(rows, c.b);
    for (int64_t i = 0; i < c.s * c.b; i++) c.ids[i] = uly_bits_range(r, 0, N_IDS - 1);
    bool pair = c.parts[0].mode == ULY_GEMM_PAIR;
    gemm_cut(&c, r, uly_bits_range(r, 1, 5), pair ? 0 : uly_bits_range(r, 0, 5));
    gemm_run(&c, level, out);
    for (int64_t p = 0; p < c.n_parts; p++) {
      size_t bytes = (size_t)gemm_columns(&c, p) * 4;
      for (int64_t i = 0; i < c.s * c.b; i++)
        if (memcmp((char *)out[p] + (size_t)i * bytes, alone[c.ids[i]][p], bytes) != 0)
          fail_msg("%s: row %lld of %lld differs from the same row alone (K %lld)", level->name, (long long)i, (long long)(c.s * c.b), (long long)c.k);
      free(out[p]);
    }
  }
  for (int64_t id = 0; id < N_IDS; id++)
    for (int64_t p = 0; p < shape->n_parts; p++) free(alone[id][p]);
}

static void rows_keep_their_bits(void **state) {
  const gemm_native *level = *state;
  if (!runs_here(level)) skip();
  uint64_t r = 2;
  for (int i = 0; i < BITS_CASES; i++) {
    gemm_case c = {.seed = uly_bits_random(&r), .layout = uly_bits_random(&r), .k = PICK(&r, 1, 37, 511, 512, 513, 700, 1030), .n_parts = 1 + (i & 1)};
    int64_t rope = 2 * uly_bits_range(&r, 1, 20);
    draw_dtypes(&c, &r);
    if (level->tiles) c.x = c.w = ULY_BF16;
    for (int64_t p = 0; p < c.n_parts; p++) {
      c.parts[p] = draw_part(&r, (uly_gemm_mode)(i / 2 % 4), rope);
      if (c.parts[p].n_groups > 2) c.parts[p].n_groups = 2;
      while (gemm_columns(&c, p) > 150) c.parts[p].group = c.parts[p].mode < ULY_GEMM_ROPE_HALF ? (c.parts[p].group + 1) / 2 : c.parts[p].rope;
    }
    same_bits_as_alone(&c, level, &r);
  }
}

// Sums of bf16 and f16 are those of f32 with the same values; and each is rounded once.
static void halves_are_widened(void **state) {
  const gemm_native *level = *state;
  if (!runs_here(level)) skip();
  static const uly_dtype dtypes[] = {ULY_BF16, ULY_F16};
  static const int64_t terms[] = {1, 7, 64, 511, 512, 513, 1027};
  uint64_t r = 9;
  for (int i = 0; i < 28; i++) {
    gemm_case c = {.seed = uly_bits_random(&r), .layout = uly_bits_random(&r), .k = terms[i % 7], .s = 1 + i, .b = 1, .n_parts = 1, .values = dtypes[i & 1]};
    float *wide[ULY_GEMM_MAX_PARTS], *half[ULY_GEMM_MAX_PARTS], *rounded[ULY_GEMM_MAX_PARTS];
    c.parts[0] = (gemm_part){ULY_GEMM_PLAIN, 1, uly_bits_range(&r, 1, 100), 0, i % 3 ? GEMM_BIAS : GEMM_NONE};
    for (int64_t row = 0; row < c.s; row++) c.ids[row] = row;
    gemm_cut(&c, &r, 1 + i % 2, 0);
    gemm_run(&c, level, wide);
    c.x = c.w = c.values;
    gemm_run(&c, level, half);
    c.out = c.values;
    gemm_run(&c, level, rounded);
    int64_t n = c.s * gemm_columns(&c, 0);
    assert_memory_equal(wide[0], half[0], (size_t)n * sizeof(float));
    for (int64_t j = 0; j < n; j++) {
      uint32_t element;
      uly_dtype_store(c.out, &element, 0, (double)wide[0][j]);
      assert_true(uly_dtype_load(c.out, &element, 0) == (double)rounded[0][j]);
    }
    free(wide[0]), free(half[0]), free(rounded[0]);
  }
}

// Lanes to and from memory: every half, the numbers around them, and every number of lanes, of which the others are left alone. With denormals as zero, as kernels run.
static void lanes_convert(void **state) {
  const gemm_native *level = *state;
  if (!runs_here(level)) skip();
  static const uly_dtype dtypes[] = {ULY_BF16, ULY_F16};
  unsigned mode = _mm_getcsr();
  for (int d = 0; d < 2; d++)
    for (uint32_t i = 0; i < 1 << 16; i += (uint32_t)level->lanes) {
      int64_t n = 1 + (int64_t)(i / (uint32_t)level->lanes) % level->lanes;
      float wide[16], around[16];
      uint16_t from[16], to[16], back[16];
      for (int64_t l = 0; l < level->lanes; l++) {
        double low, high;
        uint16_t next = (uint16_t)(i + l + 1);
        from[l] = (uint16_t)(i + l);
        low = uly_dtype_load(dtypes[d], &from[l], 0), high = uly_dtype_load(dtypes[d], &next, 0);
        around[l] = l % 3 == 0 ? (float)((low + high) / 2) : nextafterf((float)((low + high) / 2), l % 3 == 1 ? 0 : INFINITY);
        if (fabsf(around[l]) < 0x1p-126f) around[l] = 0;
        to[l] = back[l] = 0x1234;
      }
      _mm_setcsr(mode | 0x8040);
      level->load(dtypes[d], from, n, wide);
      level->store(dtypes[d], back, n, wide);
      level->store(dtypes[d], to, n, around);
      _mm_setcsr(mode);
      for (int64_t l = 0; l < level->lanes; l++) {
        double value = uly_dtype_load(dtypes[d], &from[l], 0);
        uint16_t want = 0x1234;
        if (l < n) uly_dtype_store(dtypes[d], &want, 0, (double)around[l]);
        if (l >= n)
          assert_true(wide[l] == 0 && to[l] == 0x1234 && back[l] == 0x1234);
        else if (isnan(value))
          assert_true(isnan(wide[l]) && isnan(uly_dtype_load(dtypes[d], &back[l], 0)));
        else if ((double)wide[l] != value || back[l] != from[l])
          fail_msg("%s %04x: %a, %04x", uly_dtype_name(dtypes[d]), from[l], (double)wide[l], back[l]);
        if (l < n && !isnan(around[l]) && to[l] != want) fail_msg("%s of %a: %04x, not %04x", uly_dtype_name(dtypes[d]), (double)around[l], to[l], want);
      }
    }
}

// Rows of x, tables, residual and output lie more than 2^32 elements apart, in memory of which only the pages in use exist.
static void reaches_far(void **state) {
  const gemm_native *level = *state;
  if (!runs_here(level)) skip();
  gemm_case c = {.seed = 5, .k = 70, .s = 3, .b = 2, .n_parts = 2, .far = (int64_t)0x100000000 + 24};
  c.parts[0] = (gemm_part){ULY_GEMM_ROPE_HALF, 2, 32, 32, GEMM_RESIDUAL};
  c.parts[1] = (gemm_part){ULY_GEMM_PLAIN, 1, 40, 0, GEMM_RESIDUAL};
  uint64_t r = 6;
  double worst = 0;
  if (level->tiles) c.x = c.w = ULY_BF16;
  for (int64_t i = 0; i < c.s * c.b; i++) c.ids[i] = i;
  for (int64_t peers = 0; peers < 3; peers += 2) {
    float *out[ULY_GEMM_MAX_PARTS];
    gemm_cut(&c, &r, 1 + peers, peers);
    gemm_run(&c, level, out);
    for (int64_t p = 0; p < c.n_parts; p++) {
      oracle o = expect(&c, p, &r);
      check_part(&c, level, p, &o, out[p], 0, &worst);
      free(o.value);
      free(o.bound);
      free(out[p]);
    }
  }
}

int main(void) {
  void *v3 = (void *)(uintptr_t)&gemm_native_v3, *v4 = (void *)(uintptr_t)&gemm_native_v4, *amx = (void *)(uintptr_t)&gemm_native_amx;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(is_accurate),
      cmocka_unit_test_prestate(rows_keep_their_bits, v3),
      cmocka_unit_test_prestate(rows_keep_their_bits, v4),
      cmocka_unit_test_prestate(rows_keep_their_bits, amx),
      cmocka_unit_test_prestate(lanes_convert, v3),
      cmocka_unit_test_prestate(lanes_convert, v4),
      cmocka_unit_test_prestate(halves_are_widened, v3),
      cmocka_unit_test_prestate(halves_are_widened, v4),
      cmocka_unit_test_prestate(reaches_far, v3),
      cmocka_unit_test_prestate(reaches_far, v4),
      cmocka_unit_test_prestate(reaches_far, amx),
  };
  return cmocka_run_group_tests_name("gemm", tests, NULL, NULL);
}
