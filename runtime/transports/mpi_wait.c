// How ranks that are MPI processes wait and fail.
//
// Waits poll, and sleep longer the longer they last, because ranks may outnumber cores. Small letters on a second communicator carry failures, and signs of life from ranks that
// wait long: who sends none is named when the deadline passes. As MPI cannot take back what has been started, the job is then ended by MPI_Abort. The death of a process is the
// launcher's to see: MPICH's mpirun kills the others.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/transports/mpi_state.h"

// ---- failure ----

uly_status uly_mpi_failed(uly_mpi *m) {
  uly_mpi *world = uly_mpi_world(m);
  if (!world->failed) return ULY_OK;
  return m == world ? m->failed : uly_comm_fail(&m->comm, world->failed, "%s", world->comm.error);
}

static uly_status fail_here(uly_mpi *m, uly_status status, const char *text) {
  uly_mpi *world = uly_mpi_world(m);
  if (!world->failed) {
    world->failed = status;
    uly_comm_fail(&world->comm, status, "%s", text);
  }
  return uly_mpi_failed(m);
}

uly_status uly_mpi_fail(uly_mpi *m, uly_status status, const char *text) {
  uly_mpi *world = uly_mpi_world(m);
  if (world->failed) return uly_mpi_failed(m);
  world->notice.status = (int32_t)status;
  snprintf(world->notice.text, sizeof world->notice.text, "%s", text);
  for (int q = 0; q < world->comm.n_ranks; q++)
    if (q != world->comm.rank) MPI_Isend(&world->notice, (int)sizeof world->notice, MPI_BYTE, q, ULY_MPI_TAG_FAILURE, world->control, &world->letters[q]);
  return fail_here(m, status, text);
}

uly_status uly_mpi_check(uly_mpi *m, int error, const char *what) {
  if (error == MPI_SUCCESS) return ULY_OK;
  char text[MPI_MAX_ERROR_STRING] = "", whole[600];
  int n = 0;
  MPI_Error_string(error, text, &n);
  snprintf(whole, sizeof whole, "rank %s: %s: %.300s", uly_comm_name(&m->comm, m->comm.rank).text, what, text);
  return uly_mpi_fail(m, ULY_IO, whole);
}

void uly_mpi_abort(uly_comm *comm, const char *reason) {
  char text[600];
  snprintf(text, sizeof text, "rank %s gave up: %s", uly_comm_name(comm, comm->rank).text, reason);
  uly_mpi_fail(uly_mpi_of(comm), ULY_CANCELLED, text);
}

// ---- waiting ----

uly_status uly_mpi_read_letters(uly_mpi *m) {
  for (;;) {
    int there = 0;
    MPI_Status status;
    uly_mpi_notice letter = {0};
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, m->control, &there, &status) != MPI_SUCCESS || !there) return m->failed;
    if (MPI_Recv(&letter, (int)sizeof letter, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, m->control, &status) != MPI_SUCCESS) continue;
    m->seen[status.MPI_SOURCE] = uly_mpi_now();
    if (status.MPI_TAG == ULY_MPI_TAG_BYE) m->left[status.MPI_SOURCE] = uly_mpi_now();
    if (status.MPI_TAG != ULY_MPI_TAG_FAILURE || m->failed) continue;
    letter.text[sizeof letter.text - 1] = 0;
    return fail_here(m, uly_status_failure(letter.status), letter.text);
  }
}

void uly_mpi_back_off(const uly_mpi *m, int round) {
  if (!m->crowded && round < 200) return;
  if (round < 220) {
    sched_yield();
    return;
  }
  long ns = round < 400 ? 20000 : round < 1000 ? 100000 : 500000;
  nanosleep(&(struct timespec){0, ns}, NULL);
}

static void say_alive(uly_mpi *m) { // a world
  if (m->comm.timeout <= 0 || uly_mpi_now() - m->said < m->comm.timeout / 4) return;
  m->said = uly_mpi_now();
  for (int q = 0; q < m->comm.n_ranks; q++) {
    int done = 1;
    if (q == m->comm.rank) continue;
    MPI_Test(&m->alive[q], &done, MPI_STATUS_IGNORE);
    if (done) MPI_Isend(NULL, 0, MPI_BYTE, q, ULY_MPI_TAG_ALIVE, m->control, &m->alive[q]);
  }
}

// Peer |q| of |m|.
static bool is_silent(uly_mpi *m, int q) {
  const uly_mpi *world = uly_mpi_world(m);
  return q != m->comm.rank && uly_mpi_now() - world->seen[uly_comm_member(&m->comm, q)] > world->comm.timeout / 2;
}

static void end_process(int alarm_signal) {
  (void)alarm_signal;
  _exit(75); // status.def's code of PEER_LOST
}

// The deadline passed: names those who gave no sign of life, or whose header is missing, and ends the job. The first rank of the world that answers speaks.
static uly_status end_job(uly_mpi *m, const char *what, const uly_mpi_call *c) {
  char who[200] = "a rank";
  uly_mpi *world = uly_mpi_world(m);
  size_t at = 0;
  int silent = 0, speaker = world->comm.rank;
  for (int q = 0; q < m->comm.n_ranks; q++) silent += is_silent(m, q);
  for (int q = world->comm.n_ranks; q-- > 0;)
    if (q != world->comm.rank && !is_silent(world, q)) speaker = q < speaker ? q : speaker;
  for (int q = 0; q < m->comm.n_ranks && at + 32 < sizeof who; q++)
    if (silent ? is_silent(m, q) : q != m->comm.rank && c->requests[q] != MPI_REQUEST_NULL)
      at += (size_t)snprintf(who + at, sizeof who - at, "%srank %s", at ? ", " : "", uly_comm_name(&m->comm, q).text);
  for (double until = uly_mpi_now() + 3; speaker != world->comm.rank && uly_mpi_now() < until; uly_mpi_back_off(m, 300)) (void)!uly_mpi_read_letters(world);
  fprintf(stderr, "[rank %d] peer lost: %s did not answer within %g s: waited in %s\n", world->comm.rank, who, world->comm.timeout, what);
  fflush(stderr);
  // MPICH's MPI_Abort first writes to all processes, and hangs where one is stopped: an alarm ends this one then, and the launcher the rest.
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  signal(SIGALRM, end_process);
  pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
  alarm(1);
  MPI_Abort(world->data, uly_status_exit_code(ULY_PEER_LOST));
  return fail_here(m, ULY_PEER_LOST, who);
}

static double start_waiting(uly_mpi *m) { // a world
  m->said = uly_mpi_now();
  for (int q = 0; q < m->comm.n_ranks; q++)
    if (m->seen[q] == 0) m->seen[q] = uly_mpi_now();
  return uly_mpi_now() + m->comm.timeout;
}

// A rank that left without the header that is waited for. What it sent before it left may still be under way for a moment.
static uly_status check_left(uly_mpi *m, const MPI_Request *requests, const uly_mpi_call *c, const char *what) {
  char text[400];
  for (int q = 0; requests == c->requests && q < m->comm.n_ranks; q++) {
    double left = uly_mpi_world(m)->left[uly_comm_member(&m->comm, q)];
    if (left == 0 || requests[q] == MPI_REQUEST_NULL || uly_mpi_now() - left < 0.1) continue;
    snprintf(text, sizeof text, "rank %s left: rank %s waited in %s", uly_comm_name(&m->comm, q).text, uly_comm_name(&m->comm, m->comm.rank).text, what);
    return uly_mpi_fail(m, ULY_PEER_LOST, text);
  }
  return ULY_OK;
}

uly_status uly_mpi_wait(uly_mpi *m, int n, MPI_Request *requests, uly_mpi_call *c, const char *what) {
  uly_mpi *world = uly_mpi_world(m);
  double deadline = 0;
  for (int round = 0;; round += round < 1000) {
    int done = 1;
    while (done > 0) {
      ULY_TRY(uly_mpi_check(m, MPI_Testsome(n, requests, &done, c->indices, c->statuses), what));
      if (done == MPI_UNDEFINED) return ULY_OK; // none is left
    }
    if (uly_mpi_read_letters(world) != ULY_OK) return uly_mpi_failed(m);
    if (deadline == 0) deadline = start_waiting(world);
    ULY_TRY(check_left(m, requests, c, what));
    say_alive(world);
    if (world->comm.timeout > 0 && uly_mpi_now() > deadline) return end_job(m, what, c);
    uly_mpi_back_off(m, round);
  }
}
