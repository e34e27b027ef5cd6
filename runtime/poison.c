#include "runtime/poison.h"

#include <string.h>

#include "runtime/base/dtype.h"
#include "runtime/base/env.h"

uly_status uly_poison_wanted(uly_error *error, bool *out_wanted) {
  double number = 0;
  uly_status status = uly_env_number(ULY_ENV_POISON, error, &number);
  *out_wanted = number != 0;
  return status;
}

void uly_poison(void *memory, int64_t bytes) {
  if (memory && bytes > 0) memset(memory, 0xff, (size_t)bytes);
}

void uly_poison_step(const uly_machine *m, uint32_t step) {
  const uly_tables *t = &m->loaded->tables;
  for (uint32_t i = 0; i < t->n_buffers; i++)
    if (t->buffers[i].phase == ULY_PHASE_FORWARD && t->buffers[i].live_from == step) uly_poison(m->memory[i], m->slot_bytes[i] * (int64_t)t->buffers[i].slots);
  if (m->device->ops->poison) m->device->ops->poison(m->device);
}

void uly_poison_outputs(const uly_machine *m, const uly_entry *entry) {
  const uly_tables *t = &m->loaded->tables;
  for (uint32_t i = entry->tensors.first; i < entry->tensors.first + entry->tensors.count; i++) {
    int64_t bytes = uly_dtype_bytes((uly_dtype)t->tensors[i].dtype), size;
    uly_error error;
    for (uint32_t d = 0; d < t->tensors[i].rank; d++)
      bytes = uly_nodes_size(m->nodes, t->tensors[i].local[d], m->rank, &error, &size) == ULY_OK ? bytes * size : 0;
    if (t->tensors[i].role == ULY_OUTPUT) uly_poison((void *)(uintptr_t)m->tensors[i], bytes);
  }
}
