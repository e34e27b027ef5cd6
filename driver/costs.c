// What a spec costs at given sizes: see costs.h.
#include "driver/costs.h"

#include <inttypes.h>

#include "runtime/base/escape.h"
#include "runtime/bind_needs.h"

enum { N_COLUMNS = 4 }; // ranks 1, 2, 4, 8 of the first axis where --at does not name it

static int64_t mul(int64_t a, int64_t b) {
  int64_t r;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) ? ULY_SIZE_OVERFLOW : r;
}

static int64_t add(int64_t a, int64_t b) {
  int64_t r;
  return a < 0 || b < 0 || __builtin_add_overflow(a, b, &r) ? ULY_SIZE_OVERFLOW : r;
}

bool uly_costs_dim(uly_dim dim, const uly_sizes *sizes, int64_t *out_size) {
  bool overflow = false;
  *out_size = dim.add;
  if (dim.symbol >= 0) overflow = __builtin_mul_overflow(dim.mul, sizes->symbols[dim.symbol], out_size) || __builtin_add_overflow(*out_size, dim.add, out_size);
  if (overflow) *out_size = ULY_SIZE_OVERFLOW;
  return overflow || *out_size >= 0;
}

static int64_t size_of(uly_dim dim, const uly_sizes *sizes) {
  int64_t n;
  return uly_costs_dim(dim, sizes, &n) ? n : ULY_SIZE_OVERFLOW;
}

int64_t uly_costs_elements(const uly_tensor_type *type, const uly_sizes *sizes) {
  int64_t n = 1;
  for (int d = 0; d < type->rank; d++) n = mul(n, size_of(type->dims[d], sizes));
  return n;
}

static int64_t parameters_in(const uly_graph_region *region) {
  static const uly_sizes none = {0};
  int64_t bytes = 0;
  for (int32_t i = 0; i < region->n_values; i++) {
    const uly_graph_value *v = region->values[i];
    if (v->op == ULY_OP_PARAM) bytes = add(bytes, mul(v->u.param.n_names, mul(uly_dtype_bytes(v->type.dtype), uly_costs_elements(&v->type, &none))));
    if (v->op == ULY_OP_REPEAT) bytes = add(bytes, parameters_in(v->u.repeat.body));
  }
  return bytes;
}

int64_t uly_costs_parameters(const uly_graph_entry *entry) { return parameters_in(&entry->body); }

// ---- the table

// "1234" or "1.2 MB", at most 12 characters
uly_str uly_costs_bytes_text(uly_arena *arena, int64_t bytes) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes == ULY_SIZE_OVERFLOW) return ULY_STR("too large");
  double value = (double)bytes;
  int unit = 0;
  for (; value >= 1000 && unit < 6; unit++) value /= 1000;
  return unit ? uly_str_format(arena, "%.1f %s", value, units[unit]) : uly_str_format(arena, "%" PRId64 " B", bytes);
}

typedef struct table {
  uly_driver *d;
  const uly_tables *t;
  int64_t ranks[N_COLUMNS]; // on the first axis
  int n;
  uly_needs needs[N_COLUMNS];
  bool fits[N_COLUMNS]; // in 64 bits
} table;

// Rounded side by side; a single column has room for all digits.
static void add_row(uly_driver *d, uly_str what, const int64_t *bytes, int n) {
  uly_text_add(&d->out, "  %-42.*s", ULY_STR_ARG(what));
  for (int i = 0; i < n; i++) {
    uly_str text = uly_costs_bytes_text(d->arena, bytes[i]);
    uly_text_add(&d->out, " %11.*s", ULY_STR_ARG(text));
  }
  if (n == 1 && bytes[0] >= 1000) uly_text_add(&d->out, " = %" PRId64 " B", bytes[0]);
  uly_text_add(&d->out, "\n");
}

// The same of |n| columns: |bytes| of what each needs.
static void add_needs(const table *c, uly_str what, int64_t (*bytes)(const uly_needs *needs, uint32_t i), uint32_t i) {
  int64_t all[N_COLUMNS];
  for (int k = 0; k < c->n; k++) all[k] = c->fits[k] ? bytes(&c->needs[k], i) : ULY_SIZE_OVERFLOW;
  add_row(c->d, what, all, c->n);
}

static int64_t packed(const uly_needs *needs, uint32_t i) { return (void)i, needs->packed_bytes; }
static int64_t values(const uly_needs *needs, uint32_t i) { return (void)i, needs->value_bytes; }
static int64_t sent(const uly_needs *needs, uint32_t x) { return needs->sent[x]; }
static int64_t busiest(const uly_needs *needs, uint32_t axis) { return needs->busiest[axis]; }

// Every exchange that some number of ranks has use for, and what they come to.
static void add_axis(const table *c, uint32_t axis) {
  uly_text name = {.arena = c->d->arena}, over = {.arena = c->d->arena};
  uly_text_add_escaped(&name, uly_tables_text(c->t, c->t->axes[axis].name));
  if (c->t->n_axes > 1) uly_text_add(&over, " over %.*s", (int)name.len, name.ptr);
  for (uint32_t x = 0; x < c->t->n_exchanges; x++) {
    const uly_exchange *e = &c->t->exchanges[x];
    int64_t times = 0;
    bool any = false;
    for (int k = 0; k < c->n && e->axis == axis; k++) {
      any = any || !c->fits[k] || c->needs[k].sent[x];
      if (c->fits[k] && c->needs[k].times[x] > times) times = c->needs[k].times[x];
    }
    if (!any) continue;
    uly_text what = {.arena = c->d->arena};
    uly_text_add(&what, "line %u: ", e->spec_line);
    uly_text_add_escaped(&what, uly_tables_name(c->t, e->name));
    uly_text_add(&what, "%.*s", (int)over.len, over.ptr ? over.ptr : "");
    if (times > 1) uly_text_add(&what, ", %" PRId64 " times", times);
    add_needs(c, uly_text_str(&what), sent, x);
  }
  add_needs(c, uly_str_format(c->d->arena, "sent by the busiest rank%.*s", (int)over.len, over.ptr ? over.ptr : ""), busiest, axis);
}

static uly_status measure(table *c, const uly_graph *graph, uly_str entry, const uly_sizes *sizes) {
  int64_t symbols[ULY_MAX_SYMBOLS] = {0};
  uly_error error = {0};
  for (int32_t i = 0; i < graph->n_symbols; i++) symbols[i] = sizes->symbols[i];
  for (int k = 0; k < c->n; k++) {
    int32_t grid[ULY_MAX_AXES] = {0};
    for (int32_t a = 0; a < graph->n_axes; a++) grid[a] = (int32_t)(a ? sizes->ranks[a] : c->ranks[k]);
    uly_status status = uly_bind_needs(c->t, entry, symbols, grid, &error, &c->needs[k]);
    c->fits[k] = status == ULY_OK;
    if (status == ULY_OK || status == ULY_OVERFLOW) continue;
    uly_text_add(&c->d->error, "`--at %s`: %s", c->d->args.value[ULY_OPTION_AT], error.text);
    return status;
  }
  return ULY_OK;
}

uly_status uly_costs_add(uly_driver *d, const uly_graph *graph, const uly_graph_entry *entry, const uly_tables *tables, const uly_sizes *sizes) {
  table c = {.d = d, .t = tables, .ranks = {1, 2, 4, 8}, .n = graph->n_axes ? N_COLUMNS : 1};
  int64_t parameters[N_COLUMNS], others = 1;
  for (int32_t a = 1; a < graph->n_axes; a++) others *= sizes->ranks[a];
  if (graph->n_axes && sizes->ranks[0]) c.ranks[0] = sizes->ranks[0], c.n = 1;
  uly_status status = measure(&c, graph, entry->name, sizes);
  uly_text_add(&d->out, "\n  at %-39s", d->args.value[ULY_OPTION_AT]);
  for (int k = 0; k < c.n; k++) {
    uly_str text = uly_str_format(d->arena, "%" PRId64 " rank%s", c.ranks[k] * others, c.ranks[k] * others == 1 ? "" : "s");
    uly_text_add(&d->out, " %11.*s", ULY_STR_ARG(text));
    parameters[k] = uly_costs_parameters(entry);
  }
  uly_text_add(&d->out, "\n");
  if (status == ULY_OK) {
    add_row(d, ULY_STR("parameters, each rank"), parameters, c.n);
    add_needs(&c, ULY_STR("packed weights, each rank"), packed, 0);
    add_needs(&c, ULY_STR("values of a run, each rank"), values, 0);
    for (uint32_t a = 0; a < tables->n_axes; a++) add_axis(&c, a);
  }
  for (int k = 0; k < c.n; k++) uly_needs_free(&c.needs[k]);
  return status;
}
