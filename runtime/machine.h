// Executes a span of steps: the load phase of a model, the forward of a bind. Preparing it evaluates everything that does not change from run to run
// and allocates; running allocates nothing.
#ifndef ULY_RUNTIME_MACHINE_H
#define ULY_RUNTIME_MACHINE_H

#include "runtime/loaded.h"
#include "runtime/transports/transport.h"

// An exchange at a bind. Pointers are those of slot 0.
typedef struct uly_link {
  uly_comm *comm; // NULL: not used by this bind
  uint32_t channel;
  bool is_ready; // peers have posted since the last POST
  uly_route route;
  void **to;                  // [P]: where the message to each peer is written, the own one in the own receive buffer
  void **from;                // [P]: where the message from each peer arrives
  int64_t to_slot, from_slot; // bytes between slots, of the peers' messages and of the own receive buffer
  void *receive, *send;
} uly_link;

typedef struct uly_prepared uly_prepared;
typedef struct uly_watch uly_watch; // runtime/watch.h

typedef struct uly_machine {
  // Set by the owner before uly_machine_prepare.
  const uly_loaded *loaded;
  const uly_nodes *nodes;
  int64_t rank; // of the grid
  uly_device *device;
  const uly_kernel *kernels;
  uly_span steps;
  void *const *memory;       // [n_buffers]
  const int64_t *slot_bytes; // [n_buffers]
  uly_link *links;           // [n_exchanges], NULL in the load phase
  const bool *skip;          // [n_steps] or NULL: steps to leave out
  int log;                   // ULYRT_LOG
  bool poison;               // ULYRT_POISON
  uly_watch *watch;          // NULL: nobody looks. May be set after uly_machine_prepare
  // Changes from run to run.
  void *const *tensors; // [n_tensors]: the caller's
  uly_fault fault;
  // Private.
  uly_prepared *prepared;
  void *pool;
} uly_machine;

ULY_MUST_USE uly_status uly_machine_prepare(uly_machine *machine, uly_error *error);
// Runs all steps. A fault of a kernel does not end the run: machine->fault says so afterwards. Errors are those of the communicators.
ULY_MUST_USE uly_status uly_machine_run(uly_machine *machine, uly_error *error);
void uly_machine_finish(uly_machine *machine); // frees what prepare made
// Pointers of an operand of the program: how many, and what they are in iterations |at| of |depth| loops, its offset not added. |out| has room for all.
uint32_t uly_machine_pointers(const uly_machine *machine, const uly_operand *operand);
void uly_machine_locate(const uly_machine *machine, const uly_operand *operand, const int64_t *at, uint32_t depth, void **out);
// Work items of prepared step |step|, numbered within the span, and whether its predicate leaves it out.
int64_t uly_machine_items(const uly_machine *machine, uint32_t step, bool *out_skipped);
// Scratch that the prepared steps need in each thread.
int64_t uly_machine_scratch(const uly_machine *machine);

#endif
