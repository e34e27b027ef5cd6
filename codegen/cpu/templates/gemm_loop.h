// What linear layers share whatever their constants and epilogues: the loop over rows, terms and panels. gemm_loop.c is compiled once for each CPU level when ulyc
// is built; kernels made from gemm.c call it and are called back with finished sums.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_GEMM_LOOP_H
#define ULY_CODEGEN_CPU_TEMPLATES_GEMM_LOOP_H

#include "codegen/cpu/templates/gemm_panels.h"
#include "codegen/cpu/templates/gemm_tile.h"

typedef struct uly_gemm_part_shape {
  int64_t mode, n_groups, group, rope;
  int64_t direct; // nothing follows the sums, which are f32, and no panel has padding: they may go straight to the output
} uly_gemm_part_shape;

typedef struct uly_gemm_shape {
  int64_t k, n_parts, message, x_dtype, w_dtype;
  uly_gemm_tile *tile; // of w_dtype
  uly_gemm_part_shape parts[ULY_GEMM_MAX_PARTS];
} uly_gemm_shape;

// A panel of sums, or a pair of them: where it stands among the tile's panels, its columns, its group, and the peers that get the group: some of [first_peer, end_peer).
// Without messages there is one.
typedef struct uly_gemm_result {
  int64_t panel;
  uly_panel columns;
  int64_t group, first_peer, end_peer;
} uly_gemm_result;

// Finished sums c[n_rows][n_panels][16] of a part; row i is (s[i], b[i]).
typedef struct uly_gemm_sums {
  int64_t part, n_rows, n_panels, n_results;
  const int64_t *s, *b;
  const float *c;
  uly_gemm_result results[ULY_GEMM_TILE_PANELS];
} uly_gemm_sums;

// Whether peer |peer| gets a group of a part.
ULY_INLINE bool uly_gemm_gets(const uly_call *call, int64_t part, int64_t peer, int64_t group) {
  int64_t g0 = call->val[ULY_GEMM_OUT_G0 + part][peer];
  return group >= g0 && group < g0 + call->val[ULY_GEMM_OUT_GN + part][peer];
}

#ifdef __AMX_BF16__
#define uly_gemm_loop uly_gemm_loop_amx
#elif VL == 16
#define uly_gemm_loop uly_gemm_loop_vl16
#else
#define uly_gemm_loop uly_gemm_loop_vl8
#endif

// Runs the items of a call.
typedef void (*uly_gemm_finish)(const uly_call *call, const uly_gemm_sums *sums);
__attribute__((visibility("hidden"))) void uly_gemm_loop(const uly_call *call, const uly_gemm_shape *shape, uly_gemm_finish finish);

#endif
