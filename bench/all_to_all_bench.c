// Times the exchanges of a compiled attention layer without the attention, layout change included: what the ranks' tensors need to get from rows of all heads to all rows of
// some heads, and back into rows. In turns with memcpy of as many bytes by as many threads; the best whole run of many counts.
//   all_to_all_bench [model=attention.so] [transport=local|shm] [ranks=2] [mib=64] [ms=2000]
// One line a direction: GB/s that the ranks together copy, and the share of memcpy's.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options.h"
#include "bench/ranks.h"
#include "runtime/base/pages.h"
#include "runtime/bound.h"
#include "runtime/kernel_abi.h"

enum { MAX_TENSORS = 8 };

typedef enum direction { TO_HEADS, TO_ROWS, N_DIRECTIONS } direction;
static const char *const direction_names[] = {"rows to heads", "heads to rows"};

typedef struct options {
  const char *model, *transport;
  int ranks;
  double mib, seconds;
} options;

typedef struct job {
  const options *o;
  uly_loaded *loaded;
} job;

typedef struct rank {
  const options *o;
  timing *timing;
  uly_comm *comm;
  uly_loaded *loaded;
  uly_bound *bound;
  void *tensors[MAX_TENSORS];
  size_t bytes[MAX_TENSORS], copied; // copied: by this rank in one direction
  void *from, *to;                   // of memcpy
} rank;

static void *touched(size_t bytes) {
  void *p = uly_pages_alloc(bytes);
  if (!p) bench_die("no memory");
  memset(p, 1, bytes);
  return p;
}

// ---- ranks ------------------------------------------------------------------------------------------------------------------------------------------

// Leaves the other direction and the attention out.
static void choose(rank *r, direction way, bool *skip) {
  const uly_tables *t = &r->loaded->tables;
  uly_span steps = t->entries[r->bound->entry].steps[ULY_PHASE_FORWARD], own = t->entries[r->bound->entry].tensors;
  uly_error error;
  uint32_t i = steps.first, end = steps.first + steps.count;
  for (bool done = false; i < end && !done; i++) {
    skip[i] = way != TO_HEADS;
    done = t->steps[i].kind == ULY_STEP_WAIT;
  }
  for (; i < end; i++) skip[i] = way != TO_ROWS || (t->steps[i].kind == ULY_STEP_KERNEL && t->kernels[t->steps[i].a].kind == ULY_KERNEL_ATTENTION);
  uly_machine_finish(&r->bound->machine);
  r->bound->machine.skip = skip;
  bench_check(uly_machine_prepare(&r->bound->machine, &error), &error);
  r->copied = 0;
  for (uint32_t k = 0; k < own.count; k++)
    if ((t->tensors[own.first + k].role == ULY_OUTPUT) == (way == TO_ROWS)) r->copied += r->bytes[k];
}

static void exchange(void *argument) {
  rank *r = argument;
  uly_error error;
  bench_check(uly_run(r->bound, r->tensors, &error), &error);
}

static void plain_copy(void *argument) {
  rank *r = argument;
  memcpy(r->to, r->from, r->copied);
}

static void measure(rank *r, direction way) {
  bool *skip = calloc(r->loaded->tables.n_steps, sizeof *skip);
  if (!skip) bench_die("no memory");
  choose(r, way, skip);
  const int n = r->o->ranks;
  double best[2] = {1e9, 1e9}, stop = timing_now() + r->o->seconds;
  uint64_t total = 0, all[TIMING_MAX_RANKS], mine = r->copied;
  if (r->comm->ops->all_gather(r->comm, &mine, sizeof mine, all) != ULY_OK) bench_die(r->comm->error);
  for (int q = 0; q < n; q++) total += all[q];
  for (int runs = 0;; runs++) {
    double ours = timing_of(r->timing, r->comm->rank, n, exchange, r), theirs = timing_of(r->timing, r->comm->rank, n, plain_copy, r);
    if (runs && ours < best[0]) best[0] = ours; // the first one touches memory
    if (runs && theirs < best[1]) best[1] = theirs;
    if (timing_agree(r->timing, r->comm->rank, n, runs > 3 && timing_now() > stop)) break;
  }
  if (r->comm->rank == 0)
    printf("%-5s %d ranks, %.1f MiB each, %s %6.2f GB/s %5.1f %% of memcpy's %.2f\n", r->o->transport, r->o->ranks, (double)mine / 1048576,
           direction_names[way], (double)total / best[0] * 1e-9, 100 * best[1] / best[0], (double)total / best[1] * 1e-9);
  fflush(stdout);
  free(skip);
}

static int64_t rows_of(const uly_tables *t, const options *o, uint32_t entry) { // global rows for |mib| a rank of what the entry takes
  int64_t row = 0;
  for (uint32_t k = 0; k < t->entries[entry].tensors.count; k++) {
    const uly_tensor *x = &t->tensors[t->entries[entry].tensors.first + k];
    int64_t bytes = 4;
    for (uint32_t d = 2; d < x->rank; d++) bytes *= t->nodes[x->dims[d]].value;
    if (x->role == ULY_INPUT) row += bytes;
  }
  return (int64_t)(o->mib * 1048576 / (double)row + 0.5) * o->ranks;
}

static void rank_main(uly_comm *comm, timing *shared, void *argument) {
  const job *j = argument;
  rank *r = &(rank){.o = j->o, .loaded = j->loaded, .comm = comm, .timing = shared};
  uly_error error;
  const uly_tables *t = &r->loaded->tables;
  int64_t symbols[32], dims[ULY_MAX_DIMS], start[ULY_MAX_DIMS], local[ULY_MAX_DIMS];
  for (uint32_t i = 0; i < t->n_symbols; i++) symbols[i] = uly_str_is(uly_tables_text(t, t->symbols[i].name), "S") ? rows_of(t, r->o, 0) : 1;
  uly_bind_options bind = {.entry = {"", 0}, .symbols = symbols, .comms = {r->comm}, .threads = 1};
  bench_check(uly_bind(r->loaded, &bind, &error, &r->bound), &error);
  uly_span own = t->entries[r->bound->entry].tensors;
  for (uint32_t k = 0; k < own.count && k < MAX_TENSORS; k++) {
    bench_check(uly_bound_shape(r->bound, own.first + k, &error, dims, start, local), &error);
    r->bytes[k] = 4;
    for (uint32_t d = 0; d < t->tensors[own.first + k].rank; d++) r->bytes[k] *= (size_t)local[d];
    r->tensors[k] = touched(r->bytes[k]);
  }
  memset(r->bound->received[0].memory, 1, (size_t)r->bound->received[0].bytes);
  size_t most = (size_t)(r->o->mib * 1048576) * 2;
  r->from = touched(most);
  r->to = touched(most);
  for (int way = 0; way < N_DIRECTIONS; way++) measure(r, (direction)way);
  uly_bound_destroy(r->bound);
  comm->ops->destroy(comm);
}

int main(int argc, char **argv) {
  options o = {.model = ULY_BENCH_MODEL, .transport = "local", .ranks = 2, .mib = 64, .seconds = 2};
  uly_error error;
  uly_loaded *loaded;
  bench_read(argc, argv,
             (const bench_option[]){{"model", .text = &o.model},
                                    {"transport", .text = &o.transport},
                                    {"ranks", .number = &o.ranks},
                                    {"mib", .real = &o.mib},
                                    {"ms", .ms = &o.seconds},
                                    {0}});
  bench_check(uly_loaded_open(o.model, &error, &loaded), &error);
  ranks_run(o.transport, o.ranks, rank_main, &(job){&o, loaded});
  uly_loaded_destroy(loaded);
  return 0;
}
