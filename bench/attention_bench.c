// Times attention forward: best whole run of many, in turns with a loop of nothing but FMAs on as many threads, and prints the share of that loop's rate. Only the pairs
// that the mask allows are counted.
//   attention_bench [threads=1] [level=v4|v3] [s=4096] [heads=1] [ms=500] [layout=dense|message] [kind=64_0 …]
// One line a kind: width, mask, GFLOP/s and share of the peak, for the best whole run and for the sum of every item's best time.
#include "bench/attention_kernels.h"

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

#include "runtime/kernel_abi.h"

enum { MAX_THREADS = 64, HUGE_PAGE = 2 << 20, FMA_ROUNDS = 20000 };

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
  for (int64_t i = 0; i < n; i++) p[i] = (float)(int32_t)((uint32_t)i * 2654435761u) * 0x1p-30f;
  return p;
}

// ---- threads: all start a job together, and take its items one by one ----------------------------------------------------------------------------

static struct {
  int n;
  atomic_int epoch, done;
  atomic_llong next;
  uly_kernel kernel; // NULL: the FMA loop
  const attention_level *level;
  uly_call call;
  int64_t items;
  double *item_best, fma_rate[MAX_THREADS];
} pool;

static void take_part(int id, void *scratch) {
  if (!pool.kernel) {
    double t = now(), operations = pool.level->fma_loop(FMA_ROUNDS);
    pool.fma_rate[id] = operations / (now() - t);
    return;
  }
  uly_call call = pool.call;
  call.scratch = scratch;
  for (int64_t i; (i = atomic_fetch_add(&pool.next, 1)) < pool.items;) {
    double t = now();
    call.lo = i;
    call.hi = i + 1;
    pool.kernel(&call);
    t = now() - t;
    if (t < pool.item_best[i]) pool.item_best[i] = t;
  }
}

static void settle(int id) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)id, &set);
  sched_setaffinity(0, sizeof set, &set);
  _mm_setcsr(_mm_getcsr() | 0x8040);
}

static float *scratch_memory(void) { return floats(uly_attention_scratch(128, 128) / 4); }

static void *thread_main(void *arg) {
  int id = (int)(intptr_t)arg, seen = 0;
  settle(id);
  void *scratch = scratch_memory();
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

// ---- problems ----------------------------------------------------------------------------------------------------------------------------------------

typedef struct options {
  int64_t s, heads;
  double seconds;
  bool message;
  const char *kind;
} options;

typedef struct problem {
  float *q, *k, *v, *o, *lse;
  void *p[ULY_ATTENTION_N_OPS];
  uly_arg op[ULY_ATTENTION_N_OPS];
  int64_t value[ULY_ATTENTION_N_VALS];
  const int64_t *val[ULY_ATTENTION_N_VALS];
} problem;

// Dense: [head][row][width]. Message: [row][q heads | k heads | v heads][width], as an exchange delivers it.
static void set_problem(problem *p, const options *o, int64_t width) {
  const int64_t n = o->s * o->heads * width;
  *p = (problem){.q = floats(3 * n), .o = floats(n), .lse = floats(o->s * o->heads)};
  const int64_t part = o->message ? o->heads * width : n;
  void *pointers[] = {[ULY_ATTENTION_Q] = p->q, p->q + part, p->q + 2 * part, NULL, NULL, p->o, p->lse};
  int64_t *v = p->value;
  v[ULY_ATTENTION_S] = v[ULY_ATTENTION_T] = o->s;
  v[ULY_ATTENTION_B] = 1;
  v[ULY_ATTENTION_H] = o->heads;
  v[ULY_ATTENTION_Q_S] = v[ULY_ATTENTION_K_S] = v[ULY_ATTENTION_V_S] = o->message ? 3 * o->heads * width : width;
  v[ULY_ATTENTION_Q_H] = v[ULY_ATTENTION_K_H] = v[ULY_ATTENTION_V_H] = o->message ? width : o->s * width;
  v[ULY_ATTENTION_O_S] = o->heads * width;
  v[ULY_ATTENTION_O_H] = width;
  v[ULY_ATTENTION_L_S] = o->heads;
  v[ULY_ATTENTION_L_H] = 1;
  for (int i = 0; i < ULY_ATTENTION_N_OPS; i++) p->p[i] = pointers[i], p->op[i] = (uly_arg){&p->p[i], pointers[i] != NULL};
  for (int i = 0; i < ULY_ATTENTION_N_VALS; i++) p->val[i] = &v[i];
  pool.call = (uly_call){.op = p->op, .val = p->val, .n_peers = 1};
  pool.items = o->heads * uly_cdiv(o->s, ULY_ATTENTION_ITEM_ROWS);
}

static void measure(const options *o, attention_kind kind, int64_t width, bool causal, void *scratch) {
  problem p;
  set_problem(&p, o, width);
  pool.item_best = malloc((size_t)pool.items * sizeof *pool.item_best);
  if (!pool.item_best) exit(1);
  for (int64_t i = 0; i < pool.items; i++) pool.item_best[i] = 1e9;
  double best = 1e9, peak = 0, sum = 0;
  for (double end = now() + o->seconds; now() < end;) {
    for (int i = 0; i < 4; i++) {
      run(NULL, scratch);
      double rate = 0;
      for (int t = 0; t < pool.n; t++) rate += pool.fma_rate[t];
      if (rate > peak) peak = rate;
    }
    double seconds = run(pool.level->kernel[kind], scratch);
    if (seconds < best) best = seconds;
  }
  for (int64_t i = 0; i < pool.items; i++) sum += pool.item_best[i];
  double pairs = causal ? 0.5 * (double)o->s * (double)(o->s + 1) : (double)o->s * (double)o->s;
  double work = 4 * pairs * (double)(width * o->heads);
  printf("%s %d threads S=%" PRId64 " H=%" PRId64 " Dh=%-3" PRId64 " %-6s %6.1f GFLOP/s %5.1f %% of %.1f | items' best %5.1f %%\n", pool.level->name, pool.n,
         o->s, o->heads, width, causal ? "causal" : "full", work / best * 1e-9, 100 * work / best / peak, peak * 1e-9, 100 * work / sum * pool.n / peak);
  fflush(stdout);
  free(p.q), free(p.o), free(p.lse), free(pool.item_best);
}

static void read_option(options *o, const char *text) {
  if (!strncmp(text, "threads=", 8))
    pool.n = atoi(text + 8);
  else if (!strcmp(text, "level=v3"))
    pool.level = &attention_level_v3;
  else if (!strcmp(text, "level=v4"))
    pool.level = &attention_level_v4;
  else if (!strncmp(text, "s=", 2))
    o->s = atoll(text + 2);
  else if (!strncmp(text, "heads=", 6))
    o->heads = atoll(text + 6);
  else if (!strncmp(text, "ms=", 3))
    o->seconds = atof(text + 3) * 1e-3;
  else if (!strcmp(text, "layout=message"))
    o->message = true;
  else if (!strcmp(text, "layout=dense"))
    o->message = false;
  else if (!strncmp(text, "kind=", 5))
    o->kind = text + 5;
  else {
    fprintf(stderr, "attention_bench: cannot read %s\n", text);
    exit(2);
  }
}

int main(int argc, char **argv) {
  options o = {.s = 4096, .heads = 1, .seconds = 0.5};
  pool.n = 1;
  pool.level = __builtin_cpu_supports("avx512f") ? &attention_level_v4 : &attention_level_v3;
  for (int i = 1; i < argc; i++) read_option(&o, argv[i]);
  if (pool.n < 1 || pool.n > MAX_THREADS || o.s < 1 || o.heads < 1) {
    fprintf(stderr, "attention_bench: 1 to %d threads, s and heads at least 1\n", MAX_THREADS);
    return 2;
  }
  void *scratch = scratch_memory();
  settle(0);
  for (int t = 1; t < pool.n; t++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_main, (void *)(intptr_t)t)) return 1;
  }
#define X(width, causal)                                                                                                                                       \
  if (!o.kind || !strcmp(o.kind, #width "_" #causal)) measure(&o, ATTENTION_##width##_##causal, width, causal, scratch);
  ATTENTION_KINDS(X)
#undef X
  return 0;
}
