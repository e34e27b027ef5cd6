// A bind: a model with sizes, ranks and a device; what runs. One thread at a time may use it; other binds of the same model are independent.
#ifndef ULY_RUNTIME_BOUND_H
#define ULY_RUNTIME_BOUND_H

#include "runtime/loaded.h"
#include "runtime/watch.h"

enum { ULY_FAULT_RECORD = 96 }; // bytes a rank that uly_bound.gathered has room for

typedef struct uly_bind_options {
  uly_str entry;                 // empty: the only one
  const int64_t *symbols;        // [n_symbols], ULY_NO_VALUE where unset
  uly_comm *world;               // all ranks, the first axis fastest; or NULL, and
  uly_comm *comms[ULY_MAX_AXES]; // one a grid axis; NULL: one rank. All are borrowed
  int32_t grid[ULY_MAX_AXES];    // with |world|: uly_grid_settle's |given|
  const char *device;            // NULL or "": ULYRT_DEVICE, else the first
  int threads;                   // 0: ULYRT_THREADS, else the cores divided by the ranks
  uly_watcher watcher;           // sees the values of the load phase and of every run
} uly_bind_options;

// Memory of buffers: the device's, or what the peers of an axis map.
typedef struct uly_stretch {
  int64_t bytes;
  void *memory;
  void **peers; // [P] of a mapped axis
} uly_stretch;

typedef struct uly_bound {
  uly_loaded *loaded;
  bool holds;     // loaded is held
  uint32_t entry; // row of the variant in use
  int64_t symbols[ULY_MAX_SYMBOLS];
  uly_comm *world; // or NULL, where the caller gave one a axis
  uly_comm *comms[ULY_MAX_AXES], *own_comms[ULY_MAX_AXES];
  int *members; // of the lines that are cut from the world
  uly_places places;
  uint32_t channels[ULY_MAX_AXES];
  bool opened[ULY_MAX_AXES], exchanges_on[ULY_MAX_AXES];
  uint32_t level;
  int64_t rank; // of the grid
  uly_nodes nodes;
  uly_device *device;

  uly_stretch arena, received[ULY_MAX_AXES];
  int home;            // the axis whose stretch the arena lies behind, in one piece; −1: it stands alone
  void **memory;       // [n_buffers]
  int64_t *slot_bytes; // [n_buffers]: the largest of any rank
  int64_t *offsets;    // [n_buffers] in its stretch, −1: not used
  uly_link *links;     // [n_exchanges]
  void *link_memory;
  void **tensors;          // [n_tensors]
  unsigned char *gathered; // for the faults of all ranks
  uly_machine machine;
  bool failed; // a run failed: peers are out of step
} uly_bound;

// Collective over all communicators. All ranks must agree on program, symbols, entry and sizes; where one does not, or fails by itself, all return an error that names it.
ULY_MUST_USE uly_status uly_bind(uly_loaded *loaded, const uly_bind_options *options, uly_error *error, uly_bound **out_bound);
void uly_bound_destroy(uly_bound *bound); // accepts NULL; before its communicators and its model

// |tensors|: dense row-major local shards of the entry's inputs and outputs, in the entry's order. Collective where the entry has exchanges. Allocates nothing.
ULY_MUST_USE uly_status uly_run(uly_bound *bound, void *const *tensors, uly_error *error);

// This rank cannot run: its caller gave it something wrong, which |error| says. Peers that wait for it fail; adds this rank's prefix to |error|.
void uly_run_refuse(uly_bound *bound, uly_error *error);

// Global shape, start and local shape of tensor row |tensor| of the bind's entry at this rank.
ULY_MUST_USE uly_status uly_bound_shape(const uly_bound *bound, uint32_t tensor, uly_error *error, int64_t *out_dims, int64_t *out_start, int64_t *out_local);
// "[rank 3] ", or "[rank 3] (sp 1, dp 0) ", before what |error| says, where there is more than one rank.
void uly_bound_prefix(const uly_bound *bound, uly_error *error);

// Parts of uly_bind. bind_grid.c: sizes of the axes; later, where all ranks agree, their communicators; and giving up on all of them.
ULY_MUST_USE uly_status uly_bind_grid(uly_bound *bound, const uly_bind_options *options, uly_error *error);
ULY_MUST_USE uly_status uly_bind_lines(uly_bound *bound, uly_error *error);
void uly_bind_abort(uly_bound *bound, const char *reason);
// Ranks on each axis where |given| says how many some have, 0 elsewhere: the first of those has what is left of |n_ranks|, the others have one. ULY_INVALID_ARGUMENT: that is not |n_ranks|.
ULY_MUST_USE uly_status uly_grid_settle(const uly_tables *tables, const int32_t *given, int n_ranks, uly_error *error, int32_t *out_sizes);
void uly_grid_text(const uly_tables *tables, const int32_t *sizes, char *out, size_t bytes); // "sp=3,dp=2", without axes of size 0
// bind.c: all sizes at all ranks, and the variant of the entry that runs at these.
ULY_MUST_USE uly_status uly_bind_sizes(uly_bound *bound, uly_error *error);
// bind_check.c: do the ranks agree? Each rank also brings how it fares itself.
ULY_MUST_USE uly_status uly_bind_agree(uly_bound *bound, uly_status own, uly_error *error);
ULY_MUST_USE uly_status uly_bind_agree_plan(uly_bound *bound, uly_status own, uly_error *error);
// bind_memory.c: places and memory of buffers; then, with the peers' memory mapped, the exchanges' routes.
ULY_MUST_USE uly_status uly_bind_plan(uly_bound *bound, uly_error *error);
ULY_MUST_USE uly_status uly_bind_alloc(uly_bound *bound, uly_error *error);
ULY_MUST_USE uly_status uly_bind_map(uly_bound *bound, uly_error *error);
void uly_bind_unmap(uly_bound *bound);

#endif
