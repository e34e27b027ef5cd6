// ulyrt: runs models that ulyc has compiled. The public C interface of libulyrt.
//
//   load a model.so -> set its parameters -> bind it to sizes and ranks -> run it
//
// A model is loaded once a process and may be bound any number of times, by any number of threads. A communicator and an instance belong to one rank: one thread at a time uses them.
// Ranks of one instance make the same calls in the same order.
//
// Every call that can fail returns a status and takes, last, a ulyrt_error (or NULL) for what to tell the user; texts from an instance of several ranks begin with "[rank r] ".
// Out-parameters are written on success only. Destroy functions accept NULL.
//
// ABI: structs begin with struct_size, which their INIT macro sets; newer versions append fields and read absent ones as zero. ULYRT_ABI_MAJOR changes, with the soname, when a
// function, a field or a value changes or goes; ULYRT_ABI_MINOR when something is added. Values of enums never change.
#ifndef ULYRT_H
#define ULYRT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ULYRT_ABI_MAJOR 1
#define ULYRT_ABI_MINOR 1 // 1: grid, axes, values
#define ULYRT_MAX_DIMS 6
#define ULYRT_MAX_AXES 4
#define ULYRT_MAX_LOOPS 4

typedef enum ulyrt_status {
  ULYRT_OK = 0,
  ULYRT_INVALID_ARGUMENT = 1, // the caller broke a documented rule
  ULYRT_INVALID_INPUT = 2,    // a model file, a parameter or a tensor is wrong
  ULYRT_MISMATCH = 3,         // ranks disagree
  ULYRT_UNAVAILABLE = 4,      // a device, a library or a CPU feature is not there
  ULYRT_IO = 5,
  ULYRT_PEER_LOST = 6, // another rank died, froze past the deadline, or left
  ULYRT_UNSUPPORTED = 7,
  ULYRT_EXHAUSTED = 8, // memory or threads
  ULYRT_OVERFLOW = 9,  // a size does not fit
  ULYRT_FAULT = 10,    // an index in the data is out of range
  ULYRT_CANCELLED = 11,
  ULYRT_INTERNAL = 12
} ulyrt_status;

typedef struct ulyrt_error {
  size_t struct_size;
  int32_t status;
  char text[1024];
} ulyrt_error;
#define ULYRT_ERROR_INIT {sizeof(ulyrt_error), 0, {0}}

uint32_t ulyrt_abi_version(void); // of the library: major << 16 | minor
const char *ulyrt_version(void);  // "0.1.0"
const char *ulyrt_status_text(ulyrt_status status);

// ---- tensors: DLPack's DLDataType, DLDevice and DLTensor, byte for byte ----------------------------------------------------------------------

typedef struct ulyrt_dtype {
  uint8_t code; // 0 int, 1 uint, 2 float, 4 bfloat, 6 bool
  uint8_t bits;
  uint16_t lanes;
} ulyrt_dtype;
#define ULYRT_I32 ((ulyrt_dtype){0, 32, 1})
#define ULYRT_I64 ((ulyrt_dtype){0, 64, 1})
#define ULYRT_U8 ((ulyrt_dtype){1, 8, 1})
#define ULYRT_F16 ((ulyrt_dtype){2, 16, 1})
#define ULYRT_F32 ((ulyrt_dtype){2, 32, 1})
#define ULYRT_F64 ((ulyrt_dtype){2, 64, 1})
#define ULYRT_BF16 ((ulyrt_dtype){4, 16, 1})
#define ULYRT_BOOL ((ulyrt_dtype){6, 8, 1}) // U8 is accepted for it too, as older DLPack has it

typedef struct ulyrt_device {
  int32_t type; // 1: CPU
  int32_t id;
} ulyrt_device;

// Row-major and dense: strides are NULL or say so.
typedef struct ulyrt_tensor {
  void *data;
  ulyrt_device device;
  int32_t ndim;
  ulyrt_dtype dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} ulyrt_tensor;

// ---- models ---------------------------------------------------------------------------------------------------------------------------------

typedef struct ulyrt_model ulyrt_model;

ulyrt_status ulyrt_model_load(const char *path, ulyrt_model **out_model, ulyrt_error *error);
void ulyrt_model_destroy(ulyrt_model *model); // after its instances

int32_t ulyrt_model_entries(const ulyrt_model *model); // how many; entries, tensors … are numbered from 0
int32_t ulyrt_model_params(const ulyrt_model *model);
int32_t ulyrt_model_symbols(const ulyrt_model *model);
int32_t ulyrt_model_axes(const ulyrt_model *model);

// Names live as long as the model. NULL for a number that does not exist.
const char *ulyrt_model_symbol_name(const ulyrt_model *model, int32_t symbol);
const char *ulyrt_model_axis_name(const ulyrt_model *model, int32_t axis);

typedef struct ulyrt_entry_info {
  size_t struct_size;
  const char *name;
  int32_t tensors;  // inputs and outputs, in the order of the spec
  uint32_t symbols; // bit i: needs symbol i
} ulyrt_entry_info;
#define ULYRT_ENTRY_INFO_INIT {sizeof(ulyrt_entry_info), NULL, 0, 0}
ulyrt_status ulyrt_model_entry(const ulyrt_model *model, int32_t entry, ulyrt_entry_info *out_info, ulyrt_error *error);

typedef enum ulyrt_role { ULYRT_INPUT = 0, ULYRT_OUTPUT = 1, ULYRT_PARAM = 2 } ulyrt_role;

typedef struct ulyrt_tensor_info {
  size_t struct_size;
  const char *name;
  int32_t role, ndim;
  ulyrt_dtype dtype;
  int64_t dims[ULYRT_MAX_DIMS];   // global; −1 where it depends on symbols
  int32_t symbol[ULYRT_MAX_DIMS]; // the symbol that a dim is, −1 otherwise
  int64_t id_limit;               // of integer inputs used as indices: values are 0 … id_limit − 1; 0: any
  double init;                    // parameters: value where none is set; NaN: one must be set
  int32_t is_set;                 // parameters
} ulyrt_tensor_info;
#define ULYRT_TENSOR_INFO_INIT {sizeof(ulyrt_tensor_info), NULL, 0, 0, {0, 0, 0}, {0}, {0}, 0, 0, 0}
ulyrt_status ulyrt_model_tensor(const ulyrt_model *model, int32_t entry, int32_t tensor, ulyrt_tensor_info *out_info, ulyrt_error *error);
ulyrt_status ulyrt_model_param(const ulyrt_model *model, int32_t param, ulyrt_tensor_info *out_info, ulyrt_error *error);

// Sets a parameter, of the shape that the model says and of its dtype; any float is taken for another and rounded once, to nearest even. Not while the model is bound. The
// values are copied; with ULYRT_BORROW they stay the caller's, who leaves them in place and unchanged until the model is destroyed.
enum { ULYRT_BORROW = 1 };
ulyrt_status ulyrt_model_set_param(ulyrt_model *model, const char *name, const ulyrt_tensor *tensor, uint32_t flags, ulyrt_error *error);
// Gives all parameters that are not set seeded values: a value depends on the seed, the parameter's name and the element's index alone, on any machine and version.
ulyrt_status ulyrt_model_seed_params(ulyrt_model *model, uint64_t seed, ulyrt_error *error);
// Packs the weights of |entry| now instead of in its first bind, with |threads| threads (0: ULYRT_THREADS, or as many as there are cores). Processes that are forked behind it share what was packed.
// ULYRT_INVALID_INPUT: parameters have no value.
ulyrt_status ulyrt_model_pack(ulyrt_model *model, int32_t entry, int32_t threads, ulyrt_error *error);

// What the global shape of one of an entry's tensors says about the symbols. |symbols|: one number a symbol, INT64_MIN where unknown; unknown ones are filled in, others compared.
// ULYRT_INVALID_INPUT names the tensor, the dim and both sizes.
ulyrt_status ulyrt_model_infer(const ulyrt_model *model, int32_t entry, int32_t tensor, int32_t ndim, const int64_t *dims, int64_t *symbols,
                               ulyrt_error *error);
// The global shape of one of an entry's tensors where the symbols have these values; |out_dims| has room for ULYRT_MAX_DIMS.
ulyrt_status ulyrt_model_shape(const ulyrt_model *model, int32_t entry, int32_t tensor, const int64_t *symbols, int64_t *out_dims, ulyrt_error *error);

typedef struct ulyrt_size {
  const char *symbol; // or a grid axis
  int64_t value;
} ulyrt_size;

// How many ranks each grid axis has, in the spec's order, where |grid| names some axes: {"sp", 3}, {"dp", 2}. The first one that it does not name has the ranks that are left (all
// of them, where it names none), the others that it does not name have one. ULYRT_INVALID_ARGUMENT where the product is not |n_ranks|.
// Ranks are numbered along the first axis of the spec's grid, then along the next: with `grid sp(S), dp(B)` and sp = 3, ranks 0, 1, 2 share sequences, as do 3, 4, 5. So
// neighbours exchange most, as in the process groups of DeepSpeed and Megatron. What they call data parallel ranks is such an axis: the spec's B is the batch of all of them.
ulyrt_status ulyrt_model_grid(const ulyrt_model *model, int32_t n_ranks, const ulyrt_size *grid, int32_t n_grid, int32_t *out_sizes, ulyrt_error *error);
// A value of the program that the spec says, or a piece of it, as a run has just made it. Values that a fused kernel keeps in registers are not shown.
typedef struct ulyrt_value {
  size_t struct_size;
  int32_t number;        // the same in every build of the spec
  const char *operation; // "linear"
  const char *step;      // what brought it here: "linear", "rows to heads"
  int32_t spec_line, spec_column;
  int32_t depth;                      // repeats around it, and
  int64_t iteration[ULYRT_MAX_LOOPS]; // in which iteration of each, the outermost first
  int32_t ndim;
  ulyrt_dtype dtype, spec_dtype;                                                 // in memory; in the spec
  int64_t dims[ULYRT_MAX_DIMS];                                                  // global
  int64_t start[ULYRT_MAX_DIMS], local[ULYRT_MAX_DIMS], strides[ULYRT_MAX_DIMS]; // the piece of this rank; strides in elements
  void *data;                                                                    // where it stands: later steps read what is written here
} ulyrt_value;

// The spec that the model was made from.
typedef struct ulyrt_source {
  size_t struct_size;
  const char *name;    // of its file, without folders
  const char *text;    // what it says, where the model has it (ulyc --target=reference), else ""
  uint8_t program[16]; // a hash of the checked program: text, consts and all
} ulyrt_source;
#define ULYRT_SOURCE_INIT {sizeof(ulyrt_source), NULL, NULL, {0}}
ulyrt_status ulyrt_model_source(const ulyrt_model *model, ulyrt_source *out_source, ulyrt_error *error);
// How many values an entry shows, and value |i| of them: what does not depend on sizes, the fields behind ndim but for the dtypes being zero.
int32_t ulyrt_model_values(const ulyrt_model *model, int32_t entry);
#define ULYRT_VALUE_INIT {sizeof(ulyrt_value), 0, NULL, NULL, 0, 0, 0, {0}, 0, {0, 0, 0}, {0, 0, 0}, {0}, {0}, {0}, {0}, NULL}
ulyrt_status ulyrt_model_value(const ulyrt_model *model, int32_t entry, int32_t i, ulyrt_value *out_value, ulyrt_error *error);

// ---- communicators --------------------------------------------------------------------------------------------------------------------------

typedef struct ulyrt_comm ulyrt_comm;

// The ranks are |n| threads of this process, one communicator each.
ulyrt_status ulyrt_comm_create_local(int32_t n, ulyrt_comm **out_comms, ulyrt_error *error);
// One rank of an MPI communicator (|mpi_comm| points to an MPI_Comm), or of all processes where it is NULL. Collective. Needs libulyrt_mpi.so.
ulyrt_status ulyrt_comm_create_mpi(const void *mpi_comm, ulyrt_comm **out_comm, ulyrt_error *error);

// Processes of one host over shared memory: the parent makes a group and forks; each child joins it as one rank. The parent reports children that are gone and destroys the group.
typedef struct ulyrt_group ulyrt_group;
ulyrt_status ulyrt_group_create(int32_t n, ulyrt_group **out_group, ulyrt_error *error);
ulyrt_status ulyrt_group_join(ulyrt_group *group, int32_t rank, ulyrt_comm **out_comm, ulyrt_error *error);
void ulyrt_group_report(ulyrt_group *group, int32_t rank, const char *reason);
void ulyrt_group_destroy(ulyrt_group *group);

// Ranks that the host connects. Both functions are collective, block until the data is there, and return 0 or an error of the host's, after which the communicator is of no more
// use. Deadlines are the host's affair. all_gather: everyone's |bytes|, in rank order. all_to_all: for every peer p, send_bytes[p] from send + send_offset[p], to
// receive + receive_offset[p]; own sizes are 0. abort may be NULL.
typedef struct ulyrt_callbacks {
  size_t struct_size;
  void *context;
  int32_t rank, n_ranks;
  int (*all_gather)(void *context, const void *mine, size_t bytes, void *out_all);
  int (*all_to_all)(void *context, const void *send, const int64_t *send_bytes, const int64_t *send_offset, void *receive, const int64_t *receive_bytes,
                    const int64_t *receive_offset);
  void (*abort)(void *context, const char *reason);
} ulyrt_callbacks;
#define ULYRT_CALLBACKS_INIT {sizeof(ulyrt_callbacks), NULL, 0, 1, NULL, NULL, NULL}
ulyrt_status ulyrt_comm_create_callbacks(const ulyrt_callbacks *callbacks, ulyrt_comm **out_comm, ulyrt_error *error);

void ulyrt_comm_destroy(ulyrt_comm *comm); // after the instances that use it
int32_t ulyrt_comm_rank(const ulyrt_comm *comm);
int32_t ulyrt_comm_size(const ulyrt_comm *comm);
uint64_t ulyrt_comm_sent_bytes(const ulyrt_comm *comm);        // payload that left this rank so far
void ulyrt_comm_set_timeout(ulyrt_comm *comm, double seconds); // instead of ULYRT_TIMEOUT; 0: none
// Everyone's |bytes|, the same number on all ranks, in rank order. Collective; not while an instance of this rank runs.
ulyrt_status ulyrt_comm_all_gather(ulyrt_comm *comm, const void *mine, size_t bytes, void *out_all, ulyrt_error *error);
// Tells all ranks that this one gives up: what they wait for fails with ULYRT_CANCELLED and |reason|.
void ulyrt_comm_abort(ulyrt_comm *comm, const char *reason);

// ---- instances ------------------------------------------------------------------------------------------------------------------------------

typedef struct ulyrt_instance ulyrt_instance;

typedef struct ulyrt_bind_options {
  size_t struct_size;
  const char *entry;       // NULL: the only one
  const ulyrt_size *sizes; // a value for every symbol that the entry needs
  int32_t n_sizes;
  int32_t n_comms;          // 0: one rank
  ulyrt_comm *const *comms; // one of all ranks; or one a grid axis, in the spec's order, NULL for one rank on that axis
  const char *device;       // NULL: ULYRT_DEVICE, else "cpu"
  int32_t threads;          // 0: ULYRT_THREADS, else the cores divided by the ranks
  // With one communicator of all ranks: how many of them the grid's axes have, as for ulyrt_model_grid; the same on all ranks.
  const ulyrt_size *grid;
  int32_t n_grid;
  // Called, while the model is bound (with what is computed at load) and in every run, for each value as soon as it is there, by the thread that binds or runs.
  void (*watch)(void *context, const ulyrt_value *value);
  void *watch_context;
} ulyrt_bind_options;
#define ULYRT_BIND_OPTIONS_INIT {sizeof(ulyrt_bind_options), NULL, NULL, 0, 0, NULL, NULL, 0, NULL, 0, NULL, NULL}

// Collective. Packs weights where that has not happened, checks that all ranks agree, and allocates everything that runs need.
ulyrt_status ulyrt_bind(ulyrt_model *model, const ulyrt_bind_options *options, ulyrt_instance **out_instance, ulyrt_error *error);
void ulyrt_instance_destroy(ulyrt_instance *instance);

typedef struct ulyrt_shape {
  size_t struct_size;
  int32_t ndim;
  int64_t dims[ULYRT_MAX_DIMS];  // global
  int64_t start[ULYRT_MAX_DIMS]; // where this rank's part begins
  int64_t local[ULYRT_MAX_DIMS]; // its size: the shape of the tensor that run takes
} ulyrt_shape;
#define ULYRT_SHAPE_INIT {sizeof(ulyrt_shape), 0, {0}, {0}, {0}}
ulyrt_status ulyrt_instance_shape(const ulyrt_instance *instance, int32_t tensor, ulyrt_shape *out_shape, ulyrt_error *error);

// |tensors|: the entry's inputs and outputs in its order, each this rank's part; used in place. Collective. Allocates nothing and returns when the outputs are there.
ulyrt_status ulyrt_run(ulyrt_instance *instance, const ulyrt_tensor *tensors, int32_t n_tensors, ulyrt_error *error);

typedef struct ulyrt_instance_info {
  size_t struct_size;
  const char *entry, *device, *cpu_level;
  int32_t rank, n_ranks, threads, steps;
  int64_t arena_bytes;   // of intermediate values
  int64_t receive_bytes; // of what peers write to
  int64_t scratch_bytes; // of each thread
  int64_t weight_bytes;  // packed, shared by all instances of the model
} ulyrt_instance_info;
#define ULYRT_INSTANCE_INFO_INIT {sizeof(ulyrt_instance_info), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0}
ulyrt_status ulyrt_instance_get(const ulyrt_instance *instance, ulyrt_instance_info *out_info, ulyrt_error *error);

typedef struct ulyrt_axis_info {
  size_t struct_size;
  const char *name;
  int32_t size, place;   // its ranks, and where this one is among them
  int64_t receive_bytes; // of what peers write to
  uint64_t sent_bytes;   // payload that left this rank over the axis so far; where one communicator is bound several times, of all its instances
} ulyrt_axis_info;
#define ULYRT_AXIS_INFO_INIT {sizeof(ulyrt_axis_info), NULL, 0, 0, 0, 0}
ulyrt_status ulyrt_instance_axis(const ulyrt_instance *instance, int32_t axis, ulyrt_axis_info *out_info, ulyrt_error *error);

typedef struct ulyrt_step_info {
  size_t struct_size;
  const char *kind; // "KERNEL", "LOOP", "SEND" …
  const char *name;
  int32_t spec_line, skipped;
  int64_t items;      // work items, iterations or bytes
  int64_t sent_bytes; // SEND: what leaves this rank each time
} ulyrt_step_info;
#define ULYRT_STEP_INFO_INIT {sizeof(ulyrt_step_info), NULL, NULL, 0, 0, 0, 0}
ulyrt_status ulyrt_instance_step(const ulyrt_instance *instance, int32_t step, ulyrt_step_info *out_info, ulyrt_error *error);

#ifdef __cplusplus
}
#endif
#endif
