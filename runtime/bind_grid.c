// The grid of a bind: how many ranks each axis has, and a communicator for each line of ranks that differ in their place on one axis alone. The caller gives a communicator an axis, or
// one of all ranks, the world, which is cut into lines here.
#include <stdlib.h>
#include <string.h>

#include "runtime/bound.h"

static uly_str axis_name(const uly_bound *b, uint32_t a) { return uly_tables_text(&b->loaded->tables, b->loaded->tables.axes[a].name); }

void uly_grid_text(const uly_tables *t, const int32_t *sizes, char *out, size_t bytes) {
  size_t n = (size_t)snprintf(out, bytes, "%s", "");
  for (uint32_t a = 0; a < t->n_axes && n < bytes; a++)
    n += (size_t)snprintf(out + n, bytes - n, "%s%.*s=%d", a ? "," : "", ULY_STR_ARG(uly_tables_text(t, t->axes[a].name)), sizes[a]);
}

static void set_size(uly_bound *b, uint32_t a, int64_t size) {
  b->nodes.grid.size[a] = (int32_t)size;
  uly_str name = axis_name(b, a);
  snprintf(b->places.names[a], sizeof b->places.names[a], "%.*s", ULY_STR_ARG(name));
}

static uly_status fail_ranks(const uly_bound *b, const int64_t *sizes, int64_t given, int n, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  char text[160] = "";
  size_t at = 0;
  for (uint32_t a = 0; a < t->n_axes && at < sizeof text; a++) {
    uly_str name = axis_name(b, a);
    if (sizes[a]) at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s=%lld", at ? "," : "", ULY_STR_ARG(name), (long long)sizes[a]);
  }
  if (t->n_axes == 0) return uly_fail(error, ULY_INVALID_ARGUMENT, "the model has no grid, it cannot use %d ranks", n);
  if (t->n_axes == 1 && given < n)
    return uly_fail(error, ULY_INVALID_ARGUMENT,
                    "the grid %s has %lld of %d ranks, and the model no other axis for the rest: with a second one, for example `grid sp(S), dp(B)` in the "
                    "spec, they share the batch",
                    text, (long long)given, n);
  return uly_fail(error, ULY_INVALID_ARGUMENT, "the grid %s has %lld rank%s, which does not go with %d", text, (long long)given, given == 1 ? "" : "s", n);
}

// The first axis without a size has the ranks that are left, the others without one have one.
static uly_status settle(uly_bound *b, const int64_t *sizes, int n, uly_error *error) {
  uint32_t n_axes = b->loaded->tables.n_axes, open = n_axes;
  int64_t given = 1;
  for (uint32_t a = n_axes; a-- > 0;) {
    uly_str name = axis_name(b, a);
    if (sizes[a] < 0) return uly_fail(error, ULY_INVALID_ARGUMENT, "grid axis %.*s has %lld ranks", ULY_STR_ARG(name), (long long)sizes[a]);
    if (!sizes[a])
      open = a;
    else if (__builtin_mul_overflow(given, sizes[a], &given))
      given = INT64_MAX;
  }
  if (open == n_axes ? given != n : n % given != 0) return fail_ranks(b, sizes, given, n, error);
  for (uint32_t a = 0; a < n_axes; a++) set_size(b, a, sizes[a] ? sizes[a] : a == open ? n / given : 1);
  return ULY_OK;
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
    set_size(b, a, b->comms[a]->n_ranks);
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
  ULY_TRY(by_axis ? take_comms(b, options, error) : settle(b, options->grid, (int)b->nodes.n_ranks, error));
  b->places.grid = b->nodes.grid;
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
