// A loaded model: its tables, its code, its parameters, and what the load phase makes of them (packed weights). Nothing in it depends on ranks or symbols, so all binds of
// a process share it: any number of threads may bind it and run the binds at the same time. Parameters are set while no bind exists.
#ifndef ULY_RUNTIME_LOADED_H
#define ULY_RUNTIME_LOADED_H

#include <pthread.h>
#include <stdbool.h>

#include "runtime/base/nodes.h"
#include "runtime/devices/device.h"
#include "runtime/tables.h"

// One parameter: one name of a parameter tensor.
typedef struct uly_param {
  const void *data; // NULL: not set yet
  void *owned;      // where the model holds the copy
} uly_param;

typedef struct uly_loaded {
  uly_tables tables;
  uint32_t n_levels, level; // level: the best that this processor runs
  uly_level levels[ULY_MAX_LEVELS];
  const uly_kernel *kernels[ULY_MAX_LEVELS];
  void *library; // of dlopen, or NULL

  int64_t *constants;    // values of the nodes that depend on no symbol and no rank
  uly_nodes nodes;       // to read them
  uint32_t *first_param; // [n_tensors]: where its names start in `params`
  uly_param *params;
  uint32_t n_params;

  pthread_mutex_t mutex; // guards what follows
  int n_binds;
  void **memory;       // [n_buffers]: LOAD buffers, NULL where not made yet
  int64_t *slot_bytes; // [n_buffers]
  bool *step_done;     // [n_steps]
} uly_loaded;

// Reads |path| before it maps it: not ours, truncated, another ABI, missing CPU features and code that would run on load are refused.
ULY_MUST_USE uly_status uly_loaded_open(const char *path, uly_error *error, uly_loaded **out_loaded);
// The same for a model that is linked in or made by hand; |model| must outlive the result.
ULY_MUST_USE uly_status uly_loaded_create(const uly_model *model, uly_error *error, uly_loaded **out_loaded);
// What the file says of itself, without mapping it as code, whatever the processor: the note and the tables (uly_tables_free).
ULY_MUST_USE uly_status uly_model_inspect(const char *path, uly_error *error, uly_note *out_note, uly_tables *out_tables);
// The same of a file that stands in memory.
ULY_MUST_USE uly_status uly_model_inspect_bytes(const char *name, void *bytes, size_t n, uly_error *error, uly_note *out_note, uly_tables *out_tables);
void uly_loaded_destroy(uly_loaded *loaded); // after its binds; accepts NULL

// The level to use: the last whose features are all in |features| and that is not beyond |limit| ("" or NULL: none). ULY_UNAVAILABLE names what is missing.
// What the processor has of what |levels| need.
uint32_t uly_level_features(const uly_level *levels, uint32_t n);
ULY_MUST_USE uly_status uly_level_choose(const uly_level *levels, uint32_t n, uint32_t features, const char *limit, uly_error *error, uint32_t *out_level);

// ---- parameters (param_values.c) ----
typedef struct uly_param_info {
  uly_str name;
  uint32_t dtype, rank;
  int64_t dims[ULY_MAX_DIMS];
  int64_t elements, bytes;
  double init; // NaN: needs a value
  bool is_set;
} uly_param_info;

// Parameter |index| < loaded->n_params. Several may have one name, where entries share it.
ULY_MUST_USE uly_status uly_param_get(const uly_loaded *loaded, uint32_t index, uly_error *error, uly_param_info *out_info);
// Row-major |data| of dtype |dtype| and shape |dims| for all parameters named |name|. It is copied, or with |borrow| stays the caller's, unchanged until the model is destroyed.
// ULY_INVALID_ARGUMENT: no such parameter (names the nearest), another shape or dtype, or a bind exists.
ULY_MUST_USE uly_status uly_param_set(uly_loaded *loaded, uly_str name, uint32_t dtype, uint32_t rank, const int64_t *dims, const void *data, bool borrow,
                                      uly_error *error);
// Gives every parameter that is not set, its constant init included, a value from base/random.h.
ULY_MUST_USE uly_status uly_param_seed(uly_loaded *loaded, uint64_t seed, uly_error *error);

// ---- load phase (load_phase.c) ----
typedef struct uly_watcher uly_watcher; // runtime/watch.h
// Runs the load steps of |entry| that have not run yet, on |device| with the kernels of |level|. Parameters without a value take their constant; ULY_INVALID_ARGUMENT lists
// those that have none. Counts as a bind from here on, whatever it returns. Where |watcher| looks, and nobody else has bound the model, all steps run.
ULY_MUST_USE uly_status uly_loaded_hold(uly_loaded *loaded, uint32_t entry, uly_device *device, uint32_t level, const uly_watcher *watcher, uly_error *error);
void uly_loaded_release(uly_loaded *loaded);
// The load phase of |entry| alone, on a device of its own, with |threads| (0: as the environment says, or the cores).
ULY_MUST_USE uly_status uly_loaded_pack(uly_loaded *loaded, uint32_t entry, int threads, uly_error *error);
// Sets |marks|[i] to |mark| for every LOAD buffer i, constants aside, that steps of |entry| touch in the phases [begin, end).
void uly_load_mark(const uly_tables *tables, uint32_t entry, int begin, int end, bool mark, bool *marks);
// Bytes of a LOAD buffer: of a slot, in whole cache lines, and of all.
ULY_MUST_USE uly_status uly_load_bytes(const uly_tables *tables, const uly_nodes *nodes, uint32_t buffer, uly_error *error, int64_t *out_slot,
                                       int64_t *out_total);

#endif
