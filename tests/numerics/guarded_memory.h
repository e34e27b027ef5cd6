// Memory between two pages that cannot be touched, for tests that must see every access outside a tensor.
#ifndef ULY_TESTS_NUMERICS_GUARDED_MEMORY_H
#define ULY_TESTS_NUMERICS_GUARDED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct uly_guarded {
  void *data; // where the |bytes| start
  void *map;
  size_t map_bytes;
} uly_guarded;

// The bytes end at the upper guard page, or start at the lower one. Filled with 0xff: NaN as f32 and f64. Aborts where memory is short.
uly_guarded uly_guarded_create(size_t bytes, bool at_end);
void uly_guarded_destroy(uly_guarded *memory);

#endif
