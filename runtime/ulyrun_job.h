// What ulyrun runs: a model, its weights, inputs, sizes and outputs, prepared once; then run by every rank, which cuts its part of the inputs and puts its part of the
// outputs in place.
#ifndef ULY_RUNTIME_ULYRUN_JOB_H
#define ULY_RUNTIME_ULYRUN_JOB_H

#include "runtime/io/weight_files.h"
#include "runtime/ulyrt.h"
#include "runtime/ulyrun_options.h"
#include "runtime/ulyrun_values.h"

enum { ULY_JOB_MAX_RANKS = 1024 };

typedef struct uly_job_tensor {
  const char *name;
  bool is_output;
  uly_dtype dtype;
  int64_t id_limit;
  uly_input_source source;        // of an input
  uly_sourced input;              // read, or all zero where the numbers are random
  uly_ndarray array;              // global shape; of an output also memory that all ranks see
  const char *write;              // of an output: the file to write, or NULL
  const uly_input_source *expect; // of an output, or NULL
  uly_sourced expected;
} uly_job_tensor;

struct uly_rank_result;

typedef struct uly_job {
  uly_arena *arena;
  const uly_run_options *options;
  ulyrt_model *model;
  uly_weight_files *weights;
  int32_t entry;
  ulyrt_entry_info info;
  int32_t n_ranks;                      // set by the caller; 0: what the grid says
  ulyrt_size *grid;                     // as given
  int32_t n_grid, axes[ULYRT_MAX_AXES]; // axes: ranks of each
  int64_t *symbols;                     // one a symbol of the model, INT64_MIN where unknown
  uly_job_tensor *tensors;
  int32_t n_tensors;
  uly_text notes;                                                                       // for the user, lines
  void (*see)(void *context, struct uly_rank_result *result, const ulyrt_value *value); // NULL, or what looks at the values of a rank's runs
  void *see_context;
} uly_job;

// What a rank found in comparing with a reference: ulyrun_check.h.
typedef struct uly_check_finding {
  bool found;
  int32_t record; // the first value of the reference's that differs
  double got, want, bound, excess;
  int64_t index[ULYRT_MAX_DIMS];
  char step[48];
  double worst; // error over the value's largest element, and whose
  int32_t worst_record;
  double closest; // the largest error over its bound
} uly_check_finding;

// What a rank brings back.
typedef struct uly_rank_result {
  int32_t status; // uly_status
  bool done;
  char error[1024];
  uint64_t sent_bytes, axis_bytes[ULYRT_MAX_AXES]; // of one run, and of that over each axis
  int64_t arena_bytes, receive_bytes, weight_bytes;
  int32_t threads;
  double bind_seconds, run_seconds; // the fastest run
  uly_check_finding finding;
} uly_rank_result;

// Loads the model and everything around it. ULY_INVALID_ARGUMENT: the command line is wrong. |job| is zeroed, with arena, options and n_ranks set.
ULY_MUST_USE uly_status uly_job_prepare(uly_job *job, uly_error *error);
void uly_job_destroy(uly_job *job);
// Binds and runs as the rank that |comm| is (NULL: the only one). |gather|: outputs are collected through |comm|, on rank 0, where memory is not shared.
void uly_job_run(const uly_job *job, ulyrt_comm *comm, bool gather, uly_rank_result *out);
// "4", or "4 (sp 1, dp 1)" where several axes have several ranks.
const char *uly_job_rank_name(const uly_job *job, int rank, char *buffer, size_t bytes);
bool uly_job_dtype(ulyrt_dtype from, uly_dtype *out);
// Prints, compares and writes the outputs.
ULY_MUST_USE uly_status uly_job_report(uly_job *job, uly_error *error);

#endif
