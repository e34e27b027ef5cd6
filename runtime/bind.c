#include <stdlib.h>
#include <string.h>

#include "runtime/base/env.h"
#include "runtime/base/features.h"
#include "runtime/bound.h"
#include "runtime/poison.h"

// ---- what can be wrong on this rank alone ---------------------------------------------------------------------------------------------------

static uly_status check_symbols(uly_bound *b, const uly_bind_options *options, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  const uly_entry *e = &t->entries[b->entry];
  for (uint32_t i = 0; i < t->n_symbols; i++) {
    b->symbols[i] = options->symbols ? options->symbols[i] : ULY_NO_VALUE;
    uly_str name = uly_tables_text(t, t->symbols[i].name);
    if (!(e->symbols >> i & 1))
      b->symbols[i] = ULY_NO_VALUE;
    else if (b->symbols[i] == ULY_NO_VALUE)
      return uly_fail(error, ULY_INVALID_ARGUMENT, "symbol %.*s has no value", ULY_STR_ARG(name));
    else if (b->symbols[i] < t->symbols[i].least)
      return uly_fail(error, ULY_INVALID_ARGUMENT, "%.*s = %lld, at least %lld", ULY_STR_ARG(name), (long long)b->symbols[i], (long long)t->symbols[i].least);
  }
  return ULY_OK;
}

static uly_status check_options(uly_bound *b, const uly_bind_options *options, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  b->level = b->loaded->level;
  b->entry = uly_tables_find_entry(t, options->entry);
  for (uint32_t i = 0; i < ULY_MAX_SYMBOLS; i++) b->symbols[i] = ULY_NO_VALUE;
  if (b->entry == ULY_NONE && !options->entry.len) return uly_fail(error, ULY_INVALID_ARGUMENT, "the model has several entries: name one");
  if (b->entry == ULY_NONE) return uly_fail(error, ULY_INVALID_ARGUMENT, "the model has no entry \"%.*s\"", ULY_STR_ARG(options->entry));
  return check_symbols(b, options, error);
}

// ---- sizes, variant, memory -----------------------------------------------------------------------------------------------------------------

static uly_status eval_nodes(uly_bound *b, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  size_t n;
  if (__builtin_mul_overflow((size_t)t->n_nodes + 1, (size_t)b->nodes.n_ranks * sizeof(int64_t), &n) || !(b->nodes.values = malloc(n)))
    return uly_fail(error, ULY_EXHAUSTED, "no memory for the sizes of %lld ranks", (long long)b->nodes.n_ranks);
  b->nodes.nodes = t->nodes;
  b->nodes.n_nodes = t->n_nodes;
  b->nodes.n_symbols = t->n_symbols;
  b->nodes.symbols = b->symbols;
  uly_nodes_eval(&b->nodes);
  return ULY_OK;
}

// What the caller passes has sizes that are none below 0.
static uly_status check_shapes(const uly_bound *b, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  uly_span tensors = t->entries[b->entry].tensors;
  int64_t size;
  for (uint32_t i = tensors.first; i < tensors.first + tensors.count; i++)
    for (uint32_t d = 0; d < t->tensors[i].rank; d++) ULY_TRY(uly_tables_dim(t, &b->nodes, i, d, error, &size));
  return ULY_OK;
}

// A slice is not inside of its dim, at these sizes.
static uly_status fail_variant(const uly_bound *b, int64_t line, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  char sizes[160];
  uly_tables_sizes(t, b->symbols, sizes, sizeof sizes);
  return uly_fail(error, ULY_INVALID_ARGUMENT, "entry \"%.*s\" cannot run at %s: the slice in line %lld of the spec is not inside of its dim",
                  ULY_STR_ARG(uly_tables_name(t, t->entries[b->entry].name)), sizes, (long long)line);
}

static uly_status pick_variant(uly_bound *b, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  int64_t line = 0;
  for (uint32_t i = b->entry; i < t->n_entries; i++) {
    int64_t when = 1;
    if (!uly_tables_same_entry(t, b->entry, i)) continue;
    if (t->entries[i].when != ULY_NONE) ULY_TRY(uly_nodes_get(&b->nodes, t->entries[i].when, b->rank, error, &when));
    if (when <= 0) {
      line = -when;
      continue;
    }
    b->entry = i;
    return ULY_OK;
  }
  return fail_variant(b, line, error);
}

static uly_status count_threads(const uly_bound *b, int wanted, uly_error *error, int *out_threads) {
  double number = wanted;
  if (wanted < 0) return uly_fail(error, ULY_INVALID_ARGUMENT, "%d threads", wanted);
  if (!wanted) ULY_TRY(uly_env_number(ULY_ENV_THREADS, error, &number));
  if (number > 4096) return uly_fail(error, ULY_INVALID_ARGUMENT, "%.0f threads, at most 4096", number);
  *out_threads = (int)number;
  if (!*out_threads) *out_threads = uly_cpu_cores() / (int)(b->nodes.n_ranks < 4096 ? b->nodes.n_ranks : 4096);
  if (*out_threads < 1) *out_threads = 1;
  return ULY_OK;
}

uly_status uly_bind_sizes(uly_bound *b, uly_error *error) {
  ULY_TRY(eval_nodes(b, error));
  ULY_TRY(check_shapes(b, error));
  return pick_variant(b, error);
}

static uly_status make(uly_bound *b, const uly_bind_options *options, uly_error *error) {
  const uly_device_ops *ops;
  int threads = 1;
  double log = 0;
  ULY_TRY(uly_bind_sizes(b, error));
  ULY_TRY(uly_bind_plan(b, error));
  ULY_TRY(uly_device_find(options->device && *options->device ? options->device : uly_env_text(ULY_ENV_DEVICE), error, &ops));
  ULY_TRY(count_threads(b, options->threads, error, &threads));
  ULY_TRY(uly_env_number(ULY_ENV_LOG, error, &log));
  b->machine.log = (int)log;
  ULY_TRY(uly_poison_wanted(error, &b->machine.poison));
  ULY_TRY(ops->create(threads, b->nodes.n_ranks, error, &b->device));
  b->tensors = calloc(b->loaded->tables.n_tensors + (size_t)1, sizeof *b->tensors);
  int most = b->world ? b->world->n_ranks : 1;
  for (uint32_t a = 0; a < b->loaded->tables.n_axes; a++) most = b->comms[a]->n_ranks > most ? b->comms[a]->n_ranks : most;
  b->gathered = calloc((size_t)most, ULY_FAULT_RECORD);
  if (!b->tensors || !b->gathered) return uly_fail(error, ULY_EXHAUSTED, "no memory to bind");
  b->holds = true;
  ULY_TRY(uly_loaded_hold(b->loaded, b->entry, b->device, b->level, &options->watcher, error));
  return uly_bind_alloc(b, error);
}

static uly_machine machine_of(const uly_bound *b, uly_phase phase) {
  return (uly_machine){.loaded = b->loaded,
                       .nodes = &b->nodes,
                       .rank = b->rank,
                       .device = b->device,
                       .kernels = b->loaded->kernels[b->level],
                       .steps = b->loaded->tables.entries[b->entry].steps[phase],
                       .memory = b->memory,
                       .slot_bytes = b->slot_bytes,
                       .links = b->links,
                       .tensors = b->tensors,
                       .log = b->machine.log,
                       .poison = b->machine.poison};
}

static uly_status run_bind_phase(uly_bound *b, uly_error *error) {
  uly_machine m = machine_of(b, ULY_PHASE_BIND);
  if (!m.steps.count) return ULY_OK;
  uly_status status = uly_machine_prepare(&m, error);
  if (status == ULY_OK) status = b->device->ops->reserve(b->device, (size_t)uly_machine_scratch(&m), error);
  if (status == ULY_OK) {
    b->device->ops->begin(b->device);
    status = uly_machine_run(&m, error);
    b->device->ops->end(b->device);
  }
  uly_machine_finish(&m);
  return status;
}

static uly_status finish(uly_bound *b, const uly_watcher *watcher, uly_error *error) {
  ULY_TRY(uly_bind_map(b, error));
  b->machine = machine_of(b, ULY_PHASE_FORWARD);
  ULY_TRY(uly_machine_prepare(&b->machine, error));
  ULY_TRY(b->device->ops->reserve(b->device, (size_t)uly_machine_scratch(&b->machine), error));
  ULY_TRY(uly_watch_create(&b->machine, b->loaded->tables.entries[b->entry].probes, watcher, error, &b->machine.watch));
  return run_bind_phase(b, error);
}

static void log_bind(const uly_bound *b) {
  const uly_tables *t = &b->loaded->tables;
  uly_str name = uly_tables_name(t, t->entries[b->entry].name);
  fprintf(stderr, "ulyrt: rank %lld of %lld binds %.*s (row %u) on %s, %d threads, %.24s, arena %lld bytes", (long long)b->rank, (long long)b->nodes.n_ranks,
          ULY_STR_ARG(name), b->entry, b->device->ops->name, b->device->threads, b->loaded->levels[b->level].name, (long long)b->arena.bytes);
  for (uint32_t a = 0; a < t->n_axes; a++)
    fprintf(stderr, ", axis %.*s of %d over %s receives %lld bytes", ULY_STR_ARG(uly_tables_text(t, t->axes[a].name)), b->comms[a]->n_ranks,
            b->comms[a]->ops->name, (long long)b->received[a].bytes);
  fputc('\n', stderr);
}

uly_status uly_bind(uly_loaded *loaded, const uly_bind_options *options, uly_error *error, uly_bound **out_bound) {
  uly_error own_error;
  if (!error) error = &own_error;
  uly_bound *b = calloc(1, sizeof *b);
  if (!b) return uly_fail(error, ULY_EXHAUSTED, "no memory to bind");
  b->loaded = loaded;
  uly_status status = uly_bind_grid(b, options, error);
  if (status == ULY_OK || b->world) {
    uly_status checked = check_options(b, options, status == ULY_OK ? error : &own_error);
    status = uly_bind_agree(b, status == ULY_OK ? checked : status, error);
    if (status == ULY_OK) status = uly_bind_lines(b, error);
    if (status == ULY_OK) status = uly_bind_agree_plan(b, make(b, options, error), error);
    if (status == ULY_OK) status = uly_bind_agree_plan(b, finish(b, &options->watcher, error), error);
  } else {
    for (int a = 0; a < ULY_MAX_AXES; a++)
      if (options->comms[a]) options->comms[a]->ops->abort(options->comms[a], error->text);
  }
  if (status != ULY_OK) {
    uly_bound_prefix(b, error);
    uly_bound_destroy(b);
    return status;
  }
  if (b->machine.log) log_bind(b);
  *out_bound = b;
  return ULY_OK;
}

void uly_bound_destroy(uly_bound *b) {
  if (!b) return;
  uly_watch_destroy(b->machine.watch);
  uly_machine_finish(&b->machine);
  uly_bind_unmap(b);
  if (b->holds) uly_loaded_release(b->loaded);
  if (b->device) b->device->ops->destroy(b->device);
  for (int a = 0; a < ULY_MAX_AXES; a++)
    if (b->own_comms[a]) b->own_comms[a]->ops->destroy(b->own_comms[a]);
  free(b->members);
  free(b->nodes.values);
  free(b->memory);
  free(b->slot_bytes);
  free(b->offsets);
  free(b->links);
  free(b->link_memory);
  free(b->tensors);
  free(b->gathered);
  free(b);
}
