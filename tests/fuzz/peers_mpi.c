// The headers of mpi.c and the letters of mpi_wait.c, over an MPI whose peers are the input: a header comes back as it was sent, or changed; letters come at any time.
#include "tests/fuzz/peers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

// What would delay or end this process, and what it would print.
static inline int say_nothing(FILE *to, const char *format, ...) { return (void)to, (void)format, 0; }
static inline void pass_time(struct timespec time) { fuzz_now += (double)time.tv_nsec * 1e-9; }
#define nanosleep(...) pass_time((struct timespec){0, ns})
#define sched_yield() ((void)0)
#define _exit(code) ((void)(code))
#define alarm(seconds) ((void)(seconds))
#define fprintf(...) say_nothing(__VA_ARGS__)
#define atexit(function) ((void)(function), 0)
#include "runtime/transports/mpi.c"
#include "runtime/transports/mpi_wait.c"
#undef nanosleep
#undef sched_yield
#undef _exit
#undef alarm
#undef fprintf
#undef atexit

enum { RANKS = 3, CALLS = 16, MAX_OPEN = 64, PATIENCE = 40, MAX_GATHER = 600 };

typedef struct pending {
  void *receive;
  size_t n;
  int from;
} pending;

static fuzz_input *input;
static pending open_requests[MAX_OPEN];
static int n_requests, idle;
static const void *sent[RANKS]; // the last header to each rank
static size_t sent_bytes[RANKS];

static MPI_Request new_request(void *receive, int n, int from) {
  int i = n_requests++ % MAX_OPEN;
  open_requests[i] = (pending){receive, (size_t)n, from};
  return i;
}

double MPI_Wtime(void) { return fuzz_now += 1e-3; }

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
  (void)type, (void)comm;
  if (tag == ULY_MPI_TAG_HEADER) sent[to] = data, sent_bytes[to] = (size_t)n;
  *request = new_request(NULL, n, to);
  return MPI_SUCCESS;
}

int MPI_Irecv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
  (void)type, (void)tag, (void)comm;
  *request = new_request(data, n, from);
  return MPI_SUCCESS;
}

static void arrive(const pending *p) {
  if (!p->receive) return;
  if (sent[p->from] && sent_bytes[p->from] == p->n) memcpy(p->receive, sent[p->from], p->n);
  if (fuzz_u8(input) % 4 == 3) ((uint8_t *)p->receive)[fuzz_u8(input) % p->n] ^= fuzz_u8(input);
}

int MPI_Testsome(int n, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses) {
  (void)statuses;
  int left = 0;
  uint8_t which = idle++ > PATIENCE ? 255 : fuzz_u8(input);
  *done = 0;
  for (int i = 0; i < n; i++) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    left++;
    if (!(which >> i % 8 & 1)) continue;
    arrive(&open_requests[requests[i]]);
    requests[i] = MPI_REQUEST_NULL;
    indices[(*done)++] = i;
  }
  if (!left) *done = MPI_UNDEFINED;
  if (*done) idle = 0;
  return which == 99 && *done == 0 ? 5 : MPI_SUCCESS;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
  (void)status;
  *request = MPI_REQUEST_NULL;
  *done = 1;
  return MPI_SUCCESS;
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *there, MPI_Status *status) {
  (void)from, (void)tag, (void)comm;
  uint8_t what = fuzz_u8(input);
  *there = what % 16 == 5 && input->n > 0;
  *status = (MPI_Status){1 + (what >> 4) % (RANKS - 1), fuzz_u8(input) % 7};
  return MPI_SUCCESS;
}

int MPI_Recv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
  (void)type, (void)comm;
  *status = (MPI_Status){from, tag};
  size_t have = fuzz_u8(input) % 2 ? (size_t)n : fuzz_u8(input);
  uint8_t fill = fuzz_u8(input);
  memset(data, fill, have < (size_t)n ? have : (size_t)n);
  if (have >= sizeof(int32_t)) fuzz_bytes(input, data, 1);
  return MPI_SUCCESS;
}

int MPI_Iallgather(const void *mine, int n, MPI_Datatype type, void *all, int m, MPI_Datatype other, MPI_Comm comm, MPI_Request *request) {
  (void)type, (void)m, (void)other, (void)comm;
  for (int q = 0; q < RANKS; q++) memcpy((char *)all + (size_t)q * (size_t)n, mine, (size_t)n);
  *request = new_request(NULL, n, 0);
  return MPI_SUCCESS;
}

int MPI_Ialltoallv_c(const void *send, const MPI_Count *counts, const MPI_Aint *offsets, MPI_Datatype type, void *receive, const MPI_Count *takes,
                     const MPI_Aint *to, MPI_Datatype other, MPI_Comm comm, MPI_Request *request) {
  (void)send, (void)counts, (void)offsets, (void)type, (void)receive, (void)takes, (void)to, (void)other, (void)comm;
  *request = new_request(NULL, 0, 0);
  return MPI_SUCCESS;
}

int MPI_Error_string(int error, char *text, int *n) {
  (void)error;
  *n = snprintf(text, MPI_MAX_ERROR_STRING, "an error");
  return MPI_SUCCESS;
}
int MPI_Abort(MPI_Comm comm, int code) { return (void)comm, (void)code, MPI_SUCCESS; }
int MPI_Request_free(MPI_Request *request) { return *request = MPI_REQUEST_NULL, MPI_SUCCESS; }
int MPI_Init_thread(int *argc, char ***argv, int wanted, int *level) { return (void)argc, (void)argv, *level = wanted, MPI_SUCCESS; }
int MPI_Initialized(int *yes) { return *yes = 1, MPI_SUCCESS; }
int MPI_Finalized(int *yes) { return *yes = 0, MPI_SUCCESS; }
int MPI_Finalize(void) { return MPI_SUCCESS; }
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *out) { return *out = comm, MPI_SUCCESS; }
int MPI_Comm_free(MPI_Comm *comm) { return *comm = MPI_COMM_NULL, MPI_SUCCESS; }
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) { return (void)comm, (void)handler, MPI_SUCCESS; }
int MPI_Comm_rank(MPI_Comm comm, int *out) { return (void)comm, *out = 0, MPI_SUCCESS; }
int MPI_Comm_size(MPI_Comm comm, int *out) { return (void)comm, *out = RANKS, MPI_SUCCESS; }
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out) { return (void)color, (void)key, *out = comm, MPI_SUCCESS; }
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out) { return (void)type, (void)key, (void)info, *out = comm, MPI_SUCCESS; }

static uly_status make_call(uly_comm *comm, uint8_t what, bool *opened, int *stage) {
  static const uint8_t program[32] = {1, 2, 3};
  static unsigned char mine[MAX_GATHER], all[RANKS * MAX_GATHER];
  static const int64_t bytes[RANKS] = {64, 32, 32}, offsets[RANKS] = {0, 64, 96};
  uint32_t number = 0;
  uly_route route = {.name = "x", .send = mine, .receive = all, .send_bytes = bytes, .send_offset = offsets, .receive_bytes = bytes, .receive_offset = offsets};
  uly_status status;
  switch (what % 4) {
  case 0: return all_gather(comm, mine, what * 2, all);
  case 1:
    if (*opened) return ULY_OK;
    status = open_channel(comm, 1, program, &number);
    *opened = status == ULY_OK;
    return status;
  case 2: // in the order of a run
    if (!*opened) return ULY_OK;
    *stage = (*stage + 1) % 4;
    return *stage == 1 ? post(comm, 0, &route) : *stage == 2 ? ready(comm, 0, &route) : *stage == 3 ? send_data(comm, 0, &route) : wait_data(comm, 0, &route);
  default:
    if (what == 3) uly_mpi_abort(comm, "a reason");
    return ULY_OK;
  }
}

void fuzz_mpi(fuzz_input *in) {
  uly_comm *comm;
  input = in;
  n_requests = idle = 0;
  memset(sent, 0, sizeof sent);
  bool opened = false;
  int stage = 0;
  uint8_t patience = fuzz_u8(in);
  if (create(NULL, patience % 4 == 0 ? 0.02 : 1000, &comm) == ULY_OK) {
    for (int i = 0; i < CALLS && in->n; i++) {
      uly_status status = make_call(comm, fuzz_u8(in), &opened, &stage);
      ULY_ASSERT(status == ULY_OK || (uly_status_failure(status) == status && memchr(comm->error, 0, sizeof comm->error)));
    }
    uly_mpi_of(comm)->comm.timeout = 0.01;
    say_bye(uly_mpi_of(comm));
  }
  free_state(uly_mpi_of(comm)); // whatever failed: this MPI keeps no buffers
}
