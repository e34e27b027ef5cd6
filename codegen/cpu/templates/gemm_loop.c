// See gemm_loop.h. An item is a block of rows times a block of panels of one part. For every KC terms of k, x's rows meet the block's panels, four at a time: in vectors (gemm_vectors.h)
// or AMX tiles (gemm_tiles.h). Sums that wait for more terms stay in scratch.
#include "codegen/cpu/templates/gemm_loop.h"
#include "codegen/cpu/templates/lane_floats.h"

enum {
  MAX_ROWS = ULY_GEMM_ITEM_ROWS,
  MAX_PANELS = ULY_GEMM_ITEM_PANELS + 1, // a block starts one panel earlier where it would split a pair
  X_FLOATS = MAX_ROWS * ULY_GEMM_KC,
  C_FLOATS = MAX_ROWS * MAX_PANELS * ULY_PANEL,
  W_FLOATS = ULY_GEMM_TILE_PANELS * ULY_GEMM_KC * ULY_PANEL,
#ifdef __AMX_BF16__
  GOES_STRAIGHT = 0,
#else
  GOES_STRAIGHT = 1,
#endif
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
  if (!GOES_STRAIGHT) return;
  t->y_row = batch == 1 ? stride_s : stride_b;
  if (!t->shape->parts[t->part].direct || t->shape->k > ULY_GEMM_KC || t->rows == 0 || (batch != 1 && stride_s != batch * stride_b)) return;
  t->y = (float *)ptr(t->call, ULY_GEMM_OUT + (int)t->part) + t->s[0] * stride_s + t->b[0] * stride_b;
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

#ifdef __AMX_BF16__
#include "codegen/cpu/templates/gemm_tiles.h"
#else
#include "codegen/cpu/templates/gemm_vectors.h"
#endif

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
  begin_products();
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
  end_products();
}
