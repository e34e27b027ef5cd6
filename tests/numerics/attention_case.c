#include "tests/numerics/attention_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/kernel_abi.h"
#include "runtime/reference/ref_attention.h"

static void *zeros(int64_t n, size_t bytes) {
  void *p = calloc((size_t)n + 1, bytes);
  if (!p) abort();
  return p;
}

static int64_t positions(const attention_spec *s) { return (s->s + s->offset > s->t ? s->s + s->offset : s->t) + 1; }

static const int32_t *offsets(const attention_case *c) { return c->offset_memory.data; }
static int64_t offset_of(const attention_case *c, int64_t b) { return c->spec.per_batch_offset ? offsets(c)[b] : c->spec.offset; }
static bool allowed(const attention_case *c, int64_t b, int64_t h, int64_t q, int64_t k) {
  const int32_t *documents = (const int32_t *)c->documents_memory.data + b * positions(&c->spec);
  return attention_allowed(c->spec.mask, c->spec.mask_a, c->spec.mask_b, documents, h, q, k);
}

static attention_tensor place(const attention_spec *s, uly_guarded *memory, int64_t *out_n, int64_t rows, int64_t heads, int64_t width) {
  const int64_t gap = s->layout == LAYOUT_GAPS ? 3 : 0;
  attention_tensor t = {.head = width};
  int64_t n;
  if (s->layout == LAYOUT_DENSE) {
    t.row = heads * width;
    t.batch = rows * t.row;
    n = rows * s->b * heads * width;
  } else {
    t.batch = heads * width + gap;
    t.row = s->b * t.batch + gap;
    n = rows && heads ? (rows - 1) * t.row + (s->b - 1) * t.batch + heads * width : 0;
  }
  *memory = uly_guarded_create((size_t)n * 4, s->at_end);
  *out_n = n;
  t.data = memory->data;
  return t;
}

static void place_tensors(attention_case *c) {
  const attention_spec *s = &c->spec;
  if (s->layout != LAYOUT_MESSAGE) {
    c->q = place(s, &c->q_memory, &c->n_q, s->s, s->h, s->dh);
    c->k = place(s, &c->k_memory, &c->n_k, s->t, c->n_kv, s->dh);
    c->v = place(s, &c->v_memory, &c->n_v, s->t, c->n_kv, s->dv);
    return;
  }
  const int64_t cols = (s->h + c->n_kv) * s->dh + c->n_kv * s->dv;
  c->n_q = s->s * s->b * cols;
  c->q_memory = uly_guarded_create((size_t)c->n_q * 4, s->at_end);
  float *data = c->q_memory.data;
  c->q = (attention_tensor){data, s->b * cols, cols, s->dh};
  c->k = (attention_tensor){data + s->h * s->dh, s->b * cols, cols, s->dh};
  c->v = (attention_tensor){data + (s->h + c->n_kv) * s->dh, s->b * cols, cols, s->dv};
}

static float *element(attention_tensor t, int64_t row, int64_t b, int64_t h) { return t.data + row * t.row + b * t.batch + h * t.head; }

static float stored(uly_dtype dtype, double value) {
  uint32_t element;
  uly_dtype_store(dtype, &element, 0, value);
  return (float)uly_dtype_load(dtype, &element, 0);
}

static void fill(uly_dtype dtype, attention_tensor t, int64_t rows, int64_t batch, int64_t heads, int64_t width, double spread, uint64_t seed, int64_t but) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t b = 0; b < batch; b++)
      for (int64_t h = 0; h < heads; h++)
        for (int64_t d = 0; d < width; d++) {
          float x = stored(dtype, uly_bits_normal(&seed) * spread);
          if (r != but) element(t, r, b, h)[d] = x;
        }
}

// NaN in K, V or both of every key that no query of this kv head sees; with PLANT_SEEN_NAN in one more.
static void plant(attention_case *c) {
  const attention_spec *s = &c->spec;
  uint64_t seed = s->seed + 99;
  for (int64_t b = 0; b < s->b; b++)
    for (int64_t kv = 0; kv < c->n_kv; kv++) {
      const int64_t victim = s->plant & PLANT_SEEN_NAN && s->t ? uly_bits_range(&seed, 0, s->t - 1) : -1;
      for (int64_t k = 0; k < s->t; k++) {
        bool seen = false;
        for (int64_t h = 0; h < s->h && !seen; h++) {
          if ((h + s->h0) / s->group - c->k0 != kv) continue;
          for (int64_t q = 0; q < s->s && !seen; q++) seen = allowed(c, b, h + s->h0, q + offset_of(c, b), k);
        }
        if (seen && k != victim) continue;
        if (seen ? victim & 1 : k % 3 != 0)
          for (int64_t d = 0; d < s->dh; d++) element(c->k, k, b, kv)[d] = NAN;
        if (!seen && k % 3 == 1) continue;
        for (int64_t d = 0; d < s->dv; d++) element(c->v, k, b, kv)[d] = d % 2 && !seen ? INFINITY : NAN;
      }
    }
}

static void fill_captures(attention_case *c) {
  const attention_spec *s = &c->spec;
  uint64_t seed = s->seed + 7;
  const int64_t n = positions(s);
  c->documents_memory = uly_guarded_create((size_t)(n * s->b) * 4, s->at_end);
  int32_t *documents = c->documents_memory.data;
  for (int64_t b = 0; b < s->b; b++)
    for (int64_t i = 0, id = 0; i < n; i++) documents[b * n + i] = (int32_t)(id += uly_bits_range(&seed, 0, 40) == 0);
  c->table_memory = uly_guarded_create((size_t)(s->s * s->t) * 4, s->at_end);
  for (int64_t i = 0; i < s->s * s->t; i++) ((float *)c->table_memory.data)[i] = uly_bits_normal(&seed);
  c->sink_memory = uly_guarded_create((size_t)(s->h + s->h0) * 4, s->at_end);
  for (int64_t h = 0; h < s->h + s->h0; h++) ((float *)c->sink_memory.data)[h] = 3 * uly_bits_normal(&seed);
  c->offset_memory = uly_guarded_create((size_t)s->b * 4, s->at_end);
  for (int64_t b = 0; b < s->b; b++) ((int32_t *)c->offset_memory.data)[b] = (int32_t)(s->offset - (b < s->offset ? b : s->offset));
}

attention_case attention_case_create(const attention_spec *spec) {
  attention_case c = {.spec = *spec, .k0 = spec->h0 / spec->group};
  const attention_spec *s = &c.spec;
  c.n_kv = (s->h0 + s->h - 1) / s->group - c.k0 + 1;
  c.scale = 1 / sqrt((double)s->dh);
  place_tensors(&c);
  fill_captures(&c);
  fill(s->dtype, c.q, s->s, s->b, s->h, s->dh, s->spread, s->seed, -1);
  fill(s->dtype, c.k, s->t, s->b, c.n_kv, s->dh, 1, s->seed + 1, -1);
  fill(s->dtype, c.v, s->t, s->b, c.n_kv, s->dv, 1, s->seed + 2, -1);
  if (s->plant) plant(&c);
  const int64_t n = s->b * s->h * s->s;
  c.oracle = zeros(n * s->dv, sizeof(double));
  c.oracle_lse = zeros(n, sizeof(double));
  c.naive = zeros(n * s->dv, sizeof(float));
  return c;
}

void attention_case_destroy(attention_case *c) {
  uly_guarded *memory[] = {&c->q_memory, &c->k_memory, &c->v_memory, &c->sink_memory, &c->offset_memory, &c->documents_memory, &c->table_memory};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) uly_guarded_destroy(memory[i]);
  free(c->oracle);
  free(c->oracle_lse);
  free(c->naive);
}

// ---- the kernel's call ----

typedef struct outputs {
  uly_guarded memory[MAX_OUTPUTS], lse;
  void *p[MAX_OUTPUTS];
  int64_t first[MAX_OUTPUTS + 1], stride;
} outputs;

// Cuts |rows| rows at random places: message p is [rows of p][b][heads][dv]. Parts without rows come in between and at the end.
static outputs create_outputs(const attention_spec *s, int64_t rows, int64_t heads) {
  outputs o = {.lse = uly_guarded_create((size_t)(rows * s->b * heads) * 4, s->at_end), .stride = s->b * heads * s->dv};
  uint64_t seed = s->seed + 5;
  for (int i = 1; i < s->n_outputs; i++) {
    int64_t left = rows - o.first[i - 1];
    o.first[i] = o.first[i - 1] + (i % 3 == 2 ? 0 : uly_bits_range(&seed, 0, left));
  }
  o.first[s->n_outputs] = rows;
  for (int i = 0; i < s->n_outputs; i++) {
    o.memory[i] = uly_guarded_create((size_t)((o.first[i + 1] - o.first[i]) * o.stride * uly_dtype_bytes(s->dtype)), s->at_end);
    o.p[i] = o.memory[i].data;
  }
  return o;
}

static void collect(const attention_spec *s, const outputs *o, int64_t rows, int64_t heads, float *out) {
  int part = 0;
  for (int64_t r = 0; r < rows; r++) {
    while (r >= o->first[part + 1]) part++;
    const char *row = (const char *)o->p[part] + (r - o->first[part]) * o->stride * uly_dtype_bytes(s->dtype);
    for (int64_t b = 0; b < s->b; b++)
      for (int64_t h = 0; h < heads; h++) {
        float *to = out + ((h * rows + r) * s->b + b) * (s->dv + 1);
        uly_dtype_convert(s->dtype, row + (b * heads + h) * s->dv * uly_dtype_bytes(s->dtype), ULY_F32, to, s->dv);
        to[s->dv] = s->lse ? ((const float *)o->lse.data)[(b * rows + r) * heads + h] : 0;
      }
  }
}

// q, k and v as the kernel gets them: copies in the dtype, between guards as the originals are.
typedef struct inputs {
  uly_guarded q, k, v;
} inputs;

static uly_guarded narrowed(const attention_spec *s, const uly_guarded *from, int64_t n) {
  uly_guarded to = uly_guarded_create((size_t)(n * uly_dtype_bytes(s->dtype)), s->at_end);
  if (n) uly_dtype_convert(ULY_F32, from->data, s->dtype, to.data, n);
  return to;
}

static void *input(const attention_case *c, const uly_guarded *copy, const uly_guarded *of, const float *at) {
  return (char *)copy->data + (at - (const float *)of->data) * uly_dtype_bytes(c->spec.dtype);
}

static void call_kernel(const attention_case *c, uly_kernel kernel, const uly_bits_variant *v, outputs *o) {
  const attention_spec *s = &c->spec;
  int32_t *shifted = zeros(s->b, 4);
  for (int64_t b = 0; b < s->b; b++) shifted[b] = (int32_t)(offsets(c)[b] + v->first_row);
  const bool message = s->layout == LAYOUT_MESSAGE;
  inputs in = {narrowed(s, &c->q_memory, c->n_q), narrowed(s, &c->k_memory, c->n_k), narrowed(s, &c->v_memory, c->n_v)};
  void *q = input(c, &in.q, &c->q_memory, element(c->q, v->first_row, 0, v->first_head));
  void *k = message ? input(c, &in.q, &c->q_memory, c->k.data) : in.k.data, *vv = message ? input(c, &in.q, &c->q_memory, c->v.data) : in.v.data;
  void *table = (float *)c->table_memory.data + v->first_row * s->t;
  void *sink = c->sink_memory.data, *lse = o->lse.data, *documents = c->documents_memory.data, *offset = shifted;
  const uly_arg op[HOOK_N_OPS] = {[ULY_ATTENTION_Q] = {&q, 1},
                                  [ULY_ATTENTION_K] = {&k, 1},
                                  [ULY_ATTENTION_V] = {&vv, 1},
                                  [ULY_ATTENTION_SINK] = {&sink, s->sink},
                                  [ULY_ATTENTION_Q_OFFSET] = {&offset, s->per_batch_offset},
                                  [ULY_ATTENTION_OUT] = {o->p, s->n_outputs},
                                  [ULY_ATTENTION_LSE] = {&lse, s->lse},
                                  [HOOK_DOCUMENTS] = {&documents, 1},
                                  [HOOK_TABLE] = {&table, 1}};
  const int64_t one[HOOK_N_VALS] = {[ULY_ATTENTION_S] = v->n_rows,
                                    [ULY_ATTENTION_T] = s->t,
                                    [ULY_ATTENTION_B] = s->b,
                                    [ULY_ATTENTION_H] = v->n_heads,
                                    [ULY_ATTENTION_H0] = s->h0 + v->first_head,
                                    [ULY_ATTENTION_K0] = c->k0,
                                    [ULY_ATTENTION_Q_S] = c->q.row,
                                    [ULY_ATTENTION_Q_B] = c->q.batch,
                                    [ULY_ATTENTION_Q_H] = c->q.head,
                                    [ULY_ATTENTION_K_S] = c->k.row,
                                    [ULY_ATTENTION_K_B] = c->k.batch,
                                    [ULY_ATTENTION_K_H] = c->k.head,
                                    [ULY_ATTENTION_V_S] = c->v.row,
                                    [ULY_ATTENTION_V_B] = c->v.batch,
                                    [ULY_ATTENTION_V_H] = c->v.head,
                                    [ULY_ATTENTION_O_B] = v->n_heads * s->dv,
                                    [ULY_ATTENTION_O_H] = s->dv,
                                    [ULY_ATTENTION_L_S] = v->n_heads,
                                    [ULY_ATTENTION_L_B] = v->n_rows * v->n_heads,
                                    [ULY_ATTENTION_L_H] = 1,
                                    [ULY_ATTENTION_OFFSET] = s->per_batch_offset ? 1 : s->offset + v->first_row,
                                    [HOOK_MASK] = s->mask,
                                    [HOOK_MASK_A] = s->mask_a,
                                    [HOOK_MASK_B] = s->mask_b,
                                    [HOOK_SCORE] = s->score,
                                    [HOOK_RANGES] = s->ranges,
                                    [HOOK_DOCUMENT_ROW] = positions(s),
                                    [HOOK_TABLE_ROW] = s->t};
  const int64_t *val[HOOK_N_VALS];
  for (int i = 0; i < HOOK_N_VALS; i++) val[i] = &one[i];
  val[ULY_ATTENTION_O_ROW] = o->first;
  val[ULY_ATTENTION_O_S] = &o->stride;
  const uly_call call = {.op = op, .val = val, .n_peers = s->n_outputs};
  const int64_t items = s->b * v->n_heads * uly_cdiv(v->n_rows, ULY_ATTENTION_ITEM_ROWS);
  uly_bits_run(kernel, &call, items, (size_t)uly_attention_scratch(s->dh, s->dv), v->n_threads, v->seed);
  uly_guarded_destroy(&in.q), uly_guarded_destroy(&in.k), uly_guarded_destroy(&in.v);
  free(shifted);
}

void attention_case_run(attention_case *c, uly_kernel kernel, const uly_bits_variant *variant, float *out) {
  const attention_spec *s = &c->spec;
  const uly_bits_variant whole = {.n_rows = s->s, .n_heads = s->h, .keep = -1, .n_threads = 1};
  const uly_bits_variant *v = variant ? variant : &whole;
  attention_native_set(&(attention_constants){.dh = s->dh,
                                              .dv = s->dv,
                                              .group = s->group,
                                              .scale = c->scale,
                                              .dtype = s->dtype,
                                              .has_score = s->score != SCORE_NONE,
                                              .has_mask = s->mask != MASK_FULL,
                                              .has_sink = s->sink,
                                              .has_lse = s->lse});
  if (v->other_rows) fill(s->dtype, c->q, s->s, s->b, s->h, s->dh, s->spread * 4, v->other_rows, v->keep);
  outputs o = create_outputs(s, v->n_rows, v->n_heads);
  call_kernel(c, kernel, v, &o);
  collect(s, &o, v->n_rows, v->n_heads, out);
  for (int i = 0; i < s->n_outputs; i++) uly_guarded_destroy(&o.memory[i]);
  uly_guarded_destroy(&o.lse);
  if (v->other_rows) fill(s->dtype, c->q, s->s, s->b, s->h, s->dh, s->spread, s->seed, -1);
}
