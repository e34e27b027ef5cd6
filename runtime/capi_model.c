// ulyrt.h: models.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/capi.h"

// ---- load -----------------------------------------------------------------------------------------------------------------------------------

// Text |i| of all that are copied: names, symbols, axes, names and texts of sources.
static uly_span text_of(const uly_tables *t, uint32_t i) {
  if (i < t->n_names) return t->names[i];
  i -= t->n_names;
  if (i < t->n_symbols) return t->symbols[i].name;
  i -= t->n_symbols;
  if (i < t->n_axes) return t->axes[i].name;
  i -= t->n_axes;
  return i % 2 ? t->sources[i / 2].text : t->sources[i / 2].name;
}

// Zero-terminated copies of all names.
static uly_status copy_names(ulyrt_model *m, uly_error *error) {
  const uly_tables *t = &m->loaded->tables;
  uint32_t n = t->n_names + t->n_symbols + t->n_axes + 2 * t->n_sources;
  size_t chars = 1;
  for (uint32_t i = 0; i < t->n_names; i++) chars += t->names[i].count + (size_t)1;
  for (uint32_t i = 0; i < t->n_symbols; i++) chars += t->symbols[i].name.count + (size_t)1;
  for (uint32_t i = 0; i < t->n_axes; i++) chars += t->axes[i].name.count + (size_t)1;
  for (uint32_t i = 0; i < t->n_sources; i++) chars += t->sources[i].name.count + t->sources[i].text.count + (size_t)2;
  m->memory = calloc(1, sizeof(char *) * (n + (size_t)1) + chars);
  if (!m->memory) return uly_fail(error, ULY_EXHAUSTED, "no memory for %u names", n);
  m->names = m->memory;
  char *at = (char *)(m->names + n + 1);
  for (uint32_t i = 0; i < n; i++) {
    uly_span s = text_of(t, i);
    memcpy(at, t->chars + s.first, s.count);
    m->names[i] = at;
    at += s.count + 1;
  }
  return ULY_OK;
}

ulyrt_status ulyrt_model_load(const char *path, ulyrt_model **out_model, ulyrt_error *error) {
  uly_error e;
  if (!path || !out_model) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "ulyrt_model_load: an argument is NULL");
  ulyrt_model *m = calloc(1, sizeof *m);
  if (!m) return uly_capi_fail(error, ULY_EXHAUSTED, "no memory for a model");
  uly_status status = uly_loaded_open(path, &e, &m->loaded);
  if (status == ULY_OK) status = copy_names(m, &e);
  if (status != ULY_OK) {
    ulyrt_model_destroy(m);
    return uly_capi_error(error, &e, status);
  }
  *out_model = m;
  return ULYRT_OK;
}

void ulyrt_model_destroy(ulyrt_model *m) {
  if (!m) return;
  uly_loaded_destroy(m->loaded);
  free(m->memory);
  free(m);
}

// ---- what is in it ----------------------------------------------------------------------------------------------------------------------------

// Variants of an entry are one entry here: its first.
static int32_t count_entries(const uly_tables *t) {
  int32_t n = 0;
  for (uint32_t i = 0; i < t->n_entries; i++) n += uly_tables_find_entry(t, uly_tables_name(t, t->entries[i].name)) == i;
  return n;
}

static uint32_t entry_row(const uly_tables *t, int32_t entry) {
  for (uint32_t i = 0; i < t->n_entries; i++)
    if (uly_tables_find_entry(t, uly_tables_name(t, t->entries[i].name)) == i && entry-- == 0) return i;
  return ULY_NONE;
}

int32_t ulyrt_model_entries(const ulyrt_model *m) { return count_entries(&m->loaded->tables); }
int32_t ulyrt_model_params(const ulyrt_model *m) { return (int32_t)m->loaded->n_params; }
int32_t ulyrt_model_symbols(const ulyrt_model *m) { return (int32_t)m->loaded->tables.n_symbols; }
int32_t ulyrt_model_axes(const ulyrt_model *m) { return (int32_t)m->loaded->tables.n_axes; }

const char *ulyrt_model_symbol_name(const ulyrt_model *m, int32_t i) {
  const uly_tables *t = &m->loaded->tables;
  return i >= 0 && (uint32_t)i < t->n_symbols ? m->names[t->n_names + (uint32_t)i] : NULL;
}

const char *ulyrt_model_axis_name(const ulyrt_model *m, int32_t i) {
  const uly_tables *t = &m->loaded->tables;
  return i >= 0 && (uint32_t)i < t->n_axes ? m->names[t->n_names + t->n_symbols + (uint32_t)i] : NULL;
}

ulyrt_status ulyrt_model_entry(const ulyrt_model *m, int32_t entry, ulyrt_entry_info *out_info, ulyrt_error *error) {
  const uly_tables *t = &m->loaded->tables;
  uint32_t row = entry_row(t, entry);
  if (row == ULY_NONE) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "there are %d entries, asked for number %d", count_entries(t), entry);
  const uly_entry *e = &t->entries[row];
  ulyrt_entry_info info = {.name = uly_capi_name(m, e->name), .tensors = (int32_t)e->tensors.count, .symbols = e->symbols};
  if (t->n_symbols < ULY_MAX_SYMBOLS) info.symbols &= (1u << t->n_symbols) - 1;
  return uly_capi_copy(out_info, out_info->struct_size, &info, sizeof info, error);
}

static void describe(const ulyrt_model *m, uint32_t tensor, uint32_t name, ulyrt_tensor_info *info) {
  const uly_tables *t = &m->loaded->tables;
  const uly_tensor *x = &t->tensors[tensor];
  *info = (ulyrt_tensor_info){.name = uly_capi_name(m, x->names.first + name),
                              .role = (int32_t)x->role,
                              .ndim = (int32_t)x->rank,
                              .dtype = uly_capi_dtype(x->dtype),
                              .id_limit = x->id_limit,
                              .init = x->init};
  for (uint32_t d = 0; d < x->rank; d++) {
    const uly_node *n = &t->nodes[x->dims[d]];
    int64_t size = m->loaded->constants[x->dims[d]];
    info->dims[d] = size == ULY_NO_VALUE ? -1 : size;
    info->symbol[d] = n->kind == ULY_NODE_SYM ? (int32_t)n->value : -1;
  }
}

ulyrt_status ulyrt_model_tensor(const ulyrt_model *m, int32_t entry, int32_t tensor, ulyrt_tensor_info *out_info, ulyrt_error *error) {
  uint32_t row = entry_row(&m->loaded->tables, entry);
  if (row == ULY_NONE || tensor < 0 || (uint32_t)tensor >= m->loaded->tables.entries[row].tensors.count)
    return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "entry %d has no tensor %d", entry, tensor);
  ulyrt_tensor_info info;
  describe(m, m->loaded->tables.entries[row].tensors.first + (uint32_t)tensor, 0, &info);
  return uly_capi_copy(out_info, out_info->struct_size, &info, sizeof info, error);
}

ulyrt_status ulyrt_model_param(const ulyrt_model *m, int32_t param, ulyrt_tensor_info *out_info, ulyrt_error *error) {
  const uly_loaded *l = m->loaded;
  if (param < 0 || (uint32_t)param >= l->n_params)
    return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "there are %u parameters, asked for number %d", l->n_params, param);
  for (uint32_t i = 0; i < l->tables.n_tensors; i++) {
    const uly_tensor *x = &l->tables.tensors[i];
    if (x->role != ULY_PARAM || (uint32_t)param < l->first_param[i] || (uint32_t)param - l->first_param[i] >= x->names.count) continue;
    ulyrt_tensor_info info;
    describe(m, i, (uint32_t)param - l->first_param[i], &info);
    info.is_set = l->params[param].data != NULL;
    return uly_capi_copy(out_info, out_info->struct_size, &info, sizeof info, error);
  }
  return uly_capi_fail(error, ULY_INTERNAL, "parameter %d has no tensor", param);
}

// ---- parameters -------------------------------------------------------------------------------------------------------------------------------

ulyrt_status ulyrt_model_set_param(ulyrt_model *m, const char *name, const ulyrt_tensor *x, uint32_t flags, ulyrt_error *error) {
  uly_error e;
  if (!m || !name || !x || x->ndim < 0 || x->ndim > ULY_MAX_DIMS || (x->ndim && !x->shape))
    return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "ulyrt_model_set_param: an argument is NULL, or the tensor has %d dims", x ? x->ndim : 0);
  uint32_t dtype = 0;
  while (dtype < ULY_N_DTYPES && !uly_capi_same_dtype(x->dtype, dtype)) dtype++;
  // U8 stands for BOOL too: the parameter of that name decides.
  for (uint32_t i = 0; i < m->loaded->n_params && dtype == ULY_U8; i++) {
    uly_param_info info;
    if (uly_param_get(m->loaded, i, NULL, &info) == ULY_OK && uly_str_is(info.name, name) && info.dtype == ULY_BOOL) dtype = ULY_BOOL;
  }
  const char *data = x->data ? (const char *)x->data + x->byte_offset : NULL;
  uly_status status = uly_param_set(m->loaded, uly_str_of(name), dtype, (uint32_t)x->ndim, x->shape, data, (flags & ULYRT_BORROW) != 0, &e);
  return uly_capi_error(error, &e, status);
}

ulyrt_status ulyrt_model_pack(ulyrt_model *m, int32_t entry, int32_t threads, ulyrt_error *error) {
  uly_error e;
  if (!m) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "ulyrt_model_pack: the model is NULL");
  if (entry < 0 || (uint32_t)entry >= m->loaded->tables.n_entries)
    return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "ulyrt_model_pack: the model has no entry %d", entry);
  if (threads < 0 || threads > 4096) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "ulyrt_model_pack: %d threads, at most 4096", threads);
  uly_status status = uly_loaded_pack(m->loaded, (uint32_t)entry, threads, &e);
  return uly_capi_error(error, &e, status);
}

ulyrt_status ulyrt_model_seed_params(ulyrt_model *m, uint64_t seed, ulyrt_error *error) {
  uly_error e;
  if (!m) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "ulyrt_model_seed_params: the model is NULL");
  uly_status status = uly_param_seed(m->loaded, seed, &e);
  return uly_capi_error(error, &e, status);
}

// ---- symbols ----------------------------------------------------------------------------------------------------------------------------------

// Finds the symbol that makes |node| equal to |value|. False where it cannot, or where a symbol has another value.
static bool solve(const uly_loaded *l, uint32_t node, int64_t value, int64_t *symbols) {
  for (;;) {
    const uly_node *n = &l->tables.nodes[node];
    int64_t a = n->kind >= ULY_NODE_ADD ? l->constants[n->a] : ULY_NO_VALUE,
            b = n->kind >= ULY_NODE_ADD && n->kind < ULY_NODE_PEER_SUM ? l->constants[n->b] : ULY_NO_VALUE;
    if (l->constants[node] != ULY_NO_VALUE) return l->constants[node] == value;
    if (n->kind == ULY_NODE_SYM) {
      if (symbols[n->value] == ULY_NO_VALUE) symbols[n->value] = value;
      return symbols[n->value] == value;
    }
    if (n->kind == ULY_NODE_ADD && (a != ULY_NO_VALUE || b != ULY_NO_VALUE)) {
      value -= a != ULY_NO_VALUE ? a : b;
      node = a != ULY_NO_VALUE ? n->b : n->a;
    } else if (n->kind == ULY_NODE_SUB && b != ULY_NO_VALUE) {
      value += b;
      node = n->a;
    } else if (n->kind == ULY_NODE_MUL && (a != ULY_NO_VALUE || b != ULY_NO_VALUE)) {
      int64_t by = a != ULY_NO_VALUE ? a : b;
      if (by == 0 || value % by) return false;
      value /= by;
      node = a != ULY_NO_VALUE ? n->b : n->a;
    } else {
      return true; // nothing to learn; bind compares the size
    }
  }
}

ulyrt_status ulyrt_model_infer(const ulyrt_model *m, int32_t entry, int32_t tensor, int32_t ndim, const int64_t *dims, int64_t *symbols, ulyrt_error *error) {
  const uly_tables *t = &m->loaded->tables;
  uint32_t row = entry_row(t, entry);
  if (row == ULY_NONE || tensor < 0 || (uint32_t)tensor >= t->entries[row].tensors.count || !symbols || (ndim && !dims))
    return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "entry %d has no tensor %d, or an argument is NULL", entry, tensor);
  const uly_tensor *x = &t->tensors[t->entries[row].tensors.first + (uint32_t)tensor];
  const char *name = uly_capi_name(m, x->names.first);
  if ((uint32_t)ndim != x->rank) return uly_capi_fail(error, ULY_INVALID_INPUT, "%s has %d dims, the model says %u", name, ndim, x->rank);
  for (int32_t d = 0; d < ndim; d++) {
    if (solve(m->loaded, x->dims[d], dims[d], symbols)) continue;
    const uly_node *n = &t->nodes[x->dims[d]];
    int64_t constant = m->loaded->constants[x->dims[d]];
    if (n->kind == ULY_NODE_SYM)
      return uly_capi_fail(error, ULY_INVALID_INPUT, "dim %d of %s is %lld, but %s = %lld", d, name, (long long)dims[d],
                           ulyrt_model_symbol_name(m, (int32_t)n->value), (long long)symbols[n->value]);
    if (constant != ULY_NO_VALUE)
      return uly_capi_fail(error, ULY_INVALID_INPUT, "dim %d of %s is %lld, the model says %lld", d, name, (long long)dims[d], (long long)constant);
    return uly_capi_fail(error, ULY_INVALID_INPUT, "dim %d of %s is %lld, which does not agree with the other sizes", d, name, (long long)dims[d]);
  }
  return ULYRT_OK;
}

ulyrt_status ulyrt_model_shape(const ulyrt_model *m, int32_t entry, int32_t tensor, const int64_t *symbols, int64_t *out_dims, ulyrt_error *error) {
  const uly_tables *t = &m->loaded->tables;
  uint32_t row = entry_row(t, entry);
  uly_error e;
  if (row == ULY_NONE || tensor < 0 || (uint32_t)tensor >= t->entries[row].tensors.count || !symbols || !out_dims)
    return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "entry %d has no tensor %d, or an argument is NULL", entry, tensor);
  uint32_t x = t->entries[row].tensors.first + (uint32_t)tensor;
  uly_nodes nodes = {.nodes = t->nodes, .n_nodes = t->n_nodes, .n_symbols = t->n_symbols, .symbols = symbols, .n_ranks = 1};
  nodes.values = malloc(sizeof *nodes.values * (t->n_nodes + (size_t)1));
  if (!nodes.values) return uly_capi_fail(error, ULY_EXHAUSTED, "no memory for sizes");
  uly_nodes_eval(&nodes);
  uly_status status = ULY_OK;
  for (uint32_t d = 0; status == ULY_OK && d < t->tensors[x].rank; d++) status = uly_tables_dim(t, &nodes, x, d, &e, &out_dims[d]);
  free(nodes.values);
  return uly_capi_error(error, &e, status);
}

// ---- the grid -----------------------------------------------------------------------------------------------------------------------------------

static uly_status find_axis(const uly_tables *t, const char *name, uint32_t *out_axis, uly_error *error) {
  char names[120] = "none";
  size_t n = 0;
  for (uint32_t a = 0; a < t->n_axes; a++) {
    uly_str have = uly_tables_text(t, t->axes[a].name);
    if (uly_str_is(have, name)) return *out_axis = a, ULY_OK;
    if (n < sizeof names) n += (size_t)snprintf(names + n, sizeof names - n, "%s%.*s", a ? ", " : "", ULY_STR_ARG(have));
  }
  return uly_fail(error, ULY_INVALID_ARGUMENT, "the model has no grid axis %.40s (there is: %s)%s", name, names,
                  t->n_axes == 1 ? "; a second one, for example `grid sp(S), dp(B)` in the spec, splits the batch" : "");
}

uly_status uly_capi_grid(const ulyrt_model *m, const ulyrt_size *grid, int32_t n_grid, uly_error *error, int32_t *out_given) {
  for (int32_t k = 0; k < n_grid; k++) {
    uint32_t a = 0;
    if (!grid || !grid[k].symbol) return uly_fail(error, ULY_INVALID_ARGUMENT, "size %d of the grid has no axis", k);
    ULY_TRY(find_axis(&m->loaded->tables, grid[k].symbol, &a, error));
    if (grid[k].value < 1 || grid[k].value > INT32_MAX)
      return uly_fail(error, ULY_INVALID_ARGUMENT, "grid axis %.40s has %lld ranks", grid[k].symbol, (long long)grid[k].value);
    if (out_given[a]) return uly_fail(error, ULY_INVALID_ARGUMENT, "grid axis %.40s is given twice", grid[k].symbol);
    out_given[a] = (int32_t)grid[k].value;
  }
  return ULY_OK;
}

ulyrt_status ulyrt_model_grid(const ulyrt_model *m, int32_t n_ranks, const ulyrt_size *grid, int32_t n_grid, int32_t *out_sizes, ulyrt_error *error) {
  uly_error e;
  int32_t given[ULY_MAX_AXES] = {0};
  if (n_ranks < 1) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "%d ranks", n_ranks);
  uly_status status = uly_capi_grid(m, grid, n_grid, &e, given);
  if (status == ULY_OK) status = uly_grid_settle(&m->loaded->tables, given, n_ranks, &e, out_sizes);
  return uly_capi_error(error, &e, status);
}

// ---- values -----------------------------------------------------------------------------------------------------------------------------------

ulyrt_status ulyrt_model_source(const ulyrt_model *m, ulyrt_source *out_source, ulyrt_error *error) {
  const uly_tables *t = &m->loaded->tables;
  ulyrt_source source = {.name = "", .text = ""};
  uint32_t row = t->n_names + t->n_symbols + t->n_axes;
  if (t->n_sources) {
    source.name = m->names[row];
    source.text = m->names[row + 1];
    memcpy(source.program, t->sources[0].hash, sizeof source.program);
  }
  return uly_capi_copy(out_source, out_source->struct_size, &source, sizeof source, error);
}

int32_t ulyrt_model_values(const ulyrt_model *m, int32_t entry) {
  uint32_t row = entry_row(&m->loaded->tables, entry);
  return row == ULY_NONE ? 0 : (int32_t)m->loaded->tables.entries[row].probes.count;
}

ulyrt_status ulyrt_model_value(const ulyrt_model *m, int32_t entry, int32_t i, ulyrt_value *out_value, ulyrt_error *error) {
  const uly_tables *t = &m->loaded->tables;
  int32_t n = ulyrt_model_values(m, entry);
  if (i < 0 || i >= n) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "the entry shows %d values, asked for number %d", n, i);
  const uly_probe *p = &t->probes[t->entries[entry_row(t, entry)].probes.first + (uint32_t)i];
  ulyrt_value v = {.number = (int32_t)p->value,
                   .operation = uly_capi_name(m, p->name),
                   .step = uly_capi_name(m, t->steps[p->step].name),
                   .spec_line = (int32_t)p->spec_line,
                   .spec_column = (int32_t)p->spec_column,
                   .ndim = (int32_t)p->rank,
                   .dtype = uly_capi_dtype(p->dtype),
                   .spec_dtype = uly_capi_dtype(p->spec_dtype)};
  return uly_capi_copy(out_value, out_value->struct_size, &v, sizeof v, error);
}
