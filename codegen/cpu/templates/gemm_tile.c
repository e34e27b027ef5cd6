// Register tiles of linear layers: up to 6 rows times 4 vectors of 16 columns (AVX-512: 24 accumulators, 4 vectors of w and a broadcast x, of 32 registers), or
// 6 rows times 2 vectors of 8 (AVX2: 12 + 2 + 1, of 16). LLVM's scheduler decides whether accumulators stay in registers, and larger tiles do not:
// tests/numerics/gemm_spills.cmake counts stack accesses in the loops.
//
// Halves of w are widened on the way into registers, by instructions that take them from memory. A widened term is also stored for the tiles of further rows: so widening costs
// one tile of many, and none has to wait for it.
#include "codegen/cpu/templates/gemm_tile.h"
#include "codegen/cpu/templates/lane_floats.h"

enum { PANEL_VECTORS = ULY_PANEL / VL, UNROLL = 4, LINE = 64 };

// What a tile reads: packed weights of a dtype, or those that another one has widened.
enum { F32 = LANE_F32, BF16 = LANE_BF16, F16 = LANE_F16, WIDE = -1 };

// Where the next term of w is. |odd| is |w|, read anew for the odd ones of pairs of terms, so that no register has to keep pairs.
typedef struct place {
  const char *w, *odd;
  int64_t panel; // bytes
  float *wide;
  int64_t wide_term; // 0 where nobody reads them: then all terms go to one place
} place;

// Vector |v| of a term.
ULY_INLINE vf load_term(int source, const place *at, int v, bool odd) {
  if (source == WIDE) return vf_load((const float *)at->w + v * VL);
  const char *w = (source == BF16 && odd ? at->odd : at->w) + v / PANEL_VECTORS * at->panel;
  int j = v % PANEL_VECTORS;
  if (source != BF16) return lane_load(source, w + j * VL * lane_bytes(source), VL);
  vi pairs = *(const vi *)(w + j * VL * 4);
  return odd ? (vf)(pairs & (int32_t)0xffff0000) : (vf)(pairs << 16);
}

ULY_INLINE void next_term(int source, place *at, int vectors, bool odd) {
  if (source == WIDE) at->w += vectors * VL * 4;
  if (source == F32 || source == F16) at->w += ULY_PANEL * lane_bytes(source);
  if (source == BF16 && odd) at->w += ULY_PANEL * 4, at->odd += ULY_PANEL * 4;
  if (source != BF16 && source != F16) return;
  at->wide += at->wide_term;
  __asm__ volatile("" ::: "memory"); // without it the scheduler loads several terms early, and accumulators spill
}

ULY_INLINE void step(int source, const float *const *row, int rows, place *at, int vectors, int64_t k, bool odd, vf acc[][ULY_GEMM_TILE_PANELS]) {
  vf b[ULY_GEMM_TILE_PANELS];
  ULY_UNROLL
  for (int j = 0; j < vectors; j++) {
    b[j] = load_term(source, at, j, odd);
    if (source == BF16 || source == F16) vf_store(at->wide + j * VL, b[j]);
  }
  ULY_UNROLL
  for (int i = 0; i < rows; i++) {
    vf a = vf_splat(row[i][k]);
    ULY_UNROLL
    for (int j = 0; j < vectors; j++) acc[i][j] = vf_fma(a, b[j], acc[i][j]);
  }
  next_term(source, at, vectors, odd);
}

ULY_INLINE place find_place(int source, const uly_gemm_weights *w, int64_t panel, int vectors) {
  float *wide = w->wide + panel * ULY_GEMM_KC * ULY_PANEL;
  place at = {w->p + panel * w->panel, w->p + panel * w->panel, w->panel, wide, w->keep ? vectors * VL : 0};
  if (source == WIDE) at.w = (const char *)wide;
  __asm__("" : "+r"(at.odd)); // a place of its own, for all that is known
  return at;
}

// |source|, |rows| and |vectors| are constants at each call; the vectors lie in panels of PANEL_VECTORS, the first of which is |panel|.
ULY_INLINE void tile(int source, const float *const *x, int rows, const uly_gemm_weights *w, int64_t panel, int vectors, int64_t n_k, float *c, int64_t c_row,
                     bool add, const void *ahead) {
  vf acc[ULY_GEMM_TILE_ROWS][ULY_GEMM_TILE_PANELS];
  const float *row[ULY_GEMM_TILE_ROWS];
  place at = find_place(source, w, panel, vectors);
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
    for (int u = 0; u < UNROLL; u++) step(source, row, rows, &at, vectors, k + u, u % 2, acc);
  }
  ULY_PLAIN
  for (; k + 2 <= n_k; k += 2) {
    step(source, row, rows, &at, vectors, k, false, acc);
    step(source, row, rows, &at, vectors, k + 1, true, acc);
  }
  if (k < n_k) step(source, row, rows, &at, vectors, k, false, acc);
  ULY_UNROLL
  for (int i = 0; i < rows; i++) {
    ULY_UNROLL
    for (int j = 0; j < vectors; j++) {
      float *to = c + i * c_row + j * VL;
      vf_store(to, add ? vf_load(to) + acc[i][j] : acc[i][j]);
    }
  }
}

#define TILE(source, rows, vectors)                                                                                                                            \
  static __attribute__((noinline)) void tile_##source##_##rows##x##vectors(const float *const *x, const uly_gemm_weights *w, int64_t panel, int64_t n_k,       \
                                                                           float *c, int64_t c_row, bool add, const void *ahead) {                             \
    tile(source, x, rows, w, panel, vectors, n_k, c, c_row, add, ahead);                                                                                       \
  }
#define CALL(source, rows, vectors)                                                                                                                            \
  case (rows) * 8 + (vectors): tile_##source##_##rows##x##vectors(x, w, panel, n_k, c, c_row, add, ahead); return;
#define EACH_HEIGHT(F, source, vectors)                                                                                                                        \
  F(source, 1, vectors) F(source, 2, vectors) F(source, 3, vectors) F(source, 4, vectors) F(source, 5, vectors) F(source, 6, vectors)
#if VL == 16
#define EACH_TILE(F, source) EACH_HEIGHT(F, source, 1) EACH_HEIGHT(F, source, 2) EACH_HEIGHT(F, source, 3) EACH_HEIGHT(F, source, 4)
#else
#define EACH_TILE(F, source) EACH_HEIGHT(F, source, 2)
#endif
#define TILES(source)                                                                                                                                          \
  EACH_TILE(TILE, source)                                                                                                                                      \
  static void tiles_##source(const float *const *x, int64_t n_rows, const uly_gemm_weights *w, int64_t panel, int64_t vectors, int64_t n_k, float *c,          \
                             int64_t c_row, bool add, const void *ahead) {                                                                                     \
    switch (n_rows * 8 + vectors) { EACH_TILE(CALL, source) }                                                                                                  \
  }
TILES(F32)
TILES(BF16)
TILES(F16)
TILES(WIDE)

#if VL == 16
#define EACH_PANEL(source) tiles_##source(x, n_rows, w, 0, n_panels, n_k, c, c_row, add, ahead)
#else
#define EACH_PANEL(source)                                                                                                                                     \
  for (int64_t p = 0; p < n_panels; p++) tiles_##source(x, n_rows, w, p, PANEL_VECTORS, n_k, c + p * ULY_PANEL, c_row, add, p ? w->p : ahead)
#endif
#define ENTRY(name, source)                                                                                                                                    \
  void name(const float *const *x, int64_t n_rows, const uly_gemm_weights *w, int64_t n_panels, int64_t n_k, float *c, int64_t c_row, bool add,                \
            const void *ahead) {                                                                                                                               \
    if (source != F32 && w->kept)                                                                                                                              \
      EACH_PANEL(WIDE);                                                                                                                                        \
    else                                                                                                                                                       \
      EACH_PANEL(source);                                                                                                                                      \
  }
ENTRY(uly_gemm_tile_f32, F32)
ENTRY(uly_gemm_tile_bf16, BF16)
ENTRY(uly_gemm_tile_f16, F16)
