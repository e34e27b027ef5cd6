// Arbitrary bytes as a config.json. What is accepted is a spec that the frontend takes and that is laid out.
#include "driver/import/import.h"
#include "frontend/format.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  uly_arena *arena = uly_arena_create();
  uly_diags diags;
  uly_str spec, again;
  uly_text notes = {.arena = arena};
  const uly_import_names names = {.gamma = n % 2};
  uly_diags_init(&diags, arena);
  bool made = uly_import(arena, &diags, ULY_STR("fuzz"), (uly_str){(const char *)data, n}, &names, &spec, NULL, &notes) == ULY_OK;
  ULY_ASSERT(made == (diags.n_errors == 0));
  uly_diags_text(&diags);
  if (made) {
    uly_diags_init(&diags, arena);
    ULY_ASSERT(uly_format(arena, &diags, uly_diags_add_source(&diags, ULY_STR("made"), spec), &again) == ULY_OK && uly_str_equal(spec, again));
  }
  uly_arena_destroy(arena);
  return 0;
}
