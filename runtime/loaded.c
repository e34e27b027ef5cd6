#include "runtime/loaded.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/env.h"
#include "runtime/base/features.h"
#include "runtime/base/pages.h"

uint32_t uly_level_features(const uly_level *levels, uint32_t n) {
  uint32_t wanted = 0;
  for (uint32_t i = 0; i < n; i++) wanted |= levels[i].features;
  return uly_cpu_features(wanted);
}

uly_status uly_level_choose(const uly_level *levels, uint32_t n, uint32_t features, const char *limit, uly_error *error, uint32_t *out_level) {
  char missing[96], names[160] = "";
  uint32_t lacking = 0, known = !limit || !*limit, end = n;
  size_t at = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (at < sizeof names) at += (size_t)snprintf(names + at, sizeof names - at, "%s%.24s", i ? ", " : "", levels[i].name);
    if (!known && strncmp(levels[i].name, limit, sizeof levels[i].name) == 0) known = 1, end = i + 1;
  }
  if (!known) return uly_fail(error, ULY_UNAVAILABLE, "%s is \"%.40s\", the model has code for %s", uly_env_get(ULY_ENV_CPU_LEVEL)->name, limit, names);
  for (uint32_t i = end; i-- > 0;) {
    lacking = levels[i].features & ~features;
    if (!lacking) {
      *out_level = i;
      return ULY_OK;
    }
  }
  uly_cpu_describe(lacking, missing, sizeof missing);
  return uly_fail(error, ULY_UNAVAILABLE, "this processor lacks %s; the model has code for %s", missing, names);
}

// Arrays beside the tables, and the values of constant nodes.
static uly_status make_state(uly_loaded *l, uly_error *error) {
  const uly_tables *t = &l->tables;
  l->constants = calloc(t->n_nodes + (size_t)1, sizeof *l->constants);
  l->first_param = calloc(t->n_tensors + (size_t)1, sizeof *l->first_param);
  for (uint32_t i = 0; l->first_param && i < t->n_tensors; i++) {
    l->first_param[i] = l->n_params;
    if (t->tensors[i].role == ULY_PARAM) l->n_params += t->tensors[i].names.count;
  }
  l->params = calloc(l->n_params + (size_t)1, sizeof *l->params);
  l->memory = calloc(t->n_buffers + (size_t)1, sizeof *l->memory);
  l->slot_bytes = calloc(t->n_buffers + (size_t)1, sizeof *l->slot_bytes);
  l->step_done = calloc(t->n_steps + (size_t)1, sizeof *l->step_done);
  if (!l->constants || !l->first_param || !l->params || !l->memory || !l->slot_bytes || !l->step_done)
    return uly_fail(error, ULY_EXHAUSTED, "no memory for a model");
  l->nodes = (uly_nodes){.nodes = t->nodes, .n_nodes = t->n_nodes, .n_symbols = t->n_symbols, .n_ranks = 1, .values = l->constants};
  uly_nodes_eval(&l->nodes);
  for (uint32_t i = 0; i < t->n_buffers; i++) {
    if (!(t->buffers[i].flags & ULY_BUFFER_CONSTANT)) continue;
    l->memory[i] = t->indices + t->buffers[i].words;
    l->slot_bytes[i] = t->nodes[t->buffers[i].bytes].value;
  }
  return ULY_OK;
}

static uly_status fill(uly_loaded *l, const uly_model *model, uly_error *error) {
  if (!model || model->struct_size < sizeof *model || !model->blob) return uly_fail(error, ULY_INVALID_INPUT, "the model's descriptor is too small");
  if (model->abi_major != ULY_ABI_MAJOR)
    return uly_fail(error, ULY_INVALID_INPUT, "the model has ABI %u.%u, this runtime reads %u.%u: compile it again", model->abi_major, model->abi_minor,
                    ULY_ABI_MAJOR, ULY_ABI_MINOR);
  if (model->n_levels < 1 || model->n_levels > ULY_MAX_LEVELS) return uly_fail(error, ULY_INVALID_INPUT, "the model has %u CPU levels", model->n_levels);
  ULY_TRY(uly_tables_read(model->blob, model->blob->bytes, error, &l->tables));
  if (model->n_kernels != l->tables.n_kernels)
    return uly_fail(error, ULY_INVALID_INPUT, "the model has %u kernels and names %u", model->n_kernels, l->tables.n_kernels);
  l->n_levels = model->n_levels;
  for (uint32_t i = 0; i < model->n_levels; i++) {
    l->levels[i] = model->levels[i];
    l->kernels[i] = model->kernels[i];
    for (uint32_t k = 0; k < model->n_kernels; k++)
      if (!model->kernels[i] || !model->kernels[i][k]) return uly_fail(error, ULY_INVALID_INPUT, "kernel %u has no code for %.24s", k, model->levels[i].name);
  }
  ULY_TRY(uly_level_choose(l->levels, l->n_levels, uly_level_features(l->levels, l->n_levels), uly_env_text(ULY_ENV_CPU_LEVEL), error, &l->level));
  return make_state(l, error);
}

uly_status uly_loaded_create(const uly_model *model, uly_error *error, uly_loaded **out_loaded) {
  uly_loaded *l = calloc(1, sizeof *l);
  if (!l) return uly_fail(error, ULY_EXHAUSTED, "no memory for a model");
  pthread_mutex_init(&l->mutex, NULL);
  uly_status status = fill(l, model, error);
  if (status != ULY_OK)
    uly_loaded_destroy(l);
  else
    *out_loaded = l;
  return status;
}

void uly_loaded_destroy(uly_loaded *l) {
  if (!l) return;
  for (uint32_t i = 0; l->params && i < l->n_params; i++) free(l->params[i].owned);
  for (uint32_t i = 0; l->memory && i < l->tables.n_buffers; i++)
    if (l->memory[i] && !(l->tables.buffers[i].flags & ULY_BUFFER_CONSTANT))
      uly_pages_free(l->memory[i], (size_t)l->slot_bytes[i] * l->tables.buffers[i].slots);
  free(l->constants);
  free(l->first_param);
  free(l->params);
  free(l->memory);
  free(l->slot_bytes);
  free(l->step_done);
  uly_tables_free(&l->tables);
  pthread_mutex_destroy(&l->mutex);
  if (l->library) dlclose(l->library);
  free(l);
}
