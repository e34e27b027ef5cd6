// Arbitrary bytes as a spec: the frontend reports or accepts, and never crashes, hangs or loses memory.
#include "frontend/format.h"
#include "frontend/spec.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/token_mutator.h"

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

// libFuzzer's own mutations know bytes and the dictionary; every second one is of tokens.
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t cap);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t cap, unsigned seed);
#ifdef ULY_LIBFUZZER
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t cap, unsigned seed) {
  uint64_t state = seed;
  return seed % 2 ? token_mutate((char *)data, n, cap, &state) : LLVMFuzzerMutate(data, n, cap);
}
#endif
