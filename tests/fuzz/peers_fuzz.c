// What ranks read from their peers, made of arbitrary bytes: a call ends with a status, reads nothing that is not there, and does not hang.
#include "tests/fuzz/peers.h"

#include <time.h>

double fuzz_now;

int fuzz_clock(int clock, struct timespec *out) {
  (void)clock;
  fuzz_now += 1e-6;
  *out = (struct timespec){(time_t)fuzz_now, (long)((fuzz_now - (double)(time_t)fuzz_now) * 1e9)};
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_input in = {data, n};
  fuzz_now = 1000;
  switch (fuzz_u8(&in) % 4) {
  case 0: fuzz_shm(&in); break;
  case 1: fuzz_mpi(&in); break;
  default: fuzz_mapped(&in); break;
  }
  return 0;
}
