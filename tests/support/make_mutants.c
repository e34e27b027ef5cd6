// Specs that somebody got wrong: make_mutants FOLDER COUNT SEED SPEC…. Writes FOLDER/<i>.spec, each a SPEC with one to three tokens changed.
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/status.h"
#include "tests/support/token_mutator.h"

enum { CAP = 1 << 16 };

int main(int argc, char **argv) {
  static char text[CAP];
  char path[4096];
  ULY_ASSERT(argc > 4);
  uint64_t state = strtoull(argv[3], NULL, 10);
  for (long i = 0; i < atol(argv[2]); i++) {
    FILE *in = fopen(argv[4 + i % (argc - 4)], "rb");
    ULY_ASSERT(in);
    size_t n = fread(text, 1, CAP / 2, in);
    fclose(in);
    for (long k = 0; k <= i % 3; k++) n = token_mutate(text, n, CAP, &state);
    snprintf(path, sizeof path, "%s/%ld.spec", argv[1], i);
    FILE *out = fopen(path, "wb");
    ULY_ASSERT(out && fwrite(text, 1, n, out) == n && fclose(out) == 0);
  }
  return 0;
}
