// A harness without libFuzzer: every file of the folders given, whole, cut short and with bytes changed.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/status.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_FILE = 1 << 16, CHANGES = 40 };

static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

// The input ends where a read beyond it is seen by the address sanitizer.
static void try_bytes(const uint8_t *data, size_t n) {
  uint8_t *copy = malloc(n ? n : 1);
  ULY_ASSERT(copy);
  memcpy(copy, data, n);
  LLVMFuzzerTestOneInput(copy, n);
  free(copy);
}

static void try_file(const char *path) {
  static uint8_t data[MAX_FILE];
  uint32_t state = 1;
  FILE *file = fopen(path, "rb");
  if (!file) return; // a folder
  size_t n = fread(data, 1, sizeof data, file);
  fclose(file);
  try_bytes(data, n);
  for (int i = 0; i < CHANGES && n; i++) {
    size_t at = next_random(&state) % n, from = next_random(&state) % n;
    uint8_t old = data[at];
    try_bytes(data, at);
    data[at] = i % 2 ? data[from] : (uint8_t)(next_random(&state) >> 24);
    try_bytes(data, n);
    data[at] = old;
  }
}

int main(int argc, char **argv) {
  int n = 0;
  for (int i = 1; i < argc; i++) {
    DIR *folder = opendir(argv[i]);
    if (!folder) return fprintf(stderr, "cannot open %s\n", argv[i]), 1;
    for (const struct dirent *entry; (entry = readdir(folder)); n++) {
      char path[4096];
      if (entry->d_name[0] == '.') continue;
      snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
      try_file(path);
    }
    closedir(folder);
  }
  printf("%d files\n", n);
  return n == 0;
}
