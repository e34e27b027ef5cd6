// Ranks that are MPI processes: libulyrt_mpi.so.
//
// Each call starts with a header to every peer (what was called, on which program, with which sizes), so ranks that disagree find out before any data moves. Then one
// non-blocking collective moves the data. How ranks wait and fail: mpi_wait.c.
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/transports/mpi_chunks.h"
#include "runtime/transports/mpi_state.h"
#include "runtime/transports/plugin.h"

#if MPI_VERSION < 4 && !defined(ULY_MPI_CHUNKED)
#define ULY_MPI_CHUNKED
#endif

enum { OP_GATHER = 1, OP_OPEN, OP_EXCHANGE };

static atomic_int in_use; // communicators that MPI still works for: it cannot be ended in order while there are any

// ---- calls ----

static void call_free(uly_mpi_call *c) {
  free(c->out);
  free(c->in);
  free(c->requests);
  free(c->data);
  free(c->statuses);
  free(c->indices);
  free(c->counts);
  *c = (uly_mpi_call){0};
}

static bool call_init(uly_mpi_call *c, int n_ranks, int cap_data) {
  size_t n = (size_t)n_ranks;
  c->out = calloc(n, sizeof *c->out);
  c->in = calloc(n, sizeof *c->in);
  c->requests = malloc(2 * n * sizeof(MPI_Request));
  c->data = malloc((size_t)cap_data * sizeof(MPI_Request));
  size_t most = 2 * n > (size_t)cap_data ? 2 * n : (size_t)cap_data;
  c->statuses = calloc(most, sizeof(MPI_Status));
  c->indices = calloc(most, sizeof(int));
  c->counts = calloc(4 * n, sizeof *c->counts);
  c->cap_data = cap_data;
  for (size_t i = 0; c->requests && i < 2 * n; i++) c->requests[i] = MPI_REQUEST_NULL;
  if (c->out && c->in && c->requests && c->data && c->statuses && c->indices && c->counts) return true;
  call_free(c);
  return false;
}

// Starts to tell every peer what this rank calls. |gives| and |takes|: bytes by rank, or NULL.
static uly_status send_headers(uly_mpi *m, uly_mpi_call *c, uly_mpi_header head, const int64_t *gives, const int64_t *takes) {
  int n = m->comm.n_ranks;
  head.sequence = ++m->sequence;
  for (int q = 0; q < n; q++) {
    if (q == m->comm.rank) continue;
    ULY_TRY(uly_mpi_check(m, MPI_Irecv(&c->in[q], (int)sizeof head, MPI_BYTE, q, ULY_MPI_TAG_HEADER, m->data, &c->requests[q]), "a header"));
    c->out[q] = head;
    if (gives) c->out[q].gives = gives[q];
    if (takes) c->out[q].takes = takes[q];
    ULY_TRY(uly_mpi_check(m, MPI_Isend(&c->out[q], (int)sizeof head, MPI_BYTE, q, ULY_MPI_TAG_HEADER, m->data, &c->requests[n + q]), "a header"));
  }
  return ULY_OK;
}

static void describe(const uly_mpi_header *h, char *out, size_t bytes) {
  if (h->op == OP_GATHER)
    snprintf(out, bytes, "all_gather of %lld bytes", (long long)h->gives);
  else if (h->op == OP_OPEN)
    snprintf(out, bytes, "open of program %016llx with %u exchanges", (unsigned long long)h->program, h->exchange);
  else
    snprintf(out, bytes, "exchange %u of bind %llu (program %016llx, dtype %u)", h->exchange, (unsigned long long)h->channel, (unsigned long long)h->program,
             h->dtype);
}

// Waits for the peers' headers and compares them.
static uly_status check_headers(uly_mpi *m, uly_mpi_call *c, const char *what) {
  char here[120], there[120], text[600];
  ULY_TRY(uly_mpi_wait(m, 2 * m->comm.n_ranks, c->requests, c, what));
  for (int q = 0; q < m->comm.n_ranks; q++) {
    const uly_mpi_header *mine = &c->out[q], *theirs = &c->in[q];
    if (q == m->comm.rank) continue;
    if (mine->op != theirs->op || mine->exchange != theirs->exchange || mine->dtype != theirs->dtype || mine->sequence != theirs->sequence ||
        mine->program != theirs->program || mine->channel != theirs->channel) {
      describe(mine, here, sizeof here);
      describe(theirs, there, sizeof there);
      snprintf(text, sizeof text, "ranks disagree at call %llu: rank %s called %s, rank %s called %s", (unsigned long long)mine->sequence,
               uly_comm_name(&m->comm, m->comm.rank).text, here, uly_comm_name(&m->comm, q).text, there);
      return uly_mpi_fail(m, ULY_MISMATCH, text);
    }
    if (mine->gives != theirs->takes || mine->takes != theirs->gives) {
      uly_rank_name me = uly_comm_name(&m->comm, m->comm.rank), peer = uly_comm_name(&m->comm, q);
      snprintf(text, sizeof text, "%s: rank %s sends %lld bytes to rank %s, which expects %lld; rank %s sends %lld bytes to rank %s, which expects %lld", what,
               me.text, (long long)mine->gives, peer.text, (long long)theirs->takes, peer.text, (long long)theirs->gives, me.text, (long long)mine->takes);
      return uly_mpi_fail(m, ULY_MISMATCH, text);
    }
  }
  return ULY_OK;
}

#ifndef ULY_MPI_CHUNKED
_Static_assert(sizeof(MPI_Count) == sizeof(int64_t) && sizeof(MPI_Aint) == sizeof(int64_t), "counts and offsets are int64_t");

static int start_exchange(uly_mpi *m, uly_mpi_call *c, const void *send, void *receive) {
  size_t n = (size_t)m->comm.n_ranks;
  const MPI_Count *counts = (const MPI_Count *)c->counts;
  const MPI_Aint *offsets = (const MPI_Aint *)c->counts;
  c->n_data = 1;
  return MPI_Ialltoallv_c(send, counts, offsets + n, MPI_BYTE, receive, counts + 2 * n, offsets + 3 * n, MPI_BYTE, m->data, &c->data[0]);
}
static int data_requests(int n_ranks, const uly_route *route) { return (void)n_ranks, (void)route, 1; }
#else
static int data_requests(int n_ranks, const uly_route *route) {
  int64_t n = 0;
  for (int q = 0; q < n_ranks; q++) n += uly_chunk_count(route->send_bytes[q]) + uly_chunk_count(route->receive_bytes[q]);
  return (int)n;
}

static int start_exchange(uly_mpi *m, uly_mpi_call *c, const void *send, void *receive) {
  int n = m->comm.n_ranks, me = m->comm.rank, error = MPI_SUCCESS;
  const int64_t *gives = c->counts, *from = gives + n, *takes = from + n, *to = takes + n;
  c->n_data = 0;
  for (int i = 1; i < n; i++) {
    int q = (me + i) % n;
    for (int64_t k = 0; !error && k < uly_chunk_count(takes[q]); k++)
      error =
          MPI_Irecv((char *)receive + to[q] + k * ULY_MPI_CHUNK, uly_chunk_bytes(takes[q], k), MPI_BYTE, q, ULY_MPI_TAG_DATA, m->data, &c->data[c->n_data++]);
    for (int64_t k = 0; !error && k < uly_chunk_count(gives[q]); k++)
      error = MPI_Isend((const char *)send + from[q] + k * ULY_MPI_CHUNK, uly_chunk_bytes(gives[q], k), MPI_BYTE, q, ULY_MPI_TAG_DATA, m->data,
                        &c->data[c->n_data++]);
  }
  return error;
}
#endif

// Room for |bytes| of this rank and of everyone. The caller's memory is not given to MPI, which may still use it after a failure.
static bool stage_reserve(uly_mpi *m, size_t bytes) {
  size_t need = bytes * ((size_t)m->comm.n_ranks + 1);
  if (need <= m->stage_bytes) return true;
  free(m->stage);
  m->stage = malloc(need);
  m->stage_bytes = m->stage ? need : 0;
  return m->stage != NULL;
}

static uly_status all_gather(uly_comm *comm, const void *mine, size_t bytes, void *out_all) {
  uly_mpi *m = uly_mpi_of(comm);
  size_t n = (size_t)comm->n_ranks;
  ULY_TRY(uly_mpi_failed(m));
  int64_t *sizes = m->gather.counts;
  for (size_t q = 0; q < n; q++) sizes[q] = (int64_t)bytes;
  ULY_TRY(send_headers(m, &m->gather, (uly_mpi_header){.op = OP_GATHER}, sizes, sizes));
  ULY_TRY(check_headers(m, &m->gather, "all_gather"));
  const size_t step = (size_t)1 << 26; // parts that an `int` counts; one as a rule
  for (size_t at = 0; at < bytes; at += step) {
    size_t part = bytes - at < step ? bytes - at : step;
    if (!stage_reserve(m, part)) return uly_mpi_fail(m, ULY_EXHAUSTED, "no memory for a gather");
    memcpy(m->stage, (const char *)mine + at, part);
    ULY_TRY(uly_mpi_check(m, MPI_Iallgather(m->stage, (int)part, MPI_BYTE, m->stage + part, (int)part, MPI_BYTE, m->data, &m->gather.data[0]), "all_gather"));
    ULY_TRY(uly_mpi_wait(m, 1, m->gather.data, &m->gather, "all_gather"));
    for (size_t q = 0; q < n; q++) memcpy((char *)out_all + q * bytes + at, m->stage + (q + 1) * part, part);
  }
  return ULY_OK;
}

static void channel_free(uly_mpi_channel *c) {
  if (!c) return;
  for (uint32_t i = 0; c->calls && i < c->n_exchanges; i++) call_free(&c->calls[i]);
  free(c->calls);
  free(c);
}

static uly_mpi_channel *channel_create(int n_ranks, uint32_t n_exchanges, const uint8_t program[32]) {
  uly_mpi_channel *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  memcpy(&c->program, program, sizeof c->program);
  c->n_exchanges = n_exchanges;
  c->calls = calloc(n_exchanges + (size_t)1, sizeof *c->calls);
  for (uint32_t i = 0; c->calls && i < n_exchanges; i++)
    if (!call_init(&c->calls[i], n_ranks, 2 * n_ranks)) return channel_free(c), NULL;
  if (c->calls) return c;
  channel_free(c);
  return NULL;
}

static uly_status open_channel(uly_comm *comm, uint32_t n_exchanges, const uint8_t program[32], uint32_t *out_channel) {
  uly_mpi *m = uly_mpi_of(comm);
  ULY_TRY(uly_mpi_failed(m));
  uly_mpi_channel *c = channel_create(comm->n_ranks, n_exchanges, program);
  uly_mpi_channel **grown = realloc(m->channels, sizeof *grown * (m->n_channels + 1));
  if (grown) m->channels = grown;
  if (!c || !grown) {
    channel_free(c);
    return uly_mpi_fail(m, ULY_EXHAUSTED, "no memory for the exchanges of a bind");
  }
  uly_status status = send_headers(m, &m->gather, (uly_mpi_header){.op = OP_OPEN, .exchange = n_exchanges, .program = c->program}, NULL, NULL);
  if (status == ULY_OK) status = check_headers(m, &m->gather, "open");
  if (status != ULY_OK) return channel_free(c), status;
  uint32_t at = 0;
  while (at < m->n_channels && m->channels[at]) at++;
  if (at == m->n_channels) m->n_channels++;
  m->channels[at] = c;
  *out_channel = at;
  return ULY_OK;
}

static void close_channel(uly_comm *comm, uint32_t at) {
  uly_mpi *m = uly_mpi_of(comm);
  if (at >= m->n_channels || uly_mpi_world(m)->failed) return; // MPI may still use the buffers of a failed call
  channel_free(m->channels[at]);
  m->channels[at] = NULL;
}

static uly_status post(uly_comm *comm, uint32_t at, const uly_route *route) {
  uly_mpi *m = uly_mpi_of(comm);
  ULY_TRY(uly_mpi_failed(m));
  uly_mpi_channel *ch = m->channels[at];
  uly_mpi_call *c = &ch->calls[route->exchange];
  uly_mpi_header head = {.op = OP_EXCHANGE, .exchange = route->exchange, .dtype = route->dtype, .program = ch->program, .channel = at};
  return send_headers(m, c, head, route->send_bytes, route->receive_bytes);
}

static uly_status ready(uly_comm *comm, uint32_t at, const uly_route *route) {
  (void)at, (void)route;
  return uly_mpi_failed(uly_mpi_of(comm));
}

static void describe_route(const uly_route *route, char *out, size_t bytes) {
  snprintf(out, bytes, "exchange %u (%s)", route->exchange, route->name ? route->name : "unnamed");
}

static uly_status send_data(uly_comm *comm, uint32_t at, const uly_route *route) {
  uly_mpi *m = uly_mpi_of(comm);
  char what[160];
  size_t n = (size_t)comm->n_ranks, row = n * sizeof(int64_t);
  ULY_TRY(uly_mpi_failed(m));
  uly_mpi_call *c = &m->channels[at]->calls[route->exchange];
  describe_route(route, what, sizeof what);
  ULY_TRY(check_headers(m, c, what));
  int need = data_requests(comm->n_ranks, route);
  if (need > c->cap_data) { // chunks of very large messages only
    MPI_Request *grown = realloc(c->data, sizeof *grown * (size_t)need);
    if (grown) c->data = grown;
    MPI_Status *statuses = realloc(c->statuses, sizeof *statuses * (size_t)need);
    if (statuses) c->statuses = statuses;
    int *indices = realloc(c->indices, sizeof *indices * (size_t)need);
    if (indices) c->indices = indices;
    if (!grown || !statuses || !indices) return uly_mpi_fail(m, ULY_EXHAUSTED, "no memory for the chunks of an exchange");
    c->cap_data = need;
  }
  memcpy(c->counts, route->send_bytes, row);
  memcpy(c->counts + n, route->send_offset, row);
  memcpy(c->counts + 2 * n, route->receive_bytes, row);
  memcpy(c->counts + 3 * n, route->receive_offset, row);
  c->counts[comm->rank] = c->counts[2 * n + (size_t)comm->rank] = 0; // the own message is in place
  comm->busy = ++m->in_flight > 0;
  ULY_TRY(uly_mpi_check(m, start_exchange(m, c, route->send, route->receive), what));
  for (int q = 0; q < comm->n_ranks; q++)
    if (q != comm->rank) uly_comm_count_sent(comm, route->send_bytes[q]);
  return ULY_OK;
}

static uly_status wait_data(uly_comm *comm, uint32_t at, const uly_route *route) {
  uly_mpi *m = uly_mpi_of(comm);
  char what[160];
  ULY_TRY(uly_mpi_failed(m));
  uly_mpi_call *c = &m->channels[at]->calls[route->exchange];
  describe_route(route, what, sizeof what);
  ULY_TRY(uly_mpi_wait(m, c->n_data, c->data, c, what));
  comm->busy = --m->in_flight > 0;
  return ULY_OK;
}

static uly_status map(uly_comm *comm, size_t shared, size_t bytes, void **out_own, void **out_peers) {
  (void)shared, (void)bytes, (void)out_own, (void)out_peers;
  return uly_comm_fail(comm, ULY_UNSUPPORTED, "ranks of MPI do not map memory");
}

static void unmap(uly_comm *comm, void *own, void **peers, size_t shared, size_t bytes) { (void)comm, (void)own, (void)peers, (void)shared, (void)bytes; }

// ---- life ----

// Stays until all ranks have come here, after a failure for a second at most: MPI's end is collective, and the launcher ends all processes when one exits early.
static bool say_bye(uly_mpi *m) {
  int byes = 0, n = m->comm.n_ranks;
  double seconds = m->failed ? 1.0 : m->comm.timeout, until = uly_mpi_now() + seconds;
  for (int q = 0; q < n; q++) {
    MPI_Request request;
    if (q == m->comm.rank) continue;
    MPI_Isend(NULL, 0, MPI_BYTE, q, ULY_MPI_TAG_BYE, m->control, &request);
    MPI_Request_free(&request);
  }
  for (;; uly_mpi_back_off(m, 300)) {
    (void)!uly_mpi_read_letters(m);
    for (int q = byes = 0; q < n; q++) byes += q != m->comm.rank && m->left[q] > 0;
    if (byes == n - 1) return true;
    if (seconds > 0 && uly_mpi_now() > until) return false;
  }
}

static void free_state(uly_mpi *m) {
  for (uint32_t i = 0; i < m->n_channels; i++) channel_free(m->channels[i]);
  free(m->channels);
  call_free(&m->gather);
  free(m->letters);
  free(m->alive);
  free(m->seen);
  free(m->left);
  free(m->stage);
  free(m);
}

static void destroy(uly_comm *comm) {
  uly_mpi *m = uly_mpi_of(comm);
  int ended = 0;
  MPI_Finalized(&ended);
  if (comm->world) {
    if (ended || uly_mpi_world(m)->failed) return; // the buffers stay: MPI may still use them
    if (m->data != MPI_COMM_NULL) MPI_Comm_free(&m->data);
    free_state(m);
    return;
  }
  bool complete = !ended && m->left && m->seen, all_here = complete && say_bye(m);
  if (!complete || all_here) atomic_fetch_sub(&in_use, 1);
  if (m->failed || (complete && !all_here)) return; // the buffers stay: MPI may still use them
  if (!ended && m->data != MPI_COMM_NULL) MPI_Comm_free(&m->data);
  if (!ended && m->control != MPI_COMM_NULL) MPI_Comm_free(&m->control);
  free_state(m);
}

static uly_status line(uly_comm *world, int n, const int *members, uly_comm **out_line) {
  uly_mpi *m = uly_mpi_of(world);
  ULY_TRY(uly_mpi_failed(m));
  uly_mpi *l = calloc(1, sizeof *l);
  if (!l || !call_init(&l->gather, n, 1)) {
    free(l);
    return uly_mpi_fail(m, ULY_EXHAUSTED, "no memory for a line of the grid");
  }
  l->comm = (uly_comm){.ops = world->ops, .n_ranks = n, .world = world, .members = members};
  l->crowded = m->crowded;
  l->data = l->control = MPI_COMM_NULL;
  int error = MPI_Comm_split(m->data, members[0], world->rank, &l->data);
  if (error != MPI_SUCCESS) {
    free_state(l);
    return uly_mpi_check(m, error, "MPI_Comm_split");
  }
  MPI_Comm_set_errhandler(l->data, MPI_ERRORS_RETURN);
  MPI_Comm_rank(l->data, &l->comm.rank);
  *out_line = &l->comm;
  return ULY_OK;
}

static const uly_comm_ops ops = {.name = "mpi",
                                 .mapped = false,
                                 .map = map,
                                 .unmap = unmap,
                                 .all_gather = all_gather,
                                 .open = open_channel,
                                 .close = close_channel,
                                 .post = post,
                                 .ready = ready,
                                 .send = send_data,
                                 .wait = wait_data,
                                 .abort = uly_mpi_abort,
                                 .destroy = destroy,
                                 .line = line};

static void end_mpi(void) {
  int ended = 0;
  MPI_Finalized(&ended);
  if (!ended && !atomic_load(&in_use)) MPI_Finalize();
}

static bool start_mpi(void) {
  int started = 0, ended = 0, level = 0;
  MPI_Finalized(&ended);
  MPI_Initialized(&started);
  if (ended) return false;
  if (started) return true;
  return MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS && atexit(end_mpi) == 0;
}

static bool more_ranks_than_cores(MPI_Comm comm) {
  MPI_Comm host;
  int n = 1;
  cpu_set_t set;
  if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) != MPI_SUCCESS) return true;
  MPI_Comm_size(host, &n);
  MPI_Comm_free(&host);
  return sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < n;
}

static uly_status create(const void *mpi_comm, double timeout, uly_comm **out_comm) {
  uly_mpi *m = calloc(1, sizeof *m);
  *out_comm = m ? &m->comm : NULL;
  if (!m) return ULY_EXHAUSTED;
  atomic_fetch_add(&in_use, 1);
  m->comm = (uly_comm){.ops = &ops, .n_ranks = 1, .timeout = timeout};
  m->data = m->control = MPI_COMM_NULL;
  if (!start_mpi()) return uly_comm_fail(&m->comm, ULY_UNAVAILABLE, "MPI cannot be started, or has ended");
  MPI_Comm parent = mpi_comm ? *(const MPI_Comm *)mpi_comm : MPI_COMM_WORLD;
  if (MPI_Comm_dup(parent, &m->data) != MPI_SUCCESS || MPI_Comm_dup(parent, &m->control) != MPI_SUCCESS)
    return uly_comm_fail(&m->comm, ULY_UNAVAILABLE, "MPI cannot duplicate the communicator");
  MPI_Comm_set_errhandler(m->data, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(m->control, MPI_ERRORS_RETURN);
  MPI_Comm_rank(m->data, &m->comm.rank);
  MPI_Comm_size(m->data, &m->comm.n_ranks);
  m->crowded = more_ranks_than_cores(m->data);
  size_t n = (size_t)m->comm.n_ranks;
  m->letters = malloc(n * sizeof(MPI_Request));
  m->alive = malloc(n * sizeof(MPI_Request));
  m->seen = calloc(n, sizeof *m->seen);
  m->left = calloc(n, sizeof *m->left);
  if (!m->letters || !m->alive || !m->seen || !m->left || !call_init(&m->gather, m->comm.n_ranks, 1))
    return uly_comm_fail(&m->comm, ULY_EXHAUSTED, "no memory for a communicator");
  for (size_t q = 0; q < n; q++) m->letters[q] = m->alive[q] = MPI_REQUEST_NULL;
  return ULY_OK;
}

const uly_mpi_plugin *uly_mpi_plugin_get(void);
__attribute__((visibility("default"))) const uly_mpi_plugin *uly_mpi_plugin_get(void) {
#ifdef MPICH_VERSION
#define LIBRARY "MPICH " MPICH_VERSION
#else
#define LIBRARY "MPI"
#endif
  static const uly_mpi_plugin plugin = {.api = ULY_PLUGIN_API, .comm_bytes = sizeof(uly_comm), .library = LIBRARY, .create = create};
  return &plugin;
}
