// ulyrt.h: instances.
#include <stdlib.h>
#include <string.h>

#include "runtime/capi.h"

static const uly_entry *entry_of(const ulyrt_instance *i) { return &i->model->loaded->tables.entries[i->bound->entry]; }

// ---- bind -----------------------------------------------------------------------------------------------------------------------------------

static uly_status read_sizes(const ulyrt_model *m, const ulyrt_bind_options *o, int64_t *symbols, uly_error *error) {
  const uly_tables *t = &m->loaded->tables;
  for (uint32_t i = 0; i < ULY_MAX_SYMBOLS; i++) symbols[i] = ULY_NO_VALUE;
  for (int32_t k = 0; k < o->n_sizes; k++) {
    uint32_t i = 0;
    if (!o->sizes || !o->sizes[k].symbol) return uly_fail(error, ULY_INVALID_ARGUMENT, "size %d has no symbol", k);
    while (i < t->n_symbols && !uly_str_is(uly_tables_text(t, t->symbols[i].name), o->sizes[k].symbol)) i++;
    if (i == t->n_symbols) return uly_fail(error, ULY_INVALID_ARGUMENT, "the model has no symbol %.40s", o->sizes[k].symbol);
    if (symbols[i] != ULY_NO_VALUE && symbols[i] != o->sizes[k].value)
      return uly_fail(error, ULY_INVALID_ARGUMENT, "%s = %lld, but also %lld", o->sizes[k].symbol, (long long)symbols[i], (long long)o->sizes[k].value);
    symbols[i] = o->sizes[k].value;
  }
  return ULY_OK;
}

// One communicator is all ranks; several are one an axis.
static uly_status read_grid(const ulyrt_model *m, const ulyrt_bind_options *o, uly_bind_options *out, uly_error *error) {
  if (o->n_comms > ULY_MAX_AXES) return uly_fail(error, ULY_INVALID_ARGUMENT, "%d communicators, at most %d", o->n_comms, ULY_MAX_AXES);
  for (int32_t a = 0; a < o->n_comms && o->n_comms > 1; a++) out->comms[a] = o->comms ? (uly_comm *)(uintptr_t)o->comms[a] : NULL;
  if (o->n_comms == 1 && o->comms) out->world = (uly_comm *)(uintptr_t)o->comms[0];
  if (o->n_grid && o->n_comms > 1)
    return uly_fail(error, ULY_INVALID_ARGUMENT, "sizes of the grid go with one communicator of all ranks; %d communicators, one an axis, have their own",
                    o->n_comms);
  return uly_capi_grid(m, o->grid, o->n_grid, error, out->grid);
}

static void show(void *context, const uly_seen *s) {
  const ulyrt_instance *i = context;
  const uly_probe *p = s->probe;
  ulyrt_value v = {.struct_size = sizeof v,
                   .number = (int32_t)p->value,
                   .operation = uly_capi_name(i->model, p->name),
                   .step = uly_capi_name(i->model, s->step->name),
                   .spec_line = (int32_t)p->spec_line,
                   .spec_column = (int32_t)p->spec_column,
                   .depth = (int32_t)s->depth,
                   .ndim = (int32_t)p->rank,
                   .dtype = uly_capi_dtype(p->dtype),
                   .spec_dtype = uly_capi_dtype(p->spec_dtype),
                   .data = (void *)(uintptr_t)s->data};
  memcpy(v.iteration, s->iteration, s->depth * sizeof *s->iteration);
  memcpy(v.dims, s->dims, sizeof v.dims);
  memcpy(v.start, s->start, sizeof v.start);
  memcpy(v.local, s->local, sizeof v.local);
  memcpy(v.strides, s->stride, sizeof v.strides);
  i->watch(i->watch_context, &v);
}

// Everything that run needs to check what it is given.
static uly_status prepare(ulyrt_instance *i, uly_error *error) {
  uly_span tensors = entry_of(i)->tensors;
  i->shapes = calloc(tensors.count + (size_t)1, sizeof *i->shapes);
  i->pointers = calloc(tensors.count + (size_t)1, sizeof *i->pointers);
  if (!i->shapes || !i->pointers) return uly_fail(error, ULY_EXHAUSTED, "no memory for an instance");
  for (uint32_t k = 0; k < tensors.count; k++) {
    int64_t dims[ULY_MAX_DIMS], start[ULY_MAX_DIMS];
    ULY_TRY(uly_bound_shape(i->bound, tensors.first + k, error, dims, start, i->shapes[k].local));
  }
  return ULY_OK;
}

ulyrt_status ulyrt_bind(ulyrt_model *m, const ulyrt_bind_options *given, ulyrt_instance **out_instance, ulyrt_error *error) {
  uly_error e;
  int64_t symbols[ULY_MAX_SYMBOLS];
  ulyrt_bind_options o = {0};
  if (!m || !given || !out_instance || given->struct_size < sizeof(size_t))
    return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "ulyrt_bind: an argument is NULL or has no struct_size");
  memcpy(&o, given, given->struct_size < sizeof o ? given->struct_size : sizeof o);
  uly_bind_options options = {.entry = o.entry ? uly_str_of(o.entry) : (uly_str){"", 0}, .symbols = symbols, .device = o.device, .threads = o.threads};
  uly_status status = read_sizes(m, &o, symbols, &e);
  if (status == ULY_OK) status = read_grid(m, &o, &options, &e);
  if (status != ULY_OK) { // peers must not wait for a rank that never comes
    for (int32_t a = 0; a < o.n_comms && o.comms; a++)
      if (o.comms[a]) ulyrt_comm_abort(o.comms[a], e.text);
    return uly_capi_error(error, &e, status);
  }
  ulyrt_instance *i = calloc(1, sizeof *i);
  if (!i) return uly_capi_fail(error, ULY_EXHAUSTED, "no memory for an instance");
  i->model = m;
  i->watch = o.watch;
  i->watch_context = o.watch_context;
  if (o.watch) options.watcher = (uly_watcher){show, i};
  status = uly_bind(m->loaded, &options, &e, &i->bound);
  if (status == ULY_OK) status = prepare(i, &e);
  if (status != ULY_OK) {
    ulyrt_instance_destroy(i);
    return uly_capi_error(error, &e, status);
  }
  *out_instance = i;
  return ULYRT_OK;
}

void ulyrt_instance_destroy(ulyrt_instance *i) {
  if (!i) return;
  uly_bound_destroy(i->bound);
  free(i->shapes);
  free(i->pointers);
  free(i);
}

// ---- run ------------------------------------------------------------------------------------------------------------------------------------

static bool is_dense(const ulyrt_tensor *x) {
  int64_t step = 1;
  for (int32_t d = x->ndim - 1; x->strides && d >= 0; d--) {
    if (x->shape[d] == 0) return true;
    if (x->shape[d] != 1 && x->strides[d] != step) return false;
    step *= x->shape[d];
  }
  return true;
}

static void shape_text(int32_t n, const int64_t *dims, char *out, size_t bytes) {
  size_t at = (size_t)snprintf(out, bytes, "[");
  for (int32_t d = 0; d < n && d < ULY_MAX_DIMS && at < bytes; d++) at += (size_t)snprintf(out + at, bytes - at, d ? ", %lld" : "%lld", (long long)dims[d]);
  if (at < bytes) snprintf(out + at, bytes - at, "]");
}

static uly_status check_tensor(const ulyrt_instance *i, uint32_t k, const ulyrt_tensor *x, uly_error *error) {
  const uly_tensor *t = &i->model->loaded->tables.tensors[entry_of(i)->tensors.first + k];
  const char *name = uly_capi_name(i->model, t->names.first);
  const int64_t *local = i->shapes[k].local;
  bool empty = false;
  for (uint32_t d = 0; d < t->rank; d++) empty = empty || local[d] == 0;
  if (x->device.type != 1) return uly_fail(error, ULY_INVALID_ARGUMENT, "%s is on a device of type %d, expected 1 (CPU)", name, x->device.type);
  if (!uly_capi_same_dtype(x->dtype, t->dtype))
    return uly_fail(error, ULY_INVALID_ARGUMENT, "%s has DLPack type (code %d, %d bits, %d lanes), the model needs %s", name, x->dtype.code, x->dtype.bits,
                    x->dtype.lanes, uly_dtype_name((uly_dtype)t->dtype));
  if (x->ndim != (int32_t)t->rank || (t->rank && (!x->shape || memcmp(x->shape, local, t->rank * sizeof *local) != 0))) {
    char want[140], have[140];
    shape_text((int32_t)t->rank, local, want, sizeof want);
    shape_text(x->shape ? x->ndim : 0, x->shape, have, sizeof have);
    return uly_fail(error, ULY_INVALID_ARGUMENT, "%s has shape %s, this rank's part is %s", name, have, want);
  }
  if (!is_dense(x)) return uly_fail(error, ULY_INVALID_ARGUMENT, "%s is not dense and row-major", name);
  if (!x->data && !empty) return uly_fail(error, ULY_INVALID_ARGUMENT, "%s has no data", name);
  if (((uintptr_t)x->data + x->byte_offset) % (uintptr_t)uly_dtype_bytes((uly_dtype)t->dtype))
    return uly_fail(error, ULY_INVALID_ARGUMENT, "%s is not aligned to its elements", name);
  return ULY_OK;
}

ulyrt_status ulyrt_run(ulyrt_instance *i, const ulyrt_tensor *tensors, int32_t n_tensors, ulyrt_error *error) {
  uly_error e;
  if (!i || (!tensors && n_tensors)) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "ulyrt_run: an argument is NULL");
  uint32_t n = entry_of(i)->tensors.count;
  uly_status status = n_tensors == (int32_t)n ? ULY_OK : uly_fail(&e, ULY_INVALID_ARGUMENT, "%d tensors, the entry has %u", n_tensors, n);
  for (uint32_t k = 0; k < n && status == ULY_OK; k++) {
    status = check_tensor(i, k, &tensors[k], &e);
    i->pointers[k] = tensors[k].data ? (char *)tensors[k].data + tensors[k].byte_offset : NULL;
  }
  if (status != ULY_OK) {
    uly_run_refuse(i->bound, &e);
    return uly_capi_error(error, &e, status);
  }
  status = uly_run(i->bound, i->pointers, &e);
  return uly_capi_error(error, &e, status);
}

// ---- what it is -----------------------------------------------------------------------------------------------------------------------------

ulyrt_status ulyrt_instance_shape(const ulyrt_instance *i, int32_t tensor, ulyrt_shape *out_shape, ulyrt_error *error) {
  uly_error e;
  uly_span tensors = entry_of(i)->tensors;
  if (tensor < 0 || (uint32_t)tensor >= tensors.count)
    return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "the entry has %u tensors, asked for number %d", tensors.count, tensor);
  ulyrt_shape s = {.ndim = (int32_t)i->model->loaded->tables.tensors[tensors.first + (uint32_t)tensor].rank};
  uly_status status = uly_bound_shape(i->bound, tensors.first + (uint32_t)tensor, &e, s.dims, s.start, s.local);
  if (status != ULY_OK) return uly_capi_error(error, &e, status);
  return uly_capi_copy(out_shape, out_shape->struct_size, &s, sizeof s, error);
}

ulyrt_status ulyrt_instance_get(const ulyrt_instance *i, ulyrt_instance_info *out_info, ulyrt_error *error) {
  const uly_bound *b = i->bound;
  const uly_tables *t = &i->model->loaded->tables;
  ulyrt_instance_info info = {.entry = uly_capi_name(i->model, entry_of(i)->name),
                              .device = b->device->ops->name,
                              .cpu_level = b->loaded->levels[b->level].name,
                              .rank = (int32_t)b->rank,
                              .n_ranks = (int32_t)b->nodes.n_ranks,
                              .threads = b->device->threads,
                              .steps = (int32_t)b->machine.steps.count,
                              .arena_bytes = b->arena.bytes,
                              .scratch_bytes = uly_machine_scratch(&b->machine)};
  for (uint32_t a = 0; a < t->n_axes; a++) info.receive_bytes += b->received[a].bytes;
  for (uint32_t k = 0; k < t->n_buffers; k++)
    if (i->model->loaded->memory[k] && !(t->buffers[k].flags & ULY_BUFFER_CONSTANT))
      info.weight_bytes += i->model->loaded->slot_bytes[k] * (int64_t)t->buffers[k].slots;
  return uly_capi_copy(out_info, out_info->struct_size, &info, sizeof info, error);
}

ulyrt_status ulyrt_instance_axis(const ulyrt_instance *i, int32_t axis, ulyrt_axis_info *out_info, ulyrt_error *error) {
  const uly_bound *b = i->bound;
  uint32_t n = i->model->loaded->tables.n_axes;
  if (axis < 0 || (uint32_t)axis >= n) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "the grid has %u axes, asked for number %d", n, axis);
  ulyrt_axis_info info = {.name = ulyrt_model_axis_name(i->model, axis),
                          .size = b->comms[axis]->n_ranks,
                          .place = b->comms[axis]->rank,
                          .receive_bytes = b->received[axis].bytes,
                          .sent_bytes = b->comms[axis]->sent_bytes};
  return uly_capi_copy(out_info, out_info->struct_size, &info, sizeof info, error);
}

ulyrt_status ulyrt_instance_step(const ulyrt_instance *i, int32_t step, ulyrt_step_info *out_info, ulyrt_error *error) {
  static const char *const kinds[] = {
#define X(name) #name,
      ULY_STEP_KINDS(X)
#undef X
  };
  const uly_bound *b = i->bound;
  if (step < 0 || (uint32_t)step >= b->machine.steps.count)
    return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "the instance has %u steps, asked for number %d", b->machine.steps.count, step);
  const uly_step *s = &i->model->loaded->tables.steps[b->machine.steps.first + (uint32_t)step];
  ulyrt_step_info info = {.kind = kinds[s->kind], .name = uly_capi_name(i->model, s->name), .spec_line = (int32_t)s->spec_line};
  bool skipped;
  info.items = uly_machine_items(&b->machine, (uint32_t)step, &skipped);
  info.skipped = skipped;
  const uly_link *x = s->kind == ULY_STEP_SEND ? &b->links[s->a] : NULL;
  for (int p = 0; x && p < x->comm->n_ranks; p++) info.sent_bytes += p == x->comm->rank ? 0 : x->route.send_bytes[p];
  return uly_capi_copy(out_info, out_info->struct_size, &info, sizeof info, error);
}
