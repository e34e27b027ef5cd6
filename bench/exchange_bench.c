// All-to-all of Ulysses: q [B, S/P, H, Dh] on every rank goes to the owners of heads, changing its layout on the way. Bytes a second against memcpy of as many bytes by
// as many threads at the same time, the best of many, taken in turn. usage: exchange_bench [local|shm] [ranks] [MiB a rank]
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/features.h"
#include "runtime/bound.h"
#include "runtime/transports/shm.h"
#include "tests/unit/program_fixture.h"

enum { MAX_RANKS = 64, H = 16, DH = 128, TIMES = 40 };
void uly_exchange_move_v3(const uly_call *call);
void uly_exchange_move_v4(const uly_call *call);

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// One exchange: MOVE from q, cut along heads, into the peers' messages [s][B][h][Dh].
static fx_program *make_program(void) {
  fx_program *f = fx_create();
  uint32_t b = fx_symbol(f, "B", 1), s = fx_symbol(f, "S", 1), axis = fx_axis(f, "sp"), heads = fx_const(f, H), dh = fx_const(f, DH), run = fx_const(f, DH * 4);
  const uint32_t dims[] = {b, s, heads, dh};
  fx_tensor(f, ULY_INPUT, "q", ULY_F32, 4, dims);
  fx_cut(f, 0, 1, axis);
  uint32_t rows = fx_share(f, s, axis), h = fx_share(f, heads, axis), h0 = fx_start(f, heads, axis), zero = fx_const(f, 0), one = fx_const(f, 1);
  uint32_t unit = fx_mul(f, b, run);
  uly_exchange x = {.axis = axis, .unit = unit, .rows = rows, .row_start = fx_start(f, s, axis), .cols = h, .col_start = h0, .name = fx_name(f, "q")};
  x.receive = fx_buffer(f, "receive", fx_mul(f, unit, fx_mul(f, s, h)), ULY_BUFFER_RECEIVE);
  x.send = fx_buffer(f, "send", fx_mul(f, unit, fx_mul(f, rows, heads)), 0);
  uint32_t way = uly_program_add_exchanges(f->p, x);
  fx_step(f, ULY_STEP_POST, way, 0);
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "move", uly_cpu_features() & ULY_CPU_AVX512 ? uly_exchange_move_v4 : uly_exchange_move_v3), rows);
  fx_operand(f, ULY_OPERAND_TENSOR, 0, ULY_READ);
  fx_operand(f, ULY_OPERAND_PEERS, way, ULY_WRITE);
  uint32_t v[ULY_MOVE_N_VALS], row = fx_const(f, H * DH * 4);
  for (int i = 0; i < ULY_MOVE_N_VALS; i++) v[i] = zero;
  v[ULY_MOVE_N0] = rows, v[ULY_MOVE_N1] = b, v[ULY_MOVE_N2] = heads, v[ULY_MOVE_BYTES] = run;
  v[ULY_MOVE_SRC_0] = row, v[ULY_MOVE_SRC_1] = fx_mul(f, rows, row), v[ULY_MOVE_SRC_2] = run, v[ULY_MOVE_SRC_DIM] = fx_const(f, -1);
  v[ULY_MOVE_DST_0] = fx_mul(f, unit, h), v[ULY_MOVE_DST_1] = fx_mul(f, h, run), v[ULY_MOVE_DST_2] = run;
  v[ULY_MOVE_DST_EACH] = one, v[ULY_MOVE_DST_DIM] = fx_const(f, 2), v[ULY_MOVE_DST_FIRST] = h0, v[ULY_MOVE_DST_COUNT] = h;
  for (int i = 0; i < ULY_MOVE_N_VALS; i++) {
    bool each =
        i == ULY_MOVE_DST_0 || i == ULY_MOVE_DST_1 || i == ULY_MOVE_DST_2 || i == ULY_MOVE_DST_FIRST || i == ULY_MOVE_DST_COUNT || i == ULY_MOVE_DST_OFFSET;
    fx_value(f, v[i], each ? axis : ULY_NONE);
  }
  fx_step(f, ULY_STEP_SEND, way, 0);
  fx_step(f, ULY_STEP_WAIT, way, 0);
  fx_entry(f, "exchange", 0, 1, 0, 0);
  fx_finish(f);
  return f;
}

static void meet(uly_comm *comm, double mine, double *out_most) {
  double all[MAX_RANKS];
  *out_most = 0;
  ULY_ASSERT(comm->ops->all_gather(comm, &mine, sizeof mine, all) == ULY_OK);
  for (int q = 0; q < comm->n_ranks; q++) *out_most = all[q] > *out_most ? all[q] : *out_most;
}

static void bench(uly_comm *comm, const fx_program *f, int64_t mib) {
  int64_t rows = (mib << 20) / (H * DH * 4), symbols[] = {1, rows * comm->n_ranks};
  size_t bytes = (size_t)rows * H * DH * 4;
  uly_loaded *loaded;
  uly_bound *bound;
  uly_error error;
  uly_bind_options options = {.symbols = symbols, .comms = {comm}, .threads = 1};
  void *q = aligned_alloc(4096, bytes), *copy = aligned_alloc(4096, bytes), *tensors[] = {q};
  ULY_ASSERT(q && copy && uly_loaded_create(&f->model, &error, &loaded) == ULY_OK);
  ULY_ASSERT(uly_bind(loaded, &options, &error, &bound) == ULY_OK);
  memset(q, 1, bytes);
  memset(copy, 2, bytes);
  double best = 1e9, peer = 1e9, most, begin;
  for (int i = 0; i < TIMES; i++) {
    meet(comm, 0, &most);
    begin = now();
    memcpy(copy, q, bytes);
    meet(comm, now() - begin, &most);
    peer = most < peer ? most : peer;
    begin = now();
    ULY_ASSERT(uly_run(bound, tensors, &error) == ULY_OK);
    meet(comm, now() - begin, &most);
    best = most < best ? most : best;
  }
  if (comm->rank == 0)
    printf("%s, %d ranks, %lld MiB a rank: exchange %.2f GB/s a rank, memcpy %.2f GB/s a thread, %.1f %%\n", comm->ops->name, comm->n_ranks, (long long)mib,
           (double)bytes / best * 1e-9, (double)bytes / peer * 1e-9, 100 * peer / best);
  uly_bound_destroy(bound);
  uly_loaded_destroy(loaded);
  free(q);
  free(copy);
}

typedef struct rank_run {
  pthread_t thread;
  uly_comm *comm;
  const fx_program *program;
  int64_t mib;
} rank_run;

static void *rank_main(void *argument) {
  rank_run *r = argument;
  bench(r->comm, r->program, r->mib);
  r->comm->ops->destroy(r->comm);
  return NULL;
}

static void run_local(int n, const fx_program *f, int64_t mib) {
  uly_comm *comms[MAX_RANKS];
  rank_run runs[MAX_RANKS];
  ULY_ASSERT(uly_comm_local_create(n, comms) == ULY_OK);
  for (int r = 0; r < n; r++) {
    runs[r] = (rank_run){.comm = comms[r], .program = f, .mib = mib};
    pthread_create(&runs[r].thread, NULL, rank_main, &runs[r]);
  }
  for (int r = 0; r < n; r++) pthread_join(runs[r].thread, NULL);
}

static void run_shm(int n, const fx_program *f, int64_t mib) {
  uly_shm_group *group;
  ULY_ASSERT(uly_shm_group_create(n, &group) == ULY_OK);
  fflush(stdout);
  for (int r = 0; r < n; r++)
    if (fork() == 0) {
      uly_comm *comm;
      ULY_ASSERT(uly_shm_group_join(group, r, 30, &comm) == ULY_OK);
      bench(comm, f, mib);
      comm->ops->destroy(comm);
      exit(0);
    }
  while (wait(NULL) > 0) continue;
  uly_shm_group_destroy(group);
}

int main(int argc, char **argv) {
  const char *transport = argc > 1 ? argv[1] : "";
  int n = argc > 2 ? atoi(argv[2]) : 2;
  int64_t mib = argc > 3 ? atoll(argv[3]) : 64;
  if (n < 1 || n > MAX_RANKS || mib < 1) return fprintf(stderr, "usage: exchange_bench [local|shm] [ranks] [MiB a rank]\n"), 2;
  fx_program *f = make_program();
  if (strcmp(transport, "shm") != 0) run_local(n, f, mib);
  if (strcmp(transport, "local") != 0) run_shm(n, f, mib);
  fx_destroy(f);
  return 0;
}
