// The MPI transport, all cases in one mpirun: uneven messages, overlapping exchanges, gathers, and failures that every rank must hear of. Run as
// `mpirun -n P mpi_ranks_test plugin.so case`; a case that ends MPI's order (failures) runs alone.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/transports/plugin.h"

enum { MAX = 16 };

#define CHECK(cond)                                                                                                                                            \
  do {                                                                                                                                                         \
    if (!(cond)) {                                                                                                                                             \
      fprintf(stderr, "[rank %d] %s:%d: %s: %s\n", comm->rank, __FILE__, __LINE__, #cond, comm->error);                                                        \
      _exit(1);                                                                                                                                                \
    }                                                                                                                                                          \
  } while (0)

// Bytes from i to j in exchange x; zero for some pairs.
static int64_t size_of(int x, int i, int j) { return (i * 5 + j * 3 + x) % 4 == 0 ? 0 : 100 * (i + 1) + 7 * j + 1000 * x; }
static unsigned char byte_of(int x, int epoch, int i, int j, int64_t k) { return (unsigned char)(x * 31 + epoch * 17 + i * 5 + j * 3 + k); }

typedef struct side {
  int64_t send_bytes[MAX], send_offset[MAX], receive_bytes[MAX], receive_offset[MAX];
  unsigned char *send, *receive;
  uly_route route;
} side;

static void prepare(uly_comm *comm, side *s, int x) {
  int64_t out = 0, in = 0;
  for (int q = 0; q < comm->n_ranks; q++) {
    s->send_bytes[q] = size_of(x, comm->rank, q);
    s->receive_bytes[q] = size_of(x, q, comm->rank);
    s->send_offset[q] = out;
    s->receive_offset[q] = in;
    out += s->send_bytes[q];
    in += s->receive_bytes[q];
  }
  s->send = malloc((size_t)out + 1);
  s->receive = malloc((size_t)in + 1);
  s->route = (uly_route){.exchange = (uint32_t)x,
                         .name = "test",
                         .receive = s->receive,
                         .send = s->send,
                         .send_bytes = s->send_bytes,
                         .send_offset = s->send_offset,
                         .receive_bytes = s->receive_bytes,
                         .receive_offset = s->receive_offset};
}

// A rank writes its own message in place.
static void fill(uly_comm *comm, side *s, int x, int epoch) {
  for (int q = 0; q < comm->n_ranks; q++) {
    unsigned char *to = q == comm->rank ? s->receive + s->receive_offset[q] : s->send + s->send_offset[q];
    for (int64_t k = 0; k < s->send_bytes[q]; k++) to[k] = byte_of(x, epoch, comm->rank, q, k);
  }
}

static void verify(uly_comm *comm, side *s, int x, int epoch) {
  for (int q = 0; q < comm->n_ranks; q++)
    for (int64_t k = 0; k < s->receive_bytes[q]; k++) CHECK(s->receive[s->receive_offset[q] + k] == byte_of(x, epoch, q, comm->rank, k));
}

// Two exchanges in flight at once, several times.
static void exchanges(uly_comm *comm) {
  const uint8_t program[32] = {9};
  uint32_t channel;
  side sides[2];
  uint64_t expected = 0, before = comm->sent_bytes;
  CHECK(comm->ops->open(comm, 2, program, &channel) == ULY_OK);
  for (int x = 0; x < 2; x++) prepare(comm, &sides[x], x);
  for (int epoch = 0; epoch < 20; epoch++) {
    for (int x = 0; x < 2; x++) CHECK(comm->ops->post(comm, channel, &sides[x].route) == ULY_OK);
    for (int x = 0; x < 2; x++) {
      CHECK(comm->ops->ready(comm, channel, &sides[x].route) == ULY_OK);
      fill(comm, &sides[x], x, epoch);
      CHECK(comm->ops->send(comm, channel, &sides[x].route) == ULY_OK);
      for (int q = 0; q < comm->n_ranks; q++) expected += q == comm->rank ? 0 : (uint64_t)sides[x].send_bytes[q];
    }
    for (int x = 0; x < 2; x++) {
      CHECK(comm->ops->wait(comm, channel, &sides[x].route) == ULY_OK);
      verify(comm, &sides[x], x, epoch);
    }
  }
  CHECK(comm->sent_bytes - before == expected);
  comm->ops->close(comm, channel);
  for (int x = 0; x < 2; x++) free(sides[x].send), free(sides[x].receive);
}

static void gathers(uly_comm *comm) {
  for (size_t bytes = 0; bytes < 70000; bytes = bytes * 3 + 1) {
    unsigned char *mine = malloc(bytes + 1), *all = malloc(bytes * (size_t)comm->n_ranks + 1);
    memset(mine, comm->rank + 1, bytes);
    CHECK(comm->ops->all_gather(comm, mine, bytes, all) == ULY_OK);
    for (size_t i = 0; i < bytes * (size_t)comm->n_ranks; i++) CHECK(all[i] == i / bytes + 1);
    free(mine);
    free(all);
  }
}

// Every rank fails with |status| and hears of |text|.
static void expect_failure(uly_comm *comm, uly_status got, uly_status status, const char *text) {
  uint8_t byte = 0, all[MAX];
  for (int i = 0; got == ULY_OK && i < 3; i++) got = comm->ops->all_gather(comm, &byte, 1, all);
  CHECK(got == status);
  CHECK(strstr(comm->error, text));
  CHECK(comm->ops->all_gather(comm, &byte, 1, all) == status);
}

static void differ_in_call(uly_comm *comm) {
  const uint8_t program[32] = {1};
  uint8_t byte = 0, all[MAX];
  uint32_t channel;
  bool odd = comm->rank == comm->n_ranks - 1;
  uly_status status = odd ? comm->ops->open(comm, 3, program, &channel) : comm->ops->all_gather(comm, &byte, 1, all);
  expect_failure(comm, status, ULY_MISMATCH, "called open of program");
}

static void differ_in_program(uly_comm *comm) {
  const uint8_t program[32] = {(uint8_t)(comm->rank == 1)};
  uint32_t channel;
  expect_failure(comm, comm->ops->open(comm, 3, program, &channel), ULY_MISMATCH, "program 0000000000000001");
}

static void differ_in_size(uly_comm *comm) {
  const uint8_t program[32] = {1};
  uint32_t channel;
  side s;
  CHECK(comm->ops->open(comm, 1, program, &channel) == ULY_OK);
  prepare(comm, &s, 0);
  if (comm->rank == 0) s.send_bytes[1]++;
  uly_status status = comm->ops->post(comm, channel, &s.route);
  if (status == ULY_OK) status = comm->ops->send(comm, channel, &s.route);
  if (status == ULY_OK) status = comm->ops->wait(comm, channel, &s.route);
  expect_failure(comm, status, ULY_MISMATCH, "which expects");
}

static void one_gives_up(uly_comm *comm) {
  uint8_t byte = 0, all[MAX];
  if (comm->rank == 1) comm->ops->abort(comm, "the disk is full");
  expect_failure(comm, comm->ops->all_gather(comm, &byte, 1, all), ULY_CANCELLED, "rank 1 gave up: the disk is full");
}

// Rank 1 never comes: the others name it and the job ends.
static void one_is_late(uly_comm *comm) {
  uint8_t byte = 0, all[MAX];
  comm->timeout = 0.5;
  if (comm->rank == 1) sleep(30);
  expect_failure(comm, comm->ops->all_gather(comm, &byte, 1, all), ULY_PEER_LOST, "not reached");
}

static void well(uly_comm *comm) {
  gathers(comm);
  exchanges(comm);
}

static const struct {
  const char *name;
  void (*run)(uly_comm *comm);
} cases[] = {{"well", well},           {"call", differ_in_call},   {"program", differ_in_program},
             {"size", differ_in_size}, {"gives-up", one_gives_up}, {"late", one_is_late}};

int main(int argc, char **argv) {
  const uly_mpi_plugin *plugin;
  uly_error error;
  uly_comm *comm = NULL;
  if (argc != 3) return 2;
  if (uly_mpi_load(argv[1], &error, &plugin) != ULY_OK) return fprintf(stderr, "%s\n", error.text), 69;
  if (plugin->create(NULL, 60, &comm) != ULY_OK) return fprintf(stderr, "%s\n", comm ? comm->error : "no communicator"), 70;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(cases[i].name, argv[2]) == 0) cases[i].run(comm);
  if (comm->rank == 0) printf("%s: %d ranks over %s: ok\n", argv[2], comm->n_ranks, plugin->library);
  fflush(stdout);
  comm->ops->destroy(comm);
  return 0;
}
