// A harness: one function that takes arbitrary bytes. With -DULY_FUZZ=ON libFuzzer calls it, else replay.c, which ctest runs on the corpus.
#ifndef ULY_TESTS_FUZZ_FUZZ_H
#define ULY_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

// Takes numbers off the front of an input; zeros behind its end.
typedef struct fuzz_input {
  const uint8_t *at;
  size_t n;
} fuzz_input;

static inline void fuzz_bytes(fuzz_input *in, void *out, size_t n) {
  size_t have = n < in->n ? n : in->n;
  memset(out, 0, n);
  if (have) memcpy(out, in->at, have);
  in->at += have;
  in->n -= have;
}
static inline uint8_t fuzz_u8(fuzz_input *in) {
  uint8_t x;
  return fuzz_bytes(in, &x, sizeof x), x;
}
static inline uint32_t fuzz_u32(fuzz_input *in) {
  uint32_t x;
  return fuzz_bytes(in, &x, sizeof x), x;
}
static inline uint64_t fuzz_u64(fuzz_input *in) {
  uint64_t x;
  return fuzz_bytes(in, &x, sizeof x), x;
}

#endif
