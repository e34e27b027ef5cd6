// Attention forward on the CPU against float64, over seeded problems, at every CPU level that this machine has, and the bits contract. The bound on errors
// is twice that of a naive f32 version, plus 4 units of the last place of values near 4, plus one rounding where o is bf16 or f16.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "runtime/base/dtype.h"
#include "runtime/base/features.h"
#include "tests/numerics/attention_case.h"

enum { N_PROBLEMS = 700, N_BITS = 60, BITS_TRIALS = 12 };

typedef struct level {
  const char *name;
  uly_kernel kernel, special;
  bool tiles; // bf16 alone, and P rounded to it
} level;
enum { MAX_LEVELS = 3 };

static int find_levels(level *out) {
  int n = 0;
  out[n++] = (level){"x86-64-v3", attention_native_v3, attention_special_v3, false};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    out[n++] = (level){"x86-64-v4", attention_native_v4, attention_special_v4, false};
  else
    print_message("no AVX-512 here: x86-64-v4 is not tested\n");
  if (uly_cpu_features(ULY_CPU_AMX) & ULY_CPU_AMX)
    out[n++] = (level){"sapphirerapids", attention_native_amx, attention_special_amx, true};
  else
    print_message("no AMX here: sapphirerapids is not tested\n");
  return n;
}

static attention_spec for_level(const level *at, attention_spec p) {
  if (at->tiles) p.dtype = ULY_BF16;
  return p;
}

static int64_t pick(uint64_t *seed, const int64_t *from, int n) { return from[uly_bits_range(seed, 0, n - 1)]; }

static attention_spec draw(uint64_t seed) {
  static const int64_t rows[] = {1, 2, 3, 15, 16, 17, 23, 24, 25, 31, 32, 33, 63, 127, 128, 129, 255, 257, 300};
  static const int64_t widths[] = {1, 2, 3, 5, 7, 8, 15, 16, 17, 24, 31, 32, 33, 40, 64, 80, 96, 128};
  uint64_t s = seed * 2 + 1;
  attention_spec p = {.seed = seed + 1000};
  p.s = pick(&s, rows, sizeof rows / sizeof *rows);
  p.t = uly_bits_range(&s, 0, 2) ? pick(&s, rows, sizeof rows / sizeof *rows) : p.s;
  if (uly_bits_range(&s, 0, 40) == 0) p.t = 0;
  if (p.s <= 33 && uly_bits_range(&s, 0, 5) == 0) p.t = uly_bits_range(&s, 301, 2500);
  p.b = uly_bits_range(&s, 0, 3) ? 1 : 2;
  p.h = uly_bits_range(&s, 1, 4);
  p.h0 = uly_bits_range(&s, 0, 2) ? 0 : uly_bits_range(&s, 1, 5);
  p.group = uly_bits_range(&s, 1, 4);
  p.dh = pick(&s, widths, sizeof widths / sizeof *widths);
  p.dv = uly_bits_range(&s, 0, 1) ? p.dh : pick(&s, widths, sizeof widths / sizeof *widths);
  p.layout = (attention_layout)uly_bits_range(&s, 0, N_LAYOUTS - 1);
  if (p.layout == LAYOUT_MESSAGE) p.t = p.s;
  p.mask = (attention_mask)uly_bits_range(&s, 0, N_MASKS - 1);
  p.mask_a = uly_bits_range(&s, 1, p.mask == MASK_STRIPES ? 140 : 90);
  p.mask_b = uly_bits_range(&s, 0, 20);
  p.score = uly_bits_range(&s, 0, 1) ? SCORE_NONE : (attention_score)uly_bits_range(&s, 1, N_SCORES - 1);
  p.ranges = (attention_ranges)uly_bits_range(&s, 0, N_RANGES - 1);
  p.sink = uly_bits_range(&s, 0, 3) == 0;
  p.lse = uly_bits_range(&s, 0, 2) != 0;
  if (uly_bits_range(&s, 0, 2) == 0) p.offset = uly_bits_range(&s, 1, 50);
  p.per_batch_offset = p.score != SCORE_TABLE && uly_bits_range(&s, 0, 3) == 0;
  p.at_end = seed % 2;
  p.n_outputs = uly_bits_range(&s, 0, 1) ? 1 : (int)uly_bits_range(&s, 2, MAX_OUTPUTS);
  p.plant = uly_bits_range(&s, 0, 5) == 0 ? PLANT_NAN | PLANT_SEEN_NAN : uly_bits_range(&s, 0, 1) ? PLANT_NAN : 0;
  p.spread = uly_bits_range(&s, 0, 4) ? 1 : 12;
  p.dtype = (uly_dtype[]){ULY_F32, ULY_F32, ULY_BF16, ULY_F16}[uly_bits_range(&s, 0, 3)];
  return p;
}

static float *results(const attention_spec *p) {
  float *out = malloc((size_t)(p->s * p->h * p->b * (p->dv + 1)) * sizeof *out);
  assert_non_null(out);
  return out;
}

static void describe(const char *what, const attention_spec *p, const char *name) {
  print_error("%s: seed %llu, %s, %s: S=%lld T=%lld B=%lld H=%lld at %lld, group %lld, Dh=%lld Dv=%lld layout %d mask %d(%lld, %lld) score %d ranges %d sink "
              "%d plant %u\n",
              what, (unsigned long long)(p->seed - 1000), name, uly_dtype_name(p->dtype), (long long)p->s, (long long)p->t, (long long)p->b, (long long)p->h,
              (long long)p->h0, (long long)p->group, (long long)p->dh, (long long)p->dv, p->layout, p->mask, (long long)p->mask_a, (long long)p->mask_b,
              p->score, p->ranges, p->sink, p->plant);
}

static bool within(const level *at, const attention_spec *p, const attention_error *e) {
  const double sharp = p->spread > 1 ? 8 : 1, once = p->dtype == ULY_F32 ? 0 : uly_dtype_get(p->dtype)->tolerance * e->largest;
  const double rounding = at->tiles ? 2 * once : once;
  return e->n_nan_wrong == 0 && e->worst <= 2 * e->naive_worst + sharp * 0x1p-20 + rounding && (!p->lse || e->lse_worst <= sharp * 2e-6);
}

static void test_against_float64(void **state) {
  (void)state;
  level levels[MAX_LEVELS];
  const int n_levels = find_levels(levels);
  double squares[MAX_LEVELS] = {0}, naive_squares[MAX_LEVELS] = {0};
  int wrong = 0;
  for (uint64_t seed = 0; seed < N_PROBLEMS; seed++) {
    const attention_spec p = draw(seed);
    attention_case c = attention_case_create(&p);
    attention_case_solve(&c);
    float *out = results(&p);
    for (int i = 0; i < n_levels; i++) {
      if (levels[i].tiles && p.dtype != ULY_BF16) continue;
      attention_case_run(&c, levels[i].kernel, NULL, out);
      const attention_error e = attention_case_compare(&c, out);
      if (p.dtype == ULY_F32) squares[i] += e.squares, naive_squares[i] += e.naive_squares;
      if (within(&levels[i], &p, &e)) continue;
      describe("error too large", &p, levels[i].name);
      print_error("  worst %.3g, naive %.3g, LSE %.3g, NaN or Inf wrong %lld of %lld\n", e.worst, e.naive_worst, e.lse_worst, (long long)e.n_nan_wrong,
                  (long long)e.n);
      wrong++;
    }
    free(out);
    attention_case_destroy(&c);
  }
  assert_int_equal(wrong, 0);
  for (int i = 0; i < n_levels; i++) {
    if (levels[i].tiles) continue;
    print_message("%s: rms error %.2f times that of a naive f32 version\n", levels[i].name, sqrt(squares[i] / naive_squares[i]));
    assert_true(squares[i] <= 4 * naive_squares[i]);
  }
}

// The plan of tiles changes no bit: exact ranges, none at all, and some.
static void test_ranges_are_free(void **state) {
  (void)state;
  level levels[MAX_LEVELS];
  const int n_levels = find_levels(levels);
  int different = 0;
  for (uint64_t seed = 0; seed < N_PROBLEMS; seed += 5) {
    const attention_spec drawn = draw(seed);
    attention_spec p = drawn;
    if (p.mask == MASK_FULL) continue;
    const size_t bytes = (size_t)(p.s * p.h * p.b * (p.dv + 1)) * sizeof(float);
    float *first = results(&p), *other = results(&p);
    for (int i = 0; i < n_levels; i++)
      for (p = for_level(&levels[i], drawn), p.ranges = 0; p.ranges < N_RANGES; p.ranges++) {
        attention_case c = attention_case_create(&p);
        attention_case_run(&c, levels[i].kernel, NULL, p.ranges ? other : first);
        attention_case_destroy(&c);
        if (!p.ranges || memcmp(first, other, bytes) == 0) continue;
        describe("bits depend on ranges", &p, levels[i].name);
        different++;
      }
    free(first), free(other);
  }
  assert_int_equal(different, 0);
}

// Constants folded into the code change no bit.
static void test_specialised(void **state) {
  (void)state;
  level levels[MAX_LEVELS];
  const int n_levels = find_levels(levels);
  for (uint64_t seed = 0; seed < 60; seed++)
    for (int i = 0; i < n_levels; i++) {
      attention_spec p = draw(seed);
      p.dh = ATTENTION_SPECIAL_DH, p.dv = ATTENTION_SPECIAL_DV, p.group = ATTENTION_SPECIAL_GROUP;
      p.mask = p.mask == MASK_FULL ? MASK_CAUSAL : p.mask;
      p.score = SCORE_NONE, p.sink = false, p.lse = true, p.dtype = levels[i].tiles ? ULY_BF16 : ULY_F32;
      const size_t bytes = (size_t)(p.s * p.h * p.b * (p.dv + 1)) * sizeof(float);
      float *native = results(&p), *special = results(&p);
      attention_case c = attention_case_create(&p);
      assert_true(c.scale == ATTENTION_SPECIAL_SCALE);
      attention_case_run(&c, levels[i].kernel, NULL, native);
      attention_case_run(&c, levels[i].special, NULL, special);
      if (memcmp(native, special, bytes)) describe("bits depend on constants being known", &p, levels[i].name);
      assert_memory_equal(native, special, bytes);
      attention_case_destroy(&c);
      free(native), free(special);
    }
}

typedef struct subject {
  attention_case c;
  uly_kernel kernel;
} subject;

static void run_subject(void *user, const uly_bits_variant *variant, void *out) {
  subject *s = user;
  attention_case_run(&s->c, s->kernel, variant, out);
}

static void test_bits(void **state) {
  (void)state;
  level levels[MAX_LEVELS];
  const int n_levels = find_levels(levels);
  int different = 0;
  for (uint64_t seed = 0; seed < N_BITS; seed++)
    for (int i = 0; i < n_levels; i++) {
      attention_spec p = for_level(&levels[i], draw(seed * 31 + 5));
      p.plant &= PLANT_NAN;
      p.n_outputs = p.n_outputs == 1 ? 1 : 3;
      if (seed % 2) p.s += 300; // several items a head
      if (p.layout == LAYOUT_MESSAGE) p.t = p.s;
      subject s = {attention_case_create(&p), levels[i].kernel};
      char name[96];
      snprintf(name, sizeof name, "attention at %s, seed %llu", levels[i].name, (unsigned long long)seed);
      const uly_bits_subject bits = {.name = name,
                                     .user = &s,
                                     .rows = p.s,
                                     .heads = p.h,
                                     .row_bytes = (size_t)(p.b * (p.dv + 1)) * 4,
                                     .may_vary = ULY_BITS_ROWS | ULY_BITS_HEADS | ULY_BITS_OTHER_ROWS | ULY_BITS_THREADS,
                                     .run = run_subject};
      different += uly_bits_check(&bits, BITS_TRIALS, seed + 1);
      attention_case_destroy(&s.c);
    }
  assert_int_equal(different, 0);
}

// One call of one head, everything NULL or 0 that is not set here.
typedef struct bare_call {
  void *p[HOOK_N_OPS];
  uly_arg op[HOOK_N_OPS];
  int64_t value[HOOK_N_VALS];
  const int64_t *val[HOOK_N_VALS];
} bare_call;

static void run_bare(bare_call *b, uly_kernel kernel, int64_t items, const attention_constants *constants) {
  for (int i = 0; i < HOOK_N_OPS; i++) b->op[i] = (uly_arg){&b->p[i], b->p[i] != NULL};
  for (int i = 0; i < HOOK_N_VALS; i++) b->val[i] = &b->value[i];
  attention_native_set(constants);
  const uly_call call = {.op = b->op, .val = b->val, .n_peers = 1};
  uly_bits_run(kernel, &call, items, (size_t)uly_attention_scratch(constants->dh, constants->dv), 1, 0);
}

// Strides of 2^29 and 2^32 elements: offsets beyond 2^32 in every tensor.
static void test_far_offsets(void **state) {
  (void)state;
  enum { S = 17, B = 2, W = 8 };
  const int64_t row = (int64_t)1 << 29, batch = (int64_t)1 << 34;
  const size_t bytes = (size_t)(2 * batch) * 4;
  void *tensor[5];
  for (int i = 0; i < 5; i++) {
    tensor[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (tensor[i] == MAP_FAILED) {
      print_message("no room for sparse tensors\n");
      skip();
    }
  }
  level levels[MAX_LEVELS];
  const int n_levels = find_levels(levels);
  for (int i = 0; i < n_levels; i++) {
    const uly_dtype dtype = levels[i].tiles ? ULY_BF16 : ULY_F32;
    for (int64_t s = 0; s < S; s++)
      for (int64_t b = 0; b < B; b++)
        for (int64_t d = 0; d < W; d++)
          for (int t = 0; t < 3; t++) uly_dtype_store(dtype, tensor[t], s * row + b * batch + d, t == 2 ? (double)(s + 100 * b) : s == d ? 100 : 0);
    bare_call c = {.p = {[ULY_ATTENTION_Q] = tensor[0],
                         [ULY_ATTENTION_K] = tensor[1],
                         [ULY_ATTENTION_V] = tensor[2],
                         [ULY_ATTENTION_OUT] = tensor[3],
                         [ULY_ATTENTION_LSE] = tensor[4]}};
    int64_t *v = c.value;
    v[ULY_ATTENTION_S] = v[ULY_ATTENTION_T] = S, v[ULY_ATTENTION_B] = B, v[ULY_ATTENTION_H] = 1;
    v[ULY_ATTENTION_Q_S] = v[ULY_ATTENTION_K_S] = v[ULY_ATTENTION_V_S] = v[ULY_ATTENTION_O_S] = v[ULY_ATTENTION_L_S] = row;
    v[ULY_ATTENTION_Q_B] = v[ULY_ATTENTION_K_B] = v[ULY_ATTENTION_V_B] = v[ULY_ATTENTION_O_B] = v[ULY_ATTENTION_L_B] = batch;
    run_bare(&c, levels[i].kernel, B, &(attention_constants){.dh = W, .dv = W, .group = 1, .dtype = dtype, .scale = 1, .has_lse = 1});
    for (int64_t s = 0; s < W; s++) // the first W rows see themselves, the others the mean of all
      for (int64_t b = 0; b < B; b++) {
        assert_true(uly_dtype_load(dtype, tensor[3], s * row + b * batch) == (double)(s + 100 * b));
        assert_true(fabs(uly_dtype_load(ULY_F32, tensor[4], s * row + b * batch) - 10000) < 0.01);
        assert_true(fabs(uly_dtype_load(dtype, tensor[3], (S - 1) * row + b * batch + W - 1) - (double)(8 + 100 * b)) < 1e-4);
      }
    for (int t = 3; t < 5; t++)
      for (int64_t s = 0; s < S; s++)
        for (int64_t b = 0; b < B; b++) uly_dtype_store(t == 4 ? ULY_F32 : dtype, tensor[t], s * row + b * batch, (double)NAN);
  }
  for (int i = 0; i < 5; i++) munmap(tensor[i], bytes);
}

// A window of 64 keys at the end of 2^40: long stretches that nobody sees take a few questions each. All keys are one row of memory.
static void test_empty_stretches(void **state) {
  (void)state;
  level levels[MAX_LEVELS];
  const int n_levels = find_levels(levels);
  for (int i = 0; i < n_levels; i++) {
    const uly_dtype dtype = levels[i].tiles ? ULY_BF16 : ULY_F32;
    int64_t count = 0;
    float q[4], k[4], value[4], out[4], lse = 0;
    for (int d = 0; d < 4; d++) uly_dtype_store(dtype, q, d, d + 1), uly_dtype_store(dtype, k, d, 1), uly_dtype_store(dtype, value, d, d + 5);
    bare_call c = {.p = {[ULY_ATTENTION_Q] = q,
                         [ULY_ATTENTION_K] = k,
                         [ULY_ATTENTION_V] = value,
                         [ULY_ATTENTION_OUT] = out,
                         [ULY_ATTENTION_LSE] = &lse,
                         [HOOK_DOCUMENTS] = &count,
                         [HOOK_COUNT] = &count}};
    int64_t *v = c.value;
    v[ULY_ATTENTION_S] = 1, v[ULY_ATTENTION_T] = (int64_t)1 << 40, v[ULY_ATTENTION_B] = 1, v[ULY_ATTENTION_H] = 1;
    v[ULY_ATTENTION_OFFSET] = ((int64_t)1 << 40) - 200, v[HOOK_MASK] = MASK_WINDOW, v[HOOK_MASK_A] = 64;
    run_bare(&c, levels[i].kernel, 1, &(attention_constants){.dh = 4, .dv = 4, .group = 1, .dtype = dtype, .scale = 1, .has_mask = 1, .has_lse = 1});
    for (int d = 0; d < 4; d++) assert_true(fabs(uly_dtype_load(dtype, out, d) - (d + 5)) < 1e-5);
    assert_true(fabsf(lse - (10 + logf(64))) < 1e-5f);
    assert_true(count > 0 && count < 300);
  }
}

// A value of Inf in the last key without a mask is Inf in what is returned: nothing behind the keys takes part.
static void test_last_value(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 5, 16, 17, 31, 32, 33, 127, 129, 160};
  enum { D = 3, MOST = 160 };
  level levels[MAX_LEVELS];
  const int n_levels = find_levels(levels);
  for (int i = 0; i < n_levels; i++)
    for (size_t t = 0; t < sizeof sizes / sizeof *sizes; t++) {
      const uly_dtype dtype = levels[i].tiles ? ULY_BF16 : ULY_F32;
      float q[D], k[MOST * D], value[MOST * D], out[D];
      for (int64_t at = 0; at < D; at++) uly_dtype_store(dtype, q, at, 1);
      for (int64_t at = 0; at < sizes[t] * D; at++) uly_dtype_store(dtype, k, at, 1), uly_dtype_store(dtype, value, at, 2);
      uly_dtype_store(dtype, value, (sizes[t] - 1) * D + 1, (double)INFINITY);
      bare_call c = {.p = {[ULY_ATTENTION_Q] = q, [ULY_ATTENTION_K] = k, [ULY_ATTENTION_V] = value, [ULY_ATTENTION_OUT] = out}};
      int64_t *v = c.value;
      v[ULY_ATTENTION_S] = v[ULY_ATTENTION_B] = v[ULY_ATTENTION_H] = 1, v[ULY_ATTENTION_T] = sizes[t];
      v[ULY_ATTENTION_K_S] = v[ULY_ATTENTION_V_S] = D;
      run_bare(&c, levels[i].kernel, 1, &(attention_constants){.dh = D, .dv = D, .group = 1, .dtype = dtype, .scale = 1});
      for (int d = 0; d < D; d++) {
        const double got = uly_dtype_load(dtype, out, d);
        if (d == 1 ? got == (double)INFINITY : fabs(got - 2) < 1e-5) continue;
        print_error("%s, T = %lld: column %d is %g\n", levels[i].name, (long long)sizes[t], d, got);
        fail();
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_float64), cmocka_unit_test(test_ranges_are_free), cmocka_unit_test(test_specialised), cmocka_unit_test(test_bits),
      cmocka_unit_test(test_far_offsets),     cmocka_unit_test(test_empty_stretches), cmocka_unit_test(test_last_value)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
