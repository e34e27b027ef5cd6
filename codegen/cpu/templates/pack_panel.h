// The copying in pack.c, without constants: pack_panel.c is compiled once for each CPU level when ulyc is built.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_PACK_PANEL_H
#define ULY_CODEGEN_CPU_TEMPLATES_PACK_PANEL_H

#include "codegen/cpu/templates/template.h"

#if VL == 16
#define uly_pack_panel uly_pack_panel_vl16
#else
#define uly_pack_panel uly_pack_panel_vl8
#endif

// out[k][l] = w[l · row][k] for l < |n| lanes, 0 for those beyond, k < |n_k|.
__attribute__((visibility("hidden"))) void uly_pack_panel(const float *w, int64_t row, int64_t n, int64_t n_k, float *out);

#endif
