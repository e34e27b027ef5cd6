// Ranks that are threads of one process. Memory is shared as it is; the protocol is mapped.c's.
//
// Memory that one rank maps is written by its peers, who may be at work when it gives up. So a region lives until every rank has unmapped it, and
// what a failure left mapped lives as long as the group.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/pages.h"
#include "runtime/transports/mapped.h"

typedef struct region {
  struct region *next;
  void *memory;
  size_t bytes;
  int users;
} region;

typedef struct group {
  pthread_mutex_t mutex; // guards what follows
  region *regions;
  int members;
  uly_mapped_board *board;
} group;

typedef struct local {
  uly_mapped mapped; // first
  group *group;
} local;

static local *of(uly_comm *comm) { return (local *)(void *)comm; }

static void region_free(group *g, region *r) {
  for (region **at = &g->regions; *at; at = &(*at)->next)
    if (*at == r) {
      *at = r->next;
      break;
    }
  uly_pages_free(r->memory, r->bytes);
  free(r);
}

static region *region_create(group *g, size_t bytes, int users) {
  region *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->users = users;
  r->bytes = bytes;
  r->memory = uly_pages_alloc(bytes);
  if (!r->memory) return free(r), NULL;
  pthread_mutex_lock(&g->mutex);
  r->next = g->regions;
  g->regions = r;
  pthread_mutex_unlock(&g->mutex);
  return r;
}

static uly_status map(uly_comm *comm, size_t shared, size_t bytes, void **out_own, void **out_peers) {
  (void)shared;
  struct {
    void *memory;
    uint64_t bytes;
  } mine = {0}, theirs;
  region *own = region_create(of(comm)->group, bytes, comm->n_ranks);
  if (own) mine.memory = own->memory;
  mine.bytes = bytes;
  size_t n = (size_t)comm->n_ranks;
  unsigned char *all = calloc(n, sizeof mine);
  if (!all) {
    comm->ops->abort(comm, "no memory to map receive buffers");
    return uly_comm_fail(comm, ULY_EXHAUSTED, "no memory to map receive buffers");
  }
  uly_status status = comm->ops->all_gather(comm, &mine, sizeof mine, all);
  for (size_t q = 0; status == ULY_OK && q < n; q++) {
    memcpy(&theirs, all + q * sizeof theirs, sizeof theirs);
    out_peers[q] = theirs.memory;
    if (!theirs.memory)
      status = uly_comm_fail(comm, ULY_EXHAUSTED, "rank %s has no memory for %zu bytes of receive buffers", uly_comm_name(comm, (int)q).text, bytes);
    else if (theirs.bytes != bytes)
      status = uly_comm_fail(comm, ULY_MISMATCH, "rank %s maps %zu bytes, rank %s %llu", uly_comm_name(comm, comm->rank).text, bytes,
                             uly_comm_name(comm, (int)q).text, (unsigned long long)theirs.bytes);
  }
  free(all);
  *out_own = status == ULY_OK ? mine.memory : NULL;
  return status;
}

static void unmap(uly_comm *comm, void *own, void **peers, size_t shared, size_t bytes) {
  (void)own, (void)shared, (void)bytes;
  group *g = of(comm)->group;
  pthread_mutex_lock(&g->mutex);
  for (int q = 0; q < comm->n_ranks; q++)
    for (region *r = g->regions; r; r = r->next)
      if (r->memory == peers[q]) {
        if (--r->users == 0) region_free(g, r);
        break;
      }
  pthread_mutex_unlock(&g->mutex);
}

static void group_free(group *g) {
  while (g->regions) region_free(g, g->regions);
  free(g->board);
  pthread_mutex_destroy(&g->mutex);
  free(g);
}

static void destroy(uly_comm *comm) {
  group *g = of(comm)->group;
  uly_mapped_leave(&of(comm)->mapped);
  if (comm->world) {
    free(comm);
    return;
  }
  pthread_mutex_lock(&g->mutex);
  int left = --g->members;
  pthread_mutex_unlock(&g->mutex);
  free(comm);
  if (left == 0) group_free(g);
}

static uly_status line(uly_comm *world, int n, const int *members, uly_comm **out_line) {
  local *l = calloc(1, sizeof *l);
  if (!l) {
    world->ops->abort(world, "no memory for a line of the grid");
    return uly_comm_fail(world, ULY_EXHAUSTED, "no memory for a line of the grid");
  }
  l->group = of(world)->group;
  uly_mapped_init_line(&l->mapped, &of(world)->mapped, n, members);
  *out_line = &l->mapped.comm;
  return ULY_OK;
}

static const uly_comm_ops ops = {ULY_MAPPED_OPS, .name = "local", .map = map, .unmap = unmap, .destroy = destroy, .line = line};

uly_status uly_comm_local_create(int n, uly_comm **out_comms) {
  if (n < 1) return ULY_INVALID_ARGUMENT;
  group *g = calloc(1, sizeof *g);
  if (!g) return ULY_EXHAUSTED;
  size_t bytes = uly_mapped_board_bytes(n);
  g->board = aligned_alloc(4096, bytes);
  if (!g->board) return free(g), ULY_EXHAUSTED;
  uly_mapped_board_init(g->board, n);
  pthread_mutex_init(&g->mutex, NULL);
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  for (int r = 0; r < n; r++) {
    local *c = calloc(1, sizeof *c);
    if (!c) {
      for (int i = 0; i < r; i++) free(out_comms[i]);
      group_free(g);
      return ULY_EXHAUSTED;
    }
    c->group = g;
    c->mapped.comm = (uly_comm){.ops = &ops, .rank = r, .n_ranks = n};
    c->mapped.spin = n <= cores ? 2000 : 0;
    uly_mapped_init(&c->mapped, g->board);
    g->members++;
    out_comms[r] = &c->mapped.comm;
  }
  return ULY_OK;
}
