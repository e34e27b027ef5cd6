// Ranks that are processes of one host. A launcher makes a group and forks; each child joins it as one rank. All memory is anonymous and passed between the processes
// as file descriptors, so nothing has a name and nothing is left behind, however a process ends.
#ifndef ULY_RUNTIME_TRANSPORTS_SHM_H
#define ULY_RUNTIME_TRANSPORTS_SHM_H

#include "runtime/transports/transport.h"

typedef struct uly_shm_group uly_shm_group;

enum { ULY_SHM_MAX_RANKS = 128 };

// Before the fork; 1 to ULY_SHM_MAX_RANKS ranks. ULY_EXHAUSTED, ULY_IO or ULY_INVALID_ARGUMENT.
ULY_MUST_USE uly_status uly_shm_group_create(int n_ranks, uly_shm_group **out);
// In a child, once: becomes |rank|, and waits until all ranks have joined. Takes the child's copy of |group| over. On failure |out_comm| is NULL or a failed
// communicator whose error says why.
ULY_MUST_USE uly_status uly_shm_group_join(uly_shm_group *group, int rank, double timeout, uly_comm **out_comm);
// In the launcher: rank |rank| is gone, for |reason|. Ranks see deaths themselves; this covers those that die before they join.
void uly_shm_group_report(uly_shm_group *group, int rank, const char *reason);
// In the launcher; accepts NULL. Does not disturb the children.
void uly_shm_group_destroy(uly_shm_group *group);

#endif
