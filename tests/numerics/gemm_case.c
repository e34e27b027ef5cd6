// See gemm_case.h.
#include "tests/numerics/gemm_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "codegen/cpu/templates/gemm_panels.h"
#include "tests/numerics/bits_harness.h"
#include "tests/numerics/guarded_memory.h"

// What the templates see as constants.
int64_t uly_gemm_k, uly_gemm_n_parts, uly_gemm_message, uly_gemm_labels, uly_gemm_x_dtype, uly_gemm_w_dtype;
int64_t uly_gemm_part_mode[ULY_GEMM_MAX_PARTS], uly_gemm_part_n_groups[ULY_GEMM_MAX_PARTS], uly_gemm_part_group[ULY_GEMM_MAX_PARTS],
    uly_gemm_part_rope[ULY_GEMM_MAX_PARTS];
int64_t uly_gemm_part_has_epilogue[ULY_GEMM_MAX_PARTS], uly_gemm_part_dtype[ULY_GEMM_MAX_PARTS];
int64_t uly_pack_k, uly_pack_mode, uly_pack_group, uly_pack_rope, uly_pack_dtype;

enum { MAX_MEMORY = 64, SPARSE = 1 << 28 };

// ---- numbers ----------------------------------------------------------------------------------------------------------------------------------

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static float number(const gemm_case *c, uint64_t what, int64_t i, int64_t j) {
  uint64_t h = mix(c->seed ^ mix(what + mix((uint64_t)i + mix((uint64_t)j))));
  return (float)(int32_t)(uint32_t)(h >> 32) * 0x1p-31f;
}
static float stored(uly_dtype dtype, float value) {
  uint32_t element;
  if (dtype == ULY_F32) return value;
  uly_dtype_store(dtype, &element, 0, (double)value);
  return (float)uly_dtype_load(dtype, &element, 0);
}
static void put(uly_dtype dtype, void *to, int64_t i, float value) {
  if (dtype == ULY_F32)
    ((float *)to)[i] = value;
  else
    uly_dtype_store(dtype, to, i, (double)value);
}
float gemm_x(const gemm_case *c, int64_t id, int64_t k) { return stored(c->x == ULY_F32 ? c->values : c->x, number(c, 1, id, k)); }
float gemm_w(const gemm_case *c, int64_t part, bool second, int64_t column, int64_t k) {
  return stored(c->w == ULY_F32 ? c->values : c->w, number(c, 100 + 2 * (uint64_t)part + second, column, k));
}
float gemm_bias(const gemm_case *c, int64_t part, int64_t column) { return number(c, 200 + (uint64_t)part, column, 0); }
float gemm_residual(const gemm_case *c, int64_t part, int64_t id, int64_t column) { return number(c, 300 + (uint64_t)part, id, column); }
float gemm_cos(const gemm_case *c, int64_t id, int64_t pair) { return number(c, 2, id, pair); }
float gemm_sin(const gemm_case *c, int64_t id, int64_t pair) { return number(c, 3, id, pair); }
int64_t gemm_columns(const gemm_case *c, int64_t part) { return c->parts[part].n_groups * c->parts[part].group; }

// ---- memory -----------------------------------------------------------------------------------------------------------------------------------

// Everything that a call reads and writes.
typedef struct memory {
  bool at_end;
  int n;
  uly_guarded all[MAX_MEMORY];
} memory;

static void *elements(memory *m, uly_dtype dtype, int64_t n) {
  size_t bytes = (size_t)(n * uly_dtype_bytes(dtype));
  assert_true(m->n < MAX_MEMORY);
  if (n > SPARSE) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(p != MAP_FAILED);
    m->all[m->n++] = (uly_guarded){p, p, bytes};
    return p;
  }
  m->all[m->n] = uly_guarded_create(bytes, m->at_end);
  return m->all[m->n++].data;
}

static float *floats(memory *m, int64_t n) { return elements(m, ULY_F32, n); }

// ---- operands ---------------------------------------------------------------------------------------------------------------------------------

// A tensor [s][b][width] with gaps: strides, and elements in all.
typedef struct place {
  int64_t s, b, n;
} place;

static place draw_place(uint64_t *r, const gemm_case *c, int64_t width) {
  int64_t row = width + uly_bits_range(r, 0, 1) * uly_bits_range(r, 0, 9);
  place p = {row * c->b, row, 0};
  if (uly_bits_range(r, 0, 2) == 0) p = (place){row, row * c->s, 0}; // batch outermost
  if (c->far) p = (place){c->far, row, 0};
  if (c->s && c->b) p.n = (c->s - 1) * p.s + (c->b - 1) * p.b + width;
  return p;
}

typedef struct gemm_call {
  uly_call call;
  uly_arg op[GEMM_HOOK_N_OPS];
  void *p[GEMM_HOOK_N_OPS][GEMM_MAX_PEERS];
  const int64_t *val[GEMM_HOOK_N_VALS];
  int64_t v[GEMM_HOOK_N_VALS][GEMM_MAX_PEERS];
  int64_t out_n[GEMM_MAX_PEERS]; // elements of output p
  uint32_t blank;                // what is in memory that nobody wrote: a NaN that no kernel makes, or 0 where memory is sparse
  memory memory;
  uint64_t random;
} gemm_call;

static int64_t row_id(const gemm_case *c, int64_t s, int64_t b) { return c->ids[s * c->b + b]; }

static void add_x(const gemm_case *c, gemm_call *g) {
  g->op[ULY_GEMM_X].n = c->n_segments;
  for (int64_t i = 0, k0 = 0; i < c->n_segments; k0 += c->segment[i++]) {
    place at = draw_place(&g->random, c, c->segment[i]);
    void *x = elements(&g->memory, c->x, at.n);
    for (int64_t s = 0; s < c->s; s++)
      for (int64_t b = 0; b < c->b; b++)
        for (int64_t k = 0; k < c->segment[i]; k++) put(c->x, x, s * at.s + b * at.b + k, gemm_x(c, row_id(c, s, b), k0 + k));
    g->p[ULY_GEMM_X][i] = x;
    g->v[ULY_GEMM_X_S][i] = at.s;
    g->v[ULY_GEMM_X_B][i] = at.b;
    g->v[ULY_GEMM_X_K][i] = c->segment[i];
  }
}

static void pack_part(const gemm_case *c, const gemm_native *level, gemm_call *g, int64_t part, void *to) {
  const gemm_part *p = &c->parts[part];
  int64_t columns = gemm_columns(c, part), panels = uly_part_panels(p->mode, p->n_groups, p->group, p->rope);
  bool pair = p->mode == ULY_GEMM_PAIR;
  void *w[2] = {NULL, NULL};
  int64_t column[2] = {0}, term[2] = {0};
  const int64_t *val[ULY_PACK_N_VALS] = {&column[0], &column[1], &term[0], &term[1]};
  for (int second = 0; second <= pair; second++) {
    bool across = uly_bits_range(&g->random, 0, 2) == 0; // dense over n, else over k; with a gap between rows
    int64_t gap = uly_bits_range(&g->random, 0, 5);
    column[second] = across ? 1 : c->k + gap;
    term[second] = across ? columns + gap : 1;
    void *rows = elements(&g->memory, c->w, (columns - 1) * column[second] + (c->k - 1) * term[second] + 1);
    for (int64_t n = 0; n < columns; n++)
      for (int64_t k = 0; k < c->k; k++) put(c->w, rows, n * column[second] + k * term[second], gemm_w(c, part, second, n, k));
    w[second] = rows;
  }
  uly_pack_k = c->k;
  uly_pack_mode = p->mode;
  uly_pack_group = p->group;
  uly_pack_rope = p->rope;
  uly_pack_dtype = c->w;
  void *out = to;
  uly_arg op[ULY_PACK_N_OPS] = {{&w[0], 1}, {&w[1], pair}, {&out, 1}};
  for (int64_t lo = 0, hi; lo < panels; lo = hi) {
    hi = uly_bits_range(&g->random, lo + 1, panels);
    level->pack(&(uly_call){.op = op, .val = val, .n_peers = 1, .lo = lo, .hi = hi});
  }
}

// Where lane |l| of term |k| stands in a panel, as kernel_abi.h has it.
static int64_t lane_at(const gemm_case *c, int64_t k, int64_t l) { return c->w == ULY_BF16 ? (k / 2 * ULY_PANEL + l) * 2 + k % 2 : k * ULY_PANEL + l; }

// Padding lanes are zeros, and so is the term behind an odd last one of bf16; a NaN in a lane must not matter.
static void poison_padding(const gemm_case *c, gemm_call *g, int64_t part, char *w) {
  const gemm_part *p = &c->parts[part];
  int64_t panels = uly_part_panels(p->mode, p->n_groups, p->group, p->rope);
  bool poison = uly_bits_range(&g->random, 0, 1);
  for (int64_t i = 0; i < panels; i++) {
    int64_t lanes = uly_panel_at(p->mode, p->group, p->rope, i % (panels / p->n_groups)).n, terms = c->k + (c->w == ULY_BF16 && c->k % 2);
    char *panel = w + i * uly_panel_bytes(c->k, uly_dtype_bytes(c->w));
    for (int64_t k = 0; k < terms; k++)
      for (int64_t l = k < c->k ? lanes : 0; l < ULY_PANEL; l++) {
        double lane = uly_dtype_load(c->w, panel, lane_at(c, k, l));
        if (lane != 0.0) fail_msg("padding of panel %lld is %a", (long long)i, lane);
        if (poison && l >= lanes) uly_dtype_store(c->w, panel, lane_at(c, k, l), (double)NAN);
      }
  }
}

static void add_w(const gemm_case *c, const gemm_native *level, gemm_call *g) {
  int64_t panels = 0, bytes = uly_panel_bytes(c->k, uly_dtype_bytes(c->w));
  for (int64_t p = 0; p < c->n_parts; p++) panels += uly_part_panels(c->parts[p].mode, c->parts[p].n_groups, c->parts[p].group, c->parts[p].rope);
  char *w = elements(&g->memory, c->w, panels * bytes / uly_dtype_bytes(c->w));
  g->p[ULY_GEMM_W][0] = w;
  for (int64_t p = 0; p < c->n_parts; p++) {
    pack_part(c, level, g, p, w);
    poison_padding(c, g, p, w);
    w += uly_part_panels(c->parts[p].mode, c->parts[p].n_groups, c->parts[p].group, c->parts[p].rope) * bytes;
  }
}

static void add_rope(const gemm_case *c, gemm_call *g) {
  int64_t pairs = 0;
  for (int64_t p = 0; p < c->n_parts; p++)
    if (c->parts[p].mode >= ULY_GEMM_ROPE_HALF) pairs = c->parts[p].rope / 2;
  place at = draw_place(&g->random, c, pairs);
  float *cosine = floats(&g->memory, at.n), *sine = floats(&g->memory, at.n);
  for (int64_t s = 0; s < c->s; s++)
    for (int64_t b = 0; b < c->b; b++)
      for (int64_t i = 0; i < pairs; i++) {
        cosine[s * at.s + b * at.b + i] = gemm_cos(c, row_id(c, s, b), i);
        sine[s * at.s + b * at.b + i] = gemm_sin(c, row_id(c, s, b), i);
      }
  g->p[ULY_GEMM_COS][0] = cosine;
  g->p[ULY_GEMM_SIN][0] = sine;
  g->v[ULY_GEMM_ROPE_S][0] = at.s;
  g->v[ULY_GEMM_ROPE_B][0] = at.b;
}

static void add_epilogue(const gemm_case *c, gemm_call *g, int64_t p) {
  int64_t columns = gemm_columns(c, p);
  place at = draw_place(&g->random, c, columns);
  float *bias = floats(&g->memory, columns), *residual = floats(&g->memory, at.n);
  for (int64_t n = 0; n < columns; n++) bias[n] = gemm_bias(c, p, n);
  for (int64_t s = 0; s < c->s; s++)
    for (int64_t b = 0; b < c->b; b++)
      for (int64_t n = 0; n < columns; n++) residual[s * at.s + b * at.b + n] = gemm_residual(c, p, row_id(c, s, b), n);
  g->p[GEMM_HOOK_BIAS + p][0] = bias;
  g->p[GEMM_HOOK_RESIDUAL + p][0] = residual;
  g->v[GEMM_HOOK_S + p][0] = at.s;
  g->v[GEMM_HOOK_B + p][0] = at.b;
  g->v[GEMM_HOOK_KIND + p][0] = c->parts[p].epilogue;
}

static void add_out(const gemm_case *c, gemm_call *g) {
  for (int64_t p = 0; !c->n_peers && p < c->n_parts; p++) {
    place at = draw_place(&g->random, c, gemm_columns(c, p));
    g->p[ULY_GEMM_OUT + p][0] = elements(&g->memory, c->out, g->out_n[p] = at.n);
    g->v[ULY_GEMM_OUT_S + p][0] = at.s;
    g->v[ULY_GEMM_OUT_B + p][0] = at.b;
  }
  if (c->n_peers) g->op[ULY_GEMM_OUT].n = c->n_peers;
  for (int64_t peer = 0; peer < c->n_peers; peer++) {
    int64_t columns = 0;
    for (int64_t p = 0; p < c->n_parts; p++) {
      g->v[ULY_GEMM_OUT_C + p][peer] = columns;
      g->v[ULY_GEMM_OUT_G0 + p][peer] = c->g0[p][peer];
      g->v[ULY_GEMM_OUT_GN + p][peer] = c->gn[p][peer];
      columns += c->gn[p][peer] * c->parts[p].group;
    }
    place at = draw_place(&g->random, c, columns);
    g->p[ULY_GEMM_OUT][peer] = elements(&g->memory, c->out, g->out_n[peer] = at.n);
    g->v[ULY_GEMM_OUT_S][peer] = at.s;
    g->v[ULY_GEMM_OUT_B][peer] = at.b;
  }
}

static void set_constants(const gemm_case *c) {
  uly_gemm_k = c->k;
  uly_gemm_n_parts = c->n_parts;
  uly_gemm_message = c->n_peers > 0;
  uly_gemm_x_dtype = c->x;
  uly_gemm_w_dtype = c->w;
  for (int64_t p = 0; p < ULY_GEMM_MAX_PARTS; p++) {
    uly_gemm_part_mode[p] = c->parts[p].mode;
    uly_gemm_part_n_groups[p] = c->parts[p].n_groups;
    uly_gemm_part_group[p] = c->parts[p].group;
    uly_gemm_part_rope[p] = c->parts[p].rope;
    uly_gemm_part_has_epilogue[p] = c->parts[p].epilogue != GEMM_NONE;
    uly_gemm_part_dtype[p] = c->out;
  }
}

// ---- results ----------------------------------------------------------------------------------------------------------------------------------

static uint32_t bits_at(const gemm_case *c, const void *p, int64_t i) { return c->out == ULY_F32 ? ((const uint32_t *)p)[i] : ((const uint16_t *)p)[i]; }
static uint32_t blank_of(const gemm_case *c, const gemm_call *g) { return c->out == ULY_F32 ? g->blank : g->blank & 0xffff; }

// Takes one element out of an output, once.
static void take(const gemm_case *c, const gemm_call *g, void *from, int64_t i, float *to, bool again) {
  float value = c->out == ULY_F32 ? ((const float *)from)[i] : (float)uly_dtype_load(c->out, from, i);
  if (bits_at(c, from, i) == blank_of(c, g)) fail_msg("an element of the result was not written");
  if (again && memcmp(&value, to, sizeof value) != 0) fail_msg("two peers were sent different values: %a and %a", (double)value, (double)*to);
  *to = value;
  memcpy((char *)from + i * uly_dtype_bytes(c->out), &g->blank, (size_t)uly_dtype_bytes(c->out));
}

static void take_row(const gemm_case *c, gemm_call *g, int64_t p, int64_t s, int64_t b, float *to) {
  int64_t group = c->parts[p].group, columns = gemm_columns(c, p);
  for (int64_t n = 0; n < columns; n++) {
    bool seen = false;
    if (!c->n_peers) take(c, g, g->p[ULY_GEMM_OUT + p][0], s * g->v[ULY_GEMM_OUT_S + p][0] + b * g->v[ULY_GEMM_OUT_B + p][0] + n, to + n, false);
    for (int64_t peer = 0; peer < c->n_peers; peer++) {
      int64_t at = n - c->g0[p][peer] * group;
      if (at < 0 || at >= c->gn[p][peer] * group) continue;
      at += s * g->v[ULY_GEMM_OUT_S][peer] + b * g->v[ULY_GEMM_OUT_B][peer] + g->v[ULY_GEMM_OUT_C + p][peer];
      take(c, g, g->p[ULY_GEMM_OUT][peer], at, to + n, seen);
      seen = true;
    }
  }
}

static void check_untouched(const gemm_case *c, const gemm_call *g) {
  for (int64_t p = 0; p < (c->n_peers ? c->n_peers : c->n_parts); p++) {
    const void *out = c->n_peers ? g->p[ULY_GEMM_OUT][p] : g->p[ULY_GEMM_OUT + p][0];
    for (int64_t i = 0; i < g->out_n[p]; i++)
      if (bits_at(c, out, i) != blank_of(c, g)) fail_msg("element %lld of output %lld was written and is no result", (long long)i, (long long)p);
  }
}

static int64_t n_items(const gemm_case *c) {
  int64_t blocks = 0;
  for (int64_t p = 0; p < c->n_parts; p++)
    blocks += uly_cdiv(uly_part_panels(c->parts[p].mode, c->parts[p].n_groups, c->parts[p].group, c->parts[p].rope), ULY_GEMM_ITEM_PANELS);
  return blocks * uly_cdiv(c->s * c->b, ULY_GEMM_ITEM_ROWS);
}

void gemm_run(const gemm_case *c, const gemm_native *level, float *out[ULY_GEMM_MAX_PARTS]) {
  gemm_call *g = calloc(1, sizeof *g);
  g->random = c->layout;
  g->blank = c->far ? 0 : UINT32_MAX;
  g->memory.at_end = uly_bits_range(&g->random, 0, 1);
  for (int i = 0; i < GEMM_HOOK_N_OPS; i++) g->op[i] = (uly_arg){g->p[i], 1};
  for (int i = 0; i < GEMM_HOOK_N_VALS; i++) g->val[i] = g->v[i];
  g->v[ULY_GEMM_ROWS][0] = c->s;
  g->v[ULY_GEMM_BATCH][0] = c->b;
  add_x(c, g);
  add_w(c, level, g);
  add_rope(c, g);
  for (int64_t p = 0; p < c->n_parts; p++) add_epilogue(c, g, p);
  add_out(c, g);
  set_constants(c);
  g->call = (uly_call){.op = g->op, .val = g->val, .n_peers = c->n_peers ? c->n_peers : 1};
  int threads = (int)uly_bits_range(&g->random, 1, 3);
  uly_bits_run(level->gemm, &g->call, n_items(c), ULY_GEMM_SCRATCH_BYTES, threads, uly_bits_random(&g->random));
  for (int64_t p = 0; p < c->n_parts; p++) {
    int64_t columns = gemm_columns(c, p);
    out[p] = malloc((size_t)(c->s * c->b * columns * 4 + 1));
    for (int64_t row = 0; row < c->s * c->b; row++) take_row(c, g, p, row / c->b, row % c->b, out[p] + row * columns);
  }
  if (!c->far) check_untouched(c, g);
  for (int i = 0; i < g->memory.n; i++) uly_guarded_destroy(&g->memory.all[i]);
  free(g);
}

// ---- cuts -------------------------------------------------------------------------------------------------------------------------------------

static int64_t start(int64_t n, int64_t parts, int64_t i) { return i * (n / parts) + (i < n % parts ? i : n % parts); }

void gemm_cut(gemm_case *c, uint64_t *r, int64_t n_segments, int64_t n_peers) {
  c->n_segments = n_segments;
  int64_t left = c->k;
  for (int64_t i = 0; i < n_segments; i++) {
    bool even = n_segments > 1 && (c->layout & 1); // as shares of heads would be, or of any width, 0 too
    c->segment[i] = i == n_segments - 1 ? left : even ? start(c->k, n_segments, i + 1) - start(c->k, n_segments, i) : uly_bits_range(r, 0, left);
    left -= c->segment[i];
  }
  c->n_peers = n_peers;
  for (int64_t p = 0; p < c->n_parts; p++)
    for (int64_t i = 0; i < n_peers; i++) {
      int64_t heads = c->parts[0].n_groups, own = c->parts[p].n_groups, h0 = start(heads, n_peers, i), h1 = start(heads, n_peers, i + 1);
      c->g0[p][i] = h0 * own / heads;
      c->gn[p][i] = h1 > h0 ? uly_cdiv(h1 * own, heads) - c->g0[p][i] : 0;
    }
}
