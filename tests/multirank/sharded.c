// Sharded = unsharded, bit for bit: every entry of a list (make_configs.py) is loaded once and bound to 1 … 8 and 16 ranks; outputs are put together and compared
// with one rank's.
//
//   sharded local CONFIGS HASHES           ranks are threads; writes one hash an entry
//   mpirun -n P sharded mpi CONFIGS HASHES ranks are processes; compares with those hashes
//   sharded threads CONFIGS HASHES         one rank with 2 threads
//
// Where the model's grid has two axes, each entry takes one of the ways to put so many ranks on it.
// Inputs depend on the entry's number, the tensor's name and the global index alone. Outputs are NaN before a run. Ends with "N passed, N failed".
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/ulyrt.h"

enum { MAX_RANKS = 16, MAX_TENSORS = 16, MAX_SIZES = 4 };

typedef struct config {
  char path[512], entry[64];
  ulyrt_size sizes[MAX_SIZES];
  char symbols[MAX_SIZES][16];
  int n_sizes;
  uint64_t number;
} config;

typedef struct job { // one entry on one number of ranks
  const config *c;
  ulyrt_model *model;
  ulyrt_comm *comm;
  int threads;
  int n_tensors;
  int32_t entry;
  void **global; // outputs, by tensor; put together by all ranks
  char error[1200];
} job;

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static uint64_t seed_of(const config *c, const char *name) {
  uint64_t h = 14695981039346656037u ^ mix(c->number + 1);
  for (; *name; name++) h = (h ^ (unsigned char)*name) * 1099511628211u;
  return h;
}

static bool fail(job *j, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!j->error[0]) vsnprintf(j->error, sizeof j->error, format, args);
  va_end(args);
  return false;
}

static size_t elements(const int64_t *dims, int n) {
  size_t total = 1;
  for (int d = 0; d < n; d++) total *= (size_t)dims[d];
  return total;
}

// Calls |visit| with the offsets in the local and in the global tensor of every element of this rank's part.
static void for_each(const ulyrt_shape *s, void (*visit)(void *context, size_t local, size_t global), void *context) {
  size_t n = elements(s->local, s->ndim);
  for (size_t i = 0; i < n; i++) {
    size_t rest = i, global = 0, stride = 1;
    for (int d = s->ndim - 1; d >= 0; d--) {
      size_t index = rest % (size_t)s->local[d];
      rest /= (size_t)s->local[d];
      global += (index + (size_t)s->start[d]) * stride;
      stride *= (size_t)s->dims[d];
    }
    visit(context, i, global);
  }
}

static size_t bytes_of(ulyrt_dtype dtype) { return dtype.bits / 8; }

// Exponents of f16 and bf16.
static int exponent_bits(ulyrt_dtype dtype) { return dtype.code == 2 ? 5 : 8; }

typedef struct fill {
  uint64_t seed;
  ulyrt_dtype dtype;
  void *data;
} fill;

// Of either sign, from 1/32 up to 1.
static uint16_t random_half(ulyrt_dtype dtype, uint64_t r) {
  int mantissa = 15 - exponent_bits(dtype);
  uint64_t exponent = (1u << (exponent_bits(dtype) - 1)) - 2 - (r >> 32) % 5;
  return (uint16_t)((r & 0x8000) | exponent << mantissa | (r & ((1u << mantissa) - 1)));
}

static void fill_one(void *context, size_t local, size_t global) {
  fill *f = context;
  uint64_t r = mix(f->seed + global);
  if (bytes_of(f->dtype) == 2)
    ((uint16_t *)f->data)[local] = random_half(f->dtype, r);
  else if (f->dtype.code == 2)
    ((float *)f->data)[local] = (float)((double)(r >> 11) * 0x1p-52 - 1.0); // [-1, 1)
  else
    ((int32_t *)f->data)[local] = (int32_t)(r % 3);
}

typedef struct collect {
  const char *local;
  char *global;
  size_t bytes;
} collect;

static void collect_one(void *context, size_t local, size_t global) {
  collect *c = context;
  memcpy(c->global + global * c->bytes, c->local + local * c->bytes, c->bytes);
}

static bool run_bound(job *j, ulyrt_instance *instance) {
  ulyrt_error error = ULYRT_ERROR_INIT;
  ulyrt_tensor tensors[MAX_TENSORS] = {0};
  ulyrt_shape shapes[MAX_TENSORS];
  ulyrt_tensor_info infos[MAX_TENSORS];
  for (int t = 0; t < j->n_tensors; t++) {
    shapes[t] = (ulyrt_shape)ULYRT_SHAPE_INIT;
    infos[t] = (ulyrt_tensor_info)ULYRT_TENSOR_INFO_INIT;
    if (ulyrt_model_tensor(j->model, j->entry, t, &infos[t], &error) || ulyrt_instance_shape(instance, t, &shapes[t], &error)) return fail(j, "%s", error.text);
    size_t bytes = elements(shapes[t].local, shapes[t].ndim) * bytes_of(infos[t].dtype);
    void *data = malloc(bytes + 4);
    tensors[t] = (ulyrt_tensor){.data = data, .device = {1, 0}, .ndim = shapes[t].ndim, .dtype = infos[t].dtype, .shape = shapes[t].local};
    if (infos[t].role == ULYRT_INPUT)
      for_each(&shapes[t], fill_one, &(fill){seed_of(j->c, infos[t].name), infos[t].dtype, data});
    else
      memset(data, 0xff, bytes);
  }
  bool ok = true;
  for (int again = 0; ok && again < 2; again++) // the second run finds what the first one left in the arena
    if (ulyrt_run(instance, tensors, j->n_tensors, &error)) ok = fail(j, "%s", error.text);
  for (int t = 0; t < j->n_tensors; t++) {
    if (ok && infos[t].role == ULYRT_OUTPUT) for_each(&shapes[t], collect_one, &(collect){tensors[t].data, j->global[t], bytes_of(infos[t].dtype)});
    free(tensors[t].data);
  }
  return ok;
}

// The ranks of the first axis: a divisor of |n|, another one for each entry.
static int64_t first_axis(uint64_t number, int n) {
  int divisors = 0, found = 0;
  for (int d = 1; d <= n; d++) divisors += n % d == 0;
  int chosen = (int)(number % (uint64_t)divisors);
  for (int d = 1; d <= n; d++)
    if (n % d == 0 && found++ == chosen) return d;
  return n;
}

static void *run_rank(void *argument) {
  job *j = argument;
  ulyrt_error error = ULYRT_ERROR_INIT;
  ulyrt_bind_options options = ULYRT_BIND_OPTIONS_INIT;
  ulyrt_size grid = {ulyrt_model_axis_name(j->model, 0), first_axis(j->c->number, ulyrt_comm_size(j->comm))};
  options.grid = &grid, options.n_grid = ulyrt_model_axes(j->model) > 1;
  options.entry = j->c->entry, options.sizes = j->c->sizes, options.n_sizes = j->c->n_sizes;
  options.comms = &j->comm, options.n_comms = 1, options.threads = j->threads;
  ulyrt_instance *instance = NULL;
  if (ulyrt_bind(j->model, &options, &instance, &error))
    fail(j, "%s", error.text);
  else
    run_bound(j, instance);
  if (j->error[0] && j->comm) ulyrt_comm_abort(j->comm, "the test failed");
  ulyrt_instance_destroy(instance);
  return NULL;
}

// ---- one entry

typedef struct outputs {
  int n;
  void *data[MAX_TENSORS];
  size_t bytes[MAX_TENSORS];
  ulyrt_dtype dtypes[MAX_TENSORS];
} outputs;

static bool prepare(job *j, outputs *out) {
  ulyrt_error error = ULYRT_ERROR_INIT;
  ulyrt_entry_info info = ULYRT_ENTRY_INFO_INIT;
  for (j->entry = 0; j->entry < ulyrt_model_entries(j->model); j->entry++) {
    if (ulyrt_model_entry(j->model, j->entry, &info, &error)) return fail(j, "%s", error.text);
    if (strcmp(info.name, j->c->entry) == 0) break;
  }
  if (j->entry == ulyrt_model_entries(j->model)) return fail(j, "no entry %s", j->c->entry);
  j->n_tensors = out->n = info.tensors;
  for (int t = 0; t < info.tensors; t++) {
    ulyrt_tensor_info tensor = ULYRT_TENSOR_INFO_INIT;
    if (ulyrt_model_tensor(j->model, j->entry, t, &tensor, &error)) return fail(j, "%s", error.text);
    if (tensor.role != ULYRT_OUTPUT) continue;
    size_t n = 1;
    for (int d = 0; d < tensor.ndim; d++) {
      int64_t size = tensor.dims[d];
      for (int s = 0; size < 0 && s < j->c->n_sizes; s++)
        if (tensor.symbol[d] >= 0 && strcmp(j->c->sizes[s].symbol, ulyrt_model_symbol_name(j->model, tensor.symbol[d])) == 0) size = j->c->sizes[s].value;
      n *= (size_t)size;
    }
    out->dtypes[t] = tensor.dtype;
    out->bytes[t] = n * bytes_of(tensor.dtype);
    out->data[t] = malloc(out->bytes[t] + 4);
    memset(out->data[t], 0xfe, out->bytes[t]);
  }
  j->global = out->data;
  return true;
}

static void destroy(outputs *out) {
  for (int t = 0; t < out->n; t++) free(out->data[t]);
}

static bool run_local(const config *c, ulyrt_model *model, int n, int threads, outputs *out, char *message) {
  ulyrt_error error = ULYRT_ERROR_INIT;
  ulyrt_comm *comms[MAX_RANKS];
  job jobs[MAX_RANKS] = {0};
  pthread_t ids[MAX_RANKS];
  *out = (outputs){0};
  if (ulyrt_comm_create_local(n, comms, &error)) return snprintf(message, 1200, "%s", error.text), false;
  for (int r = 0; r < n; r++) {
    jobs[r] = (job){.c = c, .model = model, .comm = comms[r], .threads = threads};
    if (r == 0) prepare(&jobs[0], out);
    if (r) jobs[r].entry = jobs[0].entry, jobs[r].n_tensors = jobs[0].n_tensors, jobs[r].global = out->data;
  }
  for (int r = 0; r < n; r++) pthread_create(&ids[r], NULL, run_rank, &jobs[r]);
  bool ok = true;
  for (int r = 0; r < n; r++) {
    pthread_join(ids[r], NULL);
    if (jobs[r].error[0] && ok) ok = false, snprintf(message, 1200, "%s", jobs[r].error);
  }
  for (int r = 0; r < n; r++) ulyrt_comm_destroy(comms[r]);
  return ok;
}

static uint64_t hash_of(const outputs *out) {
  uint64_t h = 14695981039346656037u;
  for (int t = 0; t < out->n; t++)
    for (size_t i = 0; i < out->bytes[t]; i++) h = (h ^ ((unsigned char *)out->data[t])[i]) * 1099511628211u;
  return h;
}

static bool is_nan(const outputs *out, int t, size_t i) {
  if (bytes_of(out->dtypes[t]) == 4) return isnan(((float *)out->data[t])[i]);
  uint16_t exponents = (uint16_t)(0x7fff & ~((1u << (15 - exponent_bits(out->dtypes[t]))) - 1));
  return (((uint16_t *)out->data[t])[i] & 0x7fff) > exponents;
}

static bool has_nan(const outputs *out) {
  for (int t = 0; t < out->n; t++)
    for (size_t i = 0; out->bytes[t] && i < out->bytes[t] / bytes_of(out->dtypes[t]); i++)
      if (is_nan(out, t, i)) return true;
  return false;
}

static bool same(const outputs *a, const outputs *b) {
  for (int t = 0; t < a->n; t++)
    if (a->bytes[t] && memcmp(a->data[t], b->data[t], a->bytes[t]) != 0) return false;
  return true;
}

static bool check_local(const config *c, ulyrt_model *model, uint64_t *out_hash, char *message) {
  static const int ranks[] = {2, 3, 4, 5, 6, 7, 8, 16};
  outputs one, many;
  bool ok = run_local(c, model, 1, 1, &one, message);
  if (ok && has_nan(&one)) ok = false, snprintf(message, 1200, "an output is NaN, or was not written");
  *out_hash = hash_of(&one);
  for (size_t i = 0; ok && i < sizeof ranks / sizeof *ranks; i++) {
    ok = run_local(c, model, ranks[i], 1, &many, message);
    if (ok && !same(&one, &many)) ok = false, snprintf(message, 1200, "%d ranks give other bits than one", ranks[i]);
    destroy(&many);
  }
  destroy(&one);
  return ok;
}

static bool check_threads(const config *c, ulyrt_model *model, uint64_t expected, char *message) {
  outputs out;
  bool ok = run_local(c, model, 1, 2, &out, message);
  if (ok && hash_of(&out) != expected) ok = false, snprintf(message, 1200, "two threads give other bits than one");
  destroy(&out);
  return ok;
}

// ---- under mpirun: outputs live in a file that all ranks map, with two counters in front

typedef struct board {
  _Atomic uint64_t written, checked; // ranks that have written their parts; entries that rank 0 has checked
  _Alignas(64) unsigned char data[];
} board;
enum { BOARD_BYTES = 16 << 20 };

static board *shared_board;

static bool wait_for(_Atomic uint64_t *counter, uint64_t value) {
  for (int i = 0; i < 60000; i++) {
    if (atomic_load(counter) >= value) return true;
    usleep(1000);
  }
  return false;
}

static board *open_board(const char *hashes) {
  char path[600];
  snprintf(path, sizeof path, "%s.board", hashes);
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, BOARD_BYTES)) return NULL;
  board *b = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return b == MAP_FAILED ? NULL : b;
}

// The outputs' memory moves to the board; all ranks agree on the places.
static bool place_on_board(outputs *out) {
  size_t at = 0;
  for (int t = 0; t < out->n; t++) {
    free(out->data[t]);
    out->data[t] = shared_board->data + at;
    at += (out->bytes[t] + 63) & ~(size_t)63;
  }
  return at <= BOARD_BYTES - sizeof(board);
}

static bool check_mpi(const config *c, ulyrt_model *model, ulyrt_comm *comm, uint64_t expected, char *message) {
  outputs out = {0};
  job j = {.c = c, .model = model, .comm = comm, .threads = 1};
  uint64_t n = (uint64_t)ulyrt_comm_size(comm);
  bool ok = prepare(&j, &out) && place_on_board(&out);
  if (ok) run_rank(&j);
  snprintf(message, 1200, "%s", j.error);
  ok = ok && !j.error[0];
  static uint64_t turn; // of this process: entries so far
  turn++;
  atomic_fetch_add(&shared_board->written, 1);
  if (ulyrt_comm_rank(comm) == 0) {
    ok = wait_for(&shared_board->written, n * turn) && ok;
    if (ok && hash_of(&out) != expected) ok = false, snprintf(message, 1200, "%lu ranks under mpirun give other bits than one", n);
    atomic_fetch_add(&shared_board->checked, 1);
  }
  return wait_for(&shared_board->checked, turn) && ok;
}

// ---- the list

static bool read_config(FILE *in, config *c, uint64_t number) {
  char line[1024];
  if (!fgets(line, sizeof line, in)) return false;
  *c = (config){.number = number};
  char *rest = line, *word = strtok_r(rest, " \n", &rest);
  snprintf(c->path, sizeof c->path, "%s", word);
  snprintf(c->entry, sizeof c->entry, "%s", strtok_r(NULL, " \n", &rest));
  while ((word = strtok_r(NULL, " \n", &rest)) && c->n_sizes < MAX_SIZES) {
    char *equals = strchr(word, '=');
    snprintf(c->symbols[c->n_sizes], sizeof c->symbols[0], "%.*s", (int)(equals - word), word);
    c->sizes[c->n_sizes].symbol = c->symbols[c->n_sizes];
    c->sizes[c->n_sizes++].value = atoll(equals + 1);
  }
  return true;
}

static ulyrt_model *load(const config *c, char *message) {
  ulyrt_error error = ULYRT_ERROR_INIT;
  ulyrt_model *model = NULL;
  if (ulyrt_model_load(c->path, &model, &error) || ulyrt_model_seed_params(model, 1, &error)) {
    snprintf(message, 1200, "%s", error.text);
    ulyrt_model_destroy(model);
    return NULL;
  }
  return model;
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: sharded local|threads|mpi CONFIGS HASHES\n"), 2;
  bool local = strcmp(argv[1], "local") == 0, mpi = strcmp(argv[1], "mpi") == 0;
  FILE *list = fopen(argv[2], "r"), *hashes = fopen(argv[3], local ? "w" : "r");
  if (!list || !hashes) return fprintf(stderr, "cannot open %s or %s\n", argv[2], argv[3]), 2;
  ulyrt_comm *comm = NULL;
  ulyrt_error error = ULYRT_ERROR_INIT;
  if (mpi && (ulyrt_comm_create_mpi(NULL, &comm, &error) || !(shared_board = open_board(argv[3])))) return fprintf(stderr, "%s\n", error.text), 2;
  int passed = 0, failed = 0;
  config c;
  for (uint64_t number = 0; read_config(list, &c, number); number++) {
    char message[1200] = "";
    uint64_t hash = 0;
    if (!local && fscanf(hashes, "%lx", &hash) != 1) return fprintf(stderr, "%s is too short\n", argv[3]), 2;
    ulyrt_model *model = load(&c, message);
    bool ok = model && (local ? check_local(&c, model, &hash, message)
                        : mpi ? check_mpi(&c, model, comm, hash, message)
                              : check_threads(&c, model, hash, message));
    ulyrt_model_destroy(model);
    if (local) fprintf(hashes, "%lx\n", hash);
    if (ok)
      passed++;
    else
      failed++, printf("%s %s (number %lu): %s\n", c.path, c.entry, number, message);
  }
  fclose(list);
  if (fclose(hashes)) return 2;
  if (!comm || ulyrt_comm_rank(comm) == 0) printf("%d passed, %d failed\n", passed, failed);
  ulyrt_comm_destroy(comm);
  return failed || !passed ? 1 : 0;
}
