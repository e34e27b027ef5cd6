// Times a whole compiled model with seeded parameters and inputs: GFLOP/s of its linear layers and attention, the share of what a loop of nothing but FMAs reaches on as many
// threads, and where the time of the best run goes on rank 0.
//   model_bench [model=minilm.so] [s=512] [ranks=1] [threads=1] [transport=local|shm] [ms=1000]
// |threads| are of each rank; the loop of FMAs has one of each rank only.
// Work is counted from the program: linear layers with the columns that their packed weights are padded to, attention over all pairs of a mask that allows all.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/attention_kernels.h"
#include "bench/options.h"
#include "bench/ranks.h"
#include "runtime/base/dtype.h"
#include "runtime/base/pages.h"
#include "runtime/bound.h"
#include "runtime/kernel_abi.h"

enum { MAX_TENSORS = 16, FMA_ROUNDS = 20000 };

static const char *const kind_names[] = {
#define KIND(name, doc) #name,
    ULY_KERNEL_KINDS(KIND)
#undef KIND
};

typedef struct options {
  const char *model, *transport;
  int64_t s;
  int ranks, threads;
  double seconds;
} options;

typedef struct job {
  const options *o;
  uly_loaded *loaded;
} job;

typedef struct rank {
  const options *o;
  timing *timing;
  uly_loaded *loaded;
  uly_comm *comm;
  uly_bound *bound;
  double work; // floating-point operations of all ranks
  void *tensors[MAX_TENSORS];
} rank;

// ---- a device that times what it launches ---------------------------------------------------------------------------------------------------------------

static _Thread_local struct {
  const uly_bound *bound;
  const uly_device_ops *real;
  double work, seconds[ULY_N_KERNEL_KINDS];
} watch;

// Operations of a call, from the values that it gets (kernel_abi.h).
static double work_of(uly_kernel_kind kind, const uly_call *call) {
  const uly_bound *b = watch.bound;
  const uly_tables *t = &b->loaded->tables;
  if (kind == ULY_KERNEL_ATTENTION)
    return 4.0 * (double)call->val[ULY_ATTENTION_S][0] * (double)call->val[ULY_ATTENTION_T][0] * (double)call->val[ULY_ATTENTION_B][0] *
           (double)call->val[ULY_ATTENTION_H][0] * (double)call->val[ULY_ATTENTION_K_H][0];
  if (kind != ULY_KERNEL_GEMM) return 0;
  const char *w = call->op[ULY_GEMM_W].p[0];
  for (uint32_t i = 0; i < t->n_buffers; i++) {
    int64_t bytes = b->slot_bytes[i] ? b->slot_bytes[i] : b->loaded->slot_bytes[i];
    const char *from = b->memory[i];
    if (from && w >= from && w < from + bytes * t->buffers[i].slots)
      return 2.0 * (double)call->val[ULY_GEMM_ROWS][0] * (double)call->val[ULY_GEMM_BATCH][0] * (double)(bytes / 4);
  }
  return 0;
}

static void launch(uly_device *device, uly_kernel kernel, const uly_call *call, int64_t items) {
  uint32_t k = 0;
  while (watch.bound->machine.kernels[k] != kernel) k++;
  uint32_t kind = watch.bound->loaded->tables.kernels[k].kind;
  if (items > 0) watch.work += work_of((uly_kernel_kind)kind, call);
  double begin = timing_now();
  watch.real->launch(device, kernel, call, items);
  watch.seconds[kind] += timing_now() - begin;
}

// ---- ranks ------------------------------------------------------------------------------------------------------------------------------------------

static void run_model(void *argument) {
  rank *r = argument;
  uly_error error;
  bench_check(uly_run(r->bound, r->tensors, &error), &error);
}

static void run_peak(void *argument) {
  (void)argument;
  (__builtin_cpu_supports("avx512f") ? &attention_level_v4 : &attention_level_v3)->fma_loop(FMA_ROUNDS);
}

static void measure(rank *r) {
  const int n = r->o->ranks;
  double best = 1e9, peak = 1e9, shares[ULY_N_KERNEL_KINDS] = {0}, stop = timing_now() + r->o->seconds, work, all[TIMING_MAX_RANKS];
  double operations = (__builtin_cpu_supports("avx512f") ? &attention_level_v4 : &attention_level_v3)->fma_loop(FMA_ROUNDS) * n;
  run_model(r);
  work = watch.work;
  if (r->comm->ops->all_gather(r->comm, &work, sizeof work, all) != ULY_OK) bench_die(r->comm->error);
  r->work = 0;
  for (int q = 0; q < n; q++) r->work += all[q];
  for (int runs = 0;; runs++) {
    memset(watch.seconds, 0, sizeof watch.seconds);
    double t = timing_of(r->timing, r->comm->rank, n, run_model, r);
    if (t < best) best = t, memcpy(shares, watch.seconds, sizeof shares);
    t = timing_of(r->timing, r->comm->rank, n, run_peak, NULL);
    if (t < peak) peak = t;
    if (timing_agree(r->timing, r->comm->rank, n, runs > 3 && timing_now() > stop)) break;
  }
  if (r->comm->rank) return;
  double rest = best;
  operations *= r->o->threads;
  printf("S=%" PRId64 " %d ranks of %d threads, %s %8.3f ms %6.1f GFLOP/s %5.1f %% of %.1f |", r->o->s, n, r->o->threads, r->o->transport, best * 1e3,
         r->work / best * 1e-9, 100 * r->work / best / (operations / peak), operations / peak * 1e-9);
  for (int k = 0; k < ULY_N_KERNEL_KINDS; k++) {
    rest -= shares[k];
    if (shares[k] > 0) printf(" %s %.1f", kind_names[k], 100 * shares[k] / best);
  }
  printf(" waits and steps %.1f %%\n", 100 * rest / best);
}

static void rank_main(uly_comm *comm, timing *shared, void *argument) {
  const job *j = argument;
  rank *r = &(rank){.o = j->o, .loaded = j->loaded, .comm = comm, .timing = shared};
  uly_error error;
  const uly_tables *t = &r->loaded->tables;
  int64_t symbols[32], dims[ULY_MAX_DIMS], start[ULY_MAX_DIMS], local[ULY_MAX_DIMS];
  for (uint32_t i = 0; i < t->n_symbols; i++) symbols[i] = uly_str_is(uly_tables_text(t, t->symbols[i].name), "S") ? r->o->s : 1;
  uly_bind_options bind = {.entry = {"", 0}, .symbols = symbols, .world = r->comm, .threads = r->o->threads};
  bench_check(uly_bind(r->loaded, &bind, &error, &r->bound), &error);
  uly_span own = t->entries[r->bound->entry].tensors;
  for (uint32_t k = 0; k < own.count && k < MAX_TENSORS; k++) {
    const uly_tensor *x = &t->tensors[own.first + k];
    bench_check(uly_bound_shape(r->bound, own.first + k, &error, dims, start, local), &error);
    size_t elements = 1;
    for (uint32_t d = 0; d < x->rank; d++) elements *= (size_t)local[d];
    r->tensors[k] = uly_pages_alloc(8 * elements);
    if (!r->tensors[k]) bench_die("no memory");
    for (size_t i = 0; x->dtype == ULY_F32 && i < elements; i++) ((float *)r->tensors[k])[i] = (float)(i * 2654435761u % 1024) / 512 - 1; // ids are 0
  }
  uly_device_ops timed = *r->bound->device->ops;
  watch.bound = r->bound;
  watch.real = r->bound->device->ops;
  timed.launch = launch;
  r->bound->device->ops = &timed;
  measure(r);
  r->bound->device->ops = watch.real;
  uly_bound_destroy(r->bound);
  comm->ops->destroy(comm);
}

int main(int argc, char **argv) {
  options o = {.model = ULY_BENCH_MODEL, .transport = "local", .s = 512, .ranks = 1, .threads = 1, .seconds = 1};
  uly_error error;
  uly_loaded *loaded;
  bench_read(argc, argv,
             (const bench_option[]){{"model", .text = &o.model},
                                    {"s", .size = &o.s},
                                    {"ranks", .number = &o.ranks},
                                    {"threads", .number = &o.threads},
                                    {"transport", .text = &o.transport},
                                    {"ms", .ms = &o.seconds},
                                    {0}});
  bench_check(uly_loaded_open(o.model, &error, &loaded), &error);
  bench_check(uly_param_seed(loaded, 1, &error), &error);
  ranks_run(o.transport, o.ranks, rank_main, &(job){&o, loaded});
  uly_loaded_destroy(loaded);
  return 0;
}
