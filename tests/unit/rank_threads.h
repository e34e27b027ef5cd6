// Runs a function as the ranks of a local group: a thread and a communicator each.
#ifndef ULY_TESTS_UNIT_RANK_THREADS_H
#define ULY_TESTS_UNIT_RANK_THREADS_H

#include "runtime/transports/transport.h"

enum { MAX_RANKS = 32 };

// |body| is called with each rank's communicator, which it must not destroy; it is destroyed when all have returned.
void run_ranks(int n, double timeout, void (*body)(uly_comm *comm, void *context), void *context);
// The same on given communicators.
void run_on(int n, uly_comm **comms, void (*body)(uly_comm *comm, void *context), void *context);

#endif
