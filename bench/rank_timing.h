// Times what several ranks, threads or processes, do together: from the first one's start to the last one's end.
#ifndef ULY_BENCH_RANK_TIMING_H
#define ULY_BENCH_RANK_TIMING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TIMING_MAX_RANKS = 64 };

// In memory that all ranks see; begins as zeros.
typedef struct timing {
  _Atomic uint32_t arrived, round;
  _Atomic int stop;
  double begin[TIMING_MAX_RANKS], end[TIMING_MAX_RANKS];
} timing;

double timing_now(void);
void timing_meet(timing *t, int n_ranks); // returns when all ranks have come
// All ranks call it; all get the same seconds.
double timing_of(timing *t, int rank, int n_ranks, void (*work)(void *), void *argument);
// Rank 0 asks whether |done|; all ranks get its answer.
bool timing_agree(timing *t, int rank, int n_ranks, bool done);

#endif
