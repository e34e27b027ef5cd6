#include "runtime/reference/ref_attention.h"

#include <math.h>

static double *at(uly_ref_view x, int64_t row, int64_t b, int64_t h) { return x.data + row * x.row + b * x.batch + h * x.head; }

// Scores of one row into |work|, −inf where masked. Returns whether there is a key.
static bool row_scores(const uly_ref_attention *a, int64_t b, int64_t h, int64_t row, double *work) {
  const double *q = at(a->q, row, b, h);
  const int64_t position = row + (a->q_offset ? a->q_offset[b] : 0);
  bool any = false;
  for (int64_t t = 0; t < a->t; t++) {
    work[t] = -INFINITY;
    if (a->mask && !a->mask(a->user, b, h, position, t)) continue;
    any = true;
    const double *k = at(a->k, t, b, h / a->group);
    double s = 0;
    for (int64_t d = 0; d < a->dh; d++) s += q[d] * k[d];
    s *= a->scale;
    work[t] = a->score ? a->score(a->user, b, h, position, t, s) : s;
  }
  return any;
}

// What stays of a masked key is skipped, not multiplied by 0.
static void row_values(const uly_ref_attention *a, int64_t b, int64_t h, int64_t row, const double *work, double lse) {
  double *o = at(a->out, row, b, h);
  for (int64_t t = 0; t < a->t; t++) {
    if (work[t] == -INFINITY) continue;
    const double p = exp(work[t] - lse), *v = at(a->v, t, b, h / a->group);
    for (int64_t d = 0; d < a->dv; d++) o[d] += p * v[d];
  }
}

static void row(const uly_ref_attention *a, int64_t b, int64_t h, int64_t s, double *work) {
  double *o = at(a->out, s, b, h), lse = -INFINITY;
  for (int64_t d = 0; d < a->dv; d++) o[d] = 0;
  if (row_scores(a, b, h, s, work)) {
    double most = a->sink ? a->sink[h] : -INFINITY;
    for (int64_t t = 0; t < a->t; t++) most = isnan(most) || isnan(work[t]) ? NAN : fmax(most, work[t]);
    double sum = a->sink ? exp(a->sink[h] - most) : 0;
    for (int64_t t = 0; t < a->t; t++) sum += work[t] == -INFINITY ? 0 : exp(work[t] - most);
    lse = most + log(sum);
    if (most != -INFINITY) row_values(a, b, h, s, work, lse);
  }
  if (a->lse.data) *at(a->lse, s, b, h) = lse;
}

void uly_ref_attention_run(const uly_ref_attention *a, double *work) {
  for (int64_t b = 0; b < a->b; b++)
    for (int64_t h = 0; h < a->h; h++)
      for (int64_t s = 0; s < a->s; s++) row(a, b, h, s, work);
}
