// Row by row over the last dim c; calling convention in kernel_abi.h:
//   MAP        out[row, c] = expr                                  the hook stores
//   RMSNORM    y = x · rsqrt(mean(x²) + eps)                       then the out hook
//   LAYERNORM  y = (x − mean) · rsqrt(mean((x − mean)²) + eps)     in two passes, then the out hook
//   SUM        y = Σ_c x                                           then the out hook, at c = 0
//   SOFTMAX    y = 2^((x − max) · log2 e) / Σ_c of that            then the out hook; NaN where x has NaN, +Inf, or nothing but −Inf
// x is the in hook's value, in f32. It is evaluated again for every pass: a row stays in the first-level cache; softmax keeps its powers in scratch. Oracle: runtime/reference.
//
// Bits: element c is added into lane c mod VL of partial sum (c / VL) mod 4; the four are added as (0 + 1) + (2 + 3), then lanes by halves. So they depend on
// the row's elements and their number alone.
#include "codegen/cpu/templates/lane_math.h"

ULY_CONST(int64_t, uly_rows_form); // uly_rows_mode
ULY_CONST(int64_t, uly_rows_cols); // 0: known at bind
ULY_CONST(float, uly_rows_eps);

typedef struct row {
  const uly_call *call;
  int64_t i0, i1, i2, i3, i4, cols;
} row;

enum { PARTIALS = 4 };

// Lanes from |n| on are zero.
ULY_INLINE vf first_lanes(vf x, int64_t n) { return (vf)((vi)x & vi_first(n)); }

ULY_INLINE float add_lanes(const vf *partial) {
  vf s = (partial[0] + partial[1]) + (partial[2] + partial[3]);
#if VL == 16
  typedef float v8 __attribute__((vector_size(32)));
  v8 h = __builtin_shufflevector(s, s, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(s, s, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  vf h = s;
#endif
  return ((h[0] + h[4]) + (h[2] + h[6])) + ((h[1] + h[5]) + (h[3] + h[7]));
}

ULY_INLINE vf value(const row *r, int64_t c, int64_t n) { return uly_hook_rows_in(r->call, r->i0, r->i1, r->i2, r->i3, r->i4, c, n); }

typedef enum term { TERM_VALUE, TERM_SQUARE } term;

// Σ_c of x − shift, or of its square.
ULY_INLINE float sum(const row *r, term what, float shift) {
  vf partial[PARTIALS] = {{0}, {0}, {0}, {0}}, by = vf_splat(shift);
  int64_t c = 0;
  for (; c + PARTIALS * VL <= r->cols; c += PARTIALS * VL) {
#pragma clang loop unroll(full)
    for (int j = 0; j < PARTIALS; j++) {
      vf x = value(r, c + j * VL, VL) - by;
      partial[j] = what == TERM_SQUARE ? __builtin_elementwise_fma(x, x, partial[j]) : partial[j] + x;
    }
  }
#pragma clang loop unroll(full)
  for (int j = 0; j < PARTIALS; j++) {
    int64_t n = r->cols - c - j * VL;
    if (n <= 0) break;
    n = n < VL ? n : VL;
    vf x = first_lanes(value(r, c + j * VL, n) - by, n);
    partial[j] = what == TERM_SQUARE ? __builtin_elementwise_fma(x, x, partial[j]) : partial[j] + x;
  }
  return add_lanes(partial);
}

ULY_INLINE void normalise(const row *r, float mean, float variance) {
  vf factor = vf_splat(1.0f / __builtin_elementwise_sqrt(variance + uly_rows_eps)), by = vf_splat(mean);
  int64_t c = 0;
  for (; c + VL <= r->cols; c += VL) uly_hook_rows_out(r->call, r->i0, r->i1, r->i2, r->i3, r->i4, c, VL, (value(r, c, VL) - by) * factor);
  int64_t n = r->cols - c;
  if (n > 0) uly_hook_rows_out(r->call, r->i0, r->i1, r->i2, r->i3, r->i4, c, n, (value(r, c, n) - by) * factor);
}

ULY_INLINE float largest(const row *r) {
  vf most = vf_splat(-__builtin_inff());
  int64_t c = 0;
  for (; c + VL <= r->cols; c += VL) most = vf_max(value(r, c, VL), most);
  int64_t n = r->cols - c;
  if (n > 0) most = vf_max(vf_select(vi_first(n), value(r, c, n), most), most);
  return __builtin_reduce_max(most);
}

// The powers, kept, and their sum. −Inf gives 0.
ULY_INLINE float powers(const row *r, float most, float *kept) {
  vf partial[PARTIALS] = {{0}, {0}, {0}, {0}}, by = vf_splat(most), log2e = vf_splat(0x1.715476p+0f), least = vf_splat(-256.0f);
  for (int64_t c = 0; c < r->cols; c += PARTIALS * VL) {
#pragma clang loop unroll(full)
    for (int j = 0; j < PARTIALS; j++) {
      int64_t n = r->cols - c - j * VL;
      if (n <= 0) break;
      n = n < VL ? n : VL;
      vf e = vf_exp2(vf_max(least, (value(r, c + j * VL, n) - by) * log2e));
      vf_store_first(kept + c + j * VL, n, e);
      partial[j] += first_lanes(e, n);
    }
  }
  return add_lanes(partial);
}

ULY_INLINE void softmax(const row *r) {
  float *kept = r->call->scratch;
  vf factor = vf_splat(1.0f / powers(r, largest(r), kept));
  int64_t c = 0;
  for (; c + VL <= r->cols; c += VL) uly_hook_rows_out(r->call, r->i0, r->i1, r->i2, r->i3, r->i4, c, VL, vf_load(kept + c) * factor);
  int64_t n = r->cols - c;
  if (n > 0) uly_hook_rows_out(r->call, r->i0, r->i1, r->i2, r->i3, r->i4, c, n, vf_load_first(kept + c, n) * factor);
}

ULY_INLINE void map(const row *r) {
  int64_t c = 0;
  for (; c + VL <= r->cols; c += VL) uly_hook_rows_map(r->call, r->i0, r->i1, r->i2, r->i3, r->i4, c, VL);
  if (c < r->cols) uly_hook_rows_map(r->call, r->i0, r->i1, r->i2, r->i3, r->i4, c, r->cols - c);
}

ULY_INLINE void run_row(const row *r) {
  float n = (float)r->cols, mean;
  switch (uly_rows_form) {
  case ULY_ROWS_MAP: map(r); break;
  case ULY_ROWS_RMSNORM: normalise(r, 0, sum(r, TERM_SQUARE, 0) / n); break;
  case ULY_ROWS_LAYERNORM:
    mean = sum(r, TERM_VALUE, 0) / n;
    normalise(r, mean, sum(r, TERM_SQUARE, mean) / n);
    break;
  case ULY_ROWS_SUM: uly_hook_rows_out(r->call, r->i0, r->i1, r->i2, r->i3, r->i4, 0, 1, vf_splat(sum(r, TERM_VALUE, 0))); break;
  case ULY_ROWS_SOFTMAX: softmax(r); break;
  default: break;
  }
}

ULY_KERNEL(uly_kernel_rows) {
  const int64_t n1 = val(call, ULY_ROWS_N1), n2 = val(call, ULY_ROWS_N2), n3 = val(call, ULY_ROWS_N3), n4 = val(call, ULY_ROWS_N4);
  row r = {.call = call, .cols = uly_rows_cols ? uly_rows_cols : val(call, ULY_ROWS_COLS)};
  if (call->lo >= call->hi) return;
  int64_t at = call->lo;
  r.i4 = at % n4, at /= n4;
  r.i3 = at % n3, at /= n3;
  r.i2 = at % n2, at /= n2;
  r.i1 = at % n1, r.i0 = at / n1;
  for (int64_t item = call->lo; item < call->hi; item++) {
    run_row(&r);
    if (++r.i4 < n4) continue;
    r.i4 = 0;
    if (++r.i3 < n3) continue;
    r.i3 = 0;
    if (++r.i2 < n2) continue;
    r.i2 = 0;
    if (++r.i1 < n1) continue;
    r.i1 = 0;
    r.i0++;
  }
}
