// The inner loop of linear layers, called by gemm.c. It has no constants and no hooks: gemm_tile.c is compiled once for each CPU level when ulyc is
// built, and every linear layer of a model calls the same code.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_GEMM_TILE_H
#define ULY_CODEGEN_CPU_TEMPLATES_GEMM_TILE_H

#include <stdbool.h>

#include "codegen/cpu/templates/template.h"

// Sums restart every KC terms, counted from k = 0: part of the bits contract. TILE_ROWS and TILE_PANELS are free.
enum { ULY_GEMM_KC = 512, ULY_GEMM_TILE_ROWS = 6, ULY_GEMM_TILE_PANELS = 4 };

#if VL == 16
#define uly_gemm_tile uly_gemm_tile_vl16
#else
#define uly_gemm_tile uly_gemm_tile_vl8
#endif

// c[i][j][l] (+)= Σ_k x[i][k] · w[j · w_panel + k · 16 + l] for 1 … TILE_ROWS rows and 1 … TILE_PANELS panels; k ascends in one fma chain that starts at
// zero, and |add| adds the chain's end to what c holds. Rows of |c| are |c_row| apart. |ahead|: n_k / 4 cache lines that are fetched meanwhile, for the tiles to come; anywhere.
__attribute__((visibility("hidden"))) void uly_gemm_tile(const float *const *x, int64_t n_rows, const float *w, int64_t w_panel, int64_t n_panels, int64_t n_k, float *c,
                                                         int64_t c_row, bool add, const void *ahead);

#endif
