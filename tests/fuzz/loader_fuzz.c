// A model.so, damaged: headers, sections, note and tables, as the loader judges them before the file is mapped. An input is the test's model file, or bytes of its own, and
// changes to it: place, width, number, and where it is cut.
#include <stdio.h>
#include <stdlib.h>

#include "runtime/loaded.h"
#include "tests/fuzz/fuzz.h"

enum { MAX_CHANGES = 16 };

static uint8_t *read_model(size_t *out_bytes) {
  FILE *file = fopen(MODEL_FILE, "rb");
  ULY_ASSERT(file && fseek(file, 0, SEEK_END) == 0);
  *out_bytes = (size_t)ftell(file);
  rewind(file);
  uint8_t *bytes = malloc(*out_bytes);
  ULY_ASSERT(bytes && fread(bytes, 1, *out_bytes, file) == *out_bytes);
  fclose(file);
  return bytes;
}

// Two of three changes are to the ELF header, the program headers or the section headers, which are most of what is read.
static size_t place(const uint8_t *bytes, size_t n, uint8_t how, uint32_t at) {
  uint64_t phoff, shoff;
  memcpy(&phoff, bytes + 32, sizeof phoff);
  memcpy(&shoff, bytes + 40, sizeof shoff);
  switch (how >> 2 & 3) {
  case 0: return at % 64;
  case 1: return (size_t)(phoff + at % 560);
  case 2: return (size_t)(shoff + at % 1024);
  default: return at % n;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static uint8_t *model;
  static size_t model_bytes;
  static const uint64_t extremes[] = {0, 1, UINT32_MAX, UINT64_MAX, INT64_MAX, 1u << 31, 1u << 16, 8};
  if (!model) model = read_model(&model_bytes);
  fuzz_input in = {data, n};
  uint8_t choice = fuzz_u8(&in);
  bool own = choice % 8 == 7;
  size_t bytes = own ? in.n : model_bytes;
  uint8_t *copy = malloc(bytes ? bytes : 1);
  ULY_ASSERT(copy);
  if (bytes) memcpy(copy, own ? in.at : model, bytes);
  for (int i = 0; !own && i < MAX_CHANGES && in.n; i++) {
    uint8_t how = fuzz_u8(&in);
    uint32_t at = fuzz_u32(&in), value = fuzz_u32(&in);
    uint64_t number = how & 16 ? extremes[value % 8] : value;
    size_t width = (size_t)1 << (how & 3), to = place(copy, bytes, how, at);
    if (how >> 5 == 7) bytes = at % (bytes + 1);
    if (bytes < 64) break;
    if (to < bytes && width <= bytes - to) memcpy(copy + to, &number, width);
  }
  uly_error error;
  uly_note note;
  uly_tables tables;
  uint8_t *exact = malloc(bytes ? bytes : 1);
  ULY_ASSERT(exact);
  memcpy(exact, copy, bytes);
  free(copy);
  if (uly_model_inspect_bytes("model.so", exact, bytes, &error, &note, &tables) == ULY_OK) uly_tables_free(&tables);
  free(exact);
  return 0;
}
