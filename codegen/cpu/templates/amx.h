// AMX: eight tiles of 16 rows of 64 bytes. 0 to 3 are sums in f32, the others what is multiplied: bf16, of which the second factor has pairs of terms in its rows.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_AMX_H
#define ULY_CODEGEN_CPU_TEMPLATES_AMX_H

#include "codegen/cpu/templates/lane_math.h"

enum { CHUNK = 32 /* terms that a product adds */, TILE = 16 };

typedef uint16_t tile[TILE * CHUNK]; // bf16, by rows; of pairs: 16 rows of 16, the first one of each in the low half

typedef struct tile_config {
  uint8_t palette, start, zero[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} tile_config;

// Between these the thread's tiles are there.
ULY_INLINE void tiles_begin(void) {
  const tile_config config = {.palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE}};
  _tile_loadconfig(&config);
}
ULY_INLINE void tiles_end(void) { _tile_release(); }

#endif
