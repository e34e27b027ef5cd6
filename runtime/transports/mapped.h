// The protocol of ranks that map each other's memory, for transports that provide the mapping (local, shm). A transport makes a board in memory that all
// ranks map, embeds a uly_mapped in its communicator, and begins its uly_comm_ops with ULY_MAPPED_OPS; it writes map, unmap, line and destroy itself.
//
// Shared state holds no pointers and its futexes work between processes. A rank sleeps on its own bell only. Peers add to a counter in the memory of
// the rank that waits, and the last of them rings; so a wait costs at most one wake-up however many peers there are. A failure is written once, on
// the board, and rings every bell: from then on every call on every rank fails with the same status and text.
//
// A line of a world has the world's board and seats, bells and log included, and doors of its own; its gathers are the world's, of which it keeps its own part.
//
// One thread at a time may use a communicator. Exchanges of a channel are posted in the same order on all ranks; the log on the board, which also
// holds gathers, finds ranks that do not.
#ifndef ULY_RUNTIME_TRANSPORTS_MAPPED_H
#define ULY_RUNTIME_TRANSPORTS_MAPPED_H

#include "runtime/transports/transport.h"

typedef struct uly_mapped_board uly_mapped_board;
typedef struct uly_mapped_channel uly_mapped_channel;

// Memory that a board needs, and its initial state in zeroed, page-aligned memory. One rank initialises, before any other looks.
size_t uly_mapped_board_bytes(int n_ranks);
void uly_mapped_board_init(uly_mapped_board *board, int n_ranks);

typedef struct uly_mapped uly_mapped;
struct uly_mapped {
  uly_comm comm; // first: a uly_mapped * is a uly_comm *
  uly_mapped_board *board;
  uint32_t spin; // pauses before a wait sleeps; 0 where ranks outnumber cores
  // Asked about every 50 ms while a wait sleeps: the rank of a peer that is seen to have died, or -1. May be NULL. A transport that learns of a death
  // elsewhere (a watching thread) calls uly_mapped_fail instead.
  int (*find_dead)(uly_mapped *mapped);
  // Private.
  uint64_t sequence, gathers; // of a world
  uly_mapped_channel **channels;
  uint32_t n_channels;
};

// |ops|, rank, n_ranks and timeout of |mapped->comm| are set by the caller. The board must be initialised.
void uly_mapped_init(uly_mapped *mapped, uly_mapped_board *board);
// Makes |line|, which is zeroed, a line of |world|.
void uly_mapped_init_line(uly_mapped *line, uly_mapped *world, int n, const int *members);
// Frees what is private; if it is no line, tells the peers that this rank left: those who still wait for it fail with ULY_PEER_LOST.
void uly_mapped_leave(uly_mapped *mapped);
// Records a failure for all |n_ranks| of the board (which may be damaged itself) and wakes them. The first one counts. Also for threads other than the communicator's.
void uly_mapped_fail(uly_mapped_board *board, int n_ranks, uly_status status, const char *reason);
// The failure that somebody recorded, as this rank's error; ULY_OK without one.
uly_status uly_mapped_check(uly_mapped *mapped);
// A sign of life, for a transport's own waits of more than a moment: who gives none is to blame when a deadline passes.
void uly_mapped_beat(uly_mapped *mapped);
bool uly_mapped_has_left(const uly_mapped_board *board, int rank);

// Members of uly_comm_ops; |comm| is a uly_mapped.
uly_status uly_mapped_all_gather(uly_comm *comm, const void *mine, size_t bytes, void *out_all);
uly_status uly_mapped_open(uly_comm *comm, uint32_t n_exchanges, const uint8_t program[32], uint32_t *out_channel);
void uly_mapped_close(uly_comm *comm, uint32_t channel);
uly_status uly_mapped_post(uly_comm *comm, uint32_t channel, const uly_route *route);
uly_status uly_mapped_ready(uly_comm *comm, uint32_t channel, const uly_route *route);
uly_status uly_mapped_send(uly_comm *comm, uint32_t channel, const uly_route *route);
uly_status uly_mapped_wait(uly_comm *comm, uint32_t channel, const uly_route *route);
void uly_mapped_abort(uly_comm *comm, const char *reason);

#define ULY_MAPPED_OPS                                                                                                                                         \
  .mapped = true, .all_gather = uly_mapped_all_gather, .open = uly_mapped_open, .close = uly_mapped_close, .post = uly_mapped_post, .ready = uly_mapped_ready, \
  .send = uly_mapped_send, .wait = uly_mapped_wait, .abort = uly_mapped_abort

#endif
