// Times linear layers: best whole call of many, in turns with a loop of nothing but FMAs on as many threads, and prints the share of that loop's rate.
//   linear_bench [threads=2] [level=amx|v4|v3] [kind=plain|residual|silu|rope|loss] [dtype=f32|bf16|f16] [segments=1] [ms=300] M,K,N …
// For silu N counts both weights' columns; segments: x comes in so many pieces along K. One line a shape: M K N GFLOP/s share-of-peak, and of another dtype of x, weights and
// result its rate over that of f32, of another kind its rate over that of plain, which runs in turns with it.
#include "bench/linear_kernels.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kernel_pool.h"
#include "bench/rank_timing.h"
#include "runtime/base/dtype.h"
#include "runtime/base/features.h"

int64_t uly_gemm_x_dtype, uly_gemm_w_dtype, uly_gemm_part_dtype[ULY_GEMM_MAX_PARTS], uly_pack_dtype;
int64_t uly_gemm_k, uly_gemm_part_n_groups[ULY_GEMM_MAX_PARTS], uly_gemm_part_group[ULY_GEMM_MAX_PARTS];
int64_t uly_pack_k, uly_pack_group;

enum { MAX_SEGMENTS = 16 };

// ---- shapes -----------------------------------------------------------------------------------------------------------------------------------

typedef struct options {
  const linear_level *level;
  linear_kind kind;
  uly_dtype dtype;
  int segments;
  double seconds;
} options;

typedef struct layer {
  void *x, *w[2], *packed, *y;
  float *cosine, *sine, *bias, *residual;
  int32_t *labels;
  void *p[LINEAR_N_OPS], *x_p[MAX_SEGMENTS];
  uly_arg op[LINEAR_N_OPS];
  int64_t v[LINEAR_N_VALS], x_s[MAX_SEGMENTS];
  const int64_t *val[LINEAR_N_VALS];
  int64_t columns; // of the result
} layer;

// Sets what the templates take as constants. Returns the panels of the weights.
static int64_t set_constants(const options *o, int64_t k, int64_t columns) {
  static const uly_gemm_mode modes[] = {
#define X(name, mode, epilogue) mode,
      LINEAR_KINDS(X)
#undef X
  };
  bool rope = o->kind == LINEAR_rope;
  uly_gemm_x_dtype = uly_gemm_w_dtype = uly_gemm_part_dtype[0] = uly_pack_dtype = o->dtype;
  uly_gemm_k = uly_pack_k = k;
  uly_gemm_part_n_groups[0] = rope ? columns / LINEAR_HEAD : 1;
  uly_gemm_part_group[0] = uly_pack_group = rope ? LINEAR_HEAD : columns;
  return uly_part_panels(modes[o->kind], uly_gemm_part_n_groups[0], uly_pack_group, rope ? LINEAR_HEAD : 0);
}

// |n| numbers of |dtype| in [−1, 1).
static void *numbers(uly_dtype dtype, int64_t n) {
  float *f = pool_floats(n, 1);
  if (dtype == ULY_F32) return f;
  void *halves = pool_floats((n + 1) / 2, 1);
  uly_dtype_convert(ULY_F32, f, dtype, halves, n);
  free(f);
  return halves;
}

static const linear_level *level_of(const options *o) { return o->level->base && o->dtype != ULY_BF16 ? o->level->base : o->level; }

static layer make_layer(const options *o, int64_t m, int64_t k, int64_t n, int64_t *out_items) {
  layer l = {.columns = o->kind == LINEAR_silu ? n / 2 : n};
  uly_dtype dtype = o->dtype;
  int64_t n_panels = set_constants(o, k, l.columns);
  l.x = numbers(dtype, m * k);
  l.w[0] = numbers(dtype, l.columns * k);
  l.w[1] = numbers(dtype, l.columns * k);
  l.packed = pool_floats(n_panels * uly_panel_bytes(k, uly_dtype_bytes(dtype)) / 4, 1);
  l.y = pool_floats(m * (o->kind == LINEAR_loss ? uly_nll_row(uly_nll_tiles(l.columns)) : l.columns), 1);
  l.cosine = pool_floats(m * LINEAR_HEAD / 2, 1);
  l.sine = pool_floats(m * LINEAR_HEAD / 2, 1);
  l.bias = pool_floats(n, 1);
  l.residual = pool_floats(m * l.columns, 1);
  l.labels = calloc((size_t)m, sizeof *l.labels);
  for (int64_t i = 0; i < m; i++) l.labels[i] = (int32_t)(i * 7919 % l.columns);
  void *w0 = l.w[0], *w1 = l.w[1], *out = l.packed;
  uly_arg op[ULY_PACK_N_OPS] = {{&w0, 1}, {&w1, 1}, {&out, 1}};
  const int64_t one = 1, *val[ULY_PACK_N_VALS] = {&k, &k, &one, &one};
  level_of(o)->pack[o->kind](&(uly_call){.op = op, .val = val, .n_peers = 1, .hi = n_panels});
  *out_items = uly_cdiv(n_panels, ULY_GEMM_ITEM_PANELS) * uly_cdiv(m, ULY_GEMM_ITEM_ROWS);
  return l;
}

static void free_layer(layer *l) {
  void *all[] = {l->x, l->w[0], l->w[1], l->packed, l->y, l->cosine, l->sine, l->bias, l->residual};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  free(l->labels);
}

static void set_call(layer *l, const options *o, int64_t m, int64_t k) {
  int segments = o->segments;
  l->p[ULY_GEMM_W] = l->packed;
  l->p[ULY_GEMM_COS] = l->cosine;
  l->p[ULY_GEMM_SIN] = l->sine;
  l->p[ULY_GEMM_LABELS] = l->labels;
  l->p[ULY_GEMM_OUT] = l->y;
  l->p[LINEAR_BIAS] = l->bias;
  l->p[LINEAR_RESIDUAL] = l->residual;
  l->v[ULY_GEMM_ROWS] = m;
  l->v[ULY_GEMM_BATCH] = 1;
  l->v[ULY_GEMM_ROPE_S] = LINEAR_HEAD / 2;
  l->v[ULY_GEMM_LABELS_S] = 1;
  l->v[ULY_GEMM_OUT_S] = o->kind == LINEAR_loss ? 1 : l->columns;
  l->v[LINEAR_RESIDUAL_S] = l->columns;
  for (int i = 0; i < LINEAR_N_OPS; i++) l->op[i] = (uly_arg){&l->p[i], 1};
  for (int i = 0; i < LINEAR_N_VALS; i++) l->val[i] = &l->v[i];
  for (int i = 0; i < segments; i++) {
    l->x_p[i] = (char *)l->x + m * (k / segments) * i * uly_dtype_bytes(o->dtype);
    l->x_s[i] = i == segments - 1 ? k - k / segments * i : k / segments;
  }
  l->op[ULY_GEMM_X] = (uly_arg){l->x_p, segments};
  l->val[ULY_GEMM_X_S] = l->val[ULY_GEMM_X_B] = l->val[ULY_GEMM_X_K] = l->x_s;
}

static double larger(double a, double b) { return a > b ? a : b; }

typedef struct run {
  options o;
  layer layer;
  uly_call call;
  int64_t k, items;
  double best;
} run;

static void start(run *r, int64_t m, int64_t k, int64_t n) {
  r->k = k;
  r->layer = make_layer(&r->o, m, k, n, &r->items);
  set_call(&r->layer, &r->o, m, k);
  r->call = (uly_call){.op = r->layer.op, .val = r->layer.val, .n_peers = 1};
  r->best = 1e9;
}

static void repeat(run *r, int times) {
  set_constants(&r->o, r->k, r->layer.columns);
  for (int i = 0; i < times; i++) {
    double seconds = pool_run(level_of(&r->o)->gemm[r->o.kind], &r->call, r->items, NULL);
    if (seconds < r->best) r->best = seconds;
  }
}

static void measure(const options *o, int64_t m, int64_t k, int64_t n) {
  static run runs[2]; // what is asked for, and what it is held against
  bool halves = o->dtype != ULY_F32;
  int n_runs = halves || o->kind != LINEAR_plain ? 2 : 1;
  double peak = 0, work = 2.0 * (double)m * (double)k * (double)n;
  runs[0].o = runs[1].o = *o;
  if (halves)
    runs[1].o.dtype = ULY_F32;
  else
    runs[1].o.kind = LINEAR_plain;
  for (int i = 0; i < n_runs; i++) start(&runs[i], m, k, n);
  for (int i = 0; i < 20; i++) peak = larger(peak, pool_peak());
  for (double end = timing_now() + o->seconds * n_runs; runs[0].best == 1e9 || timing_now() < end;) {
    peak = larger(peak, pool_peak());
    for (int i = 0; i < n_runs; i++) repeat(&runs[i], 3);
  }
  printf("%" PRId64 " %" PRId64 " %" PRId64 " %.1f %.3f", m, k, n, work / runs[0].best / 1e9, work / runs[0].best / peak);
  if (n_runs > 1) printf(" %.3f of %s", runs[1].best / runs[0].best, halves ? "f32" : "plain");
  printf("\n");
  fflush(stdout);
  for (int i = 0; i < n_runs; i++) free_layer(&runs[i].layer);
}

static int kind_of(const char *name) {
  static const char *const names[] = {
#define X(name, mode, epilogue) #name,
      LINEAR_KINDS(X)
#undef X
  };
  for (int i = 0; i < N_LINEAR_KINDS; i++)
    if (!strcmp(name, names[i])) return i;
  fprintf(stderr, "linear_bench: unknown kind %s\n", name);
  exit(2);
}

int main(int argc, char **argv) {
  const uint32_t features = uly_cpu_features(UINT32_MAX);
  options o = {features & ULY_CPU_AMX ? &linear_level_amx : features & ULY_CPU_AVX512 ? &linear_level_v4 : &linear_level_v3, LINEAR_plain, ULY_F32, 1, 0.3};
  int threads = 2;
  bool started = false;
  for (int i = 1; i < argc; i++) {
    int64_t m, k, n;
    if (!strncmp(argv[i], "threads=", 8))
      threads = atoi(argv[i] + 8);
    else if (!strcmp(argv[i], "level=v3"))
      o.level = &linear_level_v3;
    else if (!strcmp(argv[i], "level=v4"))
      o.level = &linear_level_v4;
    else if (!strcmp(argv[i], "level=amx"))
      o.level = &linear_level_amx;
    else if (!strncmp(argv[i], "kind=", 5))
      o.kind = (linear_kind)kind_of(argv[i] + 5);
    else if (!strncmp(argv[i], "dtype=", 6) && uly_dtype_by_name(uly_str_of(argv[i] + 6), &o.dtype) &&
             (o.dtype == ULY_F32 || o.dtype == ULY_BF16 || o.dtype == ULY_F16))
      continue;
    else if (!strncmp(argv[i], "segments=", 9))
      o.segments = atoi(argv[i] + 9);
    else if (!strncmp(argv[i], "ms=", 3))
      o.seconds = atof(argv[i] + 3) * 1e-3;
    else if (sscanf(argv[i], "%" SCNd64 ",%" SCNd64 ",%" SCNd64, &m, &k, &n) == 3 && m > 0 && k > 0 && n > 0 && threads >= 1 && threads <= POOL_MAX_THREADS &&
             o.segments >= 1 && o.segments <= MAX_SEGMENTS) {
      if (!started) pool_start(threads, ULY_GEMM_SCRATCH_BYTES, o.level->fma_loop);
      started = true;
      measure(&o, m, k, n);
    } else {
      fprintf(stderr, "linear_bench: cannot read %s\n", argv[i]);
      return 2;
    }
  }
  return 0;
}
