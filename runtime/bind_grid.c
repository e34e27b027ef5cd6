// The grid of a bind: how many ranks each axis has, and a communicator for each line of ranks that differ in their place on one axis alone. The caller gives a communicator an axis, or
// one of all ranks, the world, which is cut into lines here.
#include <stdlib.h>
#include <string.h>

#include "runtime/bound.h"

void uly_grid_text(const uly_tables *t, const int32_t *sizes, char *out, size_t bytes) {
  size_t n = 0;
  *out = 0;
  for (uint32_t a = 0; a < t->n_axes && n < bytes; a++)
    if (sizes[a]) n += (size_t)snprintf(out + n, bytes - n, "%s%.*s=%d", n ? "," : "", ULY_STR_ARG(uly_tables_text(t, t->axes[a].name)), sizes[a]);
}

static uly_status fail_ranks(const uly_tables *t, const int32_t *given, int64_t product, int n, uly_error *error) {
  char text[160];
  if (t->n_axes == 0) return uly_fail(error, ULY_INVALID_ARGUMENT, "the model has no grid, it cannot use %d ranks", n);
  uly_grid_text(t, given, text, sizeof text);
  if (t->n_axes == 1 && product < n)
    return uly_fail(
        error, ULY_INVALID_ARGUMENT,
        "the grid %s has %lld of %d ranks, and the model no other axis for the rest: with a second one, for example `grid sp(S), dp(B)` in the spec, they "
        "share the batch",
        text, (long long)product, n);
  return uly_fail(error, ULY_INVALID_ARGUMENT, "the grid %s has %lld rank%s, which does not go with %d", text, (long long)product, product == 1 ? "" : "s", n);
}

uly_status uly_grid_settle(const uly_tables *t, const int32_t *given, int n, uly_error *error, int32_t *out_sizes) {
  uint32_t open = t->n_axes;
  int64_t product = 1;
  for (uint32_t a = t->n_axes; a-- > 0;) {
    uly_str name = uly_tables_text(t, t->axes[a].name);
    if (given[a] < 0) return uly_fail(error, ULY_INVALID_ARGUMENT, "grid axis %.*s has %d ranks", ULY_STR_ARG(name), given[a]);
    if (!given[a])
      open = a;
    else if (__builtin_mul_overflow(product, given[a], &product))
      product = INT64_MAX;
  }
  if (open == t->n_axes ? product != n : n % product != 0) return fail_ranks(t, given, product, n, error);
  for (uint32_t a = 0; a < t->n_axes; a++) out_sizes[a] = given[a] ? given[a] : a == open ? (int32_t)(n / product) : 1;
  return ULY_OK;
}

static void name_places(uly_bound *b) {
  const uly_tables *t = &b->loaded->tables;
  b->places.grid = b->nodes.grid;
  for (uint32_t a = 0; a < t->n_axes; a++) snprintf(b->places.names[a], sizeof b->places.names[a], "%.*s", ULY_STR_ARG(uly_tables_text(t, t->axes[a].name)));
}

// A communicator an axis.
static uly_status take_comms(uly_bound *b, const uly_bind_options *options, uly_error *error) {
  uint32_t n_axes = b->loaded->tables.n_axes;
  for (uint32_t a = n_axes; a < ULY_MAX_AXES; a++)
    if (options->comms[a] && options->comms[a]->n_ranks > 1)
      return uly_fail(error, ULY_INVALID_ARGUMENT, "the model's grid has %u axes, it cannot use %d ranks on axis %u", n_axes, options->comms[a]->n_ranks, a);
  for (uint32_t a = 0; a < n_axes; a++) {
    b->comms[a] = options->comms[a];
    if (!b->comms[a]) b->comms[a] = b->own_comms[a] = uly_comm_self();
    if (!b->comms[a]) return uly_fail(error, ULY_EXHAUSTED, "no memory for a communicator");
    b->nodes.grid.size[a] = b->comms[a]->n_ranks;
    b->rank += b->comms[a]->rank * uly_grid_stride(&b->nodes.grid, a);
  }
  b->nodes.n_ranks = uly_grid_ranks(&b->nodes.grid);
  return ULY_OK;
}

uly_status uly_bind_grid(uly_bound *b, const uly_bind_options *options, uly_error *error) {
  bool by_axis = false;
  for (int a = 0; a < ULY_MAX_AXES; a++) by_axis = by_axis || options->comms[a];
  ULY_ASSERT(!by_axis || !options->world);
  b->nodes.grid.n_axes = b->loaded->tables.n_axes;
  b->world = options->world;
  if (b->world) b->rank = b->world->rank;
  b->nodes.n_ranks = b->world ? b->world->n_ranks : 1;
  ULY_TRY(by_axis ? take_comms(b, options, error) : uly_grid_settle(&b->loaded->tables, options->grid, (int)b->nodes.n_ranks, error, b->nodes.grid.size));
  name_places(b);
  return ULY_OK;
}

// The line of axis |a| that this rank is in, whose members are |members|.
static uly_status make_line(uly_bound *b, uint32_t a, const int *members, uly_error *error) {
  int32_t size = b->nodes.grid.size[a];
  if (b->world && size == b->world->n_ranks) return b->comms[a] = b->world, ULY_OK;
  if (size > 1) {
    uly_status status = uly_comm_line(b->world, size, members, &b->places, &b->own_comms[a]);
    if (status != ULY_OK) return uly_fail(error, status, "%s", b->world->error);
  } else {
    b->own_comms[a] = uly_comm_self();
    if (!b->own_comms[a]) return uly_fail(error, ULY_EXHAUSTED, "no memory for a communicator");
  }
  b->comms[a] = b->own_comms[a];
  return ULY_OK;
}

uly_status uly_bind_lines(uly_bound *b, uly_error *error) {
  const uly_grid *grid = &b->nodes.grid;
  size_t n = 0;
  for (uint32_t a = 0; a < grid->n_axes; a++) n += (size_t)grid->size[a];
  int *members = b->members = calloc(n + 1, sizeof *members);
  uly_status status = members ? ULY_OK : uly_fail(error, ULY_EXHAUSTED, "no memory for the lines of the grid");
  for (uint32_t a = 0; status == ULY_OK && a < grid->n_axes; a++) {
    for (int32_t q = 0; q < grid->size[a]; q++) members[q] = (int)uly_grid_peer(grid, b->rank, a, q);
    if (!b->comms[a]) status = make_line(b, a, members, error);
    members += grid->size[a];
  }
  if (status != ULY_OK) uly_bind_abort(b, error->text);
  return status;
}

void uly_bind_abort(uly_bound *b, const char *reason) {
  if (b->world) b->world->ops->abort(b->world, reason);
  for (uint32_t a = 0; !b->world && a < ULY_MAX_AXES; a++)
    if (b->comms[a] && b->comms[a]->n_ranks > 1) b->comms[a]->ops->abort(b->comms[a], reason);
}

void uly_bound_prefix(const uly_bound *b, uly_error *error) {
  char place[80];
  if (b->nodes.n_ranks <= 1) return;
  uly_places_print(&b->places, b->rank, place, sizeof place);
  uly_error_prefix(error, *place ? "[rank %lld] (%s) " : "[rank %lld] ", (long long)b->rank, place);
}
