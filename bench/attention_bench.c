// Times attention forward: best whole run of many, in turns with a loop of nothing but FMAs on as many threads, and prints the share of that loop's rate. Only the pairs
// that the mask allows are counted.
//   attention_bench [threads=1] [level=amx|v4|v3] [s=4096] [heads=1] [ms=500] [layout=dense|message] [dtype=f32|bf16|f16] [kind=64_0 …]
// One line a kind: width, mask, GFLOP/s and share of the peak, for the best whole run and for the sum of every item's best time; with another dtype its rate over
// that of f32, which runs in turns with it.
#include "bench/attention_kernels.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kernel_pool.h"
#include "bench/rank_timing.h"
#include "runtime/base/dtype.h"
#include "runtime/base/features.h"
#include "runtime/kernel_abi.h"

// ---- problems ----------------------------------------------------------------------------------------------------------------------------------------

typedef struct options {
  const attention_level *level;
  int threads;
  int64_t s, heads;
  double seconds;
  bool message;
  uly_dtype dtype;
  const char *kind;
} options;

typedef struct problem {
  void *qkv, *o;
  float *lse;
  void *p[ULY_ATTENTION_N_OPS];
  uly_arg op[ULY_ATTENTION_N_OPS];
  int64_t value[ULY_ATTENTION_N_VALS];
  const int64_t *val[ULY_ATTENTION_N_VALS];
  uly_call call;
  attention_kind kind;
  int64_t items;
  double *item_best, best;
} problem;

// Dense: [head][row][width]. Message: [row][q heads | k heads | v heads][width], as an exchange delivers it.
static void set_problem(problem *p, const options *o, attention_kind kind, int64_t width, uly_dtype dtype) {
  const int64_t n = o->s * o->heads * width, bytes = uly_dtype_bytes(dtype);
  float *numbers = pool_floats(3 * n, 2);
  *p = (problem){.kind = kind, .qkv = pool_floats(3 * n, 2), .o = pool_floats(n, 2), .lse = pool_floats(o->s * o->heads, 2), .best = 1e9};
  uly_dtype_convert(ULY_F32, numbers, dtype, p->qkv, 3 * n);
  free(numbers);
  const int64_t part = o->message ? o->heads * width : n;
  char *q = p->qkv;
  void *pointers[] = {[ULY_ATTENTION_Q] = q, q + part * bytes, q + 2 * part * bytes, NULL, NULL, p->o, p->lse};
  int64_t *v = p->value;
  v[ULY_ATTENTION_S] = v[ULY_ATTENTION_T] = o->s;
  v[ULY_ATTENTION_B] = 1;
  v[ULY_ATTENTION_H] = o->heads;
  v[ULY_ATTENTION_Q_S] = v[ULY_ATTENTION_K_S] = v[ULY_ATTENTION_V_S] = o->message ? 3 * o->heads * width : width;
  v[ULY_ATTENTION_Q_H] = v[ULY_ATTENTION_K_H] = v[ULY_ATTENTION_V_H] = o->message ? width : o->s * width;
  v[ULY_ATTENTION_O_S] = o->heads * width;
  v[ULY_ATTENTION_O_H] = width;
  v[ULY_ATTENTION_L_S] = o->heads;
  v[ULY_ATTENTION_L_H] = 1;
  for (int i = 0; i < ULY_ATTENTION_N_OPS; i++) p->p[i] = pointers[i], p->op[i] = (uly_arg){&p->p[i], pointers[i] != NULL};
  for (int i = 0; i < ULY_ATTENTION_N_VALS; i++) p->val[i] = &v[i];
  p->call = (uly_call){.op = p->op, .val = p->val, .n_peers = 1};
  p->items = o->heads * uly_cdiv(o->s, ULY_ATTENTION_ITEM_ROWS);
  p->item_best = malloc((size_t)p->items * sizeof *p->item_best);
  if (!p->item_best) exit(1);
  for (int64_t i = 0; i < p->items; i++) p->item_best[i] = 1e9;
}

static void run_once(problem *p, const options *o) {
  double seconds = pool_run(o->level->kernel[p->kind], &p->call, p->items, p->item_best);
  if (seconds < p->best) p->best = seconds;
}

// |kinds|: of f32, and of the dtype that is measured.
static void measure(const options *o, const attention_kind *kinds, int64_t width, bool causal) {
  static problem problems[2];
  int n = o->dtype == ULY_F32 ? 1 : 2;
  double peak = 0, sum = 0;
  for (int i = 0; i < n; i++) set_problem(&problems[i], o, kinds[i], width, i ? o->dtype : ULY_F32);
  for (double end = timing_now() + o->seconds * n; timing_now() < end;) {
    for (int i = 0; i < 4; i++) {
      double rate = pool_peak();
      if (rate > peak) peak = rate;
    }
    for (int i = 0; i < n; i++) run_once(&problems[i], o);
  }
  const problem *p = &problems[n - 1];
  for (int64_t i = 0; i < p->items; i++) sum += p->item_best[i];
  double pairs = causal ? 0.5 * (double)o->s * (double)(o->s + 1) : (double)o->s * (double)o->s;
  double work = 4 * pairs * (double)(width * o->heads);
  printf("%s %d threads S=%" PRId64 " H=%" PRId64 " Dh=%-3" PRId64 " %-6s %s %6.1f GFLOP/s %5.1f %% of %.1f | items' best %5.1f %%", o->level->name, o->threads,
         o->s, o->heads, width, causal ? "causal" : "full", uly_dtype_name(o->dtype), work / p->best * 1e-9, 100 * work / p->best / peak, peak * 1e-9,
         100 * work / sum * o->threads / peak);
  if (n > 1) printf(" | %.2f of f32", problems[0].best / p->best);
  printf("\n");
  fflush(stdout);
  for (int i = 0; i < n; i++) free(problems[i].qkv), free(problems[i].o), free(problems[i].lse), free(problems[i].item_best);
}

static void read_option(options *o, const char *text) {
  if (!strncmp(text, "threads=", 8))
    o->threads = atoi(text + 8);
  else if (!strcmp(text, "level=v3"))
    o->level = &attention_level_v3;
  else if (!strcmp(text, "level=v4"))
    o->level = &attention_level_v4;
  else if (!strcmp(text, "level=amx"))
    o->level = &attention_level_amx;
  else if (!strncmp(text, "s=", 2))
    o->s = atoll(text + 2);
  else if (!strncmp(text, "heads=", 6))
    o->heads = atoll(text + 6);
  else if (!strncmp(text, "ms=", 3))
    o->seconds = atof(text + 3) * 1e-3;
  else if (!strcmp(text, "layout=message"))
    o->message = true;
  else if (!strcmp(text, "layout=dense"))
    o->message = false;
  else if (!strncmp(text, "dtype=", 6) && uly_dtype_by_name(uly_str_of(text + 6), &o->dtype) && uly_dtype_bytes(o->dtype) <= 4 &&
           uly_dtype_get(o->dtype)->is_float)
    return;
  else if (!strncmp(text, "kind=", 5))
    o->kind = text + 5;
  else {
    fprintf(stderr, "attention_bench: cannot read %s\n", text);
    exit(2);
  }
}

int main(int argc, char **argv) {
  const uint32_t features = uly_cpu_features(UINT32_MAX);
  options o = {.level = features & ULY_CPU_AMX      ? &attention_level_amx
                        : features & ULY_CPU_AVX512 ? &attention_level_v4
                                                    : &attention_level_v3,
               .threads = 1,
               .s = 4096,
               .heads = 1,
               .seconds = 0.5};
  for (int i = 1; i < argc; i++) read_option(&o, argv[i]);
  if (o.threads < 1 || o.threads > POOL_MAX_THREADS || o.s < 1 || o.heads < 1) {
    fprintf(stderr, "attention_bench: 1 to %d threads, s and heads at least 1\n", POOL_MAX_THREADS);
    return 2;
  }
  pool_start(o.threads, (size_t)uly_attention_scratch(128, 128), o.level->fma_loop);
#define X(width, causal, f32)                                                                                                                                  \
  if (!o.kind || !strcmp(o.kind, #width "_" #causal)) {                                                                                                        \
    const attention_kind kinds[] = {ATTENTION_##width##_##causal##_##f32,                                                                                      \
                                    o.dtype == ULY_F16 ? ATTENTION_##width##_##causal##_f16 : ATTENTION_##width##_##causal##_bf16};                            \
    measure(&o, kinds, width, causal);                                                                                                                         \
  }
  ATTENTION_KINDS_OF(X, f32)
#undef X
  return 0;
}
