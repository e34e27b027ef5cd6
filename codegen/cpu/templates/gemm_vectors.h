// The products of gemm_loop.c in the register tiles of gemm_tile.c, which read f32: x in place, or gathered into scratch where a stretch lies in several segments. bf16 and f16 are widened
// into scratch: x for each KC terms, panels by the first tile that meets them. So the sums are those of f32, and a panel's widening serves all rows of the item.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_GEMM_VECTORS_H
#define ULY_CODEGEN_CPU_TEMPLATES_GEMM_VECTORS_H

enum {
  ROWS_AHEAD = 3, // of the one that is copied: fetched meanwhile
  FEW_TILES = 2,  // of rows: each widens halves of w for itself
};

ULY_INLINE void begin_products(void) {}
ULY_INLINE void end_products(void) {}

ULY_INLINE void copy_floats(int64_t dtype, const void *from, int64_t n, float *to, const void *ahead) {
  int64_t k = 0;
  for (; k + 2 * VL <= n; k += 2 * VL) {
    __builtin_prefetch(lane_place(dtype, ahead, k), 0, 3);
    vf_store(to + k, lane_load(dtype, lane_place(dtype, from, k), VL));
    vf_store(to + k + VL, lane_load(dtype, lane_place(dtype, from, k + VL), VL));
  }
  for (; k + VL <= n; k += VL) vf_store(to + k, lane_load(dtype, lane_place(dtype, from, k), VL));
  if (k < n) vf_store_first(to + k, n - k, lane_load(dtype, lane_place(dtype, from, k), n - k));
}

static void copy_terms(int64_t dtype, const void *from, int64_t n, float *to, const void *ahead) {
  if (dtype == LANE_BF16)
    copy_floats(LANE_BF16, from, n, to, ahead);
  else if (dtype == LANE_F16)
    copy_floats(LANE_F16, from, n, to, ahead);
  else
    copy_floats(LANE_F32, from, n, to, ahead);
}

// Points the rows at terms [k0, k0 + n_k) of x: where one segment holds them, and as f32, in place.
static void find_x(block *t, int64_t k0, int64_t n_k) {
  const uly_call *call = t->call;
  int64_t n_segments = call->op[ULY_GEMM_X].n, begin = 0, dtype = t->shape->x_dtype;
  for (int64_t p = 0; p < n_segments; p++) {
    int64_t end = begin + (n_segments == 1 ? t->shape->k : call->val[ULY_GEMM_X_K][p]);
    int64_t lo = k0 > begin ? k0 : begin, hi = k0 + n_k < end ? k0 + n_k : end;
    const void *x = lane_place(dtype, call->op[ULY_GEMM_X].p[p], lo - begin);
    int64_t stride_s = call->val[ULY_GEMM_X_S][p], stride_b = call->val[ULY_GEMM_X_B][p];
    ULY_PLAIN
    for (int64_t i = 0; lo < hi && i < t->rows; i++) {
      const void *from = lane_place(dtype, x, t->s[i] * stride_s + t->b[i] * stride_b);
      t->x[i] = from;
      if (hi - lo == n_k && dtype == LANE_F32) continue;
      t->x[i] = t->x_copy + i * ULY_GEMM_KC;
      const int64_t then = i + ROWS_AHEAD < t->rows ? i + ROWS_AHEAD : i;
      copy_terms(dtype, from, hi - lo, t->x_copy + i * ULY_GEMM_KC + (lo - k0), lane_place(dtype, x, t->s[then] * stride_s + t->b[then] * stride_b));
    }
    begin = end;
  }
}

// Terms of the panels from |k0| on, which is even.
static uly_gemm_weights find_w(const block *t, int64_t k0, int64_t panel, bool keep) {
  int64_t dtype = t->shape->w_dtype, bytes = lane_bytes(dtype), panel_bytes = uly_panel_bytes(t->shape->k, bytes);
  return (uly_gemm_weights){t->w + panel * panel_bytes + k0 * ULY_PANEL * bytes, panel_bytes, t->w_copy, keep && dtype != LANE_F32, false};
}

// Terms [k0, k0 + n_k) of panels [panel, panel + n_panels), in tiles of even height: 8 rows are 4 + 4.
// |next|: the packed weights that follow, which are fetched meanwhile, a piece of a panel's terms with each tile: as many bytes as n_k / 4 of its f32 would be.
static void run_panels(const block *t, int64_t k0, int64_t n_k, int64_t panel, int64_t n_panels, const char *next) {
  int64_t k = t->shape->k, n_tiles = uly_cdiv(t->rows, ULY_GEMM_TILE_ROWS);
  bool direct = t->y, last = k0 + n_k == k, waits = k > ULY_GEMM_KC; // sums wait for more terms; where they never do, one tile's are enough
  int64_t bytes = lane_bytes(t->shape->w_dtype), panel_bytes = uly_panel_bytes(k, bytes), pieces = bytes, piece = n_k / 4 * ULY_PANEL * 4;
  uly_gemm_weights w = find_w(t, k0, panel, n_tiles > FEW_TILES);
  float *c = t->c + (waits ? (panel - t->panel0) * ULY_PANEL * t->rows : 0);
  uly_gemm_sums sums = {.part = t->part, .n_panels = n_panels};
  if (last && !direct) find_results(t, panel, n_panels, &sums);
  for (int64_t i = 0, row = 0, n; i < n_tiles; i++, row += n) {
    n = (t->rows + i) / n_tiles;
    float *to = direct ? t->y + row * t->y_row + panel * ULY_PANEL : c + (waits ? row * n_panels * ULY_PANEL : 0);
    t->shape->tile(t->x + row, n, &w, n_panels, n_k, to, direct ? t->y_row : n_panels * ULY_PANEL, k0 > 0,
                   next + i / pieces * panel_bytes + i % pieces * piece);
    w.kept = w.keep;
    if (!last || direct) continue;
    sums.n_rows = n;
    sums.s = t->s + row;
    sums.b = t->b + row;
    sums.c = to;
    t->finish(t->call, &sums);
  }
}

#endif
