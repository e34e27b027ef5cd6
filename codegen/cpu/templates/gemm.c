// Linear layers that share an input x, with what follows them element by element:
//
//   out_p[row, c] = epilogue_p(Σ_k x[row, k] · w_p[c, k])      row = (s, b), up to ULY_GEMM_MAX_PARTS parts p, modes of runtime/kernel_abi.h
//
// An item is a block of rows times a block of panels of one part. For every KC terms of k: x's rows, in place (or gathered into scratch where x comes in segments),
// times the block's panels, four at a time, by the register tiles of gemm_tile.c into scratch; after the last, the epilogue takes 16 columns of a row at a time from
// scratch to the output or to the messages. Not here: bf16, reductions over ranks.
//
// Bits: an element is one fma chain over k for every KC terms counted from k = 0, and the chains' sum in ascending order; then the epilogue. Rows, segments, tiles,
// items and peers do not enter. Oracle: tests/numerics/gemm_test.c in float64.
//
// Constants, all of them 64-bit integers: from uly_gemm_desc, and for each part p, used or not, element p of arrays of ULY_GEMM_MAX_PARTS elements ([4 x i64]) from
// its uly_gemm_part. A kernel also needs uly_gemm_tile_vl8 or uly_gemm_tile_vl16, which is one function for all of them: gemm_tile.c compiled once at each level.
// It and this file must be compiled with 512-bit registers allowed at x86-64-v4 (-mprefer-vector-width=512).
#include "codegen/cpu/templates/gemm_panels.h"
#include "codegen/cpu/templates/gemm_tile.h"
#include "codegen/cpu/templates/lane_math.h"

ULY_CONST(int64_t, uly_gemm_k);
ULY_CONST(int64_t, uly_gemm_n_parts);
ULY_CONST(int64_t, uly_gemm_message);
ULY_CONST(int64_t, uly_gemm_part_mode)[ULY_GEMM_MAX_PARTS];
ULY_CONST(int64_t, uly_gemm_part_n_groups)[ULY_GEMM_MAX_PARTS];
ULY_CONST(int64_t, uly_gemm_part_group)[ULY_GEMM_MAX_PARTS];
ULY_CONST(int64_t, uly_gemm_part_rope)[ULY_GEMM_MAX_PARTS];
ULY_CONST(int64_t, uly_gemm_part_has_epilogue)[ULY_GEMM_MAX_PARTS];

enum {
  MAX_ROWS = ULY_GEMM_ITEM_ROWS,
  MAX_PANELS = ULY_GEMM_ITEM_PANELS + 1, // a block starts one panel earlier where it would split a pair
  X_FLOATS = MAX_ROWS * ULY_GEMM_KC,
  C_FLOATS = MAX_ROWS * MAX_PANELS * ULY_PANEL,
};
_Static_assert((X_FLOATS + C_FLOATS) * 4 <= ULY_GEMM_SCRATCH_BYTES, "scratch");

// The rows and panels of an item.
typedef struct block {
  int64_t row0, rows;     // local rows
  int64_t panel0, panel1; // of the part
  const float *w;         // the part's packed weights
  float *x_copy, *c;      // scratch
  int64_t s[MAX_ROWS], b[MAX_ROWS];
  const float *x[MAX_ROWS];
} block;

ULY_INLINE int64_t panels_of(int part) {
  return uly_part_panels((uly_gemm_mode)uly_gemm_part_mode[part], uly_gemm_part_n_groups[part], uly_gemm_part_group[part], uly_gemm_part_rope[part]);
}
ULY_INLINE int64_t panels_per_group(int part) {
  return uly_part_panels((uly_gemm_mode)uly_gemm_part_mode[part], 1, uly_gemm_part_group[part], uly_gemm_part_rope[part]);
}
ULY_INLINE uly_panel panel_at(int part, int64_t q) { return uly_panel_at(uly_gemm_part_mode[part], uly_gemm_part_group[part], uly_gemm_part_rope[part], q); }

// |panel|, or the one before it, so that a pair is not split.
ULY_INLINE int64_t whole_pairs(int part, int64_t panel) {
  uly_panel p = panel_at(part, panel % panels_per_group(part));
  return panel - (p.paired && p.second);
}
// Where block |i| of |n| starts: even shares of groups of four panels.
ULY_INLINE int64_t block_start(int part, int64_t i, int64_t n) {
  int64_t panels = panels_of(part), start = i * uly_cdiv(panels, ULY_GEMM_TILE_PANELS) / n * ULY_GEMM_TILE_PANELS;
  return i == n ? panels : whole_pairs(part, start);
}
ULY_INLINE int64_t next_panels(int part, int64_t panel, int64_t end) {
  int64_t next = panel + ULY_GEMM_TILE_PANELS;
  return next >= end ? end : whole_pairs(part, next);
}

// Lanes: the first |n| of a vector. Those beyond are neither read nor written. Whole vectors, almost all, go without a mask: masked stores are slow.
ULY_INLINE vf load_lanes(const float *from, int64_t n) {
  if (n == VL) return vf_load(from);
#if VL == 16
  return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
#else
  return (vf)_mm256_maskload_ps(from, (__m256i)vi_first(n));
#endif
}
ULY_INLINE void store_lanes(float *to, int64_t n, vf y) {
  if (n == VL) {
    vf_store(to, y);
    return;
  }
#if VL == 16
  _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), (__m512)y);
#else
  _mm256_maskstore_ps(to, (__m256i)vi_first(n), (__m256)y);
#endif
}
ULY_INLINE int64_t clamp_lanes(int64_t n) { return n < 0 ? 0 : n < VL ? n : VL; }

#if VL == 16
ULY_INLINE vf zip_low(vf a, vf b) { return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23); }
ULY_INLINE vf zip_high(vf a, vf b) { return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31); }
ULY_INLINE vf even(vf a, vf b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30); }
ULY_INLINE vf odd(vf a, vf b) { return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31); }
#else
ULY_INLINE vf zip_low(vf a, vf b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
ULY_INLINE vf zip_high(vf a, vf b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
ULY_INLINE vf even(vf a, vf b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14); }
ULY_INLINE vf odd(vf a, vf b) { return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15); }
#endif

// ---- x ----------------------------------------------------------------------------------------------------------------------------------------

// Points the block's rows at terms [k0, k0 + n_k) of x: where one segment holds them in place, else gathered into scratch.
static void find_x(const uly_call *call, block *t, int64_t k0, int64_t n_k) {
  int64_t n_segments = call->op[ULY_GEMM_X].n, begin = 0;
  for (int64_t p = 0; p < n_segments; p++) {
    int64_t width = n_segments == 1 ? uly_gemm_k : call->val[ULY_GEMM_X_K][p], end = begin + width;
    int64_t lo = k0 > begin ? k0 : begin, hi = k0 + n_k < end ? k0 + n_k : end;
    if (lo < hi) {
      const float *x = (const float *)call->op[ULY_GEMM_X].p[p] + (lo - begin);
      int64_t stride_s = call->val[ULY_GEMM_X_S][p], stride_b = call->val[ULY_GEMM_X_B][p];
      bool whole = hi - lo == n_k;
      for (int64_t i = 0; i < t->rows; i++) {
        const float *from = x + t->s[i] * stride_s + t->b[i] * stride_b;
        float *to = t->x_copy + i * ULY_GEMM_KC;
        t->x[i] = whole ? from : to;
        if (!whole)
          for (int64_t k = 0; k < hi - lo; k++) to[lo - k0 + k] = from[k];
      }
    }
    begin = end;
  }
}

// ---- results ----------------------------------------------------------------------------------------------------------------------------------

// Peers that get a group: some of [first, end). Without messages there is one.
typedef struct target {
  int64_t group, first, end;
} target;

ULY_INLINE bool gets(const uly_call *call, int part, int64_t peer, int64_t group) {
  int64_t g0 = call->val[ULY_GEMM_OUT_G0 + part][peer];
  return group >= g0 && group < g0 + call->val[ULY_GEMM_OUT_GN + part][peer];
}

static target find_target(const uly_call *call, int part, int64_t group) {
  target to = {group, 0, 1};
  if (!uly_gemm_message) return to;
  to.end = call->op[ULY_GEMM_OUT].n;
  while (to.first < to.end && !gets(call, part, to.first, group)) to.first++;
  while (to.end > to.first && !gets(call, part, to.end - 1, group)) to.end--;
  return to;
}

// A row of the block. |out|: its output, where there are no messages.
typedef struct place {
  int64_t s, b;
  float *out;
} place;

ULY_INLINE place find_place(const uly_call *call, int part, const block *t, int64_t row) {
  place at = {t->s[row], t->b[row], NULL};
  if (!uly_gemm_message) at.out = (float *)ptr(call, ULY_GEMM_OUT + part) + at.s * val(call, ULY_GEMM_OUT_S + part) + at.b * val(call, ULY_GEMM_OUT_B + part);
  return at;
}

// Stores columns [column, column + n) of the target's group.
ULY_INLINE void store(const uly_call *call, int part, target to, place at, int64_t column, int64_t n, vf y) {
  if (!uly_gemm_message) {
    store_lanes(at.out + to.group * uly_gemm_part_group[part] + column, n, y);
    return;
  }
  for (int64_t p = to.first; p < to.end; p++) {
    if (!gets(call, part, p, to.group)) continue;
    float *out = call->op[ULY_GEMM_OUT].p[p];
    out += at.s * call->val[ULY_GEMM_OUT_S][p] + at.b * call->val[ULY_GEMM_OUT_B][p] + call->val[ULY_GEMM_OUT_C + part][p];
    store_lanes(out + (to.group - call->val[ULY_GEMM_OUT_G0 + part][p]) * uly_gemm_part_group[part] + column, n, y);
  }
}

ULY_INLINE vf epilogue(const uly_call *call, int part, target to, place at, int64_t column, int64_t n, vf a0, vf a1) {
  if (!uly_gemm_part_has_epilogue[part] || n <= 0) return a0;
  return uly_hook_gemm_epilogue(call, part, at.s, at.b, to.group * uly_gemm_part_group[part] + column, n, a0, a1);
}

// Turns |n| pairs, the first of which is pair |pair| of its row.
ULY_INLINE void turn(const uly_call *call, place at, int64_t pair, int64_t n, vf *first, vf *second) {
  int64_t i = at.s * val(call, ULY_GEMM_ROPE_S) + at.b * val(call, ULY_GEMM_ROPE_B) + pair;
  vf cosine = load_lanes((const float *)ptr(call, ULY_GEMM_COS) + i, n), sine = load_lanes((const float *)ptr(call, ULY_GEMM_SIN) + i, n);
  vf x = *first, y = *second, xs = x * sine, ys = y * sine;
  *first = vf_fma(x, cosine, -ys);
  *second = vf_fma(y, cosine, xs);
}

// |n| lanes of one panel, or of a pair of panels (a1), whose first lane is lane |lane| of the panel.
ULY_INLINE void finish_lanes(const uly_call *call, int part, target to, uly_panel p, place at, int64_t lane, int64_t n, vf a0, vf a1) {
  int64_t mode = uly_gemm_part_mode[part], column = p.column + lane * p.step;
  if (mode == ULY_GEMM_ROPE_HALF && p.paired) {
    int64_t other = column + uly_gemm_part_rope[part] / 2;
    vf first = epilogue(call, part, to, at, column, n, a0, a0), second = epilogue(call, part, to, at, other, n, a1, a1);
    turn(call, at, column, n, &first, &second);
    store(call, part, to, at, column, n, first);
    store(call, part, to, at, other, n, second);
  } else if (mode == ULY_GEMM_ROPE_INTERLEAVED && p.paired) {
    vf low = zip_low(a0, a1), high = zip_high(a0, a1);
    int64_t n_low = clamp_lanes(2 * n), n_high = 2 * n - n_low;
    low = epilogue(call, part, to, at, column, n_low, low, low);
    high = epilogue(call, part, to, at, column + VL, n_high, high, high);
    vf first = even(low, high), second = odd(low, high);
    turn(call, at, column / 2, n, &first, &second);
    store(call, part, to, at, column, n_low, zip_low(first, second));
    if (n_high) store(call, part, to, at, column + VL, n_high, zip_high(first, second));
  } else {
    store(call, part, to, at, column, n, epilogue(call, part, to, at, column, n, a0, a1));
  }
}

// What becomes of a group of panels that are multiplied together.
typedef struct results {
  int n;
  struct {
    int64_t panel; // of the group
    uly_panel columns;
    target to;
  } each[ULY_GEMM_TILE_PANELS];
} results;

ULY_INLINE void find_results(const uly_call *call, int part, int64_t panel, int64_t n_panels, results *r) {
  int64_t per_group = panels_per_group(part);
  r->n = 0;
  for (int64_t j = 0; j < n_panels; r->n++) {
    r->each[r->n].panel = j;
    r->each[r->n].columns = panel_at(part, (panel + j) % per_group);
    r->each[r->n].to = find_target(call, part, (panel + j) / per_group);
    j += r->each[r->n].columns.paired ? 2 : 1;
  }
}

// Takes the sums of rows [row, row + n_rows) to where they belong.
ULY_INLINE void finish(const uly_call *call, int part, const block *t, const results *r, int64_t row, int64_t n_rows, int64_t n_panels, const float *c) {
  for (int64_t i = 0; i < n_rows; i++, c += n_panels * ULY_PANEL) {
    place at = find_place(call, part, t, row + i);
    for (int j = 0; j < r->n; j++) {
      uly_panel p = r->each[j].columns;
      const float *from = c + r->each[j].panel * ULY_PANEL;
      for (int64_t lane = 0; lane < ULY_PANEL && lane < p.n; lane += VL) {
        vf a0 = vf_load(from + lane), a1 = p.paired ? vf_load(from + ULY_PANEL + lane) : a0;
        finish_lanes(call, part, r->each[j].to, p, at, lane, clamp_lanes(p.n - lane), a0, a1);
      }
    }
  }
}

// ---- items ------------------------------------------------------------------------------------------------------------------------------------

// Terms [k0, k0 + n_k) of panels [panel, panel + n_panels), in tiles of even height: 8 rows are 4 + 4. |part| is a constant at each call, so that each part's code has
// its own hook, mode and widths.
ULY_INLINE void run_panels(const uly_call *call, int part, const block *t, int64_t k0, int64_t n_k, int64_t panel, int64_t n_panels) {
  bool last = k0 + n_k == uly_gemm_k;
  const float *w = t->w + (panel * uly_gemm_k + k0) * ULY_PANEL;
  float *c = t->c + (uly_gemm_k <= ULY_GEMM_KC ? 0 : (panel - t->panel0) * ULY_PANEL * t->rows); // sums that wait for more terms, else one tile's
  results r;
  if (last) find_results(call, part, panel, n_panels, &r);
  int64_t n_tiles = uly_cdiv(t->rows, ULY_GEMM_TILE_ROWS);
  for (int64_t i = 0, row = 0, n; i < n_tiles; i++, row += n) {
    n = (t->rows + i) / n_tiles;
    float *to = c + (uly_gemm_k <= ULY_GEMM_KC ? 0 : row * n_panels * ULY_PANEL);
    uly_gemm_tile(t->x + row, n, w, uly_gemm_k * ULY_PANEL, n_panels, n_k, to, k0 > 0);
    if (last) finish(call, part, t, &r, row, n, n_panels, to);
  }
}

ULY_INLINE void run_block(const uly_call *call, int part, block *t) {
  int64_t n_k;
  for (int64_t k0 = 0; k0 < uly_gemm_k; k0 += n_k) {
    n_k = uly_gemm_k - k0 < ULY_GEMM_KC ? uly_gemm_k - k0 : ULY_GEMM_KC;
    find_x(call, t, k0, n_k);
    for (int64_t p = t->panel0, next; p < t->panel1; p = next) {
      next = next_panels(part, p, t->panel1);
      run_panels(call, part, t, k0, n_k, p, next - p);
    }
  }
}

// Row blocks are whole tiles, even shares of them.
static void find_rows(const uly_call *call, block *t, int64_t i) {
  int64_t batch = val(call, ULY_GEMM_BATCH), rows = val(call, ULY_GEMM_ROWS) * batch;
  int64_t n_tiles = uly_cdiv(rows, ULY_GEMM_TILE_ROWS), n_blocks = uly_cdiv(rows, ULY_GEMM_ITEM_ROWS);
  int64_t end = (i + 1) * n_tiles / n_blocks * ULY_GEMM_TILE_ROWS;
  t->row0 = i * n_tiles / n_blocks * ULY_GEMM_TILE_ROWS;
  t->rows = (end < rows ? end : rows) - t->row0;
  int64_t s = t->row0 / batch, b = t->row0 % batch;
  for (int64_t r = 0; r < t->rows; r++) {
    t->s[r] = s;
    t->b[r] = b;
    if (++b == batch) {
      b = 0;
      s++;
    }
  }
}

ULY_INLINE int64_t blocks_of(int part) { return part < uly_gemm_n_parts ? uly_cdiv(panels_of(part), ULY_GEMM_ITEM_PANELS) : 0; }

// Runs block |i| of the parts from |part| on if it is |part|'s; else returns false.
ULY_INLINE bool run_part(const uly_call *call, int part, block *t, int64_t i) {
  int64_t n = blocks_of(part);
  if (i < 0 || i >= n) return false;
  t->panel0 = block_start(part, i, n);
  t->panel1 = block_start(part, i + 1, n);
  run_block(call, part, t);
  return true;
}

ULY_KERNEL(uly_gemm) {
  int64_t first[ULY_GEMM_MAX_PARTS + 1] = {0}, panels[ULY_GEMM_MAX_PARTS + 1] = {0};
  for (int p = 0; p < ULY_GEMM_MAX_PARTS; p++) {
    first[p + 1] = first[p] + blocks_of(p);
    panels[p + 1] = panels[p] + (p < uly_gemm_n_parts ? panels_of(p) : 0);
  }
  block t;
  t.x_copy = call->scratch;
  t.c = t.x_copy + X_FLOATS;
  const float *w = ptr(call, ULY_GEMM_W);
  for (int64_t item = call->lo; item < call->hi; item++) {
    int64_t i = item % first[ULY_GEMM_MAX_PARTS];
    find_rows(call, &t, item / first[ULY_GEMM_MAX_PARTS]);
    for (int p = 0; p < ULY_GEMM_MAX_PARTS; p++)
      if (i >= first[p] && i < first[p + 1]) t.w = w + panels[p] * uly_gemm_k * ULY_PANEL;
    if (run_part(call, 0, &t, i - first[0])) continue;
    if (run_part(call, 1, &t, i - first[1])) continue;
    if (run_part(call, 2, &t, i - first[2])) continue;
    run_part(call, 3, &t, i - first[3]);
  }
}
