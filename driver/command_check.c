// `ulyc check`: what a spec declares, and with --at what it costs. Types come from the graph; costs from the program that it becomes, of which no code is made.
#include <errno.h>
#include <inttypes.h>
#include <strings.h>

#include "driver/commands.h"
#include "driver/costs.h"
#include "frontend/graph_print.h"
#include "runtime/base/escape.h"

static const int64_t most_rows = (int64_t)1 << 47, most_ranks = 4096; // what the runtime takes

// ---- --at

// NAME=N of --at: a free symbol or an axis of the grid.
static uly_status set_size(uly_driver *d, const uly_graph *graph, uly_str item, uly_sizes *sizes) {
  const char *equal = memchr(item.ptr, '=', item.len);
  uly_str name = {item.ptr, equal ? (size_t)(equal - item.ptr) : item.len};
  uly_str digits = equal ? uly_str_copy(d->arena, (uly_str){equal + 1, item.len - name.len - 1}) : (uly_str){0};
  char *end = NULL;
  int64_t *to = NULL, most = most_rows;
  for (int32_t i = 0; i < graph->n_symbols; i++)
    if (uly_str_equal(name, graph->symbols[i])) to = &sizes->symbols[i];
  for (int32_t i = 0; !to && i < graph->n_axes; i++)
    if (uly_str_equal(name, graph->axes[i].name)) to = &sizes->ranks[i], most = most_ranks;
  if (to) {
    errno = 0;
    int64_t n = equal ? strtoll(digits.ptr, &end, 10) : 0;
    if (errno || n < 1 || *end || n > most) {
      uly_text_add(&d->error, "`--at %.*s`: %.*s is a number from 1 to %" PRId64, ULY_STR_ARG(item), ULY_STR_ARG(name), most);
      return ULY_INVALID_ARGUMENT;
    }
    if (*to) {
      uly_text_add(&d->error, "`--at` gives `%.*s` twice", ULY_STR_ARG(name));
      return ULY_INVALID_ARGUMENT;
    }
    return *to = n, ULY_OK;
  }
  uly_text_add(&d->error, "`--at %.*s`: the spec has no free symbol or grid axis `%.*s`", ULY_STR_ARG(item), ULY_STR_ARG(name));
  uly_str near = uly_str_nearest(name, graph->symbols, (size_t)graph->n_symbols);
  for (int32_t i = 0; i < graph->n_symbols; i++)
    if (name.len == graph->symbols[i].len && strncasecmp(name.ptr, graph->symbols[i].ptr, name.len) == 0) near = graph->symbols[i];
  if (near.len) uly_text_add(&d->error, "; did you mean `%.*s`?", ULY_STR_ARG(near));
  return ULY_INVALID_ARGUMENT;
}

static uly_status parse_at(uly_driver *d, const uly_graph *graph, uly_sizes *out_sizes) {
  out_sizes->symbols = ULY_NEW_ARRAY(d->arena, int64_t, graph->n_symbols + 1);
  out_sizes->ranks = ULY_NEW_ARRAY(d->arena, int64_t, graph->n_axes + 1);
  for (const char *at = d->args.value[ULY_OPTION_AT]; at && *at;) {
    size_t n = strcspn(at, ",");
    ULY_TRY(set_size(d, graph, (uly_str){at, n}, out_sizes));
    at += n + (at[n] == ',');
  }
  for (int32_t i = 0; i < graph->n_symbols; i++) {
    if (out_sizes->symbols[i]) continue;
    uly_text_add(&d->error, "`--at` gives no size to `%.*s`", ULY_STR_ARG(graph->symbols[i]));
    return ULY_INVALID_ARGUMENT;
  }
  return ULY_OK;
}

// Names the first dim that is negative at these sizes.
static uly_status check_dims(uly_driver *d, const uly_graph *graph, const uly_graph_region *region, const uly_sizes *sizes) {
  for (int32_t i = 0; i < region->n_values; i++) {
    const uly_graph_value *v = region->values[i];
    if (v->op == ULY_OP_REPEAT) ULY_TRY(check_dims(d, graph, v->u.repeat.body, sizes));
    for (int32_t k = 0; k < v->type.rank; k++) {
      int64_t size;
      if (uly_costs_dim(v->type.dims[k], sizes, &size)) continue;
      uly_text dim = {.arena = d->arena};
      uly_dim_print(&dim, v->type.dims[k], graph->symbols);
      uly_str name = graph->symbols[v->type.dims[k].symbol];
      uly_text_add(&d->error, "`--at %s`: %.*s in line %u is %" PRId64 " where %.*s is %" PRId64, d->args.value[ULY_OPTION_AT], (int)dim.len, dim.ptr,
                   v->loc.line, size, ULY_STR_ARG(name), sizes->symbols[v->type.dims[k].symbol]);
      return ULY_INVALID_ARGUMENT;
    }
  }
  return ULY_OK;
}

// ---- declarations

static void add_typed(uly_driver *d, const uly_graph *graph, const char *word, uly_str name, const uly_tensor_type *type) {
  uly_str text = uly_type_text(d->arena, type, graph->symbols);
  uly_text_add(&d->out, "  %-7s %-12.*s %.*s", word, ULY_STR_ARG(name), ULY_STR_ARG(text));
}

static void count_parameters(const uly_graph_region *region, int64_t *count, int64_t *elements) {
  static const uly_sizes none = {0};
  for (int32_t i = 0; i < region->n_values; i++) {
    const uly_graph_value *v = region->values[i];
    if (v->op == ULY_OP_REPEAT) count_parameters(v->u.repeat.body, count, elements);
    if (v->op != ULY_OP_PARAM) continue;
    *count += v->u.param.n_names;
    *elements += v->u.param.n_names * uly_costs_elements(&v->type, &none);
  }
}

static void add_parameters(uly_driver *d, const uly_graph *graph, const uly_graph_region *region) {
  for (int32_t i = 0; i < region->n_values; i++) {
    const uly_graph_value *v = region->values[i];
    if (v->op == ULY_OP_REPEAT) add_parameters(d, graph, v->u.repeat.body);
    if (v->op != ULY_OP_PARAM) continue;
    uly_str type = uly_type_text(d->arena, &v->type, graph->symbols);
    for (int32_t n = 0; n < v->u.param.n_names; n++) {
      uly_text_add(&d->out, "    ");
      uly_text_add_escaped(&d->out, v->u.param.names[n]);
      uly_text_add(&d->out, " %.*s\n", ULY_STR_ARG(type));
    }
  }
}

static void add_entry(uly_driver *d, const uly_graph *graph, const uly_graph_entry *entry) {
  int64_t count = 0, elements = 0;
  uly_text_add(&d->out, "%s %.*s\n", entry->is_model ? "model" : "layer", ULY_STR_ARG(entry->name));
  for (int32_t i = 0; i < entry->n_inputs; i++) {
    add_typed(d, graph, "input", entry->inputs[i].name, &entry->inputs[i].type);
    if (entry->inputs[i].id_limit) uly_text_add(&d->out, ", each below %" PRId64, entry->inputs[i].id_limit);
    uly_text_add(&d->out, "\n");
  }
  for (int32_t i = 0; i < entry->n_results; i++) {
    add_typed(d, graph, "result", entry->results[i].name, &entry->results[i].value->type);
    uly_text_add(&d->out, "\n");
  }
  count_parameters(&entry->body, &count, &elements);
  uly_str size = uly_costs_bytes_text(d->arena, uly_costs_parameters(entry));
  uly_text_add(&d->out, "  %" PRId64 " parameter%s, %" PRId64 " elements, %.*s\n", count, count == 1 ? "" : "s", elements, ULY_STR_ARG(size));
  add_parameters(d, graph, &entry->body);
}

static uly_status add_entries(uly_driver *d, const uly_graph *graph) {
  for (int32_t i = 0; i < graph->n_entries; i++) {
    if (i) uly_text_add(&d->out, "\n");
    add_entry(d, graph, &graph->entries[i]);
  }
  return ULY_OK;
}

static uly_status lower(uly_driver *d, const uly_graph *graph, uly_tables *out_tables) {
  uly_lower_options options = {.source_name = uly_str_of(d->args.operands[0]), .level = 2, .print_to = stdout};
  const uly_blob *blob = NULL;
  uly_error error = {0};
  void *function;
  uly_driver_keep_last_ir(d, &options);
  ULY_TRY(uly_driver_lower(d, "uly_lower_tables", &function));
  ULY_TRY(((uly_lower_tables_fn *)(uintptr_t)function)(d->arena, graph, &options, &d->diags, &blob));
  uly_status status = uly_tables_read(blob, blob->bytes, &error, out_tables);
  if (status != ULY_OK) uly_text_add(&d->error, "%s", error.text);
  return status;
}

static uly_status add_costs(uly_driver *d, const uly_graph *graph, uly_sizes *sizes) {
  uly_tables tables = {0};
  for (int32_t i = 0; i < graph->n_entries; i++) ULY_TRY(check_dims(d, graph, &graph->entries[i].body, sizes));
  ULY_TRY(lower(d, graph, &tables));
  for (int32_t a = 1; a < graph->n_axes; a++)
    if (!sizes->ranks[a]) sizes->ranks[a] = 1;
  uly_status status = ULY_OK;
  for (int32_t i = 0; i < graph->n_entries && status == ULY_OK; i++) {
    if (i) uly_text_add(&d->out, "\n");
    add_entry(d, graph, &graph->entries[i]);
    status = uly_costs_add(d, graph, &graph->entries[i], &tables, sizes);
  }
  uly_tables_free(&tables);
  return status;
}

uly_status uly_command_check(uly_driver *d) {
  uly_graph *graph;
  uly_sizes sizes = {0};
  ULY_TRY(uly_driver_read_spec(d, &graph));
  if (d->args.given[ULY_OPTION_AT]) ULY_TRY(parse_at(d, graph, &sizes));
  if (d->args.given[ULY_OPTION_UNSUPPORTED]) {
    uly_text_add(&d->out, "everything in this spec can be compiled\n"); // what cannot be is an error
    return ULY_OK;
  }
  ULY_TRY(sizes.symbols ? add_costs(d, graph, &sizes) : add_entries(d, graph));
  if (d->args.given[ULY_OPTION_TYPES]) {
    uly_text_add(&d->out, "\n");
    uly_graph_print(&d->out, graph);
    uly_text_add(&d->out, "\n");
  }
  return ULY_OK;
}
