// Reads arbitrary bytes as a spec: the frontend reports or accepts, and never crashes, hangs or loses memory. Without libFuzzer a program that reads
// every file of the folders given, whole, cut short and with bytes changed.
#include "frontend/format.h"
#include "frontend/spec.h"

#include <dirent.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

// What parses can be laid out, and is then laid out.
static void check_layout(uly_arena *arena, uly_str text) {
  uly_str once, twice;
  uly_diags diags;
  uly_diags_init(&diags, arena);
  if (uly_format(arena, &diags, uly_diags_add_source(&diags, ULY_STR("fuzz"), text), &once) != ULY_OK) return;
  ULY_ASSERT(uly_format(arena, &diags, uly_diags_add_source(&diags, ULY_STR("laid out"), once), &twice) == ULY_OK);
  ULY_ASSERT(uly_str_equal(once, twice));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  uly_arena *arena = uly_arena_create();
  uly_diags diags;
  uly_diags_init(&diags, arena);
  const uly_graph *graph = uly_spec_read(arena, &diags, ULY_STR("fuzz"), (uly_str){(const char *)data, n}, NULL, 0);
  ULY_ASSERT((graph != NULL) == (diags.n_errors == 0));
  uly_diags_text(&diags);
  check_layout(arena, (uly_str){(const char *)data, n});
  uly_arena_destroy(arena);
  return 0;
}

#ifndef ULY_LIBFUZZER
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
#endif
