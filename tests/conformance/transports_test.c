// The transports whose ranks are threads of one process, through the suite. Run with the name of one.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/transports/callbacks.h"
#include "tests/conformance/transport_suite.h"

enum { MAX = 16 };

typedef struct rank_run {
  pthread_t thread;
  uly_comm *comm;
  const suite_test *test;
  suite_report *report;
} rank_run;

static void *rank_main(void *argument) {
  rank_run *r = argument;
  r->comm->timeout = r->test->timeout;
  r->test->body(r->comm, r->report);
  r->comm->ops->destroy(r->comm);
  return NULL;
}

static void run_threads(const suite_test *test, int n, uly_comm **comms, suite_report *reports) {
  rank_run runs[MAX];
  for (int r = 0; r < n; r++) {
    runs[r] = (rank_run){.comm = comms[r], .test = test, .report = &reports[r]};
    pthread_create(&runs[r].thread, NULL, rank_main, &runs[r]);
  }
  for (int r = 0; r < n; r++) pthread_join(runs[r].thread, NULL);
}

static void run_self(const suite_test *test, int n, suite_report *reports) {
  uly_comm *comm = uly_comm_self();
  run_threads(test, n, &comm, reports);
}

static void run_local(const suite_test *test, int n, suite_report *reports) {
  uly_comm *comms[MAX];
  ULY_ASSERT(uly_comm_local_create(n, comms) == ULY_OK);
  run_threads(test, n, comms, reports);
}

// ---- callbacks: a host that connects threads with a table and a barrier -----------------------------------------------------------------------

typedef struct host {
  int n;
  pthread_mutex_t mutex;
  pthread_cond_t turn;
  int arrived, rounds;
  bool gave_up;
  const void *data[MAX];
  const int64_t *sizes[MAX], *offsets[MAX];
} host;

typedef struct seat {
  host *host;
  int rank;
} seat;

// False after a rank gave up.
static bool meet(host *h) {
  pthread_mutex_lock(&h->mutex);
  int round = h->rounds;
  if (++h->arrived == h->n) {
    h->arrived = 0;
    h->rounds++;
    pthread_cond_broadcast(&h->turn);
  }
  while (h->rounds == round && !h->gave_up) pthread_cond_wait(&h->turn, &h->mutex);
  bool fine = !h->gave_up;
  pthread_mutex_unlock(&h->mutex);
  return fine;
}

static int host_gather(void *context, const void *mine, size_t bytes, void *out_all) {
  seat *s = context;
  s->host->data[s->rank] = mine;
  if (!meet(s->host)) return 1;
  for (int q = 0; q < s->host->n; q++) memcpy((char *)out_all + (size_t)q * bytes, s->host->data[q], bytes);
  return meet(s->host) ? 0 : 1;
}

static int host_all_to_all(void *context, const void *send, const int64_t *send_bytes, const int64_t *send_offset, void *receive, const int64_t *receive_bytes,
                           const int64_t *receive_offset) {
  seat *s = context;
  s->host->data[s->rank] = send;
  s->host->sizes[s->rank] = send_bytes;
  s->host->offsets[s->rank] = send_offset;
  if (!meet(s->host)) return 1;
  for (int q = 0; q < s->host->n; q++)
    if (receive_bytes[q]) memcpy((char *)receive + receive_offset[q], (const char *)s->host->data[q] + s->host->offsets[q][s->rank], (size_t)receive_bytes[q]);
  return meet(s->host) ? 0 : 1;
}

static void host_abort(void *context, const char *reason) {
  (void)reason;
  seat *s = context;
  pthread_mutex_lock(&s->host->mutex);
  s->host->gave_up = true;
  pthread_cond_broadcast(&s->host->turn);
  pthread_mutex_unlock(&s->host->mutex);
}

static void run_callbacks(const suite_test *test, int n, suite_report *reports) {
  host h = {.n = n, .mutex = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_COND_INITIALIZER};
  seat seats[MAX];
  uly_comm *comms[MAX];
  for (int r = 0; r < n; r++) {
    seats[r] = (seat){&h, r};
    uly_callbacks c = {&seats[r], r, n, host_gather, host_all_to_all, host_abort};
    ULY_ASSERT(uly_comm_callbacks_create(&c, &comms[r]) == ULY_OK);
  }
  run_threads(test, n, comms, reports);
}

static const int one[] = {1, 0}, many[] = {1, 2, 3, 4, 7, 8, 16, 0};
static const suite_skip callbacks_skips[] = {{"writers_wait", "peers write into a buffer of the host's, not into the receiver"},
                                             {"a_rank_gives_up", "how peers learn of it is the host's affair"},
                                             {"a_rank_is_late", "the host's functions have their own deadlines"},
                                             {"a_line_stands_still", "the host's functions have their own deadlines"},
                                             {"a_rank_leaves", "the host's functions have their own deadlines"},
                                             {"a_line_gives_up", "how peers learn of it is the host's affair"},
                                             {NULL, NULL}};
static const suite_transport transports[] = {
    {"self", one, NULL, run_self}, {"local", many, NULL, run_local}, {"callbacks", many, callbacks_skips, run_callbacks}};

int main(int argc, char **argv) {
  for (size_t i = 0; i < sizeof transports / sizeof *transports; i++)
    if (argc == 2 && strcmp(argv[1], transports[i].name) == 0) return suite_run(&transports[i]) != 0;
  fprintf(stderr, "usage: transports_test self|local|callbacks\n");
  return 2;
}
