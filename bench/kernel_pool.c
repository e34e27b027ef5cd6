#include "bench/kernel_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bench/rank_timing.h"

enum { HUGE_PAGE = 2 << 20, FMA_ROUNDS = 20000 };

static struct {
  int n;
  size_t scratch_bytes;
  double (*fma_loop)(int64_t n);
  timing timing;
  uly_kernel kernel; // NULL: the FMA loop
  uly_call call;
  int64_t items;
  double *item_best, rate[POOL_MAX_THREADS];
  atomic_llong next;
} pool;

typedef struct worker {
  int id;
  void *scratch;
} worker;

float *pool_floats(int64_t n, float scale) {
  size_t bytes = ((size_t)n * 4 + HUGE_PAGE) / HUGE_PAGE * HUGE_PAGE;
  float *p = aligned_alloc(HUGE_PAGE, bytes);
  if (!p) exit(1);
  madvise(p, bytes, MADV_HUGEPAGE);
  for (int64_t i = 0; i < n; i++) p[i] = (float)(int32_t)((uint32_t)i * 2654435761u) * 0x1p-31f * scale;
  return p;
}

static void take_items(void *argument) {
  const worker *w = argument;
  if (!pool.kernel) {
    double begin = timing_now(), operations = pool.fma_loop(FMA_ROUNDS);
    pool.rate[w->id] = operations / (timing_now() - begin);
    return;
  }
  uly_call call = pool.call;
  call.scratch = w->scratch;
  for (int64_t i; (i = atomic_fetch_add(&pool.next, 1)) < pool.items;) {
    double begin = timing_now();
    call.lo = i;
    call.hi = i + 1;
    pool.kernel(&call);
    double seconds = timing_now() - begin;
    if (pool.item_best && seconds < pool.item_best[i]) pool.item_best[i] = seconds;
  }
}

static worker make_worker(int id) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)id, &set);
  sched_setaffinity(0, sizeof set, &set); // fails where there are fewer cores: then the kernel chooses
  _mm_setcsr(_mm_getcsr() | 0x8040);      // denormals are zeros, as the runtime sets it
  return (worker){id, pool_floats((int64_t)pool.scratch_bytes / 4, 1)};
}

static void *thread_main(void *argument) {
  worker w = make_worker((int)(intptr_t)argument);
  for (;;) timing_of(&pool.timing, w.id, pool.n, take_items, &w);
  return NULL;
}

static worker self;

void pool_start(int n, size_t scratch_bytes, double (*fma_loop)(int64_t n)) {
  pool.n = n;
  pool.scratch_bytes = scratch_bytes;
  pool.fma_loop = fma_loop;
  self = make_worker(0);
  for (int t = 1; t < n; t++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_main, (void *)(intptr_t)t)) exit(1);
  }
}

double pool_run(uly_kernel kernel, const uly_call *call, int64_t items, double *item_best) {
  pool.kernel = kernel;
  pool.call = *call;
  pool.items = items;
  pool.item_best = item_best;
  atomic_store(&pool.next, 0);
  return timing_of(&pool.timing, 0, pool.n, take_items, &self);
}

double pool_peak(void) {
  pool.kernel = NULL;
  timing_of(&pool.timing, 0, pool.n, take_items, &self);
  double rate = 0;
  for (int t = 0; t < pool.n; t++) rate += pool.rate[t];
  return rate;
}
