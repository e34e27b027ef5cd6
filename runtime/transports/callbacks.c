#include "runtime/transports/callbacks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum op { OP_GATHER = 1, OP_OPEN, OP_EXCHANGE } op;
static const char *const op_names[] = {"nothing", "all_gather", "open", "exchange"};

// What a rank is about to do. Equal on all ranks but for the sizes: to[p] of rank r has to be from[r] of rank p.
typedef struct header {
  uint64_t sequence, program, detail; // detail: bytes of a gather, number of exchanges, or the epoch
  uint32_t op, exchange, dtype, channel;
  int64_t sizes[]; // [P] to each rank, [P] from each rank
} header;

typedef struct channel {
  uint64_t program;
  uint32_t n_exchanges;
  uint64_t *epochs; // NULL: closed
} channel;

// A route by ranks of the world, where a line leaves others out. Own sizes are 0.
typedef enum column { SEND_BYTES, SEND_OFFSET, RECEIVE_BYTES, RECEIVE_OFFSET, N_COLUMNS } column;

// A line calls the host as its world does, with nothing for those outside.
typedef struct callbacks {
  uly_comm comm; // first
  channel *channels;
  uint32_t n_channels;
  // Of a world.
  uly_callbacks host;
  uly_status failed;
  uint64_t sequence;
  size_t header_bytes;
  header *mine;
  unsigned char *all;
  int64_t *route[N_COLUMNS]; // [P] each
} callbacks;

static callbacks *of(uly_comm *comm) { return (callbacks *)(void *)comm; }
static callbacks *world_of(callbacks *c) { return of(uly_comm_world(&c->comm)); }

// The world's failure, as |c|'s too; ULY_OK without one.
static uly_status check_failed(callbacks *c) {
  callbacks *world = world_of(c);
  if (c == world || !world->failed) return world->failed;
  return uly_comm_fail(&c->comm, world->failed, "%s", world->comm.error);
}

__attribute__((format(printf, 3, 4))) static uly_status fail(callbacks *c, uly_status status, const char *format, ...) {
  callbacks *world = world_of(c);
  va_list args;
  va_start(args, format);
  vsnprintf(world->comm.error, sizeof world->comm.error, format, args);
  va_end(args);
  world->failed = status;
  return check_failed(c);
}

static const char *name_of(uint32_t kind) { return kind <= OP_EXCHANGE ? op_names[kind] : "an unknown call"; }

// Ranks |r| and |q| of the world, of which any rank judges: so all come to the same answer.
static uly_status compare(callbacks *c, int r, int q, const char *what) {
  const callbacks *world = world_of(c);
  const header *mine = (const header *)(void *)(world->all + (size_t)r * world->header_bytes);
  const header *theirs = (const header *)(void *)(world->all + (size_t)q * world->header_bytes);
  int n = world->comm.n_ranks;
  bool same_call = mine->op == theirs->op && mine->sequence == theirs->sequence && mine->exchange == theirs->exchange && mine->channel == theirs->channel &&
                   mine->detail == theirs->detail && mine->dtype == theirs->dtype;
  bool same_sizes = mine->sizes[q] == theirs->sizes[n + r] && theirs->sizes[r] == mine->sizes[n + q];
  if (same_call && same_sizes && mine->program == theirs->program) return ULY_OK;
  uly_rank_name here = uly_comm_member_name(&c->comm, r), there = uly_comm_member_name(&c->comm, q);
  if (!same_call)
    return fail(c, ULY_MISMATCH, "ranks disagree at call %llu: rank %s called %s %u (%llu), rank %s called %s %u (%llu)", (unsigned long long)mine->sequence,
                here.text, name_of(mine->op), mine->exchange, (unsigned long long)mine->detail, there.text, name_of(theirs->op), theirs->exchange,
                (unsigned long long)theirs->detail);
  if (mine->program != theirs->program)
    return fail(c, ULY_MISMATCH, "rank %s runs program %016llx, rank %s runs %016llx", here.text, (unsigned long long)mine->program, there.text,
                (unsigned long long)theirs->program);
  return fail(c, ULY_MISMATCH,
              "exchange %u (%s): rank %s sends %lld bytes to rank %s, which expects %lld; rank %s sends %lld bytes to rank %s, which expects %lld",
              mine->exchange, what, here.text, (long long)mine->sizes[q], there.text, (long long)theirs->sizes[n + r], there.text, (long long)theirs->sizes[r],
              here.text, (long long)mine->sizes[n + q]);
}

static uly_status host_failed(callbacks *c, const char *what, int code) {
  const callbacks *world = world_of(c);
  return fail(c, ULY_PEER_LOST, "the host's %s failed with %d at rank %s, call %llu", what, code, uly_comm_name(&c->comm, c->comm.rank).text,
              (unsigned long long)world->sequence);
}

// Exchanges the headers of all ranks of the world; fills in what is common to all calls.
static uly_status agree(callbacks *c, uint32_t kind, uint64_t detail, uint64_t program, const uly_route *route, uint32_t number) {
  ULY_TRY(check_failed(c));
  callbacks *world = world_of(c);
  int n = world->comm.n_ranks;
  memset(world->mine, 0, world->header_bytes);
  *world->mine = (header){.sequence = ++world->sequence, .program = program, .detail = detail, .op = kind, .channel = number};
  if (route) {
    world->mine->exchange = route->exchange;
    world->mine->dtype = route->dtype;
    for (int q = 0; q < c->comm.n_ranks; q++) {
      world->mine->sizes[uly_comm_member(&c->comm, q)] = route->send_bytes[q];
      world->mine->sizes[n + uly_comm_member(&c->comm, q)] = route->receive_bytes[q];
    }
  }
  int code = world->host.all_gather(world->host.context, world->mine, world->header_bytes, world->all);
  if (code) return host_failed(c, "all_gather", code);
  for (int r = 0; r < n; r++)
    for (int q = r + 1; q < n; q++) ULY_TRY(compare(c, r, q, route && route->name ? route->name : "unnamed"));
  return ULY_OK;
}

static uly_status all_gather(uly_comm *comm, const void *mine, size_t bytes, void *out_all) {
  callbacks *c = of(comm), *world = world_of(c);
  ULY_TRY(agree(c, OP_GATHER, bytes, 0, NULL, 0));
  if (!bytes) return ULY_OK;
  unsigned char *all = comm->world ? malloc(bytes * (size_t)world->comm.n_ranks) : out_all;
  if (!all) return fail(c, ULY_EXHAUSTED, "no memory for a gather");
  int code = world->host.all_gather(world->host.context, mine, bytes, all);
  if (comm->world) {
    for (int q = 0; !code && q < comm->n_ranks; q++) memcpy((char *)out_all + bytes * (size_t)q, all + bytes * (size_t)comm->members[q], bytes);
    free(all);
  }
  return code ? host_failed(c, "all_gather", code) : ULY_OK;
}

static uly_status map(uly_comm *comm, size_t shared, size_t bytes, void **out_own, void **out_peers) {
  (void)shared, (void)bytes, (void)out_own, (void)out_peers;
  return uly_comm_fail(comm, ULY_UNSUPPORTED, "ranks that the host connects do not map memory");
}

static void unmap(uly_comm *comm, void *own, void **peers, size_t shared, size_t bytes) { (void)comm, (void)own, (void)peers, (void)shared, (void)bytes; }

static uly_status open_channel(uly_comm *comm, uint32_t n_exchanges, const uint8_t program[32], uint32_t *out_channel) {
  callbacks *c = of(comm);
  uint64_t hash;
  memcpy(&hash, program, sizeof hash);
  channel *grown = realloc(c->channels, sizeof *grown * (c->n_channels + (size_t)1));
  if (grown) c->channels = grown;
  uint64_t *epochs = calloc(n_exchanges + (size_t)1, sizeof *epochs);
  uly_status status = agree(c, OP_OPEN, n_exchanges, hash, NULL, c->n_channels);
  if (status == ULY_OK && (!grown || !epochs)) status = fail(c, ULY_EXHAUSTED, "no memory for the exchanges of a bind");
  if (status != ULY_OK) return free(epochs), status;
  c->channels[c->n_channels] = (channel){hash, n_exchanges, epochs};
  *out_channel = c->n_channels++;
  return ULY_OK;
}

static void close_channel(uly_comm *comm, uint32_t number) {
  free(of(comm)->channels[number].epochs);
  of(comm)->channels[number].epochs = NULL;
}

static uly_status post(uly_comm *comm, uint32_t number, const uly_route *route) {
  ULY_TRY(check_failed(of(comm)));
  of(comm)->channels[number].epochs[route->exchange]++;
  return ULY_OK;
}

static uly_status nothing(uly_comm *comm, uint32_t number, const uly_route *route) {
  (void)number, (void)route;
  return check_failed(of(comm));
}

// The whole transfer: the own receive buffer was posted before.
static uly_status send_messages(uly_comm *comm, uint32_t number, const uly_route *route) {
  callbacks *c = of(comm), *world = world_of(c);
  const channel *ch = &c->channels[number];
  const int64_t *const columns[] = {route->send_bytes, route->send_offset, route->receive_bytes, route->receive_offset};
  ULY_TRY(agree(c, OP_EXCHANGE, ch->epochs[route->exchange], ch->program, route, number));
  for (int k = 0; k < N_COLUMNS; k++) {
    if (comm->world) memset(world->route[k], 0, sizeof *world->route[k] * (size_t)world->comm.n_ranks);
    for (int q = 0; q < comm->n_ranks; q++) world->route[k][uly_comm_member(comm, q)] = columns[k][q];
  }
  world->route[SEND_BYTES][world->comm.rank] = world->route[RECEIVE_BYTES][world->comm.rank] = 0;
  for (int q = 0; q < comm->n_ranks; q++)
    if (q != comm->rank) uly_comm_count_sent(comm, route->send_bytes[q]);
  int code = world->host.all_to_all(world->host.context, route->send, world->route[SEND_BYTES], world->route[SEND_OFFSET], route->receive,
                                    world->route[RECEIVE_BYTES], world->route[RECEIVE_OFFSET]);
  return code ? host_failed(c, "all_to_all", code) : ULY_OK;
}

static void give_up(uly_comm *comm, const char *reason) {
  callbacks *world = world_of(of(comm));
  fail(of(comm), ULY_CANCELLED, "rank %s gave up: %s", uly_comm_name(comm, comm->rank).text, reason);
  if (world->host.abort) world->host.abort(world->host.context, reason);
}

static void destroy(uly_comm *comm) {
  callbacks *c = of(comm);
  for (uint32_t i = 0; i < c->n_channels; i++) free(c->channels[i].epochs);
  free(c->channels);
  free(c->mine);
  free(c->all);
  for (int k = 0; k < N_COLUMNS; k++) free(c->route[k]);
  free(c);
}

static uly_status line(uly_comm *world, int n, const int *members, uly_comm **out_line) {
  callbacks *l = calloc(1, sizeof *l);
  if (!l) {
    give_up(world, "no memory for a line of the grid");
    return ULY_EXHAUSTED;
  }
  l->comm = (uly_comm){.ops = world->ops, .n_ranks = n, .world = world, .members = members};
  while (members[l->comm.rank] != world->rank) l->comm.rank++;
  *out_line = &l->comm;
  return ULY_OK;
}

static const uly_comm_ops ops = {.name = "callbacks",
                                 .mapped = false,
                                 .map = map,
                                 .unmap = unmap,
                                 .all_gather = all_gather,
                                 .open = open_channel,
                                 .close = close_channel,
                                 .post = post,
                                 .ready = nothing,
                                 .send = send_messages,
                                 .wait = nothing,
                                 .abort = give_up,
                                 .destroy = destroy,
                                 .line = line};

uly_status uly_comm_callbacks_create(const uly_callbacks *host, uly_comm **out_comm) {
  if (!host->all_gather || !host->all_to_all || host->n_ranks < 1 || host->rank < 0 || host->rank >= host->n_ranks) return ULY_INVALID_ARGUMENT;
  callbacks *c = calloc(1, sizeof *c);
  if (!c) return ULY_EXHAUSTED;
  size_t n = (size_t)host->n_ranks;
  c->comm = (uly_comm){.ops = &ops, .rank = host->rank, .n_ranks = host->n_ranks};
  c->host = *host;
  c->header_bytes = sizeof(header) + 2 * n * sizeof(int64_t);
  c->mine = calloc(1, c->header_bytes);
  c->all = calloc(n, c->header_bytes);
  bool complete = c->mine && c->all;
  for (int k = 0; k < N_COLUMNS; k++) complete = (c->route[k] = calloc(n, sizeof(int64_t))) && complete;
  if (!complete) {
    destroy(&c->comm);
    return ULY_EXHAUSTED;
  }
  *out_comm = &c->comm;
  return ULY_OK;
}
