#include "runtime/transports/mapped.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"

enum { LOG = 64, STAGING = 4096, REASON = 600 };
static const double probe_seconds = 0.05, sleep_seconds = 1.0; // longest sleeps, with and without find_dead

// What a rank called: enough to see that two ranks did not call the same.
typedef enum op { OP_NONE, OP_GATHER, OP_OPEN, OP_POST } op;
static const char *const op_names[] = {"nothing", "all_gather", "open", "exchange"};
typedef struct entry {
  _Atomic uint64_t sequence, op, detail, program; // op: kind << 32 | exchange; detail: bytes, exchanges or channel
} entry;

typedef struct seat {
  _Alignas(64) _Atomic uint32_t bell; // what its rank sleeps on
  _Atomic uint32_t sleepers, left;
  _Atomic uint64_t beat;     // when it last looked around while it waits, in ms: a stopped rank's stands still
  _Atomic uint64_t sequence; // calls logged
  _Atomic uint64_t gathers;  // gather rounds that it reached
  entry log[LOG];
  _Alignas(64) unsigned char staging[2][STAGING]; // its part of a gather, by the round's parity
} seat;

struct uly_mapped_board {
  uint32_t magic;
  int32_t n_ranks;
  _Atomic uint32_t failed; // 0: no, 1: being written, 2: below is valid
  uint32_t status;
  char reason[REASON];
  _Alignas(64) _Atomic uint64_t gathers; // arrivals at gather rounds, of all ranks
  seat seats[];
};
enum { BOARD_MAGIC = 0x756c7962 };

// An exchange in its receiver's memory. `posts` and `sends` count what peers did; `posted` and `sent` are the owner's own epochs.
typedef struct door {
  _Alignas(64) _Atomic uint64_t posts;
  _Alignas(64) _Atomic uint64_t sends;
  _Alignas(64) _Atomic uint64_t posted, sent;
  uint64_t program; // header, valid from the owner's post on
  uint32_t exchange, dtype;
  int64_t bytes[]; // [P] from each peer, [P] to each peer
} door;

struct uly_mapped_channel {
  uint64_t id, program;
  uint32_t n_exchanges;
  size_t door_bytes, block_bytes;
  unsigned char *own;
  void **peers;
  uint64_t *epochs;
};

// ---- small things -------------------------------------------------------------------------------------------------------------------------

static void pause_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void ring(seat *s) {
  atomic_fetch_add(&s->bell, 1);
  if (atomic_load(&s->sleepers)) syscall(SYS_futex, &s->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void sleep_on(seat *s, uint32_t ticket, double seconds) {
  struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  atomic_fetch_add(&s->sleepers, 1);
  syscall(SYS_futex, &s->bell, FUTEX_WAIT, ticket, &t, NULL, 0);
  atomic_fetch_sub(&s->sleepers, 1);
}

static uly_mapped *of(uly_comm *comm) { return (uly_mapped *)(void *)comm; }
static uly_mapped *world_of(uly_mapped *m) { return of(uly_comm_world(&m->comm)); }
static seat *seat_of(const uly_mapped *m, int rank) { return &m->board->seats[uly_comm_member(&m->comm, rank)]; }
static uly_rank_name name_of(const uly_mapped *m, int rank) { return uly_comm_name(&m->comm, rank); }
static door *door_in(const uly_mapped_channel *c, void *block, uint32_t exchange) {
  return (door *)(void *)((unsigned char *)block + c->door_bytes * exchange);
}

// ---- failure ------------------------------------------------------------------------------------------------------------------------------

void uly_mapped_fail(uly_mapped_board *board, int n_ranks, uly_status status, const char *reason) {
  uint32_t none = 0;
  if (!atomic_compare_exchange_strong(&board->failed, &none, 1)) return;
  board->status = status;
  snprintf(board->reason, sizeof board->reason, "%s", reason);
  atomic_store(&board->failed, 2);
  for (int r = 0; r < n_ranks; r++) ring(&board->seats[r]);
}

// The board's failure as this rank's, ULY_OK without one.
static uly_status check_failed(uly_mapped *m) {
  uly_mapped_board *board = m->board;
  if (!atomic_load_explicit(&board->failed, memory_order_acquire)) return ULY_OK;
  for (int i = 0; i < 200 && atomic_load(&board->failed) != 2; i++) usleep(1000);
  if (atomic_load(&board->failed) != 2) return uly_comm_fail(&m->comm, ULY_PEER_LOST, "a rank died while it reported a failure");
  return uly_comm_fail(&m->comm, uly_status_failure(board->status), "%.*s", (int)sizeof board->reason, board->reason);
}

uly_status uly_mapped_check(uly_mapped *mapped) { return check_failed(mapped); }

bool uly_mapped_has_left(const uly_mapped_board *board, int rank) { return atomic_load(&board->seats[rank].left) != 0; }

static uly_status fail_all(uly_mapped *m, uly_status status, const char *reason) {
  uly_mapped_fail(m->board, world_of(m)->comm.n_ranks, status, reason);
  return check_failed(m);
}

void uly_mapped_abort(uly_comm *comm, const char *reason) {
  char text[REASON];
  snprintf(text, sizeof text, "rank %s gave up: %s", uly_comm_name(comm, comm->rank).text, reason);
  uly_mapped_fail(of(comm)->board, uly_comm_world(comm)->n_ranks, ULY_CANCELLED, text);
}

// ---- the log: do all ranks call the same? ---------------------------------------------------------------------------------------------------

static void log_call(uly_mapped *m, op kind, uint32_t exchange, uint64_t detail, uint64_t program) {
  seat *mine = seat_of(m, m->comm.rank);
  uint64_t sequence = ++world_of(m)->sequence;
  entry *e = &mine->log[sequence % LOG];
  atomic_store(&e->sequence, 0);
  atomic_store(&e->op, (uint64_t)kind << 32 | exchange);
  atomic_store(&e->detail, detail);
  atomic_store(&e->program, program);
  atomic_store(&e->sequence, sequence);
  atomic_store(&mine->sequence, sequence);
}

static void describe(char *out, size_t bytes, uint64_t kind, uint64_t detail, uint64_t program) {
  op k = (op)(kind >> 32);
  const char *name = k <= OP_POST ? op_names[k] : "an unknown call";
  if (k == OP_GATHER)
    snprintf(out, bytes, "%s of %llu bytes", name, (unsigned long long)detail);
  else if (k == OP_OPEN)
    snprintf(out, bytes, "%s of a program (hash %016llx) with %llu exchanges", name, (unsigned long long)program, (unsigned long long)detail);
  else
    snprintf(out, bytes, "%s %llu of bind %llu", name, (unsigned long long)(kind & UINT32_MAX), (unsigned long long)detail);
}

// Compares this rank's last call with that of every peer that has made as many.
static uly_status check_log(uly_mapped *m) {
  const seat *mine = seat_of(m, m->comm.rank);
  uint64_t sequence = world_of(m)->sequence;
  const entry *a = &mine->log[sequence % LOG];
  for (int q = 0; q < m->comm.n_ranks; q++) {
    const seat *theirs = seat_of(m, q);
    if (q == m->comm.rank || atomic_load(&theirs->sequence) < sequence) continue;
    const entry *b = &theirs->log[sequence % LOG];
    uint64_t before = atomic_load(&b->sequence), kind = atomic_load(&b->op), detail = atomic_load(&b->detail), program = atomic_load(&b->program);
    if (before != sequence || atomic_load(&b->sequence) != before) continue; // overwritten: the peer is far ahead
    if (kind == atomic_load(&a->op) && detail == atomic_load(&a->detail) && program == atomic_load(&a->program)) continue;
    char here[120], there[120], text[REASON];
    describe(here, sizeof here, atomic_load(&a->op), atomic_load(&a->detail), atomic_load(&a->program));
    describe(there, sizeof there, kind, detail, program);
    snprintf(text, sizeof text, "ranks disagree at call %llu: rank %s called %s, rank %s called %s", (unsigned long long)sequence,
             name_of(m, m->comm.rank).text, here, name_of(m, q).text, there);
    return fail_all(m, ULY_MISMATCH, text);
  }
  return ULY_OK;
}

// ---- waiting ------------------------------------------------------------------------------------------------------------------------------

typedef enum awaited { AWAIT_GATHER, AWAIT_POSTS, AWAIT_SENDS } awaited;
typedef struct waiting {
  awaited what;
  const _Atomic uint64_t *counter; // reaches |target| when all are there
  uint64_t target, epoch;
  const uly_mapped_channel *channel;
  uint32_t exchange;
  const char *name;
} waiting;

// Those who are waited for: |m|'s ranks, or for a gather the world's.
static uly_mapped *awaited_of(uly_mapped *m, const waiting *w) { return w->what == AWAIT_GATHER ? world_of(m) : m; }

static bool is_missing(const uly_mapped *m, const waiting *w, int q) {
  if (q == m->comm.rank) return false;
  if (w->what == AWAIT_GATHER) return atomic_load(&seat_of(m, q)->gathers) < w->epoch;
  const door *d = door_in(w->channel, w->channel->peers[q], w->exchange);
  return atomic_load(w->what == AWAIT_POSTS ? &d->posted : &d->sent) < w->epoch;
}

static double timeout_of(uly_mapped *m) { return world_of(m)->comm.timeout; }

static bool is_silent(const uly_mapped *m, double timeout, int q) {
  uint64_t limit = (uint64_t)(timeout * 500);
  return q != m->comm.rank && atomic_load(&seat_of(m, q)->beat) + limit < (uint64_t)(uly_now() * 1e3);
}

static int count_silent(const uly_mapped *m, double timeout) {
  int n = 0;
  for (int q = 0; q < m->comm.n_ranks; q++) n += is_silent(m, timeout, q);
  return n;
}

// "rank 2" or "ranks 1, 4": those to blame for a deadline that passed. A peer that is awake and waits itself is not; one that neither waits nor answers is, be it a rank of another
// line for which one of |m| waits. Where all wait, it is those that |w| misses.
static void name_culprits(uly_mapped *m, double timeout, const waiting *w, char *out, size_t bytes) {
  uly_mapped *among = m;
  int n = 0, many = count_silent(m, timeout);
  if (!many) many = count_silent(among = world_of(m), timeout);
  bool silent = many > 0;
  if (!silent) among = m;
  for (int q = 0; !silent && q < m->comm.n_ranks; q++) many += is_missing(m, w, q);
  size_t at = (size_t)snprintf(out, bytes, many == 1 ? "rank" : many ? "ranks" : "a rank");
  for (int q = 0; q < among->comm.n_ranks && at + 32 < bytes; q++)
    if (silent ? is_silent(among, timeout, q) : is_missing(m, w, q))
      at += (size_t)snprintf(out + at, bytes - at, "%s %s", n++ ? "," : "", uly_comm_member_name(&m->comm, uly_comm_member(&among->comm, q)).text);
}

static uly_status fail_lost(uly_mapped *m, const waiting *w, const char *who, const char *why) {
  char text[REASON];
  switch (w->what) {
  case AWAIT_GATHER:
    snprintf(text, sizeof text, "%s %s: rank %s waited in a gather (round %llu)", who, why, name_of(m, m->comm.rank).text, (unsigned long long)w->epoch);
    break;
  case AWAIT_POSTS:
  case AWAIT_SENDS:
    snprintf(text, sizeof text, "%s %s: rank %s waited for a %s of exchange %u (%s), time %llu", who, why, name_of(m, m->comm.rank).text,
             w->what == AWAIT_POSTS ? "receive buffer" : "message", w->exchange, w->name ? w->name : "unnamed", (unsigned long long)w->epoch);
  }
  return fail_all(m, ULY_PEER_LOST, text);
}

// Everything that may end a wait other than its end.
static uly_status check_peers(uly_mapped *m, const waiting *w, double deadline) {
  uly_mapped *among = awaited_of(m, w);
  double timeout = timeout_of(m);
  ULY_TRY(check_failed(m));
  if (check_log(among) != ULY_OK) return check_failed(m);
  char who[160];
  for (int q = 0; q < among->comm.n_ranks; q++)
    if (atomic_load(&seat_of(among, q)->left) && is_missing(among, w, q)) {
      snprintf(who, sizeof who, "rank %s", uly_comm_name(&among->comm, q).text);
      return fail_lost(m, w, who, "left");
    }
  uly_mapped *world = world_of(m);
  int dead = world->find_dead ? world->find_dead(world) : -1;
  if (dead >= 0) {
    snprintf(who, sizeof who, "rank %s", uly_comm_member_name(&m->comm, dead).text);
    return fail_lost(m, w, who, "died");
  }
  if (timeout > 0 && uly_now() >= deadline && atomic_load(w->counter) < w->target) {
    char why[64];
    name_culprits(among, timeout, w, who, sizeof who);
    snprintf(why, sizeof why, "did not answer within %g s", timeout);
    return fail_lost(m, w, who, why);
  }
  return ULY_OK;
}

static uly_status await(uly_mapped *m, const waiting *w) {
  for (uint32_t i = 0; i < m->spin; i++) {
    if (atomic_load_explicit(w->counter, memory_order_acquire) >= w->target) return ULY_OK;
    pause_cpu();
  }
  seat *mine = seat_of(m, m->comm.rank);
  double timeout = timeout_of(m), deadline = uly_now() + timeout;
  bool probes = world_of(m)->find_dead != NULL;
  for (;;) {
    uint32_t ticket = atomic_load(&mine->bell);
    uly_mapped_beat(m);
    if (atomic_load_explicit(w->counter, memory_order_acquire) >= w->target) return ULY_OK;
    ULY_TRY(check_peers(m, w, deadline));
    double begin = uly_now(), slice = probes ? probe_seconds : sleep_seconds, left = deadline - begin;
    if (timeout > 0 && slice > timeout / 8) slice = timeout / 8;
    if (timeout > 0 && slice > left) slice = left > 0 ? left : 0;
    sleep_on(mine, ticket, slice);
    double late = uly_now() - begin - slice;
    if (late > timeout / 8) deadline += late; // the machine, or this rank alone, stood still: no reason to blame others
  }
}

void uly_mapped_beat(uly_mapped *mapped) { atomic_store(&seat_of(mapped, mapped->comm.rank)->beat, (uint64_t)(uly_now() * 1e3)); }

// ---- gathers ------------------------------------------------------------------------------------------------------------------------------

// One round: everyone's |bytes| ≤ STAGING. Two staging areas suffice: whoever reaches round n + 1 has read round n, and nobody writes round n + 2 before. A line's round is
// the world's.
static uly_status gather_round(uly_mapped *m, const unsigned char *mine, size_t bytes, size_t stride, unsigned char *out_all) {
  uly_mapped_board *board = m->board;
  int n_ranks = world_of(m)->comm.n_ranks;
  uint64_t n = (uint64_t)n_ranks, round = ++world_of(m)->gathers;
  seat *own = seat_of(m, m->comm.rank);
  if (bytes) memcpy(own->staging[round & 1], mine, bytes);
  atomic_store(&own->gathers, round);
  if (atomic_fetch_add(&board->gathers, 1) + 1 == n * round)
    for (int q = 0; q < n_ranks; q++)
      if (&board->seats[q] != own) ring(&board->seats[q]);
  waiting w = {.what = AWAIT_GATHER, .counter = &board->gathers, .target = n * round, .epoch = round};
  ULY_TRY(await(m, &w));
  if (check_log(world_of(m)) != ULY_OK) return check_failed(m);
  for (int q = 0; bytes && q < m->comm.n_ranks; q++) memcpy(out_all + stride * (size_t)q, seat_of(m, q)->staging[round & 1], bytes);
  return ULY_OK;
}

static uly_status gather(uly_mapped *m, const void *mine, size_t bytes, void *out_all) {
  size_t at = 0;
  do {
    size_t part = bytes - at < STAGING ? bytes - at : STAGING;
    ULY_TRY(gather_round(m, (const unsigned char *)mine + at, part, bytes, (unsigned char *)out_all + at));
    at += part;
  } while (at < bytes);
  return ULY_OK;
}

uly_status uly_mapped_all_gather(uly_comm *comm, const void *mine, size_t bytes, void *out_all) {
  uly_mapped *m = of(comm);
  ULY_TRY(check_failed(m));
  log_call(m, OP_GATHER, 0, bytes, 0);
  return gather(m, mine, bytes, out_all);
}

// ---- exchanges ----------------------------------------------------------------------------------------------------------------------------

static void channel_free(uly_comm *comm, uly_mapped_channel *c) {
  if (!c) return;
  if (c->own) comm->ops->unmap(comm, c->own, c->peers, c->block_bytes, c->block_bytes);
  free(c->peers);
  free(c->epochs);
  free(c);
}

uly_status uly_mapped_open(uly_comm *comm, uint32_t n_exchanges, const uint8_t program[32], uint32_t *out_channel) {
  uly_mapped *m = of(comm);
  ULY_TRY(check_failed(m));
  uly_mapped_channel *c = calloc(1, sizeof *c);
  uly_mapped_channel **grown = realloc(m->channels, sizeof *grown * (m->n_channels + 1));
  if (grown) m->channels = grown;
  if (c) {
    c->peers = calloc((size_t)comm->n_ranks, sizeof *c->peers);
    c->epochs = calloc(n_exchanges + (size_t)1, sizeof *c->epochs);
  }
  if (!c || !grown || !c->peers || !c->epochs) {
    channel_free(comm, c);
    return fail_all(m, ULY_EXHAUSTED, "no memory for the exchanges of a bind");
  }
  memcpy(&c->program, program, sizeof c->program);
  c->n_exchanges = n_exchanges;
  c->door_bytes = (sizeof(door) + 2 * sizeof(int64_t) * (size_t)comm->n_ranks + 63) & ~(size_t)63;
  c->block_bytes = c->door_bytes * n_exchanges + 64;
  log_call(m, OP_OPEN, 0, n_exchanges, c->program);
  c->id = world_of(m)->sequence;
  uint8_t nothing = 0;
  uly_status status = gather(m, &nothing, 0, &nothing); // compares the log before memory is mapped
  void *own = NULL;
  if (status == ULY_OK) status = comm->ops->map(comm, c->block_bytes, c->block_bytes, &own, c->peers);
  c->own = own;
  if (status != ULY_OK) return channel_free(comm, c), status;
  uint32_t at = 0;
  while (at < m->n_channels && m->channels[at]) at++;
  if (at == m->n_channels) m->n_channels++;
  m->channels[at] = c;
  *out_channel = at;
  return ULY_OK;
}

void uly_mapped_close(uly_comm *comm, uint32_t channel) {
  uly_mapped *m = of(comm);
  if (channel >= m->n_channels) return;
  channel_free(comm, m->channels[channel]);
  m->channels[channel] = NULL;
}

// Adds one to a counter of |exchange| at every peer; whoever completes an epoch there rings.
static void tell_peers(uly_mapped *m, const uly_mapped_channel *c, uint32_t exchange, bool send) {
  uint64_t n = (uint64_t)m->comm.n_ranks - 1, target = c->epochs[exchange] * n;
  for (int i = 1; i < m->comm.n_ranks; i++) {
    int q = (m->comm.rank + i) % m->comm.n_ranks;
    door *d = door_in(c, c->peers[q], exchange);
    if (atomic_fetch_add(send ? &d->sends : &d->posts, 1) + 1 == target) ring(seat_of(m, q));
  }
}

uly_status uly_mapped_post(uly_comm *comm, uint32_t channel, const uly_route *route) {
  uly_mapped *m = of(comm);
  ULY_TRY(check_failed(m));
  const uly_mapped_channel *c = m->channels[channel];
  door *d = door_in(c, c->own, route->exchange);
  uint64_t epoch = ++c->epochs[route->exchange];
  size_t n = (size_t)comm->n_ranks;
  d->program = c->program;
  d->exchange = route->exchange;
  d->dtype = route->dtype;
  memcpy(d->bytes, route->receive_bytes, n * sizeof *d->bytes);
  memcpy(d->bytes + n, route->send_bytes, n * sizeof *d->bytes);
  log_call(m, OP_POST, route->exchange, c->id, c->program);
  atomic_store(&d->posted, epoch);
  tell_peers(m, c, route->exchange, false);
  return ULY_OK;
}

static uly_status check_header(uly_mapped *m, const uly_mapped_channel *c, const uly_route *route, int q) {
  const door *d = door_in(c, c->peers[q], route->exchange);
  size_t n = (size_t)m->comm.n_ranks, me = (size_t)m->comm.rank;
  int64_t takes = d->bytes[me], gives = d->bytes[n + me];
  bool same = d->program == c->program && d->exchange == route->exchange && d->dtype == route->dtype;
  if (same && takes == route->send_bytes[q] && gives == route->receive_bytes[q]) return ULY_OK;
  char text[REASON];
  uly_rank_name here = name_of(m, m->comm.rank), there = name_of(m, q);
  int at = snprintf(text, sizeof text, "exchange %u (%s): ", route->exchange, route->name ? route->name : "unnamed");
  if (!same)
    snprintf(text + at, sizeof text - (size_t)at, "rank %s runs program %016llx with dtype %u, rank %s runs program %016llx, exchange %u, dtype %u", here.text,
             (unsigned long long)c->program, route->dtype, there.text, (unsigned long long)d->program, d->exchange, d->dtype);
  else
    snprintf(text + at, sizeof text - (size_t)at,
             "rank %s sends %lld bytes to rank %s, which expects %lld; rank %s sends %lld bytes to rank %s, which expects %lld", here.text,
             (long long)route->send_bytes[q], there.text, (long long)takes, there.text, (long long)gives, here.text, (long long)route->receive_bytes[q]);
  return fail_all(m, ULY_MISMATCH, text);
}

uly_status uly_mapped_ready(uly_comm *comm, uint32_t channel, const uly_route *route) {
  uly_mapped *m = of(comm);
  ULY_TRY(check_failed(m));
  const uly_mapped_channel *c = m->channels[channel];
  uint64_t epoch = c->epochs[route->exchange];
  waiting w = {AWAIT_POSTS, &door_in(c, c->own, route->exchange)->posts, epoch * ((uint64_t)comm->n_ranks - 1), epoch, c, route->exchange, route->name};
  ULY_TRY(await(m, &w));
  for (int q = 0; q < comm->n_ranks; q++)
    if (q != comm->rank) ULY_TRY(check_header(m, c, route, q));
  return ULY_OK;
}

uly_status uly_mapped_send(uly_comm *comm, uint32_t channel, const uly_route *route) {
  uly_mapped *m = of(comm);
  ULY_TRY(check_failed(m));
  const uly_mapped_channel *c = m->channels[channel];
  atomic_store(&door_in(c, c->own, route->exchange)->sent, c->epochs[route->exchange]);
  tell_peers(m, c, route->exchange, true);
  for (int q = 0; q < comm->n_ranks; q++)
    if (q != comm->rank) uly_comm_count_sent(comm, route->send_bytes[q]);
  return ULY_OK;
}

uly_status uly_mapped_wait(uly_comm *comm, uint32_t channel, const uly_route *route) {
  uly_mapped *m = of(comm);
  ULY_TRY(check_failed(m));
  const uly_mapped_channel *c = m->channels[channel];
  uint64_t epoch = c->epochs[route->exchange];
  waiting w = {AWAIT_SENDS, &door_in(c, c->own, route->exchange)->sends, epoch * ((uint64_t)comm->n_ranks - 1), epoch, c, route->exchange, route->name};
  return await(m, &w);
}

// ---- life ---------------------------------------------------------------------------------------------------------------------------------

size_t uly_mapped_board_bytes(int n_ranks) { return (sizeof(uly_mapped_board) + sizeof(seat) * (size_t)n_ranks + 4095) & ~(size_t)4095; }

void uly_mapped_board_init(uly_mapped_board *board, int n_ranks) {
  memset(board, 0, uly_mapped_board_bytes(n_ranks));
  board->n_ranks = n_ranks;
  board->magic = BOARD_MAGIC;
}

void uly_mapped_init(uly_mapped *mapped, uly_mapped_board *board) {
  ULY_ASSERT(board->magic == BOARD_MAGIC && board->n_ranks == mapped->comm.n_ranks);
  mapped->board = board;
}

void uly_mapped_init_line(uly_mapped *line, uly_mapped *world, int n, const int *members) {
  line->comm = (uly_comm){.ops = world->comm.ops, .n_ranks = n, .world = &world->comm, .members = members};
  while (members[line->comm.rank] != world->comm.rank) line->comm.rank++;
  line->board = world->board;
  line->spin = world->spin;
}

void uly_mapped_leave(uly_mapped *mapped) {
  for (uint32_t i = 0; i < mapped->n_channels; i++) channel_free(&mapped->comm, mapped->channels[i]);
  free(mapped->channels);
  mapped->channels = NULL;
  mapped->n_channels = 0;
  if (mapped->comm.world) return;
  atomic_store(&seat_of(mapped, mapped->comm.rank)->left, 1);
  for (int q = 0; q < mapped->comm.n_ranks; q++)
    if (q != mapped->comm.rank) ring(seat_of(mapped, q));
}
