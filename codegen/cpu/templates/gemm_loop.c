// See gemm_loop.h. An item is a block of rows times a block of panels of one part. For every KC terms of k, x's rows, in place (or gathered into scratch where
// a stretch lies in several segments), meet the block's panels, four at a time, in the register tiles of gemm_tile.c. Sums that wait for more terms stay in scratch.
// bf16 and f16 are widened into scratch: x for each KC terms, panels by the first tile that meets them. So the sums are those of f32, and a panel's widening serves all rows
// of the item.
#include "codegen/cpu/templates/gemm_loop.h"
#include "codegen/cpu/templates/lane_floats.h"

enum {
  MAX_ROWS = ULY_GEMM_ITEM_ROWS,
  MAX_PANELS = ULY_GEMM_ITEM_PANELS + 1, // a block starts one panel earlier where it would split a pair
  X_FLOATS = MAX_ROWS * ULY_GEMM_KC,
  C_FLOATS = MAX_ROWS * MAX_PANELS * ULY_PANEL,
  W_FLOATS = ULY_GEMM_TILE_PANELS * ULY_GEMM_KC * ULY_PANEL,
  ROWS_AHEAD = 3, // of the one that is copied: fetched meanwhile
  FEW_TILES = 2,  // of rows: each widens halves of w for itself
};
_Static_assert((X_FLOATS + C_FLOATS + W_FLOATS) * 4 <= ULY_GEMM_SCRATCH_BYTES, "scratch");

// The rows and panels of an item.
typedef struct block {
  const uly_call *call;
  const uly_gemm_shape *shape;
  uly_gemm_finish finish;
  int64_t part, panel0, panel1, rows;
  const char *w;              // the part's packed weights
  float *x_copy, *w_copy, *c; // scratch
  int64_t s[MAX_ROWS], b[MAX_ROWS];
  const float *x[MAX_ROWS]; // at the first of the terms in work
  float *y;                 // the first row of the output, where sums go there at once; else NULL
  int64_t y_row;
} block;

// ---- panels -----------------------------------------------------------------------------------------------------------------------------------

static int64_t panels_of(const uly_gemm_part_shape *p) { return uly_part_panels((uly_gemm_mode)p->mode, p->n_groups, p->group, p->rope); }
static int64_t panels_per_group(const uly_gemm_part_shape *p) { return uly_part_panels((uly_gemm_mode)p->mode, 1, p->group, p->rope); }

// |panel|, or the one before it, so that a pair is not split.
static int64_t whole_pairs(const uly_gemm_part_shape *p, int64_t panel) {
  uly_panel columns = uly_panel_at(p->mode, p->group, p->rope, panel % panels_per_group(p));
  return panel - (columns.paired && columns.second);
}

// Where block |i| of |n| starts: even shares of groups of four panels.
static int64_t block_start(const uly_gemm_part_shape *p, int64_t i, int64_t n) {
  int64_t panels = panels_of(p), start = i * uly_cdiv(panels, ULY_GEMM_TILE_PANELS) / n * ULY_GEMM_TILE_PANELS;
  return i == n ? panels : whole_pairs(p, start);
}

static int64_t next_panels(const uly_gemm_part_shape *p, int64_t panel, int64_t end) {
  int64_t next = panel + ULY_GEMM_TILE_PANELS;
  return next >= end ? end : whole_pairs(p, next);
}

// ---- rows -------------------------------------------------------------------------------------------------------------------------------------

// Row blocks are whole tiles, even shares of them.
static void find_rows(block *t, int64_t i) {
  int64_t batch = val(t->call, ULY_GEMM_BATCH), rows = val(t->call, ULY_GEMM_ROWS) * batch;
  int64_t n_tiles = uly_cdiv(rows, ULY_GEMM_TILE_ROWS), n_blocks = uly_cdiv(rows, ULY_GEMM_ITEM_ROWS);
  int64_t begin = i * n_tiles / n_blocks * ULY_GEMM_TILE_ROWS, end = (i + 1) * n_tiles / n_blocks * ULY_GEMM_TILE_ROWS;
  t->rows = (end < rows ? end : rows) - begin;
  int64_t s = begin / batch, b = begin % batch;
  for (int64_t r = 0; r < t->rows; r++) {
    t->s[r] = s;
    t->b[r] = b;
    if (++b < batch) continue;
    b = 0;
    s++;
  }
}

// Sums that wait for nothing go to the output at once, where the part allows it and rows are evenly apart.
static void find_output(block *t) {
  int64_t batch = val(t->call, ULY_GEMM_BATCH), stride_s = val(t->call, ULY_GEMM_OUT_S + (int)t->part), stride_b = val(t->call, ULY_GEMM_OUT_B + (int)t->part);
  t->y = 0;
  t->y_row = batch == 1 ? stride_s : stride_b;
  if (!t->shape->parts[t->part].direct || t->shape->k > ULY_GEMM_KC || t->rows == 0 || (batch != 1 && stride_s != batch * stride_b)) return;
  t->y = (float *)ptr(t->call, ULY_GEMM_OUT + (int)t->part) + t->s[0] * stride_s + t->b[0] * stride_b;
}

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

// ---- weights ----------------------------------------------------------------------------------------------------------------------------------

// Terms of the panels from |k0| on, which is even.
static uly_gemm_weights find_w(const block *t, int64_t k0, int64_t panel, bool keep) {
  int64_t dtype = t->shape->w_dtype, bytes = lane_bytes(dtype), panel_bytes = uly_panel_bytes(t->shape->k, bytes);
  return (uly_gemm_weights){t->w + panel * panel_bytes + k0 * ULY_PANEL * bytes, panel_bytes, t->w_copy, keep && dtype != LANE_F32, false};
}

// ---- results ----------------------------------------------------------------------------------------------------------------------------------

static void find_results(const block *t, int64_t panel, int64_t n_panels, uly_gemm_sums *sums) {
  const uly_gemm_part_shape *p = &t->shape->parts[t->part];
  int64_t per_group = panels_per_group(p);
  sums->n_results = 0;
  for (int64_t j = 0; j < n_panels;) {
    uly_gemm_result *r = &sums->results[sums->n_results++];
    *r = (uly_gemm_result){j, uly_panel_at(p->mode, p->group, p->rope, (panel + j) % per_group), (panel + j) / per_group, 0, 1};
    j += r->columns.paired ? 2 : 1;
    if (!t->shape->message) continue;
    r->end_peer = t->call->op[ULY_GEMM_OUT].n;
    while (r->first_peer < r->end_peer && !uly_gemm_gets(t->call, t->part, r->first_peer, r->group)) r->first_peer++;
    while (r->first_peer < r->end_peer && !uly_gemm_gets(t->call, t->part, r->end_peer - 1, r->group)) r->end_peer--;
  }
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

static void run_block(block *t) {
  const uly_gemm_part_shape *p = &t->shape->parts[t->part];
  for (int64_t k0 = 0, n_k; k0 < t->shape->k; k0 += n_k) {
    n_k = t->shape->k - k0 < ULY_GEMM_KC ? t->shape->k - k0 : ULY_GEMM_KC;
    find_x(t, k0, n_k);
    for (int64_t panel = t->panel0, next; panel < t->panel1; panel = next) {
      next = next_panels(p, panel, t->panel1);
      bool wraps = next == t->panel1 && k0 + n_k < t->shape->k; // to the block's first panel and the next terms
      int64_t follows = wraps ? t->panel0 : next, term = wraps ? k0 + n_k : next < t->panel1 ? k0 : 0, bytes = lane_bytes(t->shape->w_dtype);
      run_panels(t, k0, n_k, panel, next - panel, t->w + follows * uly_panel_bytes(t->shape->k, bytes) + term * ULY_PANEL * bytes);
    }
  }
}

void uly_gemm_loop(const uly_call *call, const uly_gemm_shape *shape, uly_gemm_finish finish) {
  block t;
  t.call = call;
  t.shape = shape;
  t.finish = finish;
  t.x_copy = call->scratch;
  t.w_copy = t.x_copy + X_FLOATS;
  t.c = t.w_copy + W_FLOATS;
  int64_t n_blocks = 0; // of panels, in all parts
  for (int64_t p = 0; p < shape->n_parts; p++) n_blocks += uly_cdiv(panels_of(&shape->parts[p]), ULY_GEMM_ITEM_PANELS);
  for (int64_t item = call->lo; item < call->hi; item++) {
    int64_t i = item % n_blocks, n;
    find_rows(&t, item / n_blocks);
    t.w = ptr(call, ULY_GEMM_W);
    for (t.part = 0; i >= (n = uly_cdiv(panels_of(&shape->parts[t.part]), ULY_GEMM_ITEM_PANELS)); t.part++) {
      i -= n;
      t.w += panels_of(&shape->parts[t.part]) * uly_panel_bytes(shape->k, lane_bytes(shape->w_dtype));
    }
    find_output(&t);
    t.panel0 = block_start(&shape->parts[t.part], i, n);
    t.panel1 = block_start(&shape->parts[t.part], i + 1, n);
    run_block(&t);
  }
}
