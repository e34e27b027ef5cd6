// The products of gemm_loop.c in AMX tiles, of x and weights in bf16. Packed panels are tiles as they lie: 16 pairs of terms times 16 columns; rows of x are copied into tiles of 16 rows
// times CHUNK terms, whatever segments they come in. Chunks are counted from term 0, and what is missing in the last one counts as zeros.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_GEMM_TILES_H
#define ULY_CODEGEN_CPU_TEMPLATES_GEMM_TILES_H

#include "codegen/cpu/templates/amx.h"

_Static_assert(MAX_ROWS % TILE == 0 && ULY_GEMM_KC % CHUNK == 0 && ULY_PANEL == TILE, "whole tiles");

ULY_INLINE void begin_products(void) { tiles_begin(); }
ULY_INLINE void end_products(void) { tiles_end(); }

// Terms [at, at + n) of row |row|, counted from the first one in work, of which there are |chunks| chunks.
ULY_INLINE void copy_terms(tile *x, int64_t chunks, int64_t row, int64_t at, const uint16_t *from, int64_t n) {
  for (int64_t some; n > 0; n -= some, at += some, from += some) {
    const int64_t column = at % CHUNK;
    some = n < CHUNK - column ? n : CHUNK - column;
    uint16_t *to = x[row / TILE * chunks + at / CHUNK] + row % TILE * CHUNK + column;
    if (some == CHUNK)
      _mm512_storeu_si512(to, _mm512_loadu_si512(from));
    else
      _mm512_mask_storeu_epi16(to, ((__mmask32)1 << some) - 1, _mm512_maskz_loadu_epi16(((__mmask32)1 << some) - 1, from));
  }
}

// Copies terms [k0, k0 + n_k) of the rows into tiles [16 rows][chunk].
static void find_x(block *t, int64_t k0, int64_t n_k) {
  const uly_call *call = t->call;
  tile *x = (tile *)t->x_copy;
  const int64_t n_segments = call->op[ULY_GEMM_X].n, chunks = uly_cdiv(n_k, CHUNK);
  for (int64_t i = 0; n_k % CHUNK && i < t->rows; i++) _mm512_storeu_si512(x[i / TILE * chunks + chunks - 1] + i % TILE * CHUNK, _mm512_setzero_si512());
  for (int64_t p = 0, begin = 0, end; p < n_segments; p++, begin = end) {
    end = begin + (n_segments == 1 ? t->shape->k : call->val[ULY_GEMM_X_K][p]);
    const int64_t lo = k0 > begin ? k0 : begin, hi = k0 + n_k < end ? k0 + n_k : end;
    const uint16_t *from = (const uint16_t *)call->op[ULY_GEMM_X].p[p] + (lo - begin);
    const int64_t stride_s = call->val[ULY_GEMM_X_S][p], stride_b = call->val[ULY_GEMM_X_B][p];
    for (int64_t i = 0; lo < hi && i < t->rows; i++) copy_terms(x, chunks, i, lo - k0, from + t->s[i] * stride_s + t->b[i] * stride_b, hi - lo);
  }
}

// A panel's terms in work: whole chunks where they lie, and a last one with zeros behind its terms.
typedef struct panel_terms {
  const tile *whole, *last;
} panel_terms;

static panel_terms find_w(const block *t, int64_t k0, int64_t n_k, int64_t panel, tile *copy) {
  const char *w = t->w + panel * uly_panel_bytes(t->shape->k, 2) + k0 * ULY_PANEL * 2;
  const int64_t whole = n_k / CHUNK, pairs = uly_cdiv(n_k % CHUNK, 2);
  for (int64_t i = 0; pairs && i < TILE; i++)
    _mm512_storeu_si512(*copy + i * CHUNK, i < pairs ? _mm512_loadu_si512(w + (whole * TILE + i) * 64) : _mm512_setzero_si512());
  return (panel_terms){(const tile *)w, (const tile *)copy};
}

// c (+)= x w for 16 rows of x, or 32, times one panel, or two. Rows of |c| are |c_row| floats apart.
ULY_INLINE void multiply(const tile *x, int64_t chunks, bool two_rows, const panel_terms *w, bool two_panels, int64_t whole, bool add, float *c,
                         int64_t c_row) {
  float *below = c + TILE * c_row;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (add) {
    _tile_loadd(0, c, c_row * 4);
    if (two_panels) _tile_loadd(1, c + TILE, c_row * 4);
    if (two_rows) _tile_loadd(2, below, c_row * 4);
    if (two_rows && two_panels) _tile_loadd(3, below + TILE, c_row * 4);
  }
  ULY_PLAIN
  for (int64_t i = 0; i < chunks; i++) {
    _tile_loadd(4, x[i], 64);
    _tile_loadd(6, i < whole ? w[0].whole[i] : *w[0].last, 64);
    _tile_dpbf16ps(0, 4, 6);
    if (two_panels) {
      _tile_loadd(7, i < whole ? w[1].whole[i] : *w[1].last, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if (!two_rows) continue;
    _tile_loadd(5, x[chunks + i], 64);
    _tile_dpbf16ps(2, 5, 6);
    if (two_panels) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, c_row * 4);
  if (two_panels) _tile_stored(1, c + TILE, c_row * 4);
  if (two_rows) _tile_stored(2, below, c_row * 4);
  if (two_rows && two_panels) _tile_stored(3, below + TILE, c_row * 4);
}

// Terms [k0, k0 + n_k) of panels [panel, panel + n_panels). Rows that fill up the last tile are computed of what lies there, and not looked at.
static void run_panels(const block *t, int64_t k0, int64_t n_k, int64_t panel, int64_t n_panels, const char *next) {
  (void)next;
  const tile *x = (const tile *)t->x_copy;
  const int64_t row_tiles = uly_cdiv(t->rows, TILE), chunks = uly_cdiv(n_k, CHUNK), c_row = n_panels * ULY_PANEL;
  const bool waits = t->shape->k > ULY_GEMM_KC;
  float *c = t->c + (waits ? (panel - t->panel0) * ULY_PANEL * row_tiles * TILE : 0);
  panel_terms w[ULY_GEMM_TILE_PANELS];
  for (int64_t j = 0; j < n_panels; j++) w[j] = find_w(t, k0, n_k, panel + j, (tile *)t->w_copy + j);
  for (int64_t j = 0; j < n_panels; j += 2)
    for (int64_t i = 0; i < row_tiles; i += 2)
      multiply(x + i * chunks, chunks, i + 1 < row_tiles, w + j, j + 1 < n_panels, n_k / CHUNK, k0 > 0, c + i * TILE * c_row + j * ULY_PANEL, c_row);
  if (k0 + n_k < t->shape->k) return;
  uly_gemm_sums sums = {.part = t->part, .n_rows = t->rows, .n_panels = n_panels, .s = t->s, .b = t->b, .c = c};
  find_results(t, panel, n_panels, &sums);
  t->finish(t->call, &sums);
}

#endif
