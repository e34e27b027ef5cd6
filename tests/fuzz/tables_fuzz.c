// The tables of a model, damaged: what is refused leaves nothing behind, what is accepted can be described, loaded, given parameters and bound on one rank and on several.
//
// An input is a program of tests/unit, or bytes of its own, and changes to it: table, row, place in the row, number. So most inputs come past the first check. Kernels do not
// run (device null): they trust their values, as code does.
#include <math.h>
#include <stdlib.h>

#include "driver/program_text.h"
#include "runtime/bound.h"
#include "runtime/transports/callbacks.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scale_program.h"
#include "tests/unit/tag_program.h"

enum { MAX_RANKS = 3, MAX_CHANGES = 16, MAX_PARAM_BYTES = 1 << 20 };

// Peers do as this rank does, or, where |in| is there, nearly so.
typedef struct peers {
  int n_ranks;
  fuzz_input *in;
} peers;

static int echo(void *context, const void *mine, size_t bytes, void *out_all) {
  const peers *p = context;
  for (int q = 0; q < p->n_ranks; q++) memcpy((char *)out_all + (size_t)q * bytes, mine, bytes);
  for (int i = 0; bytes && p->in && p->n_ranks > 1 && fuzz_u8(p->in) % 4 == 1 && i < 8; i++) {
    size_t at = fuzz_u32(p->in) % (bytes * (size_t)(p->n_ranks - 1)); // this rank is the last
    ((uint8_t *)out_all)[at] = fuzz_u8(p->in);
  }
  return p->in && fuzz_u8(p->in) == 200;
}
static int no_transfer(void *context, const void *send, const int64_t *send_bytes, const int64_t *send_offset, void *receive, const int64_t *receive_bytes,
                       const int64_t *receive_offset) {
  (void)context, (void)send, (void)send_bytes, (void)send_offset, (void)receive, (void)receive_bytes, (void)receive_offset;
  return 0;
}

static void change(uly_blob *blob, uint64_t bytes, fuzz_input *in) {
  uint8_t table = fuzz_u8(in), place = fuzz_u8(in), how = fuzz_u8(in);
  uint32_t row = fuzz_u8(in), value = fuzz_u32(in);
  static const uint64_t extremes[] = {0, 1, UINT32_MAX, UINT64_MAX, INT64_MAX, INT32_MAX, 1u << 28, UINT64_C(1) << 47};
  uint64_t number = how & 8 ? extremes[value % 8] : value;
  size_t width = (size_t)1 << (how % 4), at = 0, end = sizeof *blob;
  if (table % (ULY_N_TABLES + 1) < ULY_N_TABLES) {
    const uly_table *t = &blob->tables[table % (ULY_N_TABLES + 1)];
    if (!t->count || !t->row_bytes || t->offset > bytes || (uint64_t)t->count * t->row_bytes > bytes - t->offset) return;
    at = t->offset + (size_t)(row % t->count) * t->row_bytes;
    end = at + t->row_bytes;
  }
  at += place % (end - at) & ~(width - 1);
  if (at + width <= end) memcpy((char *)blob + at, &number, width);
}

static uly_blob *make_blob(const fx_program *f, bool changes, fuzz_input *in, uint64_t *out_bytes) {
  const void *base = f ? (const void *)f->model.blob : in->at;
  *out_bytes = f ? f->model.blob->bytes : in->n;
  uly_blob *blob = malloc(*out_bytes ? *out_bytes : 1);
  ULY_ASSERT(blob);
  if (*out_bytes) memcpy(blob, base, *out_bytes);
  for (int i = 0; f && changes && i < MAX_CHANGES && in->n; i++) change(blob, *out_bytes, in);
  return blob;
}

// What the load phase does is not much, so that an input takes no time.
static bool is_small(const uly_loaded *loaded) {
  for (uint32_t i = 0; i < loaded->tables.n_steps; i++) {
    const uly_step *s = &loaded->tables.steps[i];
    if (s->kind == ULY_STEP_LOOP && (loaded->constants[s->items] > 100 || loaded->constants[s->items] == ULY_NO_VALUE)) return false;
  }
  return true;
}

static bool set_params(uly_loaded *loaded) {
  uly_error error;
  int64_t total = 0;
  for (uint32_t i = 0; i < loaded->n_params; i++) {
    uly_param_info info;
    if (uly_param_get(loaded, i, &error, &info) != ULY_OK) return false;
    if (info.bytes > MAX_PARAM_BYTES || (total += info.bytes) > MAX_PARAM_BYTES) return false; // large, not wrong
    static const char data[MAX_PARAM_BYTES];
    if (i == 0 && uly_param_set(loaded, info.name, info.dtype, info.rank, info.dims, data, true, &error) != ULY_OK) return false;
  }
  return uly_param_seed(loaded, 1, &error) == ULY_OK;
}

// With a program that is whole, also a run, which shares faults.
static void run(uly_bound *bound) {
  static char memory[1 << 12];
  void *tensors[8];
  uly_error error;
  for (int i = 0; i < 8; i++) tensors[i] = memory;
  for (int i = 0; i < 2; i++)
    if (uly_run(bound, tensors, &error) != ULY_OK) return;
}

static void bind_all(uly_loaded *loaded, const uly_callbacks *host, const int64_t *symbols) {
  const uly_tables *t = &loaded->tables;
  uly_error error;
  for (uint32_t e = 0; e < t->n_entries; e++) {
    uly_bind_options options = {.entry = uly_tables_name(t, t->entries[e].name), .symbols = symbols, .device = "null", .threads = 1};
    uly_bound *bound;
    uly_comm *comm = NULL;
    if (host->n_ranks > 1 && uly_comm_callbacks_create(host, &comm) != ULY_OK) return;
    options.comms[0] = comm;
    if (uly_bind(loaded, &options, &error, &bound) == ULY_OK) {
      uly_span own = t->entries[bound->entry].tensors;
      int64_t dims[3][ULY_MAX_DIMS];
      for (uint32_t k = 0; k < own.count; k++)
        if (uly_bound_shape(bound, own.first + k, &error, dims[0], dims[1], dims[2]) != ULY_OK) break;
      if (((const peers *)host->context)->in && own.count <= 8) run(bound);
      uly_bound_destroy(bound);
    }
    if (comm) comm->ops->destroy(comm);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static fx_program *programs[2];
  if (!programs[0]) {
    programs[0] = scale_program();
    programs[1] = tag_program((tag_shape){4, 2, 3});
  }
  fuzz_input in = {data, n};
  uint8_t choice = fuzz_u8(&in);
  bool whole = choice >= 128; // the program; then the peers differ
  peers others = {.n_ranks = 1 + choice / 4 % MAX_RANKS, .in = whole ? &in : NULL};
  int64_t symbols[ULY_MAX_SYMBOLS] = {1 + choice / 16 % 4, fuzz_u8(&in), 1};
  uly_callbacks host = {.context = &others, .rank = others.n_ranks - 1, .n_ranks = others.n_ranks, .all_gather = echo, .all_to_all = no_transfer};
  fx_program *f = choice % 4 == 3 && !whole ? NULL : programs[choice % 2];
  uint64_t bytes;
  uly_blob *blob = make_blob(f, !whole, &in, &bytes);
  uly_error error;
  uly_tables tables;
  if (uly_tables_read(blob, bytes, &error, &tables) == ULY_OK) {
    uly_arena *arena = uly_arena_create();
    uly_text text = {.arena = arena};
    if (!whole && choice % 4 == 2) uly_program_print(&text, &tables);
    for (uint32_t i = 0; i < tables.n_tensors; i++) uly_program_print_tensor(&text, &tables, &tables.tensors[i], tables.tensors[i].names.first);
    uly_arena_destroy(arena);
    uly_model model = programs[f ? choice % 2 : 0]->model;
    uly_loaded *loaded;
    model.blob = blob;
    model.n_kernels = tables.n_kernels < model.n_kernels ? tables.n_kernels : model.n_kernels;
    uly_tables_free(&tables);
    if (uly_loaded_create(&model, &error, &loaded) == ULY_OK) {
      if (is_small(loaded) && set_params(loaded)) bind_all(loaded, &host, symbols);
      uly_loaded_destroy(loaded);
    }
  }
  free(blob);
  return 0;
}
