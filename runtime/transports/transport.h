// How ranks reach each other. A transport makes one communicator a rank; a communicator moves the messages of exchanges and the small records that a bind compares.
//
// Two kinds. Where ranks can map each other's memory (self, local, shm), kernels write straight into the receivers, and the transport only tells who is
// ready and who is done. Elsewhere (mpi, callbacks) kernels write into a send buffer, and the transport moves it. The runtime asks `mapped` once.
//
// Life of an exchange in a run, on every rank and in this order (epoch counts its executions, from 1):
//   post(x)   my receive buffer may be written
//   ready(x)  returns when every peer has posted: only then may kernels write into mapped peers (nothing to wait for elsewhere)
//   send(x)   all that I wrote for the peers is complete
//   wait(x)   returns when every peer's message is in my receive buffer
//
// Every call carries a header that peers compare: a mismatch (another op, size or program) is ULY_MISMATCH on both sides, naming both. Every wait has the deadline
// of the communicator (`ULYRT_TIMEOUT` seconds, 0 = none): past it, or where a peer is seen to have died, ULY_PEER_LOST names the rank. After a failure every
// later call on the communicator fails at once, on all ranks.
#ifndef ULY_RUNTIME_TRANSPORTS_TRANSPORT_H
#define ULY_RUNTIME_TRANSPORTS_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/nodes.h"
#include "runtime/base/status.h"

typedef struct uly_comm uly_comm;

// The grid of a bind, for messages: where a rank of the world stands.
typedef struct uly_places {
  uly_grid grid;
  char names[ULY_MAX_AXES][24]; // of the axes, cut where longer
} uly_places;

// One direction of an exchange at bind: sizes and places in bytes, one a peer. The own rank's row is filled in too, but the runtime writes the message to
// itself straight into the receive buffer, mapped or not: transports never touch it, and its place in the send buffer stays unwritten.
typedef struct uly_route {
  uint32_t exchange; // number in the program
  uint32_t dtype;
  const char *name;                              // "q, k, v of llama.spec:22", for messages
  void *receive;                                 // own receive buffer
  const void *send;                              // own send buffer, NULL where memory is mapped
  const int64_t *send_bytes, *send_offset;       // to each peer
  const int64_t *receive_bytes, *receive_offset; // from each peer
} uly_route;

typedef struct uly_comm_ops {
  const char *name;
  bool mapped;
  // |bytes| of zeroed memory, page-aligned, of which peers can map the first |shared|, and perhaps more: collective, the same numbers on all ranks. out_peers: where each rank's
  // stands in this process (own included); not used where !mapped.
  uly_status (*map)(uly_comm *comm, size_t shared, size_t bytes, void **out_own, void **out_peers);
  void (*unmap)(uly_comm *comm, void *own, void **peers, size_t shared, size_t bytes);
  // Everyone's record, in rank order. Collective; checks that all call it with equal |bytes|.
  uly_status (*all_gather)(uly_comm *comm, const void *mine, size_t bytes, void *out_all);
  // Announces how many exchanges the bind has: state for them is made here, so that nothing is allocated later. Collective. Returns a channel for this bind.
  uly_status (*open)(uly_comm *comm, uint32_t n_exchanges, const uint8_t program[32], uint32_t *out_channel);
  void (*close)(uly_comm *comm, uint32_t channel);
  uly_status (*post)(uly_comm *comm, uint32_t channel, const uly_route *route);
  uly_status (*ready)(uly_comm *comm, uint32_t channel, const uly_route *route);
  uly_status (*send)(uly_comm *comm, uint32_t channel, const uly_route *route);
  uly_status (*wait)(uly_comm *comm, uint32_t channel, const uly_route *route);
  // Tells all ranks that this one gives up, for |reason|.
  void (*abort)(uly_comm *comm, const char *reason);
  void (*destroy)(uly_comm *comm); // accepts a failed communicator
  // A line of |world|: a communicator of |n| of its ranks, |members|, ascending, the own one among them. Collective over |world|, of which every rank is in one line.
  // See uly_comm_line.
  uly_status (*line)(uly_comm *world, int n, const int *members, uly_comm **out_line);
} uly_comm_ops;

// What every communicator starts with.
struct uly_comm {
  const uly_comm_ops *ops;
  int rank, n_ranks;
  double timeout;           // seconds, 0 = none
  char error[640];          // of the last failure, without a "[rank r]" prefix
  uint64_t sent_bytes;      // payload bytes that left this rank, own messages to itself not counted
  bool busy;                // the transport may read and write the buffers of routes; after a failure in between they have to stay as long as the process
  uly_comm *world;          // of a line: what it is cut from, else NULL
  const int *members;       // of a line: its ranks in the world, by its own numbers
  const uly_places *places; // of a line
};

uly_comm *uly_comm_self(void);
// |n| communicators for |n| threads of this process; each is destroyed by its own rank.
ULY_MUST_USE uly_status uly_comm_local_create(int n, uly_comm **out_comms);

// Cuts |world| into lines: ranks that communicate among themselves while they share one fate. A failure anywhere is everyone's; messages call ranks by their number in the
// world and their place on the grid. The lines of a world and the world itself are used by one thread a rank, which makes the same calls in the same order on all of them; gathers and
// mappings of lines may wait for the whole world. A line ends before its world, |members| and |places|.
ULY_MUST_USE uly_status uly_comm_line(uly_comm *world, int n, const int *members, const uly_places *places, uly_comm **out_line);
static inline int uly_comm_member(const uly_comm *comm, int rank) { return comm->members ? comm->members[rank] : rank; }
static inline uly_comm *uly_comm_world(uly_comm *comm) { return comm->world ? comm->world : comm; }
// Counts payload that left this rank.
static inline void uly_comm_count_sent(uly_comm *comm, int64_t bytes) {
  comm->sent_bytes += (uint64_t)bytes;
  if (comm->world) comm->world->sent_bytes += (uint64_t)bytes;
}
// "sp 1, dp 0", or nothing where no two axes have several ranks.
void uly_places_print(const uly_places *places, int64_t rank, char *out, size_t bytes);
// "4", or "4 (sp 1, dp 0)" in a line.
typedef struct uly_rank_name {
  char text[96];
} uly_rank_name;
uly_rank_name uly_comm_name(const uly_comm *comm, int rank);
uly_rank_name uly_comm_member_name(const uly_comm *comm, int member); // by its number in the world

// Records |format| as |comm|'s error and returns |status|.
uly_status uly_comm_fail(uly_comm *comm, uly_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
