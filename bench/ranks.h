// Ranks of a benchmark, threads or processes.
#ifndef ULY_BENCH_RANKS_H
#define ULY_BENCH_RANKS_H

#include "bench/rank_timing.h"
#include "runtime/transports/transport.h"

// What one rank does; it destroys |comm| itself. |argument| is the same for all.
typedef void ranks_body(uly_comm *comm, timing *shared, void *argument);

// Runs |body| on |n| ranks over "local" (threads) or "shm" (processes), and returns when all have ended. What goes wrong ends the program.
void ranks_run(const char *transport, int n, ranks_body *body, void *argument);

#endif
