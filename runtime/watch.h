// Who looks at the values of a program while it runs: the rows of its probe table, made ready for one machine. A run that nobody watches has none of it.
#ifndef ULY_RUNTIME_WATCH_H
#define ULY_RUNTIME_WATCH_H

#include "runtime/machine.h"

// A value, or the piece of it that one pointer shows.
typedef struct uly_seen {
  const uly_probe *probe;
  const uly_step *step;     // after which
  const int64_t *iteration; // of the loops around it, outermost first
  uint32_t depth;
  const void *data;
  int64_t dims[ULY_MAX_DIMS], start[ULY_MAX_DIMS], local[ULY_MAX_DIMS]; // global sizes; the piece
  int64_t stride[ULY_MAX_DIMS];                                         // elements
} uly_seen;

struct uly_watcher {
  void (*see)(void *context, const uly_seen *value); // NULL: nobody
  void *context;
};

// Those of |probes| that follow steps of the machine, which is prepared. ULY_INVALID_INPUT where one does not lie in the memory that it names. |out_watch| NULL for nobody.
ULY_MUST_USE uly_status uly_watch_create(const uly_machine *machine, uly_span probes, const uly_watcher *watcher, uly_error *error, uly_watch **out_watch);
void uly_watch_destroy(uly_watch *watch); // accepts NULL
// Shows what is there after step |step|, in the iterations |at| of |depth| loops. Called by the machine.
void uly_watch_step(uly_watch *watch, const uly_machine *machine, uint32_t step, const int64_t *at, uint32_t depth);

#endif
