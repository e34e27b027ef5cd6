// Attention forward as uly_ref_attention does it, on views with strides: float64, one pair at a time, no tiles.
#ifndef ULY_RUNTIME_REFERENCE_REF_ATTENTION_H
#define ULY_RUNTIME_REFERENCE_REF_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

// A tensor [row][batch][head][feature]: strides in elements, features contiguous.
typedef struct uly_ref_view {
  double *data;
  int64_t row, batch, head;
} uly_ref_view;

typedef struct uly_ref_attention_args {
  int64_t s, t, b, h; // query rows, keys, batch, query heads
  int64_t group;      // query heads a kv head
  int64_t dh, dv;
  double scale;
  uly_ref_view q, k, v, out;
  uly_ref_view lse;        // data NULL: not wanted; no feature dim
  const double *sink;      // [h], or NULL
  const int64_t *q_offset; // [b], or NULL: q_offset_value for all
  int64_t q_offset_value;
  // May key row k be seen by query row q (q_offset added)? NULL: all.
  bool (*mask)(void *user, int64_t b, int64_t h, int64_t q, int64_t k);
  // The score that replaces q·k · scale, not called for masked pairs. NULL: as it is.
  double (*score)(void *user, int64_t b, int64_t h, int64_t q, int64_t k, double s);
  void *user;
} uly_ref_attention_args;

// o = Σ p v with p = exp(s − lse), lse = log(exp(sink) + Σ exp(s)). A row without a key gives o = 0 and lse = −inf, with or without a sink. |work| has room
// for t numbers.
void uly_ref_attention_run(const uly_ref_attention_args *a, double *work);

#endif
