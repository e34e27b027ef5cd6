// The inner loop of linear layers, called by gemm_loop.c. It has no constants and no hooks: gemm_tile.c is compiled once for each CPU level when ulyc is
// built, and every linear layer of a model whose weights are of one dtype calls the same code.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_GEMM_TILE_H
#define ULY_CODEGEN_CPU_TEMPLATES_GEMM_TILE_H

#include <stdbool.h>

#include "codegen/cpu/templates/template.h"

// Sums restart every KC terms, counted from k = 0: part of the bits contract. TILE_ROWS and TILE_PANELS are free.
enum { ULY_GEMM_KC = 512, ULY_GEMM_TILE_ROWS = 6, ULY_GEMM_TILE_PANELS = 4 };

#if VL == 16
#define uly_gemm_tile_f32 uly_gemm_tile_f32_vl16
#define uly_gemm_tile_bf16 uly_gemm_tile_bf16_vl16
#define uly_gemm_tile_f16 uly_gemm_tile_f16_vl16
#else
#define uly_gemm_tile_f32 uly_gemm_tile_f32_vl8
#define uly_gemm_tile_bf16 uly_gemm_tile_bf16_vl8
#define uly_gemm_tile_f16 uly_gemm_tile_f16_vl8
#endif

// A tile's weights: terms of up to TILE_PANELS packed panels (kernel_abi.h) that are |panel| bytes apart, of halves from an even term on. Where they are
// halves, |wide| has room for TILE_PANELS · KC · 16 floats; if |keep|, the tile leaves them there widened, and with |kept| the next ones take them from there.
typedef struct uly_gemm_weights {
  const char *p;
  int64_t panel;
  float *wide;
  bool keep, kept;
} uly_gemm_weights;

// c[i][j][l] (+)= Σ_k x[i][k] · w[j][k][l], l < 16, for 1 … TILE_ROWS rows and 1 … TILE_PANELS panels; k ascends in one fma chain that starts at
// zero, and |add| adds the chain's end to what c holds. Rows of |c| are |c_row| apart. |ahead|: n_k / 4 cache lines that are fetched meanwhile, for the tiles to come; anywhere.
typedef void uly_gemm_tile(const float *const *x, int64_t n_rows, const uly_gemm_weights *w, int64_t n_panels, int64_t n_k, float *c, int64_t c_row, bool add,
                           const void *ahead);
__attribute__((visibility("hidden"))) uly_gemm_tile uly_gemm_tile_f32, uly_gemm_tile_bf16, uly_gemm_tile_f16;

#endif
