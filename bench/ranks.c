#include "bench/ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/options.h"
#include "runtime/transports/shm.h"

typedef struct rank {
  uly_comm *comm;
  timing *timing;
  ranks_body *body;
  void *argument;
  pthread_t thread;
} rank;

static void *thread_main(void *argument) {
  rank *r = argument;
  r->body(r->comm, r->timing, r->argument);
  return NULL;
}

static void run_threads(rank *ranks, int n) {
  uly_comm *comms[TIMING_MAX_RANKS];
  if (uly_comm_local_create(n, comms) != ULY_OK) bench_die("no memory for ranks");
  for (int q = 0; q < n; q++) {
    ranks[q].comm = comms[q];
    if (pthread_create(&ranks[q].thread, NULL, thread_main, &ranks[q])) bench_die("no threads");
  }
  for (int q = 0; q < n; q++) pthread_join(ranks[q].thread, NULL);
}

static void run_processes(rank *ranks, int n) {
  uly_shm_group *group;
  if (uly_shm_group_create(n, &group) != ULY_OK) bench_die("no shared memory for ranks");
  for (int q = 0; q < n; q++) {
    pid_t child = fork();
    if (child < 0) bench_die("no processes");
    if (child) continue;
    if (uly_shm_group_join(group, q, 60, &ranks[q].comm) != ULY_OK) bench_die("a rank cannot join");
    thread_main(&ranks[q]);
    exit(0);
  }
  uly_shm_group_destroy(group);
  int status, failed = 0;
  for (int q = 0; q < n; q++) failed |= wait(&status) < 0 || status != 0;
  if (failed) exit(1);
}

void ranks_run(const char *transport, int n, ranks_body *body, void *argument) {
  static rank ranks[TIMING_MAX_RANKS];
  if (n < 1 || n > TIMING_MAX_RANKS) bench_die("1 to 64 ranks");
  timing *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (t == MAP_FAILED) bench_die("no memory");
  for (int q = 0; q < n; q++) ranks[q] = (rank){.timing = t, .body = body, .argument = argument};
  if (!strcmp(transport, "local"))
    run_threads(ranks, n);
  else if (!strcmp(transport, "shm"))
    run_processes(ranks, n);
  else
    bench_die("transport=local or transport=shm");
  munmap(t, sizeof *t);
}
