#include "runtime/reference/ref_attention.h"

#include <math.h>

#include "runtime/reference/reference.h"

static double *at(uly_ref_view x, int64_t row, int64_t b, int64_t h) { return x.data + row * x.row + b * x.batch + h * x.head; }

// Scores of one row into |work|, −inf where masked. Returns whether there is a key.
static bool row_scores(const uly_ref_attention_args *a, int64_t b, int64_t h, int64_t row, double *work) {
  const double *q = at(a->q, row, b, h);
  const int64_t position = row + (a->q_offset ? a->q_offset[b] : a->q_offset_value);
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
static void row_values(const uly_ref_attention_args *a, int64_t b, int64_t h, int64_t row, const double *work, double lse) {
  double *o = at(a->out, row, b, h);
  for (int64_t t = 0; t < a->t; t++) {
    if (work[t] == -INFINITY) continue;
    const double p = exp(work[t] - lse), *v = at(a->v, t, b, h / a->group);
    for (int64_t d = 0; d < a->dv; d++) o[d] += p * v[d];
  }
}

static void row(const uly_ref_attention_args *a, int64_t b, int64_t h, int64_t s, double *work) {
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

void uly_ref_attention_run(const uly_ref_attention_args *a, double *work) {
  for (int64_t b = 0; b < a->b; b++)
    for (int64_t h = 0; h < a->h; h++)
      for (int64_t s = 0; s < a->s; s++) row(a, b, h, s, work);
}

static uly_ref_view view_of(const uly_ref_tensor *t) {
  return (uly_ref_view){.data = &t->data->f, .row = t->dims[2] * t->dims[3], .batch = t->dims[1] * t->dims[2] * t->dims[3], .head = t->dims[3]};
}

// q [B, S, H, Dh], k [B, T, K, Dh], v [B, T, K, Dv], then sink [H], q_offset [] or [B] and what mask and score capture. i: the operand numbers of sink and q_offset or −1,
// q_offset where it is one number, the operand number of the first captured tensor. f: scale.
void uly_ref_attention(uly_ref_op *op) {
  const uly_ref_tensor *q = &op->in[0], *k = &op->in[1], *v = &op->in[2], *offset = op->i[1] < 0 ? NULL : &op->in[op->i[1]];
  uly_ref_attention_args a = {
      .s = q->dims[1], .t = k->dims[1], .b = q->dims[0], .h = q->dims[2], .group = q->dims[2] / k->dims[2], .dh = q->dims[3], .dv = v->dims[3]};
  a.scale = op->f[0];
  a.q = view_of(q), a.k = view_of(k), a.v = view_of(v), a.out = view_of(&op->out);
  a.sink = op->i[0] < 0 ? NULL : &op->in[op->i[0]].data->f;
  a.q_offset_value = offset ? offset->data->i : op->i[2];
  a.q_offset = offset && offset->rank ? &offset->data->i : NULL;
  a.mask = op->code.mask, a.score = op->code.score, a.user = op->code.context;
  for (int64_t i = op->begin; i < op->end; i++) row(&a, i / a.h / a.s, i % a.h, i / a.h % a.s, op->work);
}
