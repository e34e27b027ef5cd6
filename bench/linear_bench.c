// Times linear layers: best whole call of many, in turns with a loop of nothing but FMAs on as many threads, and prints the share of that loop's rate.
//   linear_bench [threads=2] [level=v4|v3] [kind=plain|residual|silu|rope] [segments=1] [ms=300] M,K,N …
// For silu N counts both weights' columns; segments: x comes in so many pieces along K. One line a shape: M K N GFLOP/s share-of-peak. bench/linear compares with PyTorch.
#include "bench/linear_kernels.h"

#include <immintrin.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

int64_t uly_gemm_k, uly_gemm_part_n_groups[ULY_GEMM_MAX_PARTS], uly_gemm_part_group[ULY_GEMM_MAX_PARTS];
int64_t uly_pack_k, uly_pack_n_groups, uly_pack_group;

enum { MAX_THREADS = 64, MAX_SEGMENTS = 16, HUGE_PAGE = 2 << 20 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *floats(int64_t n) {
  size_t bytes = ((size_t)n * 4 + HUGE_PAGE) / HUGE_PAGE * HUGE_PAGE;
  float *p = aligned_alloc(HUGE_PAGE, bytes);
  if (!p) exit(1);
  madvise(p, bytes, MADV_HUGEPAGE);
  for (int64_t i = 0; i < n; i++) p[i] = (float)(int32_t)((uint32_t)i * 2654435761u) * 0x1p-31f;
  return p;
}

// ---- threads: all start a job together, and take its items one by one ---------------------------------------------------------------------------

static struct {
  int n;
  atomic_int epoch, done;
  atomic_llong next;
  uly_kernel kernel; // NULL: the FMA loop
  const linear_level *level;
  uly_call call;
  int64_t items;
  double operations[MAX_THREADS];
} pool;

static void take_part(int id, void *scratch) {
  if (!pool.kernel) {
    pool.operations[id] = pool.level->fma_loop(20000);
    return;
  }
  uly_call call = pool.call;
  call.scratch = scratch;
  for (int64_t i; (i = atomic_fetch_add(&pool.next, 1)) < pool.items;) {
    call.lo = i;
    call.hi = i + 1;
    pool.kernel(&call);
  }
}

static void settle(int id) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)id, &set);
  sched_setaffinity(0, sizeof set, &set);
  _mm_setcsr(_mm_getcsr() | 0x8040);
}

static void *thread_main(void *arg) {
  int id = (int)(intptr_t)arg, seen = 0;
  settle(id);
  void *scratch = floats(ULY_GEMM_SCRATCH_BYTES / 4);
  for (;;) {
    while (atomic_load_explicit(&pool.epoch, memory_order_acquire) == seen) _mm_pause();
    seen++;
    take_part(id, scratch);
    atomic_fetch_add(&pool.done, 1);
  }
  return NULL;
}

// Runs a job on all threads; returns seconds.
static double run(uly_kernel kernel, void *scratch) {
  double t = now();
  pool.kernel = kernel;
  pool.next = 0;
  pool.done = 0;
  atomic_fetch_add_explicit(&pool.epoch, 1, memory_order_release);
  take_part(0, scratch);
  while (atomic_load(&pool.done) < pool.n - 1) _mm_pause();
  return now() - t;
}

// ---- shapes -----------------------------------------------------------------------------------------------------------------------------------

typedef struct options {
  const linear_level *level;
  linear_kind kind;
  int segments;
  double seconds;
} options;

typedef struct layer {
  float *x, *w[2], *packed, *y, *cosine, *sine, *bias, *residual;
  void *p[LINEAR_N_OPS], *x_p[MAX_SEGMENTS];
  uly_arg op[LINEAR_N_OPS];
  int64_t v[LINEAR_N_VALS], x_s[MAX_SEGMENTS];
  const int64_t *val[LINEAR_N_VALS];
  int64_t columns; // of the result
} layer;

static int64_t panels(const options *o, int64_t columns) {
  static const uly_gemm_mode modes[] = {
#define X(name, mode, epilogue) mode,
    LINEAR_KINDS(X)
#undef X
  };
  bool rope = o->kind == LINEAR_rope;
  uly_gemm_part_n_groups[0] = uly_pack_n_groups = rope ? columns / LINEAR_HEAD : 1;
  uly_gemm_part_group[0] = uly_pack_group = rope ? LINEAR_HEAD : columns;
  return uly_part_panels(modes[o->kind], uly_pack_n_groups, uly_pack_group, rope ? LINEAR_HEAD : 0);
}

static layer make_layer(const options *o, int64_t m, int64_t k, int64_t n, int64_t *out_items) {
  layer l = {.columns = o->kind == LINEAR_silu ? n / 2 : n};
  uly_gemm_k = uly_pack_k = k;
  int64_t n_panels = panels(o, l.columns);
  l.x = floats(m * k);
  l.w[0] = floats(l.columns * k);
  l.w[1] = floats(l.columns * k);
  l.packed = floats(n_panels * k * ULY_PANEL);
  l.y = floats(m * l.columns);
  l.cosine = floats(m * LINEAR_HEAD / 2);
  l.sine = floats(m * LINEAR_HEAD / 2);
  l.bias = floats(n);
  l.residual = floats(m * l.columns);
  void *w0 = l.w[0], *w1 = l.w[1], *out = l.packed;
  uly_arg op[ULY_PACK_N_OPS] = {{&w0, 1}, {&w1, 1}, {&out, 1}};
  o->level->pack[o->kind](&(uly_call){.op = op, .n_peers = 1, .hi = n_panels});
  *out_items = uly_cdiv(n_panels, ULY_GEMM_ITEM_PANELS) * uly_cdiv(m, ULY_GEMM_ITEM_ROWS);
  return l;
}

static void free_layer(layer *l) {
  float *all[] = {l->x, l->w[0], l->w[1], l->packed, l->y, l->cosine, l->sine, l->bias, l->residual};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void set_call(layer *l, int segments, int64_t m, int64_t k) {
  l->p[ULY_GEMM_W] = l->packed;
  l->p[ULY_GEMM_COS] = l->cosine;
  l->p[ULY_GEMM_SIN] = l->sine;
  l->p[ULY_GEMM_OUT] = l->y;
  l->p[LINEAR_BIAS] = l->bias;
  l->p[LINEAR_RESIDUAL] = l->residual;
  l->v[ULY_GEMM_ROWS] = m;
  l->v[ULY_GEMM_BATCH] = 1;
  l->v[ULY_GEMM_ROPE_S] = LINEAR_HEAD / 2;
  l->v[ULY_GEMM_OUT_S] = l->v[LINEAR_RESIDUAL_S] = l->columns;
  for (int i = 0; i < LINEAR_N_OPS; i++) l->op[i] = (uly_arg){&l->p[i], 1};
  for (int i = 0; i < LINEAR_N_VALS; i++) l->val[i] = &l->v[i];
  for (int i = 0; i < segments; i++) {
    l->x_p[i] = l->x + m * (k / segments) * i;
    l->x_s[i] = i == segments - 1 ? k - k / segments * i : k / segments;
  }
  l->op[ULY_GEMM_X] = (uly_arg){l->x_p, segments};
  l->val[ULY_GEMM_X_S] = l->val[ULY_GEMM_X_B] = l->val[ULY_GEMM_X_K] = l->x_s;
}

// The FMA loop's rate, or |best| where that is more.
static double peak_rate(void *scratch, double best) {
  double seconds = run(NULL, scratch), operations = 0;
  for (int i = 0; i < pool.n; i++) operations += pool.operations[i];
  return operations / seconds > best ? operations / seconds : best;
}

static void measure(const options *o, int64_t m, int64_t k, int64_t n, void *scratch) {
  layer l = make_layer(o, m, k, n, &pool.items);
  set_call(&l, o->segments, m, k);
  pool.call = (uly_call){.op = l.op, .val = l.val, .n_peers = 1};
  double best = 1e9, peak = 0;
  for (int i = 0; i < 20; i++) peak = peak_rate(scratch, peak);
  run(o->level->gemm[o->kind], scratch);
  for (double end = now() + o->seconds; best == 1e9 || now() < end;) {
    peak = peak_rate(scratch, peak);
    for (int i = 0; i < 3; i++) {
      double seconds = run(o->level->gemm[o->kind], scratch);
      if (seconds < best) best = seconds;
    }
  }
  double rate = 2.0 * (double)m * (double)k * (double)n / best;
  printf("%" PRId64 " %" PRId64 " %" PRId64 " %.1f %.3f\n", m, k, n, rate / 1e9, rate / peak);
  fflush(stdout);
  free_layer(&l);
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
  options o = {__builtin_cpu_supports("avx512f") ? &linear_level_v4 : &linear_level_v3, LINEAR_plain, 1, 0.3};
  pool.n = 2;
  void *scratch = NULL;
  for (int i = 1; i < argc; i++) {
    int64_t m, k, n;
    if (!strncmp(argv[i], "threads=", 8)) pool.n = atoi(argv[i] + 8);
    else if (!strcmp(argv[i], "level=v3")) o.level = &linear_level_v3;
    else if (!strcmp(argv[i], "level=v4")) o.level = &linear_level_v4;
    else if (!strncmp(argv[i], "kind=", 5)) o.kind = (linear_kind)kind_of(argv[i] + 5);
    else if (!strncmp(argv[i], "segments=", 9)) o.segments = atoi(argv[i] + 9);
    else if (!strncmp(argv[i], "ms=", 3)) o.seconds = atof(argv[i] + 3) * 1e-3;
    else if (sscanf(argv[i], "%" SCNd64 ",%" SCNd64 ",%" SCNd64, &m, &k, &n) == 3 && m > 0 && k > 0 && n > 0 && pool.n >= 1 && pool.n <= MAX_THREADS && o.segments >= 1 && o.segments <= MAX_SEGMENTS) {
      if (!scratch) {
        scratch = floats(ULY_GEMM_SCRATCH_BYTES / 4);
        settle(0);
        pool.level = o.level;
        for (int t = 1; t < pool.n; t++) {
          pthread_t thread;
          if (pthread_create(&thread, NULL, thread_main, (void *)(intptr_t)t)) return 1;
        }
      }
      measure(&o, m, k, n, scratch);
    } else {
      fprintf(stderr, "linear_bench: cannot read %s\n", argv[i]);
      return 2;
    }
  }
  return 0;
}
