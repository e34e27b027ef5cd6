#include "bench/rank_timing.h"

#include <sched.h>
#include <time.h>

double timing_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void timing_meet(timing *t, int n_ranks) {
  uint32_t round = atomic_load(&t->round);
  if (atomic_fetch_add(&t->arrived, 1) + 1 == (uint32_t)n_ranks) {
    atomic_store(&t->arrived, 0);
    atomic_store(&t->round, round + 1);
    return;
  }
  for (int i = 0; atomic_load(&t->round) == round; i++)
    if (i > 200) sched_yield();
}

double timing_of(timing *t, int rank, int n_ranks, void (*work)(void *), void *argument) {
  timing_meet(t, n_ranks);
  t->begin[rank] = timing_now();
  work(argument);
  t->end[rank] = timing_now();
  timing_meet(t, n_ranks);
  double begin = t->begin[0], end = t->end[0];
  for (int q = 1; q < n_ranks; q++) begin = t->begin[q] < begin ? t->begin[q] : begin, end = t->end[q] > end ? t->end[q] : end;
  timing_meet(t, n_ranks);
  return end - begin;
}

bool timing_agree(timing *t, int rank, int n_ranks, bool done) {
  if (rank == 0) atomic_store(&t->stop, done);
  timing_meet(t, n_ranks);
  bool stop = atomic_load(&t->stop) != 0;
  timing_meet(t, n_ranks);
  return stop;
}
