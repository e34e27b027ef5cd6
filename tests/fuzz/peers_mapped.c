// The protocol of mapped.c. Peers play along where the input says so, and else write what it says, where it says, also while rank 0 sleeps.
#include "tests/fuzz/peers.h"

#include <errno.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

static long fake_syscall(long number, ...);
#define clock_gettime(clock, out) fuzz_clock(clock, out)
#define syscall(...) fake_syscall(__VA_ARGS__)
#define usleep(us) ((void)(us))
#include "runtime/transports/mapped.c"
#undef clock_gettime
#undef syscall
#undef usleep

enum { RANKS = 3, EXCHANGES = 2, CALLS = 24, MAX_BLOCK = 4096, MAX_GATHER = 9000 };

static fuzz_input *input; // what a sleep reads from
static uly_mapped *rank;

static void poke(fuzz_input *in) {
  uint8_t how = fuzz_u8(in);
  uint32_t at = fuzz_u32(in);
  uint64_t value = how & 128 ? UINT64_MAX - fuzz_u8(in) : fuzz_u8(in);
  size_t width = (size_t)1 << (how & 3);
  unsigned char *to = (unsigned char *)rank->board;
  size_t bytes = uly_mapped_board_bytes(RANKS);
  const uly_mapped_channel *c = rank->n_channels ? rank->channels[0] : NULL;
  if (how & 4 && c) {
    to = c->peers[(how >> 3) % rank->comm.n_ranks];
    bytes = c->block_bytes;
  } else {
    at = how & 8 ? at % 512
                 : at % 64 + (uint32_t)(offsetof(uly_mapped_board, seats) + sizeof(seat) * ((how >> 4) % RANKS) + (at >> 8) % 2 * offsetof(seat, log));
  }
  at = (uint32_t)(at % bytes & ~(width - 1));
  memcpy(to + at, &value, width);
}

// Peers arrive where rank 0 waits.
static void play_along(void) {
  const uly_mapped_channel *c = rank->n_channels ? rank->channels[0] : NULL;
  seat *mine = seat_of(rank, 0);
  rank->board->gathers = RANKS * world_of(rank)->gathers;
  for (int q = 1; q < RANKS; q++) {
    seat *s = &rank->board->seats[q];
    s->gathers = mine->gathers;
    s->sequence = mine->sequence;
    memcpy(s->log, mine->log, sizeof s->log);
    memcpy(s->staging, mine->staging, sizeof s->staging);
  }
  for (int q = 1; q < rank->comm.n_ranks; q++)
    for (uint32_t x = 0; c && x < c->n_exchanges; x++) memcpy(door_in(c, c->peers[q], x), door_in(c, c->own, x), c->door_bytes);
  for (uint32_t x = 0; c && x < c->n_exchanges; x++) {
    door *d = door_in(c, c->own, x);
    d->posts = d->sends = c->epochs[x] * (uint64_t)(rank->comm.n_ranks - 1);
  }
}

// A futex's wait: the input's turn.
static long fake_syscall(long number, ...) {
  va_list args;
  va_start(args, number);
  (void)va_arg(args, void *);
  bool sleeps = va_arg(args, int) == FUTEX_WAIT;
  va_end(args);
  if (!sleeps || !input) return 0;
  fuzz_now += 0.5;
  uint8_t turn = fuzz_u8(input);
  if (turn % 3 == 1) poke(input);
  if (turn % 3 == 2) play_along();
  return 0;
}

static uly_status fake_map(uly_comm *comm, size_t shared, size_t bytes, void **out_own, void **out_peers) {
  if (shared > bytes || bytes > MAX_BLOCK) return ULY_EXHAUSTED;
  for (int q = 0; q < comm->n_ranks; q++) {
    out_peers[q] = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    ULY_ASSERT(out_peers[q]);
    memset(out_peers[q], 0, bytes);
  }
  *out_own = out_peers[0];
  return ULY_OK;
}

static void fake_unmap(uly_comm *comm, void *own, void **peers, size_t shared, size_t bytes) {
  (void)own, (void)shared, (void)bytes;
  for (int q = 0; q < comm->n_ranks; q++) free(peers[q]);
}

static int fake_find_dead(uly_mapped *mapped) {
  (void)mapped;
  return fuzz_u8(input) == 77 ? 1 : -1;
}

static void call(uly_comm *comm, fuzz_input *in, bool *opened) {
  static const uint8_t program[32] = {1, 2, 3};
  static unsigned char mine[MAX_GATHER], all[RANKS * MAX_GATHER];
  static const int64_t bytes[RANKS] = {64, 32, 0}, offsets[RANKS] = {0, 64, 96};
  uint8_t what = fuzz_u8(in);
  uint32_t channel = 0;
  uly_route route = {
      .exchange = what >> 4 & 1, .dtype = 1, .name = "x", .send_bytes = bytes, .send_offset = offsets, .receive_bytes = bytes, .receive_offset = offsets};
  uly_status status = ULY_OK;
  if ((what & 7) > 2 && !*opened) return;
  switch (what & 7) {
  case 0: status = uly_mapped_all_gather(comm, mine, (size_t)(what >> 3) * 290, all); break;
  case 1:
    if (*opened) break;
    status = uly_mapped_open(comm, EXCHANGES, program, &channel);
    *opened = status == ULY_OK;
    break;
  case 2: poke(in); break;
  case 3: status = uly_mapped_post(comm, channel, &route); break;
  case 4: status = uly_mapped_ready(comm, channel, &route); break;
  case 5: status = uly_mapped_send(comm, channel, &route); break;
  case 6: status = uly_mapped_wait(comm, channel, &route); break;
  case 7:
    if (what == 7)
      uly_mapped_abort(comm, "a reason");
    else
      play_along();
    break;
  }
  if (status != ULY_OK) ULY_ASSERT(uly_status_failure(status) == status && memchr(comm->error, 0, sizeof comm->error));
}

void fuzz_mapped(fuzz_input *in) {
  static const uly_comm_ops ops = {.name = "fuzz", .mapped = true, .map = fake_map, .unmap = fake_unmap};
  uly_mapped_board *board = aligned_alloc(4096, uly_mapped_board_bytes(RANKS));
  ULY_ASSERT(board);
  uly_mapped_board_init(board, RANKS);
  uly_mapped m = {.comm = {.ops = &ops, .rank = 0, .n_ranks = RANKS, .timeout = 3}};
  uint8_t choice = fuzz_u8(in);
  m.find_dead = choice & 1 ? fake_find_dead : NULL;
  m.spin = choice & 2 ? 2 : 0;
  input = in;
  bool opened = false;
  static const int members[] = {0, 2};
  static const uly_places places = {0};
  uly_mapped line = {0};
  uly_mapped_init(&m, board);
  uly_mapped_init_line(&line, &m, 2, members);
  line.comm.places = &places;
  rank = choice & 4 ? &line : &m;
  for (int i = 0; i < CALLS && in->n; i++) call(&rank->comm, in, &opened);
  uly_mapped_leave(&line);
  uly_mapped_leave(&m);
  input = NULL;
  free(board);
}
