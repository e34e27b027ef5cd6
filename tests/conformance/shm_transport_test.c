// Processes that share memory, through the transport suite: each test's ranks are forked.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/transports/shm.h"
#include "tests/conformance/transport_suite.h"

enum { MAX = 16 };

static void run_rank(const suite_test *test, uly_shm_group *group, int rank, suite_report *report) {
  uly_comm *comm = NULL;
  if (uly_shm_group_join(group, rank, test->timeout, &comm) == ULY_OK) {
    test->body(comm, report);
  } else {
    report->failed = 1;
    snprintf(report->text, sizeof report->text, "cannot join: %.300s", comm ? comm->error : "no memory");
  }
  if (comm) comm->ops->destroy(comm);
}

static void run_processes(const suite_test *test, int n, suite_report *reports) {
  uly_shm_group *group;
  pid_t pids[MAX];
  size_t bytes = sizeof *reports * (size_t)n;
  suite_report *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ULY_ASSERT(shared != MAP_FAILED && uly_shm_group_create(n, &group) == ULY_OK);
  fflush(NULL);
  for (int r = 0; r < n; r++) {
    pids[r] = fork();
    ULY_ASSERT(pids[r] >= 0);
    if (pids[r] == 0) {
      run_rank(test, group, r, &shared[r]);
      _exit(0);
    }
  }
  for (int r = 0; r < n; r++) {
    int status;
    waitpid(pids[r], &status, 0);
    if (status == 0 || shared[r].failed) continue;
    shared[r].failed = 1;
    snprintf(shared[r].text, sizeof shared[r].text, "the process ended with status 0x%x", (unsigned)status);
  }
  memcpy(reports, shared, bytes);
  munmap(shared, bytes);
  uly_shm_group_destroy(group);
}

int main(void) {
  static const int ranks[] = {1, 2, 3, 4, 7, 8, 16, 0};
  static const suite_transport transport = {"shm", ranks, NULL, run_processes};
  return suite_run(&transport) != 0;
}
