// The load phase: constant parameters, then the load steps of an entry (packing weights), once for all binds of the model.
#include <math.h>
#include <stdlib.h>

#include "runtime/base/dtype.h"
#include "runtime/base/env.h"
#include "runtime/base/features.h"
#include "runtime/base/pages.h"
#include "runtime/devices/device.h"
#include "runtime/poison.h"
#include "runtime/watch.h"

// Parameters of |entry| that have no value get their constant. Those without one are collected.
static uly_status fill_params(uly_loaded *loaded, uint32_t entry, uly_error *error) {
  const uly_tables *t = &loaded->tables;
  uly_span rows = t->entries[entry].params;
  uint32_t missing = 0;
  char names[400] = "";
  size_t at = 0;
  for (uint32_t k = 0; k < rows.count; k++) {
    uint32_t tensor = t->indices[rows.first + k];
    for (uint32_t j = 0; j < t->tensors[tensor].names.count; j++) {
      uly_param *p = &loaded->params[loaded->first_param[tensor] + j];
      uly_param_info info;
      if (p->data) continue;
      ULY_TRY(uly_param_get(loaded, loaded->first_param[tensor] + j, error, &info));
      if (isnan(info.init)) {
        if (missing++ < 4 && at < sizeof names) at += (size_t)snprintf(names + at, sizeof names - at, "%s\"%.*s\"", at ? ", " : "", ULY_STR_ARG(info.name));
        continue;
      }
      p->owned = aligned_alloc(64, ((size_t)info.bytes + 64) & ~(size_t)63);
      if (!p->owned) return uly_fail(error, ULY_EXHAUSTED, "no memory for parameter \"%.*s\" (%lld bytes)", ULY_STR_ARG(info.name), (long long)info.bytes);
      for (int64_t i = 0; i < info.elements; i++) uly_dtype_store((uly_dtype)info.dtype, p->owned, i, info.init);
      p->data = p->owned;
    }
  }
  if (missing)
    return uly_fail(error, ULY_INVALID_INPUT, "%u parameter%s no value: %s%s", missing, missing == 1 ? " has" : "s have", names, missing > 4 ? ", …" : "");
  return ULY_OK;
}

void uly_load_mark(const uly_tables *t, uint32_t entry, int begin, int end, bool mark, bool *marks) {
  for (int phase = begin; phase < end; phase++) {
    uly_span steps = t->entries[entry].steps[phase];
    for (uint32_t i = steps.first; i < steps.first + steps.count; i++)
      for (uint32_t k = 0; k < t->steps[i].operands.count; k++) {
        const uly_operand *o = &t->operands[t->steps[i].operands.first + k];
        if (o->kind == ULY_OPERAND_BUFFER && t->buffers[o->index].phase == ULY_PHASE_LOAD && !(t->buffers[o->index].flags & ULY_BUFFER_CONSTANT))
          marks[o->index] = mark;
      }
  }
}

uly_status uly_load_bytes(const uly_tables *t, const uly_nodes *nodes, uint32_t buffer, uly_error *error, int64_t *out_slot, int64_t *out_total) {
  int64_t bytes;
  ULY_TRY(uly_nodes_size(nodes, t->buffers[buffer].bytes, 0, error, &bytes));
  *out_slot = (bytes + 63) & ~(int64_t)63;
  if (!__builtin_mul_overflow(*out_slot, (int64_t)t->buffers[buffer].slots, out_total) && *out_total <= (int64_t)1 << 47) return ULY_OK;
  return uly_fail(error, ULY_OVERFLOW, "packed weights of %lld bytes, %u times, are too large", (long long)*out_slot, t->buffers[buffer].slots);
}

static uly_status make_buffer(uly_loaded *loaded, uint32_t buffer, bool poison, uly_error *error) {
  int64_t total;
  ULY_TRY(uly_load_bytes(&loaded->tables, &loaded->nodes, buffer, error, &loaded->slot_bytes[buffer], &total));
  loaded->memory[buffer] = uly_pages_alloc((size_t)total);
  if (!loaded->memory[buffer]) return uly_fail(error, ULY_EXHAUSTED, "no memory for %lld bytes of packed weights", (long long)total);
  if (poison) uly_poison(loaded->memory[buffer], total);
  return ULY_OK;
}

// What the entry's steps touch and is not there.
static uly_status make_buffers(uly_loaded *loaded, uint32_t entry, uly_error *error) {
  const uly_tables *t = &loaded->tables;
  bool poison;
  ULY_TRY(uly_poison_wanted(error, &poison));
  bool *marks = calloc(t->n_buffers + (size_t)1, sizeof *marks);
  if (!marks) return uly_fail(error, ULY_EXHAUSTED, "no memory to load");
  uly_load_mark(t, entry, ULY_PHASE_LOAD, ULY_N_PHASES, true, marks);
  uly_status status = ULY_OK;
  for (uint32_t b = 0; b < t->n_buffers && status == ULY_OK; b++)
    if (marks[b] && !loaded->memory[b]) status = make_buffer(loaded, b, poison, error);
  free(marks);
  return status;
}

// What load steps alone use is not needed once they have run; where they run again, it is made again. Without memory for the marks nothing is freed.
static void free_buffers(uly_loaded *loaded, uint32_t entry) {
  const uly_tables *t = &loaded->tables;
  bool *marks = calloc(t->n_buffers + (size_t)1, sizeof *marks);
  if (!marks) return;
  uly_load_mark(t, entry, ULY_PHASE_LOAD, ULY_PHASE_LOAD + 1, true, marks);
  for (uint32_t e = 0; e < t->n_entries; e++) uly_load_mark(t, e, ULY_PHASE_LOAD + 1, ULY_N_PHASES, false, marks);
  for (uint32_t b = 0; b < t->n_buffers; b++) {
    if (!marks[b]) continue;
    uly_pages_free(loaded->memory[b], (size_t)loaded->slot_bytes[b] * t->buffers[b].slots);
    loaded->memory[b] = NULL;
  }
  free(marks);
}

static uly_status run_steps(uly_loaded *loaded, uint32_t entry, uly_device *device, uint32_t level, const uly_watcher *watcher, uly_error *error) {
  uly_span steps = loaded->tables.entries[entry].steps[ULY_PHASE_LOAD];
  bool all_done = !watcher->see || loaded->n_binds > 1;
  const bool *skip = all_done ? loaded->step_done : NULL;
  for (uint32_t i = steps.first; i < steps.first + steps.count; i++) all_done = all_done && loaded->step_done[i];
  if (all_done) return ULY_OK;
  uly_machine m = {.loaded = loaded,
                   .nodes = &loaded->nodes,
                   .device = device,
                   .kernels = loaded->kernels[level],
                   .steps = steps,
                   .memory = loaded->memory,
                   .slot_bytes = loaded->slot_bytes,
                   .skip = skip};
  uly_status status = uly_machine_prepare(&m, error);
  if (status == ULY_OK) status = device->ops->reserve(device, (size_t)uly_machine_scratch(&m), error);
  if (status == ULY_OK) status = uly_watch_create(&m, loaded->tables.entries[entry].probes, watcher, error, &m.watch);
  if (status == ULY_OK) {
    device->ops->begin(device);
    status = uly_machine_run(&m, error);
    device->ops->end(device);
  }
  uly_watch_destroy(m.watch);
  uly_machine_finish(&m);
  if (status != ULY_OK) return status;
  if (m.fault.code) return uly_fail(error, ULY_FAULT, "index %lld is out of range 0 … %lld in the load phase", (long long)m.fault.a, (long long)m.fault.b - 1);
  for (uint32_t i = steps.first; i < steps.first + steps.count; i++) loaded->step_done[i] = !device->ops->idle;
  return ULY_OK;
}

uly_status uly_loaded_hold(uly_loaded *loaded, uint32_t entry, uly_device *device, uint32_t level, const uly_watcher *watcher, uly_error *error) {
  pthread_mutex_lock(&loaded->mutex);
  loaded->n_binds++;
  uly_status status = fill_params(loaded, entry, error);
  if (status == ULY_OK) status = make_buffers(loaded, entry, error);
  if (status == ULY_OK) status = run_steps(loaded, entry, device, level, watcher, error);
  if (status == ULY_OK) free_buffers(loaded, entry);
  pthread_mutex_unlock(&loaded->mutex);
  return status;
}

void uly_loaded_release(uly_loaded *loaded) {
  pthread_mutex_lock(&loaded->mutex);
  loaded->n_binds--;
  pthread_mutex_unlock(&loaded->mutex);
}

uly_status uly_loaded_pack(uly_loaded *loaded, uint32_t entry, int threads, uly_error *error) {
  const uly_device_ops *ops;
  uly_device *device;
  double number = threads;
  if (!threads) ULY_TRY(uly_env_number(ULY_ENV_THREADS, error, &number));
  ULY_TRY(uly_device_find(uly_env_text(ULY_ENV_DEVICE), error, &ops));
  ULY_TRY(ops->create(number > 0 ? (int)number : uly_cpu_cores(), 1, error, &device));
  uly_status status = uly_loaded_hold(loaded, entry, device, loaded->level, &(uly_watcher){0}, error);
  uly_loaded_release(loaded);
  ops->destroy(device);
  return status;
}
