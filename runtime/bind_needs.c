// The sizes of a bind whose ranks are only numbers: its memory is planned as bind_memory.c plans it, its messages are added up by the formula of uly_exchange.
#include "runtime/bind_needs.h"

#include <stdlib.h>

#include "runtime/bound.h"

static const uly_comm_ops mapped = {.name = "none", .mapped = true};

// a · b · c of numbers that are not negative.
static uly_status product(int64_t a, int64_t b, int64_t c, uly_error *error, int64_t *out) {
  if (!__builtin_mul_overflow(a, b, out) && !__builtin_mul_overflow(*out, c, out)) return ULY_OK;
  return uly_fail(error, ULY_OVERFLOW, "size overflow: a message of %lld · %lld · %lld bytes", (long long)a, (long long)b, (long long)c);
}

// What rank |rank| sends in exchange |x|, done |times| times.
static uly_status sent_by(const uly_bound *b, uint32_t x, int64_t rank, int64_t times, uly_error *error, int64_t *out) {
  const uly_exchange *e = &b->loaded->tables.exchanges[x];
  int64_t unit, rows, cols, all = 0;
  ULY_TRY(uly_nodes_size(&b->nodes, e->unit, rank, error, &unit));
  ULY_TRY(uly_nodes_size(&b->nodes, e->rows, rank, error, &rows));
  for (int32_t p = 0; p < b->nodes.grid.size[e->axis]; p++) {
    int64_t peer = uly_grid_peer(&b->nodes.grid, rank, e->axis, p);
    if (peer == rank) continue;
    ULY_TRY(uly_nodes_size(&b->nodes, e->cols, peer, error, &cols));
    if (__builtin_add_overflow(all, cols, &all)) return uly_fail(error, ULY_OVERFLOW, "size overflow: the columns of exchange %u", x);
  }
  ULY_TRY(product(unit, rows, all, error, out));
  return product(*out, times, 1, error, out);
}

// How often each exchange is done in a run.
static uly_status count_exchanges(const uly_bound *b, int64_t *times, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  uly_span steps = t->entries[b->entry].steps[ULY_PHASE_FORWARD];
  int64_t around[ULY_MAX_LOOPS + 1] = {1}, count;
  int depth = 0;
  for (uint32_t i = steps.first; i < steps.first + steps.count; i++) {
    const uly_step *s = &t->steps[i];
    if (s->kind == ULY_STEP_LOOP) {
      ULY_TRY(uly_nodes_size(&b->nodes, s->items, 0, error, &count));
      ULY_TRY(product(around[depth], count, 1, error, &around[depth + 1]));
      depth++;
    }
    if (s->kind == ULY_STEP_END) depth--;
    if (s->kind == ULY_STEP_SEND) times[s->a] += around[depth];
  }
  return ULY_OK;
}

static uly_status add_messages(const uly_bound *b, uly_needs *out, int64_t *totals, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  for (uint32_t x = 0; x < t->n_exchanges; x++)
    for (int64_t r = 0; r < b->nodes.n_ranks && out->times[x]; r++) {
      int64_t bytes = 0, *total = &totals[t->exchanges[x].axis * b->nodes.n_ranks + r];
      ULY_TRY(sent_by(b, x, r, out->times[x], error, &bytes));
      if (bytes > out->sent[x]) out->sent[x] = bytes;
      if (__builtin_add_overflow(*total, bytes, total)) return uly_fail(error, ULY_OVERFLOW, "size overflow: what rank %lld sends", (long long)r);
      if (*total > out->busiest[t->exchanges[x].axis]) out->busiest[t->exchanges[x].axis] = *total;
    }
  return ULY_OK;
}

// What stays when the load phase is over.
static uly_status add_packed(const uly_bound *b, bool *marks, uly_needs *out, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  uly_load_mark(t, b->entry, ULY_PHASE_LOAD + 1, ULY_N_PHASES, true, marks);
  for (uint32_t i = 0; i < t->n_buffers; i++) {
    int64_t slot, bytes;
    if (!marks[i]) continue;
    ULY_TRY(uly_load_bytes(t, &b->nodes, i, error, &slot, &bytes));
    out->packed_bytes += bytes;
  }
  return ULY_OK;
}

static uly_status measure(uly_bound *b, uly_needs *out, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  ULY_TRY(uly_bind_sizes(b, error));
  ULY_TRY(uly_bind_plan(b, error));
  out->entry = b->entry;
  out->value_bytes = b->arena.bytes;
  for (uint32_t a = 0; a < t->n_axes; a++) out->value_bytes += b->received[a].bytes;
  out->sent = calloc(t->n_exchanges + (size_t)1, sizeof *out->sent);
  out->times = calloc(t->n_exchanges + (size_t)1, sizeof *out->times);
  int64_t *totals = calloc((size_t)(t->n_axes * b->nodes.n_ranks) + 1, sizeof *totals);
  bool *marks = calloc(t->n_buffers + (size_t)1, sizeof *marks);
  uly_status status =
      out->sent && out->times && totals && marks ? count_exchanges(b, out->times, error) : uly_fail(error, ULY_EXHAUSTED, "no memory for the sizes");
  if (status == ULY_OK) status = add_messages(b, out, totals, error);
  if (status == ULY_OK) status = add_packed(b, marks, out, error);
  free(totals);
  free(marks);
  return status;
}

uly_status uly_bind_needs(const uly_tables *tables, uly_str entry, const int64_t *symbols, const int32_t *grid, uly_error *error, uly_needs *out) {
  uly_loaded loaded = {.tables = *tables};
  uly_comm comm = {.ops = &mapped};
  uly_bound b = {.loaded = &loaded, .entry = uly_tables_find_entry(tables, entry), .nodes.grid.n_axes = tables->n_axes};
  *out = (uly_needs){0};
  if (b.entry == ULY_NONE) return uly_fail(error, ULY_INVALID_ARGUMENT, "the model has no entry \"%.*s\"", ULY_STR_ARG(entry));
  for (uint32_t i = 0; i < ULY_MAX_SYMBOLS; i++) b.symbols[i] = i < tables->n_symbols && tables->entries[b.entry].symbols >> i & 1 ? symbols[i] : ULY_NO_VALUE;
  for (uint32_t a = 0; a < tables->n_axes; a++) b.nodes.grid.size[a] = grid[a], b.comms[a] = &comm;
  b.nodes.n_ranks = uly_grid_ranks(&b.nodes.grid);
  uly_status status = measure(&b, out, error);
  free(b.nodes.values);
  free(b.memory);
  free(b.slot_bytes);
  free(b.offsets);
  free(b.links);
  if (status != ULY_OK) uly_needs_free(out);
  return status;
}

void uly_needs_free(uly_needs *needs) {
  free(needs->sent);
  free(needs->times);
  *needs = (uly_needs){0};
}
