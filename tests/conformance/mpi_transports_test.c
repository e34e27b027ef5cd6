// Processes of mpirun, through the transport suite, all tests of a number of ranks in one mpirun: `mpi_transports_test mpi PLUGIN`, or `mpi_transports_test callbacks` for a host
// that connects its ranks by plain MPI calls. MPI belongs to this program, as in a host that uses it itself.
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/transports/callbacks.h"
#include "runtime/transports/plugin.h"
#include "tests/conformance/transport_suite.h"

enum { MAX = 64 };

static const uly_mpi_plugin *plugin;

static void run_and_report(const suite_test *test, uly_comm *comm, suite_report *reports) {
  suite_report mine = {0};
  comm->timeout = test->timeout;
  test->body(comm, &mine);
  comm->ops->destroy(comm);
  MPI_Gather(&mine, (int)sizeof mine, MPI_BYTE, reports, (int)sizeof mine, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void run_mpi(const suite_test *test, int n, suite_report *reports) {
  uly_comm *comm;
  (void)n;
  ULY_ASSERT(plugin->create(NULL, test->timeout, &comm) == ULY_OK);
  run_and_report(test, comm, reports);
}

// ---- a host that has MPI ----

typedef struct host {
  MPI_Comm comm;
  int n;
} host;

static int host_gather(void *context, const void *mine, size_t bytes, void *out_all) {
  host *h = context;
  if (bytes > INT_MAX) return -1;
  return MPI_Allgather(mine, (int)bytes, MPI_BYTE, out_all, (int)bytes, MPI_BYTE, h->comm);
}

static bool as_ints(const int64_t *from, int n, int *to) {
  for (int q = 0; q < n; q++) {
    if (from[q] < 0 || from[q] > INT_MAX) return false;
    to[q] = (int)from[q];
  }
  return true;
}

static int host_all_to_all(void *context, const void *send, const int64_t *send_bytes, const int64_t *send_offset, void *receive, const int64_t *receive_bytes,
                           const int64_t *receive_offset) {
  host *h = context;
  int counts[4][MAX];
  if (!as_ints(send_bytes, h->n, counts[0]) || !as_ints(send_offset, h->n, counts[1]) || !as_ints(receive_bytes, h->n, counts[2]) ||
      !as_ints(receive_offset, h->n, counts[3]))
    return -1;
  return MPI_Alltoallv(send, counts[0], counts[1], MPI_BYTE, receive, counts[2], counts[3], MPI_BYTE, h->comm);
}

static void run_callbacks(const suite_test *test, int n, suite_report *reports) {
  host h = {.n = n};
  uly_callbacks c = {&h, 0, n, host_gather, host_all_to_all, NULL};
  uly_comm *comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &h.comm);
  MPI_Comm_rank(h.comm, &c.rank);
  ULY_ASSERT(n <= MAX && uly_comm_callbacks_create(&c, &comm) == ULY_OK);
  run_and_report(test, comm, reports);
  MPI_Comm_free(&h.comm);
}

static const suite_skip mpi_skips[] = {{"a_rank_is_late", "the deadline ends the job: multirank.mpi.late"},
                                       {"a_line_stands_still", "the deadline ends the job: multirank.mpi.late"},
                                       {NULL, NULL}};
static const suite_skip callbacks_skips[] = {{"writers_wait", "peers write into a buffer of the host's, not into the receiver"},
                                             {"a_rank_gives_up", "how peers learn of it is the host's affair"},
                                             {"a_rank_is_late", "the host's functions have their own deadlines"},
                                             {"a_line_stands_still", "the host's functions have their own deadlines"},
                                             {"a_rank_leaves", "the host's functions have their own deadlines"},
                                             {"a_line_gives_up", "how peers learn of it is the host's affair"},
                                             {NULL, NULL}};

int main(int argc, char **argv) {
  int ranks[] = {0, 0}, rank;
  uly_error error;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks[0]);
  bool callbacks = argc == 2 && strcmp(argv[1], "callbacks") == 0;
  if (!callbacks && (argc != 3 || uly_mpi_load(argv[2], &error, &plugin) != ULY_OK)) {
    fprintf(stderr, "mpi_transports_test: %s\n", argc == 3 ? error.text : "usage: mpi_transports_test callbacks | mpi PLUGIN");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (rank > 0 && !freopen("/dev/null", "w", stdout)) return 1;
  const suite_transport transport = {callbacks ? "callbacks" : "mpi", ranks, callbacks ? callbacks_skips : mpi_skips, callbacks ? run_callbacks : run_mpi};
  int failures = suite_run(&transport);
  MPI_Bcast(&failures, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures != 0;
}
