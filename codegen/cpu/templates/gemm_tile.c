// Register tiles of linear layers: up to 6 rows times 4 vectors of 16 columns (AVX-512: 24 accumulators, 4 vectors of w and a broadcast x, of 32 registers), or
// 6 rows times 2 vectors of 8 (AVX2: 12 + 2 + 1, of 16). LLVM's scheduler decides whether accumulators stay in registers, and larger tiles do not:
// tests/numerics/gemm_spills.cmake counts stack accesses in the loops.
#include "codegen/cpu/templates/gemm_tile.h"
#include "codegen/cpu/templates/lane_math.h"

enum { PANEL_VECTORS = ULY_PANEL / VL, UNROLL = 4, LINE = 64 };

ULY_INLINE void step(const float *const *row, int rows, const float *w, int64_t w_panel, int vectors, int64_t k, vf acc[][ULY_GEMM_TILE_PANELS]) {
  vf b[ULY_GEMM_TILE_PANELS];
  ULY_UNROLL
  for (int j = 0; j < vectors; j++) b[j] = vf_load(w + j / PANEL_VECTORS * w_panel + k * ULY_PANEL + j % PANEL_VECTORS * VL);
  ULY_UNROLL
  for (int i = 0; i < rows; i++) {
    vf a = vf_splat(row[i][k]);
    ULY_UNROLL
    for (int j = 0; j < vectors; j++) acc[i][j] = vf_fma(a, b[j], acc[i][j]);
  }
}

// |rows| and |vectors| are constants at each call; the vectors lie in panels of PANEL_VECTORS.
ULY_INLINE void tile(const float *const *x, int rows, const float *w, int64_t w_panel, int vectors, int64_t n_k, float *c, int64_t c_row, bool add,
                     const void *ahead) {
  vf acc[ULY_GEMM_TILE_ROWS][ULY_GEMM_TILE_PANELS];
  const float *row[ULY_GEMM_TILE_ROWS];
  ULY_UNROLL
  for (int i = 0; i < rows; i++) {
    row[i] = x[i];
    ULY_UNROLL
    for (int j = 0; j < vectors; j++) acc[i][j] = (vf){0};
  }
  int64_t k = 0;
  ULY_PLAIN
  for (; k + UNROLL <= n_k; k += UNROLL) {
    __builtin_prefetch((const char *)ahead + k / UNROLL * LINE, 0, 2);
    ULY_UNROLL
    for (int u = 0; u < UNROLL; u++) step(row, rows, w, w_panel, vectors, k + u, acc);
  }
  ULY_PLAIN
  for (; k < n_k; k++) step(row, rows, w, w_panel, vectors, k, acc);
  ULY_UNROLL
  for (int i = 0; i < rows; i++) {
    ULY_UNROLL
    for (int j = 0; j < vectors; j++) {
      float *to = c + i * c_row + j * VL;
      vf_store(to, add ? vf_load(to) + acc[i][j] : acc[i][j]);
    }
  }
}

#define TILE(rows, vectors)                                                                                                                                    \
  static __attribute__((noinline)) void tile_##rows##x##vectors(const float *const *x, const float *w, int64_t w_panel, int64_t n_k, float *c, int64_t c_row,  \
                                                                bool add, const void *ahead) {                                                                \
    tile(x, rows, w, w_panel, vectors, n_k, c, c_row, add, ahead);                                                                                             \
  }
#define EACH_HEIGHT(F, vectors) F(1, vectors) F(2, vectors) F(3, vectors) F(4, vectors) F(5, vectors) F(6, vectors)
#define CALL(rows, vectors)                                                                                                                                    \
  case (rows) * 8 + (vectors): tile_##rows##x##vectors(x, w, w_panel, n_k, c, c_row, add, ahead); return;

#if VL == 16
EACH_HEIGHT(TILE, 1)
EACH_HEIGHT(TILE, 2) EACH_HEIGHT(TILE, 3) EACH_HEIGHT(TILE, 4)

    void uly_gemm_tile(const float *const *x, int64_t n_rows, const float *w, int64_t w_panel, int64_t n_panels, int64_t n_k, float *c, int64_t c_row, bool add,
                       const void *ahead) {
  switch (n_rows * 8 + n_panels) { EACH_HEIGHT(CALL, 1) EACH_HEIGHT(CALL, 2) EACH_HEIGHT(CALL, 3) EACH_HEIGHT(CALL, 4) }
}
#else
EACH_HEIGHT(TILE, 2)

static void panel(const float *const *x, int64_t n_rows, const float *w, int64_t w_panel, int64_t n_k, float *c, int64_t c_row, bool add, const void *ahead) {
  switch (n_rows * 8 + 2) { EACH_HEIGHT(CALL, 2) }
}

void uly_gemm_tile(const float *const *x, int64_t n_rows, const float *w, int64_t w_panel, int64_t n_panels, int64_t n_k, float *c, int64_t c_row, bool add,
                   const void *ahead) {
  for (int64_t p = 0; p < n_panels; p++) panel(x, n_rows, w + p * w_panel, w_panel, n_k, c + p * ULY_PANEL, c_row, add, p ? w : ahead);
}
#endif
