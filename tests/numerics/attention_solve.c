// The oracle's and the naive version's side of an attention case.
#include "tests/numerics/attention_case.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/reference/ref_attention.h"

static bool mask(void *user, int64_t b, int64_t h, int64_t q, int64_t k) {
  const attention_case *c = user;
  const attention_spec *s = &c->spec;
  const int64_t n = (s->s + s->offset > s->t ? s->s + s->offset : s->t) + 1;
  return attention_allowed(s->mask, s->mask_a, s->mask_b, (const int32_t *)c->documents_memory.data + b * n, h + s->h0, q, k);
}

static int64_t offset(const attention_case *c, int64_t b) { return c->spec.per_batch_offset ? ((const int32_t *)c->offset_memory.data)[b] : c->spec.offset; }

static double score(void *user, int64_t b, int64_t h, int64_t q, int64_t k, double x) {
  const attention_case *c = user;
  const attention_spec *s = &c->spec;
  switch (s->score) {
  case SCORE_SOFTCAP: return 5 * tanh(x / 5);
  case SCORE_ALIBI: return x - attention_slope(h + s->h0) * (double)(q - k);
  case SCORE_TABLE: return x + (double)((const float *)c->table_memory.data)[(q - c->spec.offset) * s->t + k];
  default: break;
  }
  (void)b;
  return x;
}

// Widens a tensor, to [b][row][head][width].
static uly_ref_view widen(const attention_tensor *t, int64_t rows, int64_t batch, int64_t heads, int64_t width) {
  uly_ref_view view = {.row = heads * width, .batch = rows * heads * width, .head = width};
  view.data = malloc((size_t)(rows * batch * heads * width + 1) * sizeof(double));
  if (!view.data) abort();
  for (int64_t b = 0; b < batch; b++)
    for (int64_t r = 0; r < rows; r++)
      for (int64_t h = 0; h < heads; h++)
        for (int64_t d = 0; d < width; d++)
          view.data[b * view.batch + r * view.row + h * width + d] = (double)t->data[b * t->batch + r * t->row + h * t->head + d];
  return view;
}

static void naive_row(const attention_case *c, int64_t b, int64_t h, int64_t row, float *work, float *out) {
  const attention_spec *s = &c->spec;
  const int64_t kv = (h + s->h0) / s->group - c->k0, position = row + offset(c, b);
  const float *q = c->q.data + row * c->q.row + b * c->q.batch + h * c->q.head;
  float most = s->sink ? ((const float *)c->sink_memory.data)[h + s->h0] : -INFINITY;
  for (int64_t t = 0; t < s->t; t++) {
    work[t] = -INFINITY;
    if (!mask((void *)(uintptr_t)c, b, h, position, t)) continue;
    const float *k = c->k.data + t * c->k.row + b * c->k.batch + kv * c->k.head;
    float x = 0;
    for (int64_t d = 0; d < s->dh; d++) x += q[d] * k[d];
    work[t] = (float)score((void *)(uintptr_t)c, b, h, position, t, (double)(x * (float)c->scale));
    most = fmaxf(most, work[t]);
  }
  float sum = s->sink ? expf(((const float *)c->sink_memory.data)[h + s->h0] - most) : 0;
  for (int64_t t = 0; t < s->t; t++) sum += work[t] = expf(work[t] - most);
  for (int64_t d = 0; d < s->dv; d++) out[d] = 0;
  for (int64_t t = 0; t < s->t; t++) {
    const float *v = c->v.data + t * c->v.row + b * c->v.batch + kv * c->v.head;
    for (int64_t d = 0; work[t] > 0 && d < s->dv; d++) out[d] += work[t] / sum * v[d];
  }
}

void attention_case_solve(attention_case *c) {
  const attention_spec *s = &c->spec;
  double *work = malloc((size_t)(s->t + 1) * sizeof *work), *sink = malloc((size_t)s->h * sizeof *sink);
  float *short_work = malloc((size_t)(s->t + 1) * sizeof *short_work);
  int64_t *offsets = malloc((size_t)s->b * sizeof *offsets);
  if (!work || !sink || !short_work || !offsets) abort();
  for (int64_t h = 0; h < s->h; h++) sink[h] = (double)((const float *)c->sink_memory.data)[h + s->h0];
  for (int64_t b = 0; b < s->b; b++) offsets[b] = offset(c, b);
  const uly_ref_view q = widen(&c->q, s->s, s->b, s->h, s->dh), k = widen(&c->k, s->t, s->b, c->n_kv, s->dh), v = widen(&c->v, s->t, s->b, c->n_kv, s->dv);
  for (int64_t h = 0; h < s->h; h++) { // one head a call: kv heads are counted from k0
    const int64_t kv = (h + s->h0) / s->group - c->k0;
    uly_ref_attention_args a = {.s = s->s,
                                .t = s->t,
                                .b = s->b,
                                .h = 1,
                                .group = 1,
                                .dh = s->dh,
                                .dv = s->dv,
                                .scale = c->scale,
                                .q = q,
                                .k = k,
                                .v = v,
                                .sink = s->sink ? sink + h : NULL,
                                .q_offset = offsets,
                                .mask = mask,
                                .score = score,
                                .user = c};
    attention_case shifted = *c;
    shifted.spec.h0 += h;
    a.user = &shifted;
    a.q.data += h * q.head;
    a.k.data += kv * k.head;
    a.v.data += kv * v.head;
    a.out = (uly_ref_view){c->oracle + h * s->s * s->dv, s->dv, s->h * s->s * s->dv, 0};
    a.lse = (uly_ref_view){c->oracle_lse + h * s->s, 1, s->h * s->s, 0};
    uly_ref_attention_run(&a, work);
    for (int64_t b = 0; b < s->b; b++)
      for (int64_t row = 0; row < s->s; row++) naive_row(c, b, h, row, short_work, c->naive + ((b * s->h + h) * s->s + row) * s->dv);
  }
  free(work), free(sink), free(short_work), free(offsets), free(q.data), free(k.data), free(v.data);
}

static void compare_number(attention_error *e, double exact, double naive, double got) {
  e->n++;
  if (!isfinite(exact) || !isfinite(got)) {
    e->n_nan_wrong += isfinite(got) || isfinite(exact);
    return;
  }
  const double d = fabs(got - exact), n = isfinite(naive) ? fabs(naive - exact) : 0;
  e->worst = fmax(e->worst, d);
  e->largest = fmax(e->largest, fabs(exact));
  e->naive_worst = fmax(e->naive_worst, n);
  e->squares += d * d;
  e->naive_squares += n * n;
}

attention_error attention_case_compare(const attention_case *c, const float *out) {
  const attention_spec *s = &c->spec;
  attention_error e = {0};
  for (int64_t h = 0; h < s->h; h++)
    for (int64_t r = 0; r < s->s; r++)
      for (int64_t b = 0; b < s->b; b++) {
        const float *got = out + ((h * s->s + r) * s->b + b) * (s->dv + 1);
        const int64_t at = (b * s->h + h) * s->s + r;
        for (int64_t d = 0; d < s->dv; d++) compare_number(&e, c->oracle[at * s->dv + d], (double)c->naive[at * s->dv + d], (double)got[d]);
        if (!s->lse) continue;
        const double exact = c->oracle_lse[at], lse = (double)got[s->dv];
        if (isfinite(exact)) e.lse_worst = fmax(e.lse_worst, fabs(lse - exact) / fmax(1, fabs(exact)));
        e.n_nan_wrong += isfinite(exact) ? !isfinite(lse) : isnan(exact) ? !isnan(lse) : lse != exact;
      }
  return e;
}
