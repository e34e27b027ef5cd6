// Processes that share memory: messages arrive, a killed rank is named by all others within a second, a stopped one after the deadline, and nothing is left behind.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/transports/shm.h"

enum { MAX = 8, ROUNDS = 40, MESSAGE = 3000 };
enum { EXIT_FINE = 0, EXIT_NAMED = 42, EXIT_OTHER = 43, EXIT_WRONG_DATA = 44 };

typedef struct job {
  uly_shm_group *group;
  int n;
  pid_t pids[MAX];
  atomic_int *victim; // shared with the children
} job;

static void sleep_ms(double ms) {
  struct timespec t = {(time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000};
  nanosleep(&t, NULL);
}

// One exchange of MESSAGE bytes between all, checked.
static uly_status exchange(uly_comm *comm, uint32_t channel, unsigned char *own, void **peers, int round) {
  int64_t bytes[MAX], offsets[MAX];
  for (int q = 0; q < comm->n_ranks; q++) bytes[q] = MESSAGE, offsets[q] = (int64_t)q * MESSAGE;
  uly_route route = {.name = "test", .receive = own, .send_bytes = bytes, .send_offset = offsets, .receive_bytes = bytes, .receive_offset = offsets};
  ULY_TRY(comm->ops->post(comm, channel, &route));
  ULY_TRY(comm->ops->ready(comm, channel, &route));
  for (int q = 0; q < comm->n_ranks; q++) memset((unsigned char *)peers[q] + comm->rank * MESSAGE, round * 7 + comm->rank * 3 + q, MESSAGE);
  ULY_TRY(comm->ops->send(comm, channel, &route));
  ULY_TRY(comm->ops->wait(comm, channel, &route));
  for (int q = 0; q < comm->n_ranks; q++)
    for (int i = 0; i < MESSAGE; i++)
      if (own[q * MESSAGE + i] != (unsigned char)(round * 7 + q * 3 + comm->rank)) _exit(EXIT_WRONG_DATA);
  return ULY_OK;
}

static uly_status work(uly_comm *comm, bool endless) {
  const uint8_t program[32] = {1, 2, 3};
  do {
    void *own, *peers[MAX];
    uint32_t channel;
    ULY_TRY(comm->ops->map(comm, MAX * MESSAGE, MAX * MESSAGE, &own, peers));
    ULY_TRY(comm->ops->open(comm, 1, program, &channel));
    for (int round = 0; round < ROUNDS; round++) ULY_TRY(exchange(comm, channel, own, peers, round));
    comm->ops->close(comm, channel);
    comm->ops->unmap(comm, own, peers, MAX * MESSAGE, MAX * MESSAGE);
  } while (endless);
  return ULY_OK;
}

static int child(job *j, int rank, double timeout, bool endless) {
  prctl(PR_SET_PDEATHSIG, SIGKILL); // also where it is stopped and a check failed
  uly_comm *comm = NULL;
  uly_status status = uly_shm_group_join(j->group, rank, timeout, &comm);
  if (status == ULY_OK) status = work(comm, endless);
  char name[16];
  snprintf(name, sizeof name, "rank %d", atomic_load(j->victim));
  int code = status == ULY_OK ? EXIT_FINE : status == ULY_PEER_LOST && strncmp(comm->error, name, strlen(name)) == 0 ? EXIT_NAMED : EXIT_OTHER;
  if (code == EXIT_OTHER) fprintf(stderr, "rank %d: %s: %s, not about %s\n", rank, uly_status_text(status), comm ? comm->error : "", name);
  if (comm) comm->ops->destroy(comm);
  return code;
}

static void start(job *j, int n, double timeout, bool endless) {
  j->n = n;
  j->victim = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  atomic_store(j->victim, -1);
  assert_int_equal(uly_shm_group_create(n, &j->group), ULY_OK);
  fflush(NULL);
  for (int r = 0; r < n; r++) {
    j->pids[r] = fork();
    if (j->pids[r] == 0) _exit(child(j, r, timeout, endless));
  }
}

// All but |except| exit with |code| before |deadline|.
static void expect_exits(job *j, int except, int code, double deadline) {
  for (int r = 0; r < j->n; r++) {
    if (r == except) continue;
    int status = 0;
    pid_t done = 0;
    while ((done = waitpid(j->pids[r], &status, WNOHANG)) == 0 && uly_now() < deadline) sleep_ms(1);
    if (done && WIFEXITED(status) && WEXITSTATUS(status) == code) continue;
    for (int q = 0; q < j->n; q++) kill(j->pids[q], SIGKILL);
    if (done == 0)
      fail_msg("rank %d of %d did not end in time", r, j->n);
    else
      fail_msg("rank %d of %d ended with status 0x%x, not %d", r, j->n, status, code);
  }
}

static void finish(job *j) {
  uly_shm_group_destroy(j->group);
  munmap((void *)j->victim, 4096);
}

// Names in |folder| that have |part| in them; other tests make "uly" in these folders, the transport calls its memory "ulyrt".
static int count_files(const char *folder, const char *part) {
  DIR *dir = opendir(folder);
  int n = 0;
  for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) n += strstr(e->d_name, part) != NULL;
  if (dir) closedir(dir);
  return n;
}

static void messages_arrive(void **state) {
  (void)state;
  for (int n = 1; n <= MAX; n++) {
    job j;
    start(&j, n, 60, false);
    expect_exits(&j, -1, EXIT_FINE, uly_now() + 60);
    finish(&j);
  }
}

static void kills(void **state) {
  (void)state;
  int shm = count_files("/dev/shm", "ulyrt"), tmp = count_files("/tmp", "ulyrt"), fds = count_files("/proc/self/fd", "");
  double slowest = 0;
  srand(1);
  for (int trial = 0; trial < 100; trial++) {
    job j;
    int n = 2 + trial % 3, victim = rand() % n;
    start(&j, n, 60, true);
    sleep_ms(rand() % 3000 * 0.01);
    atomic_store(j.victim, victim);
    double at = uly_now();
    kill(j.pids[victim], SIGKILL);
    waitpid(j.pids[victim], NULL, 0);
    uly_shm_group_report(j.group, victim, "was killed");
    expect_exits(&j, victim, EXIT_NAMED, at + 1.0);
    if (uly_now() - at > slowest) slowest = uly_now() - at;
    finish(&j);
  }
  printf("slowest: all others ended %.0f ms after the kill\n", slowest * 1e3);
  assert_int_equal(count_files("/dev/shm", "ulyrt"), shm);
  assert_int_equal(count_files("/tmp", "ulyrt"), tmp);
  assert_int_equal(count_files("/proc/self/fd", ""), fds);
}

// Without a launcher's report: the ranks see the death by themselves once they have joined.
static void kills_without_launcher(void **state) {
  (void)state;
  for (int trial = 0; trial < 10; trial++) {
    job j;
    start(&j, 3, 60, true);
    sleep_ms(200);
    atomic_store(j.victim, trial % 3);
    double at = uly_now();
    kill(j.pids[trial % 3], SIGKILL);
    expect_exits(&j, trial % 3, EXIT_NAMED, at + 1.0);
    waitpid(j.pids[trial % 3], NULL, 0);
    finish(&j);
  }
}

static void stops(void **state) {
  (void)state;
  enum { TRIALS = 10 };
  job jobs[TRIALS];
  double at[TRIALS];
  srand(2);
  for (int t = 0; t < TRIALS; t++) {
    start(&jobs[t], 2 + t % 3, 2.0, true);
    sleep_ms(100 + rand() % 50);
    atomic_store(jobs[t].victim, t % jobs[t].n);
    at[t] = uly_now();
    kill(jobs[t].pids[t % jobs[t].n], SIGSTOP);
  }
  for (int t = 0; t < TRIALS; t++) {
    int victim = t % jobs[t].n;
    expect_exits(&jobs[t], victim, EXIT_NAMED, at[t] + 3.0);
    kill(jobs[t].pids[victim], SIGKILL);
    waitpid(jobs[t].pids[victim], NULL, 0);
    finish(&jobs[t]);
  }
}

static void refusals(void **state) {
  (void)state;
  uly_shm_group *group;
  uly_comm *comm;
  assert_int_equal(uly_shm_group_create(0, &group), ULY_INVALID_ARGUMENT);
  assert_int_equal(uly_shm_group_create(ULY_SHM_MAX_RANKS + 1, &group), ULY_INVALID_ARGUMENT);
  assert_int_equal(uly_shm_group_create(2, &group), ULY_OK);
  assert_int_equal(uly_shm_group_join(group, 2, 1, &comm), ULY_INVALID_ARGUMENT);
  // A peer that died before it joined.
  assert_int_equal(uly_shm_group_join(group, 0, 60, &comm), ULY_PEER_LOST);
  assert_non_null(strstr(comm->error, "rank 1 is gone"));
  comm->ops->destroy(comm);
}

// A peer that never joins is named at the deadline.
static void late_rank(void **state) {
  (void)state;
  job j;
  start(&j, 3, 0.3, false);
  kill(j.pids[1], SIGSTOP);
  atomic_store(j.victim, 1);
  expect_exits(&j, 1, EXIT_NAMED, uly_now() + 1.5);
  kill(j.pids[1], SIGKILL);
  waitpid(j.pids[1], NULL, 0);
  finish(&j);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(messages_arrive), cmocka_unit_test(kills),    cmocka_unit_test(kills_without_launcher),
                                     cmocka_unit_test(stops),           cmocka_unit_test(refusals), cmocka_unit_test(late_rank)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
