// Linear layers on CPU against float64, and their bits contract: the same row gives the same bits whatever the number of rows, the segments of K, the
// split of items, the layout of memory and the peers.

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/numerics/bits_harness.h"
#include "tests/numerics/gemm_case.h"

enum { ACCURACY_CASES = 400, BITS_CASES = 24 };

static const gemm_native *const levels[] = {&gemm_native_v3, &gemm_native_v4};
enum { N_LEVELS = sizeof levels / sizeof *levels };

static bool runs_here(const gemm_native *level) {
  return level == &gemm_native_v4 ? __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") : __builtin_cpu_supports("avx2");
}

// ---- float64 ----------------------------------------------------------------------------------------------------------------------------------

typedef struct sum {
  double value, bound; // bound: of the error of an f32 evaluation
} sum;

static sum dot(const gemm_case *c, int64_t part, bool second, int64_t id, int64_t column) {
  double value = 0, size = 0;
  for (int64_t k = 0; k < c->k; k++) {
    double term = (double)gemm_x(c, id, k) * (double)gemm_w(c, part, second, column, k);
    value += term;
    size += fabs(term);
  }
  return (sum){value, 1e-6 * size + 1e-12};
}

// The value before rope.
static sum unturned(const gemm_case *c, int64_t part, int64_t id, int64_t column) {
  sum a = dot(c, part, false, id, column);
  double bias = (double)gemm_bias(c, part, column), residual = (double)gemm_residual(c, part, id, column);
  gemm_epilogue kind = c->parts[part].epilogue;
  if (kind == GEMM_BIAS) a.value += bias;
  if (kind == GEMM_RESIDUAL) a.value += bias + residual;
  if (kind == GEMM_PRODUCT) {
    sum a1 = c->parts[part].mode == ULY_GEMM_PAIR ? dot(c, part, true, id, column) : a;
    double other = a1.value + bias;
    a = (sum){a.value * other, a.bound * fabs(other) + a1.bound * fabs(a.value) + a.bound * a1.bound};
  }
  a.bound += 2e-7 * (fabs(a.value) + fabs(bias) + fabs(residual));
  return a;
}

static sum expected(const gemm_case *c, int64_t part, int64_t id, int64_t column) {
  const gemm_part *p = &c->parts[part];
  int64_t at = column % p->group, pairs = p->rope / 2;
  sum own = unturned(c, part, id, column);
  if (p->mode < ULY_GEMM_ROPE_HALF || at >= p->rope) return own;
  bool half = p->mode == ULY_GEMM_ROPE_HALF, second = half ? at >= pairs : at % 2;
  int64_t pair = half ? at % pairs : at / 2, distance = half ? pairs : 1;
  sum other = unturned(c, part, id, second ? column - distance : column + distance);
  double cosine = (double)gemm_cos(c, id, pair), sine = (double)gemm_sin(c, id, pair);
  double value = own.value * cosine + (second ? sine : -sine) * other.value;
  return (sum){value, own.bound + other.bound + 3e-7 * (fabs(own.value) + fabs(other.value))};
}

// ---- drawing ----------------------------------------------------------------------------------------------------------------------------------

static int64_t pick(uint64_t *r, const int64_t *from, int64_t n) { return from[uly_bits_range(r, 0, n - 1)]; }
#define PICK(r, ...) pick(r, (const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static gemm_part draw_part(uint64_t *r, uly_gemm_mode mode, int64_t rope) {
  gemm_part p = {mode, uly_bits_range(r, 1, 6), PICK(r, 1, 3, 8, 15, 16, 17, 24, 32, 48, 64, 80), 0, (gemm_epilogue)uly_bits_range(r, GEMM_NONE, GEMM_RESIDUAL)};
  if (mode == ULY_GEMM_PLAIN && uly_bits_range(r, 0, 3) == 0) p = (gemm_part){mode, 1, uly_bits_range(r, 1, 700), 0, p.epilogue};
  if (mode == ULY_GEMM_PAIR) p = (gemm_part){mode, 1, uly_bits_range(r, 1, 400), 0, GEMM_PRODUCT};
  if (mode >= ULY_GEMM_ROPE_HALF) {
    p.rope = rope;
    p.group = rope + (uly_bits_range(r, 0, 1) ? uly_bits_range(r, 0, 70) : 0);
  }
  return p;
}

static gemm_case draw(uint64_t *r) {
  gemm_case c = {.seed = uly_bits_random(r), .layout = uly_bits_random(r)};
  c.k = PICK(r, 1, 2, 3, 5, 17, 64, 100, 384, 511, 512, 513, 640, 1024, 1100);
  c.s = PICK(r, 0, 1, 1, 2, 3, 5, 7, 13, 32, 97);
  c.b = PICK(r, 1, 1, 2, 3);
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

static void check_case(const gemm_case *c, const gemm_native *level, uint64_t *r, int number, double *worst) {
  float *out[ULY_GEMM_MAX_PARTS];
  gemm_run(c, level, out);
  for (int64_t p = 0; p < c->n_parts; p++) {
    int64_t columns = gemm_columns(c, p), n = c->s * c->b * columns, stride = 1 + n * c->k / 300000; // of a large result, a part
    for (int64_t i = n ? uly_bits_range(r, 0, stride - 1) : 0; i < n; i += stride) {
      sum want = expected(c, p, c->ids[i / columns], i % columns);
      double error = fabs((double)out[p][i] - want.value);
      if (!(error <= want.bound)) fail_msg("%s case %d part %lld row %lld column %lld: %g, not %g (K %lld)", level->name, number, (long long)p, (long long)(i / columns), (long long)(i % columns), (double)out[p][i], want.value, (long long)c->k);
      *worst = fmax(*worst, error / want.bound);
    }
    free(out[p]);
  }
}

static void is_accurate(void **state) {
  const gemm_native *level = *state;
  if (!runs_here(level)) skip();
  uint64_t r = 1;
  double worst = 0;
  for (int i = 0; i < ACCURACY_CASES; i++) {
    gemm_case c = draw(&r);
    check_case(&c, level, &r, i, &worst);
  }
  print_message("%s: %d cases, largest error %.2f of its bound\n", level->name, ACCURACY_CASES, worst);
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
        if (memcmp((char *)out[p] + (size_t)i * bytes, alone[c.ids[i]][p], bytes) != 0) fail_msg("%s: row %lld of %lld differs from the same row alone (K %lld)", level->name, (long long)i, (long long)(c.s * c.b), (long long)c.k);
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
    for (int64_t p = 0; p < c.n_parts; p++) {
      c.parts[p] = draw_part(&r, (uly_gemm_mode)(i / 2 % 4), rope);
      if (c.parts[p].n_groups > 2) c.parts[p].n_groups = 2;
      while (gemm_columns(&c, p) > 150) c.parts[p].group = c.parts[p].mode < ULY_GEMM_ROPE_HALF ? (c.parts[p].group + 1) / 2 : c.parts[p].rope;
    }
    same_bits_as_alone(&c, level, &r);
  }
}

int main(void) {
  struct CMUnitTest tests[2 * N_LEVELS];
  int n = 0;
  for (int i = 0; i < N_LEVELS; i++) {
    void *level = (void *)(uintptr_t)levels[i];
    tests[n++] = (struct CMUnitTest){i ? "is_accurate_v4" : "is_accurate_v3", is_accurate, NULL, NULL, level};
    tests[n++] = (struct CMUnitTest){i ? "rows_keep_their_bits_v4" : "rows_keep_their_bits_v3", rows_keep_their_bits, NULL, NULL, level};
  }
  return cmocka_run_group_tests_name("gemm", tests, NULL, NULL);
}
