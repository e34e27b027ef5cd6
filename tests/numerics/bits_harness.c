#include "tests/numerics/bits_harness.h"

#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/numerics/guarded_memory.h"

enum { MAX_THREADS = 16, MAX_CHUNKS = 64 };

// SplitMix64.
uint64_t uly_bits_random(uint64_t *state) {
  uint64_t x = *state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

int64_t uly_bits_range(uint64_t *state, int64_t lo, int64_t hi) { return lo + (int64_t)(uly_bits_random(state) % (uint64_t)(hi - lo + 1)); }

float uly_bits_normal(uint64_t *state) {
  double sum = 0;
  for (int i = 0; i < 4; i++) sum += (double)(uly_bits_random(state) >> 11) * 0x1p-53;
  return (float)((sum - 2) * 1.7320508075688772);
}

typedef struct work {
  uly_kernel kernel;
  const uly_call *call;
  size_t scratch_bytes;
  int64_t cut[MAX_CHUNKS + 1];
  int n_chunks;
  atomic_int next;
} work;

static void *worker(void *user) {
  work *w = user;
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040); // FTZ, DAZ
  for (int chunk; (chunk = atomic_fetch_add(&w->next, 1)) < w->n_chunks;) {
    uly_guarded scratch = uly_guarded_create((w->scratch_bytes + 63) / 64 * 64, true);
    uly_call call = *w->call;
    call.scratch = scratch.data;
    call.lo = w->cut[chunk];
    call.hi = w->cut[chunk + 1];
    w->kernel(&call);
    uly_guarded_destroy(&scratch);
  }
  _mm_setcsr(saved);
  return NULL;
}

static int by_value(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

void uly_bits_run(uly_kernel kernel, const uly_call *call, int64_t n_items, size_t scratch_bytes, int n_threads, uint64_t seed) {
  work w = {.kernel = kernel, .call = call, .scratch_bytes = scratch_bytes};
  if (n_items <= 0) return;
  w.n_chunks = n_threads == 1 && seed == 0 ? 1 : (int)uly_bits_range(&seed, 1, n_items < MAX_CHUNKS ? n_items : MAX_CHUNKS);
  w.cut[w.n_chunks] = n_items;
  for (int i = 1; i < w.n_chunks; i++) w.cut[i] = uly_bits_range(&seed, 0, n_items);
  qsort(w.cut, (size_t)w.n_chunks + 1, sizeof *w.cut, by_value);
  pthread_t threads[MAX_THREADS];
  if (n_threads > MAX_THREADS) n_threads = MAX_THREADS;
  for (int i = 1; i < n_threads; i++)
    if (pthread_create(&threads[i], NULL, worker, &w)) abort();
  worker(&w);
  for (int i = 1; i < n_threads; i++) pthread_join(threads[i], NULL);
}

static uly_bits_variant plain(const uly_bits_subject *s) { return (uly_bits_variant){.n_rows = s->rows, .n_heads = s->heads, .keep = -1, .n_threads = 1}; }

// A random subset of what may vary, at least one.
static uly_bits_variant draw(const uly_bits_subject *s, uint64_t *seed) {
  uly_bits_variant v = plain(s);
  const unsigned all = ULY_BITS_ROWS | ULY_BITS_HEADS | ULY_BITS_OTHER_ROWS | ULY_BITS_THREADS;
  unsigned vary;
  do vary = (unsigned)uly_bits_random(seed) & s->may_vary & all;
  while (!vary && (s->may_vary & all));
  if (vary & ULY_BITS_ROWS) {
    v.first_row = s->first_rows_only ? 0 : uly_bits_range(seed, 0, s->rows - 1);
    v.n_rows = uly_bits_range(seed, 1, s->rows - v.first_row);
  }
  if (vary & ULY_BITS_HEADS) {
    v.first_head = uly_bits_range(seed, 0, s->heads - 1);
    v.n_heads = uly_bits_range(seed, 1, s->heads - v.first_head);
  }
  if (vary & ULY_BITS_OTHER_ROWS) {
    v.keep = v.first_row + uly_bits_range(seed, 0, v.n_rows - 1);
    v.other_rows = uly_bits_random(seed) | 1;
  }
  if (vary & ULY_BITS_THREADS) {
    v.n_threads = (int)uly_bits_range(seed, 1, 4);
    v.seed = uly_bits_random(seed) | 1;
  }
  return v;
}

static bool same(const uly_bits_subject *s, const uly_bits_variant *v, const char *whole, const char *part) {
  for (int64_t h = 0; h < v->n_heads; h++)
    for (int64_t r = 0; r < v->n_rows; r++) {
      if (v->keep >= 0 && r + v->first_row != v->keep) continue;
      const char *a = whole + (size_t)((h + v->first_head) * s->rows + r + v->first_row) * s->row_bytes;
      const char *b = part + (size_t)(h * v->n_rows + r) * s->row_bytes;
      if (memcmp(a, b, s->row_bytes) == 0) continue;
      fprintf(stderr, "%s: row %lld of head %lld has other bits in a call of rows [%lld, +%lld), heads [%lld, +%lld), other rows %s, %d threads\n", s->name,
              (long long)(r + v->first_row), (long long)(h + v->first_head), (long long)v->first_row, (long long)v->n_rows, (long long)v->first_head,
              (long long)v->n_heads, v->other_rows ? "changed" : "the same", v->n_threads);
      return false;
    }
  return true;
}

int uly_bits_check(const uly_bits_subject *s, int trials, uint64_t seed) {
  const size_t bytes = (size_t)(s->rows * s->heads) * s->row_bytes;
  char *whole = malloc(bytes + 1), *part = malloc(bytes + 1);
  if (!whole || !part) abort();
  const uly_bits_variant base = plain(s);
  s->run(s->user, &base, whole);
  int different = 0;
  for (int i = 0; i < trials; i++) {
    const uly_bits_variant v = draw(s, &seed);
    memset(part, 0xa5, bytes);
    s->run(s->user, &v, part);
    different += !same(s, &v, whole, part);
    if (different > 4) break;
  }
  free(whole);
  free(part);
  return different;
}
