#include "runtime/transports/callbacks.h"

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

typedef struct callbacks {
  uly_comm comm; // first
  uly_callbacks host;
  bool failed;
  uly_status status;
  uint64_t sequence;
  size_t header_bytes;
  header *mine;
  unsigned char *all;
  int64_t *send_bytes, *receive_bytes; // a route's, own sizes 0
  channel *channels;
  uint32_t n_channels;
} callbacks;

static callbacks *of(uly_comm *comm) { return (callbacks *)(void *)comm; }

static uly_status failed(callbacks *c, uly_status status) {
  c->failed = true;
  c->status = status;
  return status;
}

static const char *name_of(uint32_t kind) { return kind <= OP_EXCHANGE ? op_names[kind] : "an unknown call"; }

// Ranks |r| and |q|, of which any rank judges: so all come to the same answer.
static uly_status compare(callbacks *c, int r, int q, const char *what) {
  const header *mine = (const header *)(void *)(c->all + (size_t)r * c->header_bytes), *theirs = (const header *)(void *)(c->all + (size_t)q * c->header_bytes);
  int n = c->comm.n_ranks;
  if (mine->op != theirs->op || mine->sequence != theirs->sequence || mine->exchange != theirs->exchange || mine->channel != theirs->channel ||
      mine->detail != theirs->detail || mine->dtype != theirs->dtype)
    return uly_comm_fail(&c->comm, ULY_MISMATCH, "ranks disagree at call %llu: rank %d called %s %u (%llu), rank %d called %s %u (%llu)",
                         (unsigned long long)mine->sequence, r, name_of(mine->op), mine->exchange, (unsigned long long)mine->detail, q, name_of(theirs->op),
                         theirs->exchange, (unsigned long long)theirs->detail);
  if (mine->program != theirs->program)
    return uly_comm_fail(&c->comm, ULY_MISMATCH, "rank %d runs program %016llx, rank %d runs %016llx", r, (unsigned long long)mine->program, q,
                         (unsigned long long)theirs->program);
  if (mine->sizes[q] != theirs->sizes[n + r] || theirs->sizes[r] != mine->sizes[n + q])
    return uly_comm_fail(&c->comm, ULY_MISMATCH,
                         "exchange %u (%s): rank %d sends %lld bytes to rank %d, which expects %lld; rank %d sends %lld bytes to rank %d, which expects %lld",
                         mine->exchange, what, r, (long long)mine->sizes[q], q, (long long)theirs->sizes[n + r], q, (long long)theirs->sizes[r], r,
                         (long long)mine->sizes[n + q]);
  return ULY_OK;
}

static uly_status host_failed(callbacks *c, const char *what, int code) {
  return failed(c, uly_comm_fail(&c->comm, ULY_PEER_LOST, "the host's %s failed with %d at rank %d, call %llu", what, code, c->comm.rank,
                                 (unsigned long long)c->sequence));
}

// Exchanges the headers; fills in what is common to all calls.
static uly_status agree(callbacks *c, uint32_t kind, uint64_t detail, uint64_t program, const uly_route *route, uint32_t number) {
  if (c->failed) return c->status;
  size_t n = (size_t)c->comm.n_ranks;
  memset(c->mine, 0, c->header_bytes);
  *c->mine = (header){.sequence = ++c->sequence, .program = program, .detail = detail, .op = kind, .channel = number};
  if (route) {
    c->mine->exchange = route->exchange;
    c->mine->dtype = route->dtype;
    memcpy(c->mine->sizes, route->send_bytes, n * sizeof(int64_t));
    memcpy(c->mine->sizes + n, route->receive_bytes, n * sizeof(int64_t));
  }
  int code = c->host.all_gather(c->host.context, c->mine, c->header_bytes, c->all);
  if (code) return host_failed(c, "all_gather", code);
  for (int r = 0; r < c->comm.n_ranks; r++)
    for (int q = r + 1; q < c->comm.n_ranks; q++) {
      uly_status status = compare(c, r, q, route && route->name ? route->name : "unnamed");
      if (status != ULY_OK) return failed(c, status);
    }
  return ULY_OK;
}

static uly_status all_gather(uly_comm *comm, const void *mine, size_t bytes, void *out_all) {
  callbacks *c = of(comm);
  ULY_TRY(agree(c, OP_GATHER, bytes, 0, NULL, 0));
  int code = bytes ? c->host.all_gather(c->host.context, mine, bytes, out_all) : 0;
  return code ? host_failed(c, "all_gather", code) : ULY_OK;
}

static uly_status map(uly_comm *comm, size_t bytes, void **out_own, void **out_peers) {
  (void)bytes, (void)out_own, (void)out_peers;
  return uly_comm_fail(comm, ULY_UNSUPPORTED, "ranks that the host connects do not map memory");
}

static void unmap(uly_comm *comm, void *own, void **peers, size_t bytes) { (void)comm, (void)own, (void)peers, (void)bytes; }

static uly_status open_channel(uly_comm *comm, uint32_t n_exchanges, const uint8_t program[32], uint32_t *out_channel) {
  callbacks *c = of(comm);
  uint64_t hash;
  memcpy(&hash, program, sizeof hash);
  channel *grown = realloc(c->channels, sizeof *grown * (c->n_channels + (size_t)1));
  if (grown) c->channels = grown;
  uint64_t *epochs = calloc(n_exchanges + (size_t)1, sizeof *epochs);
  uly_status status = agree(c, OP_OPEN, n_exchanges, hash, NULL, c->n_channels);
  if (status == ULY_OK && (!grown || !epochs)) status = failed(c, uly_comm_fail(comm, ULY_EXHAUSTED, "no memory for the exchanges of a bind"));
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
  callbacks *c = of(comm);
  if (c->failed) return c->status;
  c->channels[number].epochs[route->exchange]++;
  return ULY_OK;
}

static uly_status nothing(uly_comm *comm, uint32_t number, const uly_route *route) {
  (void)number, (void)route;
  return of(comm)->failed ? of(comm)->status : ULY_OK;
}

// The whole transfer: the own receive buffer was posted before.
static uly_status send_messages(uly_comm *comm, uint32_t number, const uly_route *route) {
  callbacks *c = of(comm);
  const channel *ch = &c->channels[number];
  ULY_TRY(agree(c, OP_EXCHANGE, ch->epochs[route->exchange], ch->program, route, number));
  for (int p = 0; p < comm->n_ranks; p++) {
    c->send_bytes[p] = p == comm->rank ? 0 : route->send_bytes[p];
    c->receive_bytes[p] = p == comm->rank ? 0 : route->receive_bytes[p];
    comm->sent_bytes += (uint64_t)c->send_bytes[p];
  }
  int code = c->host.all_to_all(c->host.context, route->send, c->send_bytes, route->send_offset, route->receive, c->receive_bytes, route->receive_offset);
  return code ? host_failed(c, "all_to_all", code) : ULY_OK;
}

static void give_up(uly_comm *comm, const char *reason) {
  callbacks *c = of(comm);
  failed(c, uly_comm_fail(comm, ULY_CANCELLED, "rank %d gave up: %s", comm->rank, reason));
  if (c->host.abort) c->host.abort(c->host.context, reason);
}

static void destroy(uly_comm *comm) {
  callbacks *c = of(comm);
  for (uint32_t i = 0; i < c->n_channels; i++) free(c->channels[i].epochs);
  free(c->channels);
  free(c->mine);
  free(c->all);
  free(c->send_bytes);
  free(c->receive_bytes);
  free(c);
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
                                 .destroy = destroy};

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
  c->send_bytes = calloc(n, sizeof *c->send_bytes);
  c->receive_bytes = calloc(n, sizeof *c->receive_bytes);
  if (!c->mine || !c->all || !c->send_bytes || !c->receive_bytes) {
    destroy(&c->comm);
    return ULY_EXHAUSTED;
  }
  *out_comm = &c->comm;
  return ULY_OK;
}
