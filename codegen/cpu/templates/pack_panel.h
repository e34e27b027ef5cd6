// The copying in pack.c, without constants: pack_panel.c is compiled once for each CPU level when ulyc is built.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_PACK_PANEL_H
#define ULY_CODEGEN_CPU_TEMPLATES_PACK_PANEL_H

#include "codegen/cpu/templates/template.h"

#if VL == 16
#define uly_pack_panel uly_pack_panel_vl16
#else
#define uly_pack_panel uly_pack_panel_vl8
#endif

// Lane l of term k is w[l · column + k · term] for l < |n|, 0 for those beyond, k < |n_k|; in |out| as kernel_abi.h orders panels of |dtype|. Written for |term| = 1, and for
// |column| = 1 or little more.
__attribute__((visibility("hidden"))) void uly_pack_panel(int64_t dtype, const void *w, int64_t column, int64_t term, int64_t n, int64_t n_k, void *out);

#endif
