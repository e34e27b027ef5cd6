// The clock of waits and measurements.
#ifndef ULY_RUNTIME_BASE_CLOCK_H
#define ULY_RUNTIME_BASE_CLOCK_H

#include <time.h>

// Seconds since some time in the past; never goes back. Inline, for the fuzzers put a clock of their own in the place of clock_gettime.
static inline double uly_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
