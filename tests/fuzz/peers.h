// Parts of peers_fuzz.c: a transport each, with this process as rank 0 and the input as everyone else.
#ifndef ULY_TESTS_FUZZ_PEERS_H
#define ULY_TESTS_FUZZ_PEERS_H

#include "tests/fuzz/fuzz.h"

void fuzz_mapped(fuzz_input *in); // counters, calls and headers in mapped memory
void fuzz_shm(fuzz_input *in);    // letters with descriptors
void fuzz_mpi(fuzz_input *in);    // headers and notices

// What the transports wait with: time passes as fast as they ask for it.
struct timespec;
int fuzz_clock(int clock, struct timespec *out);
extern double fuzz_now;

#endif
