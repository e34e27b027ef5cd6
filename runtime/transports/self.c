// One rank. Nothing to wait for, nothing to send: the template for a transport.
#include <stdlib.h>
#include <string.h>

#include "runtime/base/pages.h"
#include "runtime/transports/transport.h"

static uly_status map(uly_comm *comm, size_t shared, size_t bytes, void **out_own, void **out_peers) {
  (void)shared;
  *out_own = uly_pages_alloc(bytes);
  if (!*out_own) return uly_comm_fail(comm, ULY_EXHAUSTED, "no memory for %zu bytes of receive buffers", bytes);
  out_peers[0] = *out_own;
  return ULY_OK;
}

static void unmap(uly_comm *comm, void *own, void **peers, size_t shared, size_t bytes) {
  (void)comm, (void)peers, (void)shared;
  uly_pages_free(own, bytes);
}

static uly_status all_gather(uly_comm *comm, const void *mine, size_t bytes, void *out_all) {
  (void)comm;
  if (bytes) memcpy(out_all, mine, bytes);
  return ULY_OK;
}

static uly_status open_channel(uly_comm *comm, uint32_t n_exchanges, const uint8_t program[32], uint32_t *out_channel) {
  (void)comm, (void)n_exchanges, (void)program;
  *out_channel = 0;
  return ULY_OK;
}

static void close_channel(uly_comm *comm, uint32_t channel) { (void)comm, (void)channel; }

static uly_status nothing(uly_comm *comm, uint32_t channel, const uly_route *route) {
  (void)comm, (void)channel, (void)route;
  return ULY_OK;
}

static void give_up(uly_comm *comm, const char *reason) { (void)comm, (void)reason; }
static void destroy(uly_comm *comm) { free(comm); }

static uly_status line(uly_comm *world, int n, const int *members, uly_comm **out_line) {
  *out_line = uly_comm_self();
  if (!*out_line) return uly_comm_fail(world, ULY_EXHAUSTED, "no memory for a communicator");
  ULY_ASSERT(n == 1);
  (*out_line)->world = world;
  (*out_line)->members = members;
  return ULY_OK;
}

static const uly_comm_ops ops = {.name = "self",
                                 .mapped = true,
                                 .map = map,
                                 .unmap = unmap,
                                 .all_gather = all_gather,
                                 .open = open_channel,
                                 .close = close_channel,
                                 .post = nothing,
                                 .ready = nothing,
                                 .send = nothing,
                                 .wait = nothing,
                                 .abort = give_up,
                                 .destroy = destroy,
                                 .line = line};

uly_comm *uly_comm_self(void) {
  uly_comm *comm = calloc(1, sizeof *comm);
  if (comm) *comm = (uly_comm){.ops = &ops, .n_ranks = 1};
  return comm;
}
