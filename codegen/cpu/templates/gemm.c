// Linear layers that share an input x, with what follows them element by element:
//
//   out_p[row, c] = epilogue_p(Σ_k x[row, k] · w_p[c, k])      row = (s, b), up to ULY_GEMM_MAX_PARTS parts p, modes of runtime/kernel_abi.h
//
// The sums are gemm_loop.c's, the same code for all kernels. Here is what differs between them: a few rows times up to four panels of finished sums go through the
// epilogue and rope, 16 columns of a row at a time, to the output or into the messages, rounded once where that is bf16 or f16. Not here: reductions over ranks.
//
// Where the part goes into a loss, the output is what NLL needs of each row instead: statistics of tiles of columns, see kernel_abi.h. [rows, V] never is in memory.
//
// Bits: an element is one fma chain over k for every KC terms counted from k = 0, and the chains' sum in ascending order; then the epilogue. Rows, segments, tiles,
// items and peers do not enter. Oracle: tests/numerics/gemm_test.c in float64.
//
// Constants, all of them 64-bit integers: from uly_gemm_desc, and for each part p, used or not, element p of arrays of ULY_GEMM_MAX_PARTS elements ([4 x i64]) from
// its uly_gemm_part. This file, gemm_loop.c and gemm_tile.c must be compiled with 512-bit registers allowed at x86-64-v4 (-mprefer-vector-width=512).
#include "codegen/cpu/templates/gemm_loop.h"
#include "codegen/cpu/templates/lane_floats.h"
#include "codegen/cpu/templates/nll_tile.h"

ULY_CONST(int64_t, uly_gemm_k);
ULY_CONST(int64_t, uly_gemm_n_parts);
ULY_CONST(int64_t, uly_gemm_message);
ULY_CONST(int64_t, uly_gemm_labels);
ULY_CONST(int64_t, uly_gemm_x_dtype);
ULY_CONST(int64_t, uly_gemm_w_dtype);
ULY_CONST(int64_t, uly_gemm_part_mode)[ULY_GEMM_MAX_PARTS];
ULY_CONST(int64_t, uly_gemm_part_n_groups)[ULY_GEMM_MAX_PARTS];
ULY_CONST(int64_t, uly_gemm_part_group)[ULY_GEMM_MAX_PARTS];
ULY_CONST(int64_t, uly_gemm_part_rope)[ULY_GEMM_MAX_PARTS];
ULY_CONST(int64_t, uly_gemm_part_dtype)[ULY_GEMM_MAX_PARTS]; // of the output
ULY_CONST(int64_t, uly_gemm_part_has_epilogue)[ULY_GEMM_MAX_PARTS];

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

// ---- what the constants say about a part --------------------------------------------------------------------------------------------------------

ULY_INLINE bool is_paired(int part, uly_panel p) {
  int64_t mode = uly_gemm_part_mode[part];
  if (mode == ULY_GEMM_PAIR) return true;
  if (mode == ULY_GEMM_PLAIN) return false;
  return uly_gemm_part_group[part] == uly_gemm_part_rope[part] || p.paired;
}

// Whether panels have no padding.
ULY_INLINE bool is_whole(int part) {
  int64_t group = uly_gemm_part_group[part], rope = uly_gemm_part_mode[part] < ULY_GEMM_ROPE_HALF ? 0 : uly_gemm_part_rope[part];
  return rope % (2 * ULY_PANEL) == 0 && (group - rope) % ULY_PANEL == 0;
}

// Whether a tile's results are its sums as they stand, side by side.
ULY_INLINE bool is_stretch(int part) {
  return !uly_gemm_message && uly_gemm_part_mode[part] == ULY_GEMM_PLAIN && !uly_gemm_part_has_epilogue[part] && is_whole(part);
}

// ---- results ----------------------------------------------------------------------------------------------------------------------------------

// A row and what is to be stored of it. |out|: the row's output, where there are no messages.
typedef struct place {
  int64_t s, b, group, first_peer, end_peer;
  char *out;
} place;

// Stores columns [column, column + n) of the group.
ULY_INLINE void store(const uly_call *call, int part, place at, int64_t column, int64_t n, vf y) {
  int64_t group = uly_gemm_part_group[part], dtype = uly_gemm_part_dtype[part], bytes = lane_bytes(dtype);
  if (!uly_gemm_message) {
    lane_store(dtype, at.out + (at.group * group + column) * bytes, n, y);
    return;
  }
  ULY_PLAIN
  for (int64_t p = at.first_peer; p < at.end_peer; p++) {
    if (!uly_gemm_gets(call, part, p, at.group)) continue;
    int64_t row = at.s * call->val[ULY_GEMM_OUT_S][p] + at.b * call->val[ULY_GEMM_OUT_B][p] + call->val[ULY_GEMM_OUT_C + part][p];
    int64_t i = row + (at.group - call->val[ULY_GEMM_OUT_G0 + part][p]) * group + column;
    lane_store(dtype, (char *)call->op[ULY_GEMM_OUT].p[p] + i * bytes, n, y);
  }
}

// Without one, the result of a pair is its first sum.
ULY_INLINE vf epilogue(const uly_call *call, int part, place at, int64_t column, int64_t n, vf a0, vf a1) {
  if (!uly_gemm_part_has_epilogue[part] || n <= 0) return a0;
  return uly_hook_gemm_epilogue(call, part, at.s, at.b, at.group * uly_gemm_part_group[part] + column, n, a0, a1);
}

// Turns |n| pairs, the first of which is pair |pair| of its row.
ULY_INLINE void turn(const uly_call *call, place at, int64_t pair, int64_t n, vf *first, vf *second) {
  int64_t i = at.s * val(call, ULY_GEMM_ROPE_S) + at.b * val(call, ULY_GEMM_ROPE_B) + pair;
  vf cosine = vf_load_first((const float *)ptr(call, ULY_GEMM_COS) + i, n), sine = vf_load_first((const float *)ptr(call, ULY_GEMM_SIN) + i, n);
  vf x = *first, y = *second;
  *first = x * cosine - y * sine; // rounded as elementwise code
  *second = y * cosine + x * sine;
}

// |n| lanes of pairs, the first of which is pair |pair|.
ULY_INLINE void finish_rope(const uly_call *call, int part, place at, int64_t pair, int64_t n, vf a0, vf a1) {
  if (uly_gemm_part_mode[part] == ULY_GEMM_ROPE_HALF) {
    int64_t other = pair + uly_gemm_part_rope[part] / 2;
    vf first = epilogue(call, part, at, pair, n, a0, a0), second = epilogue(call, part, at, other, n, a1, a1);
    turn(call, at, pair, n, &first, &second);
    store(call, part, at, pair, n, first);
    store(call, part, at, other, n, second);
    return;
  }
  int64_t column = 2 * pair, n_low = clamp_lanes(2 * n), n_high = 2 * n - n_low;
  vf low = zip_low(a0, a1), high = zip_high(a0, a1);
  low = epilogue(call, part, at, column, n_low, low, low);
  high = epilogue(call, part, at, column + VL, n_high, high, high);
  vf first = even(low, high), second = odd(low, high);
  turn(call, at, pair, n, &first, &second);
  store(call, part, at, column, n_low, zip_low(first, second));
  if (n_high) store(call, part, at, column + VL, n_high, zip_high(first, second));
}

ULY_INLINE void store_stretch(int part, const uly_gemm_sums *sums, const float *c, place at) {
  const int64_t dtype = uly_gemm_part_dtype[part], bytes = lane_bytes(dtype);
  char *to = at.out + (sums->results[0].group * uly_gemm_part_group[part] + sums->results[0].columns.column) * bytes;
  ULY_PLAIN
  for (int64_t lane = 0; lane < sums->n_panels * ULY_PANEL; lane += VL) lane_store(dtype, to + lane * bytes, VL, vf_load(c + lane));
}

// |part| is a constant at each call.
ULY_INLINE void finish_part(const uly_call *call, int part, const uly_gemm_sums *sums) {
  const float *c = sums->c;
  ULY_PLAIN
  for (int64_t i = 0; i < sums->n_rows; i++, c += sums->n_panels * ULY_PANEL) {
    place at = {.s = sums->s[i], .b = sums->b[i]};
    int64_t row = at.s * val(call, ULY_GEMM_OUT_S + part) + at.b * val(call, ULY_GEMM_OUT_B + part);
    if (!uly_gemm_message) at.out = (char *)ptr(call, ULY_GEMM_OUT + part) + row * lane_bytes(uly_gemm_part_dtype[part]);
    if (is_stretch(part)) {
      store_stretch(part, sums, c, at);
      continue;
    }
    ULY_PLAIN
    for (int64_t j = 0; j < sums->n_results; j++) {
      const uly_gemm_result *r = &sums->results[j];
      const float *from = c + r->panel * ULY_PANEL;
      bool paired = is_paired(part, r->columns), turns = paired && uly_gemm_part_mode[part] != ULY_GEMM_PAIR;
      at.group = r->group, at.first_peer = r->first_peer, at.end_peer = r->end_peer;
      ULY_PLAIN
      for (int64_t lane = 0; lane < ULY_PANEL && (is_whole(part) || lane < r->columns.n); lane += VL) {
        int64_t n = is_whole(part) ? VL : clamp_lanes(r->columns.n - lane), column = r->columns.column + lane;
        vf a0 = vf_load(from + lane), a1 = paired ? vf_load(from + ULY_PANEL + lane) : a0;
        if (turns)
          finish_rope(call, part, at, r->columns.column / r->columns.step + lane, n, a0, a1);
        else
          store(call, part, at, column, n, epilogue(call, part, at, column, n, a0, a1));
      }
    }
  }
}

// ---- losses -----------------------------------------------------------------------------------------------------------------------------------

ULY_INLINE int64_t label_of(const uly_call *call, place at) {
  int64_t i = at.s * val(call, ULY_GEMM_LABELS_S) + at.b * val(call, ULY_GEMM_LABELS_B);
  return uly_gemm_labels == 8 ? ((const int64_t *)ptr(call, ULY_GEMM_LABELS))[i] : ((const int32_t *)ptr(call, ULY_GEMM_LABELS))[i];
}

// A tile of sums is one of NLL: blocks of panels start on a multiple of four.
_Static_assert(ULY_NLL_TILE == ULY_GEMM_TILE_PANELS * ULY_PANEL, "a tile of sums is a tile of statistics");
ULY_INLINE void finish_loss(const uly_call *call, const uly_gemm_sums *sums) {
  int64_t column = sums->results[0].columns.column, left = uly_gemm_part_group[0] - column, tiles = uly_nll_tiles(uly_gemm_part_group[0]);
  const int64_t rows = val(call, ULY_GEMM_ROWS) * val(call, ULY_GEMM_BATCH), tile = column / ULY_NLL_TILE;
  const float *c = sums->c;
  ULY_PLAIN
  for (int64_t i = 0; i < sums->n_rows; i++, c += sums->n_panels * ULY_PANEL) {
    place at = {.s = sums->s[i], .b = sums->b[i]};
    float *stats = (float *)ptr(call, ULY_GEMM_OUT) + at.s * val(call, ULY_GEMM_OUT_S) + at.b * val(call, ULY_GEMM_OUT_B);
    int64_t label = label_of(call, at) - column;
    vf x[NLL_VECTORS];
    if (left >= ULY_NLL_TILE) {
      ULY_UNROLL
      for (int j = 0; j < NLL_VECTORS; j++) x[j] = epilogue(call, 0, at, column + j * VL, VL, vf_load(c + j * VL), vf_load(c + j * VL));
    } else {
      ULY_PLAIN
      for (int j = 0; j < NLL_VECTORS; j++) {
        int64_t n = clamp_lanes(left - j * VL);
        vf a = n ? vf_load(c + j * VL) : vf_splat(NLL_NOTHING);
        x[j] = vf_select(vi_first(n), epilogue(call, 0, at, column + j * VL, n, a, a), vf_splat(NLL_NOTHING));
      }
    }
    if (label >= 0 && label < ULY_NLL_TILE && label < left) {
      float all[ULY_NLL_TILE];
      ULY_UNROLL
      for (int j = 0; j < NLL_VECTORS; j++) vf_store(all + j * VL, x[j]);
      stats[2 * tiles * rows] = all[label];
    }
    nll_tile(x, &stats[tile * rows], &stats[(tiles + tile) * rows]);
  }
}

static void finish(const uly_call *call, const uly_gemm_sums *sums) {
  if (uly_gemm_labels) {
    finish_loss(call, sums);
    return;
  }
  if (sums->part == 0) finish_part(call, 0, sums);
  if (uly_gemm_n_parts > 1 && sums->part == 1) finish_part(call, 1, sums);
  if (uly_gemm_n_parts > 2 && sums->part == 2) finish_part(call, 2, sums);
  if (uly_gemm_n_parts > 3 && sums->part == 3) finish_part(call, 3, sums);
}

ULY_KERNEL(uly_gemm) {
#ifdef __AMX_BF16__
  uly_gemm_tile *tile = NULL; // the loop has its own
#else
  uly_gemm_tile *tile = uly_gemm_w_dtype == LANE_BF16 ? uly_gemm_tile_bf16 : uly_gemm_w_dtype == LANE_F16 ? uly_gemm_tile_f16 : uly_gemm_tile_f32;
#endif
  uly_gemm_shape shape = {uly_gemm_k, uly_gemm_n_parts, uly_gemm_message, uly_gemm_x_dtype, uly_gemm_w_dtype, tile, {{0}}};
  ULY_UNROLL
  for (int p = 0; p < ULY_GEMM_MAX_PARTS; p++)
    shape.parts[p] = (uly_gemm_part_shape){uly_gemm_part_mode[p], uly_gemm_part_n_groups[p], uly_gemm_part_group[p], uly_gemm_part_rope[p],
                                           is_stretch(p) && !uly_gemm_labels && uly_gemm_part_dtype[p] == LANE_F32};
  uly_gemm_loop(call, &shape, finish);
}
