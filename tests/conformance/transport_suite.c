#include "tests/conformance/transport_suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "tests/unit/tag_program.h"

enum { MAX = 16 };
static const double BEHIND = 0.2; // seconds in which all ranks come out of a collective, though there are more of them than cores

static void nap(double seconds) {
  struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, NULL);
}

__attribute__((format(printf, 2, 3))) static void blame(suite_report *report, const char *format, ...) {
  va_list args;
  if (report->failed) return;
  report->failed = 1;
  va_start(args, format);
  vsnprintf(report->text, sizeof report->text, format, args);
  va_end(args);
}

#define CHECK(cond, ...)                                                                                                                                       \
  do {                                                                                                                                                         \
    if (!(cond)) {                                                                                                                                             \
      blame(report, __VA_ARGS__);                                                                                                                              \
      return;                                                                                                                                                  \
    }                                                                                                                                                          \
  } while (0)

#define CHECK_OK(expr) CHECK((expr) == ULY_OK, "line %d: %s", __LINE__, comm->error)
// A failure of status |want| whose text has |part|.
#define CHECK_FAILS(status, want, part)                                                                                                                        \
  CHECK((status) == (want) && strstr(comm->error, part), "line %d: status %d, expected %d; \"%s\" should say \"%s\"", __LINE__, (int)(status), (int)(want),    \
        comm->error, part)

static const uint8_t program_a[32] = {1, 2, 3}, program_b[32] = {9, 2, 3};

// ---- gathers ------------------------------------------------------------------------------------------------------------------------------

static unsigned char byte_of(int rank, size_t i, int round) { return (unsigned char)((size_t)rank * 31 + i * 7 + (size_t)round); }

static void gather(uly_comm *comm, suite_report *report) {
  static const size_t sizes[] = {0, 1, 7, 64, 4095, 4096, 4097, 20000};
  unsigned char *mine = malloc(20000), *all = malloc((size_t)20000 * MAX);
  for (int round = 0; round < 40 && !report->failed; round++) {
    size_t n = sizes[round % 8];
    for (size_t i = 0; i < n; i++) mine[i] = byte_of(comm->rank, i, round);
    if (comm->ops->all_gather(comm, mine, n, all) != ULY_OK) blame(report, "round %d: %s", round, comm->error);
    for (int q = 0; q < comm->n_ranks && !report->failed; q++)
      for (size_t i = 0; i < n; i++)
        if (all[(size_t)q * n + i] != byte_of(q, i, round)) {
          blame(report, "round %d: byte %zu of rank %d is wrong", round, i, q);
          break;
        }
  }
  free(mine);
  free(all);
}

static void gather_sizes_differ(uly_comm *comm, suite_report *report) {
  unsigned char mine[32] = {0}, all[32 * MAX];
  uly_status status = comm->ops->all_gather(comm, mine, comm->rank == 1 ? 16 : 8, all);
  CHECK_FAILS(status, ULY_MISMATCH, "rank 1");
  status = comm->ops->all_gather(comm, mine, 8, all);
  CHECK(status != ULY_OK, "a failed communicator works on");
}

// ---- exchanges ----------------------------------------------------------------------------------------------------------------------------

// Sizes of messages from rank i to rank j of exchange x: some are empty.
static int64_t size_of(int i, int j, int x) { return (i * 5 + j * 3 + x) % 4 == 0 ? 0 : 64 * ((i * 7 + j * 11 + x * 13) % 9) + (i + j) % 8; }

typedef struct traffic {
  int64_t bytes[4][MAX];
  uly_route route;
  unsigned char *own, *send;
  void *peers[MAX];
  size_t total;
} traffic;

enum { ROOM = 16384, PRIVATE = 10000 };

static void make_traffic(uly_comm *comm, traffic *t, int x) {
  int64_t send_at = 0, receive_at = 0;
  for (int q = 0; q < comm->n_ranks; q++) {
    t->bytes[0][q] = size_of(comm->rank, q, x);
    t->bytes[1][q] = send_at;
    t->bytes[2][q] = size_of(q, comm->rank, x);
    t->bytes[3][q] = receive_at;
    send_at += t->bytes[0][q];
    receive_at += t->bytes[2][q];
  }
  t->route = (uly_route){.exchange = (uint32_t)x,
                         .name = "the test's",
                         .receive = t->own,
                         .send = comm->ops->mapped ? NULL : t->send,
                         .send_bytes = t->bytes[0],
                         .send_offset = t->bytes[1],
                         .receive_bytes = t->bytes[2],
                         .receive_offset = t->bytes[3]};
}

// Receive memory of ROOM bytes, and what the transport needs of the rest.
static uly_status open_traffic(uly_comm *comm, traffic *t, int x) {
  memset(t, 0, sizeof *t);
  t->send = calloc(1, ROOM);
  if (comm->ops->mapped) {
    void *own;
    ULY_TRY(comm->ops->map(comm, ROOM, ROOM + PRIVATE, &own, t->peers));
    t->own = own;
    for (int i = 0; i < PRIVATE; i++)
      if (t->own[ROOM + i]++ != 0) return uly_comm_fail(comm, ULY_MISMATCH, "memory behind what peers map is not zero, or not this rank's");
  } else {
    t->own = calloc(1, ROOM);
  }
  make_traffic(comm, t, x);
  return ULY_OK;
}

static void close_traffic(uly_comm *comm, traffic *t) {
  if (comm->ops->mapped && t->own) comm->ops->unmap(comm, t->own, t->peers, ROOM, ROOM + PRIVATE);
  if (comm->busy) return;
  if (!comm->ops->mapped) free(t->own);
  free(t->send);
}

// Where message |j| of this rank is written: at the peer, or to be sent.
static unsigned char *message_to(uly_comm *comm, const traffic *t, int j, int x) {
  int64_t at = 0;
  for (int i = 0; i < comm->rank; i++) at += size_of(i, j, x);
  if (j == comm->rank) return t->own + t->bytes[3][j];
  return comm->ops->mapped ? (unsigned char *)t->peers[j] + at : t->send + t->bytes[1][j];
}

static uly_status write_and_send(uly_comm *comm, uint32_t channel, traffic *t, int x, int round) {
  ULY_TRY(comm->ops->ready(comm, channel, &t->route));
  for (int j = 0; j < comm->n_ranks; j++) {
    unsigned char *to = message_to(comm, t, j, x);
    for (int64_t i = 0; i < t->bytes[0][j]; i++) to[i] = byte_of(comm->rank * 16 + j, (size_t)i, round);
  }
  return comm->ops->send(comm, channel, &t->route);
}

static uly_status wait_and_check(uly_comm *comm, uint32_t channel, traffic *t, int round, suite_report *report) {
  ULY_TRY(comm->ops->wait(comm, channel, &t->route));
  for (int q = 0; q < comm->n_ranks; q++)
    for (int64_t i = 0; i < t->bytes[2][q]; i++)
      if (t->own[t->bytes[3][q] + i] != byte_of(q * 16 + comm->rank, (size_t)i, round)) {
        blame(report, "round %d: byte %d of the message from rank %d is wrong", round, (int)i, q);
        return ULY_OK;
      }
  return ULY_OK;
}

static void exchange(uly_comm *comm, suite_report *report) {
  traffic t;
  uint32_t channel;
  uint64_t want = 0;
  CHECK_OK(open_traffic(comm, &t, 1));
  CHECK_OK(comm->ops->open(comm, 2, program_a, &channel));
  uint64_t before = comm->sent_bytes;
  enum { ROUNDS = 60 };
  for (int round = 0; round < ROUNDS && !report->failed; round++) {
    CHECK_OK(comm->ops->post(comm, channel, &t.route));
    CHECK_OK(write_and_send(comm, channel, &t, 1, round));
    CHECK_OK(wait_and_check(comm, channel, &t, round, report));
  }
  for (int q = 0; q < comm->n_ranks; q++) want += q == comm->rank ? 0 : (uint64_t)t.bytes[0][q] * ROUNDS;
  CHECK(comm->sent_bytes - before == want, "%llu bytes counted, %llu sent", (unsigned long long)(comm->sent_bytes - before), (unsigned long long)want);
  comm->ops->close(comm, channel);
  close_traffic(comm, &t);
}

// Two binds at once, two exchanges of one in flight together, and channels that come and go.
static void channels(uly_comm *comm, suite_report *report) {
  traffic t[3];
  uint32_t a, b;
  for (int x = 0; x < 3; x++) CHECK_OK(open_traffic(comm, &t[x], x));
  CHECK_OK(comm->ops->open(comm, 2, program_a, &a));
  for (int round = 0; round < 12 && !report->failed; round++) {
    CHECK_OK(comm->ops->open(comm, 3, program_b, &b));
    CHECK_OK(comm->ops->post(comm, a, &t[0].route));
    CHECK_OK(comm->ops->post(comm, a, &t[1].route));
    CHECK_OK(write_and_send(comm, a, &t[1], 1, round));
    CHECK_OK(comm->ops->post(comm, b, &t[2].route));
    CHECK_OK(write_and_send(comm, a, &t[0], 0, round));
    CHECK_OK(write_and_send(comm, b, &t[2], 2, round));
    CHECK_OK(wait_and_check(comm, a, &t[0], round, report));
    CHECK_OK(wait_and_check(comm, b, &t[2], round, report));
    CHECK_OK(wait_and_check(comm, a, &t[1], round, report));
    comm->ops->close(comm, b);
  }
  comm->ops->close(comm, a);
  for (int x = 0; x < 3; x++) close_traffic(comm, &t[x]);
}

// A rank that is late with its post must not be written to: its buffer keeps the old message until then.
static void writers_wait(uly_comm *comm, suite_report *report) {
  traffic t;
  uint32_t channel;
  CHECK_OK(open_traffic(comm, &t, 1));
  CHECK_OK(comm->ops->open(comm, 2, program_a, &channel));
  for (int round = 0; round < 6 && !report->failed; round++) {
    if (comm->rank == round % comm->n_ranks) {
      memset(t.own, 0xee, ROOM);
      nap(0.02);
      for (int i = 0; i < ROOM; i++)
        if (t.own[i] != 0xee) {
          blame(report, "round %d: a peer wrote before the post", round);
          break;
        }
    }
    CHECK_OK(comm->ops->post(comm, channel, &t.route));
    CHECK_OK(write_and_send(comm, channel, &t, 1, round));
    CHECK_OK(wait_and_check(comm, channel, &t, round, report));
  }
  comm->ops->close(comm, channel);
  close_traffic(comm, &t);
}

// ---- ranks that disagree --------------------------------------------------------------------------------------------------------------------

static uly_status exchange_once(uly_comm *comm, uint32_t channel, traffic *t, int x) {
  ULY_TRY(comm->ops->post(comm, channel, &t->route));
  ULY_TRY(write_and_send(comm, channel, t, x, 0));
  return comm->ops->wait(comm, channel, &t->route);
}

// Opens a channel and uses it until that fails. A rank that is behind the others can learn of their failure while it still opens.
static uly_status until_it_fails(uly_comm *comm, traffic *t, int x) {
  uint32_t channel;
  ULY_TRY(comm->ops->open(comm, 2, program_a, &channel));
  return exchange_once(comm, channel, t, x);
}

static void message_sizes_differ(uly_comm *comm, suite_report *report) {
  traffic t;
  CHECK_OK(open_traffic(comm, &t, 1));
  if (comm->rank == 0) t.bytes[2][1] += 8; // expects more from rank 1 than that sends
  uly_status status = until_it_fails(comm, &t, 1);
  CHECK_FAILS(status, ULY_MISMATCH, "the test's");
  CHECK(strstr(comm->error, "rank 0") && strstr(comm->error, "rank 1"), "\"%s\" does not name both ranks", comm->error);
  close_traffic(comm, &t);
}

static void order_differs(uly_comm *comm, suite_report *report) {
  traffic t[2];
  CHECK_OK(open_traffic(comm, &t[0], 0));
  CHECK_OK(open_traffic(comm, &t[1], 1));
  int x = comm->rank == 1 ? 1 : 0;
  double begin = uly_now();
  uly_status status = until_it_fails(comm, &t[x], x);
  CHECK_FAILS(status, ULY_MISMATCH, "rank 1");
  CHECK(uly_now() - begin < 4, "it took %g s to find out", uly_now() - begin);
  close_traffic(comm, &t[0]);
  close_traffic(comm, &t[1]);
}

static void programs_differ(uly_comm *comm, suite_report *report) {
  uint32_t channel;
  uly_status status = comm->ops->open(comm, 2, comm->rank == 1 ? program_b : program_a, &channel);
  CHECK_FAILS(status, ULY_MISMATCH, "rank 1");
}

// ---- ranks that fail ------------------------------------------------------------------------------------------------------------------------

static void a_rank_gives_up(uly_comm *comm, suite_report *report) {
  unsigned char mine[8] = {0}, all[8 * MAX];
  CHECK_OK(comm->ops->all_gather(comm, mine, sizeof mine, all));
  double begin = uly_now();
  if (comm->rank == 0) {
    nap(BEHIND);
    comm->ops->abort(comm, "the cat sat on it");
  }
  uly_status status = comm->ops->all_gather(comm, mine, sizeof mine, all);
  CHECK_FAILS(status, ULY_CANCELLED, "the cat sat on it");
  CHECK(strstr(comm->error, "rank 0"), "\"%s\" does not name the rank", comm->error);
  CHECK(uly_now() - begin < 2, "it took %g s to find out", uly_now() - begin);
  status = comm->ops->all_gather(comm, mine, sizeof mine, all);
  CHECK(status != ULY_OK, "a failed communicator works on");
}

static void a_rank_is_late(uly_comm *comm, suite_report *report) {
  unsigned char mine[8] = {0}, all[8 * MAX];
  CHECK_OK(comm->ops->all_gather(comm, mine, sizeof mine, all));
  double begin = uly_now();
  if (comm->rank == 1) nap(comm->timeout + 0.5);
  uly_status status = comm->ops->all_gather(comm, mine, sizeof mine, all);
  CHECK_FAILS(status, ULY_PEER_LOST, "rank 1");
  if (comm->rank != 1) CHECK(uly_now() - begin < comm->timeout + 1.0, "it took %g s to find out", uly_now() - begin);
}

static void a_rank_leaves(uly_comm *comm, suite_report *report) {
  traffic t;
  CHECK_OK(open_traffic(comm, &t, 1));
  double begin = uly_now();
  if (comm->rank == 1) {
    uint32_t channel;
    CHECK_OK(comm->ops->open(comm, 2, program_a, &channel));
    nap(BEHIND);
  } else {
    uly_status status = until_it_fails(comm, &t, 1);
    CHECK_FAILS(status, ULY_PEER_LOST, "rank 1");
    CHECK(uly_now() - begin < 4, "it took %g s to find out", uly_now() - begin);
  }
  close_traffic(comm, &t);
}

// ---- lines ----------------------------------------------------------------------------------------------------------------------------------

// A grid of 2 × n / 2 ranks, and of this rank the lines along x and along y.
typedef struct two_lines {
  uly_places places;
  int members[2][MAX];
  uly_comm *line[2];
} two_lines;

static uly_status cut_lines(uly_comm *comm, two_lines *l) {
  *l = (two_lines){.places = {.grid = {2, {2, comm->n_ranks / 2}}, .names = {"x", "y"}}};
  for (uint32_t a = 0; a < 2; a++) {
    int n = l->places.grid.size[a];
    for (int q = 0; q < n; q++) l->members[a][q] = (int)uly_grid_peer(&l->places.grid, comm->rank, a, q);
    ULY_TRY(uly_comm_line(comm, n, l->members[a], &l->places, &l->line[a]));
  }
  return ULY_OK;
}

static void end_lines(two_lines *l) {
  for (int a = 0; a < 2; a++)
    if (l->line[a]) l->line[a]->ops->destroy(l->line[a]);
}

static void gather_in_line(uly_comm *comm, int round, suite_report *report) {
  int32_t mine = uly_comm_member(comm, comm->rank) * 100 + round, all[MAX];
  CHECK_OK(comm->ops->all_gather(comm, &mine, sizeof mine, all));
  for (int q = 0; q < comm->n_ranks; q++) CHECK(all[q] == uly_comm_member(comm, q) * 100 + round, "round %d: member %d gathered %d", round, q, (int)all[q]);
}

static void lines(uly_comm *comm, suite_report *report) {
  two_lines l;
  traffic t[2];
  uint32_t channel[2];
  uint64_t want = 0;
  if (comm->n_ranks % 2) return;
  CHECK_OK(cut_lines(comm, &l));
  for (int a = 0; a < 2; a++) {
    CHECK(l.line[a]->n_ranks == l.places.grid.size[a] && l.members[a][l.line[a]->rank] == comm->rank, "a line has other ranks");
    CHECK_OK(open_traffic(l.line[a], &t[a], a));
    CHECK_OK(l.line[a]->ops->open(l.line[a], 2, program_a, &channel[a]));
  }
  enum { ROUNDS = 40 };
  for (int round = 0; round < ROUNDS && !report->failed; round++) {
    for (int a = 0; a < 2; a++) CHECK_OK(l.line[a]->ops->post(l.line[a], channel[a], &t[a].route));
    for (int a = 1; a >= 0; a--) CHECK_OK(write_and_send(l.line[a], channel[a], &t[a], a, round));
    for (int a = 0; a < 2; a++) CHECK_OK(wait_and_check(l.line[a], channel[a], &t[a], round, report));
    for (int a = 0; a < 2 && !report->failed; a++) gather_in_line(l.line[(a + round) % 2], round, report);
  }
  for (int a = 0; a < 2; a++) {
    uint64_t sent = 0;
    for (int q = 0; q < l.line[a]->n_ranks; q++) sent += q == l.line[a]->rank ? 0 : (uint64_t)t[a].bytes[0][q] * ROUNDS;
    CHECK(l.line[a]->sent_bytes == sent, "%llu bytes counted, %llu sent", (unsigned long long)l.line[a]->sent_bytes, (unsigned long long)sent);
    want += sent;
    l.line[a]->ops->close(l.line[a], channel[a]);
    close_traffic(l.line[a], &t[a]);
  }
  CHECK(comm->sent_bytes == want, "the world counted %llu bytes, its lines %llu", (unsigned long long)comm->sent_bytes, (unsigned long long)want);
  end_lines(&l);
}

// What one line finds wrong fails the others too, and names ranks of the world.
static void lines_differ(uly_comm *comm, suite_report *report) {
  two_lines l;
  traffic t;
  unsigned char mine[8] = {0}, all[8 * MAX];
  char names[2][64];
  if (comm->n_ranks % 2) return;
  CHECK_OK(cut_lines(comm, &l));
  comm = l.line[0];
  uly_comm *world = comm->world;
  CHECK_OK(open_traffic(comm, &t, 1));
  if (world->rank == world->n_ranks - 2) t.bytes[2][1] += 8;
  uly_status status = until_it_fails(comm, &t, 1);
  if (world->rank >= world->n_ranks - 2) {
    CHECK_FAILS(status, ULY_MISMATCH, "the test's");
    for (int i = 0; i < 2; i++) {
      snprintf(names[i], sizeof names[i], "rank %d (x %d, y %d)", world->n_ranks - 2 + i, i, world->n_ranks / 2 - 1);
      CHECK(strstr(comm->error, names[i]), "\"%s\" does not name %s", comm->error, names[i]);
    }
  }
  status = world->ops->all_gather(world, mine, sizeof mine, all);
  CHECK(status != ULY_OK, "a world with a failed line works on");
  status = l.line[1]->ops->all_gather(l.line[1], mine, sizeof mine, all);
  CHECK(status != ULY_OK, "a line beside a failed one works on");
  close_traffic(comm, &t);
  end_lines(&l);
}

static void a_line_gives_up(uly_comm *comm, suite_report *report) {
  two_lines l;
  unsigned char mine[8] = {0}, all[8 * MAX];
  if (comm->n_ranks % 2) return;
  CHECK_OK(cut_lines(comm, &l));
  double begin = uly_now();
  if (comm->rank == 1) {
    nap(BEHIND);
    l.line[1]->ops->abort(l.line[1], "the dog ate it");
  }
  uly_status status = comm->rank == 1 ? ULY_CANCELLED : comm->ops->all_gather(comm, mine, sizeof mine, all);
  CHECK(status == ULY_CANCELLED, "status %d", (int)status);
  comm = l.line[0];
  status = comm->ops->all_gather(comm, mine, sizeof mine, all);
  CHECK_FAILS(status, ULY_CANCELLED, "the dog ate it");
  CHECK(strstr(comm->error, comm->world->n_ranks > 2 ? "rank 1 (x 1, y 0)" : "rank 1 "), "\"%s\" does not name the rank", comm->error);
  CHECK(uly_now() - begin < 2, "it took %g s to find out", uly_now() - begin);
  end_lines(&l);
}

// In short naps: as for those who wait, time in which the machine stands still does not count.
static void nap_awake(double seconds) {
  for (double slept = 0; slept < seconds; slept += 0.05) nap(0.05);
}

// Rank 0 waits along y for rank 2, which waits along x for rank 3, which does nothing: that one is named, although rank 0, which waits longest, is not its peer.
static void a_line_stands_still(uly_comm *comm, suite_report *report) {
  two_lines l;
  traffic t[2];
  uint32_t channel[2];
  if (comm->n_ranks % 2) return;
  CHECK_OK(cut_lines(comm, &l));
  for (int a = 0; a < 2; a++) {
    CHECK_OK(open_traffic(l.line[a], &t[a], a));
    CHECK_OK(l.line[a]->ops->open(l.line[a], 2, program_a, &channel[a]));
  }
  int rank = comm->rank;
  double later = 0.25 * comm->timeout; // than rank 0
  nap_awake(rank == 3 ? 1.5 * comm->timeout : rank == 2 ? later : 0);
  comm = l.line[0];
  uly_status status = exchange_once(comm, channel[0], &t[0], 0);
  if (status == ULY_OK) {
    nap(rank % 2 ? later : 0);
    comm = l.line[1];
    status = exchange_once(comm, channel[1], &t[1], 1);
  }
  CHECK_FAILS(status, ULY_PEER_LOST, "rank 3 (x 1, y 1) did not answer");
  for (int a = 0; a < 2; a++) close_traffic(l.line[a], &t[a]);
  end_lines(&l);
}

// ---- a program ------------------------------------------------------------------------------------------------------------------------------

static void run_program(uly_comm *comm, const fx_program *f, tag_shape shape, int64_t s, suite_report *report) {
  int64_t symbols[TAG_N_SYMBOLS] = {2, s, 5, 0}, p = comm->n_ranks, r = comm->rank;
  int64_t rows = s / p + (r < s % p), first = r * (s / p) + (r < s % p ? r : s % p);
  uly_error error;
  uly_loaded *loaded;
  uly_bound *bound;
  uly_bind_options options = {.symbols = symbols, .comms = {comm}, .threads = 1};
  CHECK(uly_loaded_create(&f->model, &error, &loaded) == ULY_OK, "%s", error.text);
  CHECK(uly_bind(loaded, &options, &error, &bound) == ULY_OK, "%s", error.text);
  tag_data data = tag_make(shape, symbols[TAG_B], first, rows);
  uint64_t before = comm->sent_bytes, want = tag_bytes(shape, symbols[TAG_B], s, p, r) * 5 * 2;
  for (int i = 0; i < 2; i++) CHECK(uly_run(bound, (void *const *)data.tensor, &error) == ULY_OK, "%s", error.text);
  int64_t wrong = tag_wrong(&data, shape, symbols[TAG_B], first, rows, 5);
  CHECK(wrong == 0, "%d elements are wrong", (int)wrong);
  CHECK(comm->sent_bytes - before == want, "%llu bytes sent, the formula says %llu", (unsigned long long)(comm->sent_bytes - before), (unsigned long long)want);
  tag_free(&data);
  uly_bound_destroy(bound);
  uly_loaded_destroy(loaded);
}

static void programs(uly_comm *comm, suite_report *report) {
  static const tag_shape shapes[] = {{4, 2, 3}, {3, 3, 2}, {6, 1, 4}, {1, 1, 1}, {10, 5, 2}};
  static const int64_t sizes[] = {8, 13, 3, 0, 1};
  for (int i = 0; i < 5 && !report->failed; i++) {
    fx_program *f = tag_program(shapes[i]);
    run_program(comm, f, shapes[i], sizes[i], report);
    fx_destroy(f);
  }
}

// ---- the table ------------------------------------------------------------------------------------------------------------------------------

const suite_test suite_tests[] = {
    {"gather", gather, 1, 20},
    {"exchange", exchange, 1, 20},
    {"channels", channels, 1, 20},
    {"writers_wait", writers_wait, 1, 20},
    {"programs", programs, 1, 20},
    {"gather_sizes_differ", gather_sizes_differ, 2, 20},
    {"message_sizes_differ", message_sizes_differ, 2, 20},
    {"order_differs", order_differs, 2, 20},
    {"programs_differ", programs_differ, 2, 20},
    {"a_rank_gives_up", a_rank_gives_up, 2, 20},
    {"a_rank_is_late", a_rank_is_late, 2, 0.5},
    {"a_rank_leaves", a_rank_leaves, 2, 20},
    {"lines", lines, 2, 20},
    {"lines_differ", lines_differ, 4, 20},
    {"a_line_gives_up", a_line_gives_up, 2, 20},
    {"a_line_stands_still", a_line_stands_still, 4, 2},
};
const int suite_n_tests = sizeof suite_tests / sizeof *suite_tests;

static const char *reason_to_skip(const suite_transport *transport, const char *test) {
  for (const suite_skip *s = transport->skips; s && s->test; s++)
    if (strcmp(s->test, test) == 0) return s->reason;
  return NULL;
}

int suite_run(const suite_transport *transport) {
  static suite_report reports[MAX];
  int failures = 0, passed = 0, skipped = 0;
  for (int i = 0; i < suite_n_tests; i++) {
    const suite_test *test = &suite_tests[i];
    const char *reason = reason_to_skip(transport, test->name);
    if (reason) {
      printf("SKIP %s.%s: %s\n", transport->name, test->name, reason);
      skipped++;
      continue;
    }
    for (const int *n = transport->ranks; *n; n++) {
      if (*n < test->least_ranks) continue;
      int bad = 0;
      memset(reports, 0, sizeof reports);
      transport->run(test, *n, reports);
      for (int r = 0; r < *n; r++) {
        if (!reports[r].failed) continue;
        printf("FAIL %s.%s, rank %d of %d: %s\n", transport->name, test->name, r, *n, reports[r].text);
        bad = 1;
      }
      failures += bad;
      passed += !bad;
    }
  }
  printf("%d passed, %d failed, %d skipped\n", passed, failures, skipped);
  return failures;
}
