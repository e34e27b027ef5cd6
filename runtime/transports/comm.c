// What all communicators share: how they record a failure, lines, and what messages call a rank.
#include <stdarg.h>
#include <stdio.h>

#include "runtime/transports/transport.h"

uly_status uly_comm_fail(uly_comm *comm, uly_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(comm->error, sizeof comm->error, format, args);
  va_end(args);
  return status;
}

uly_status uly_comm_line(uly_comm *world, int n, const int *members, const uly_places *places, uly_comm **out_line) {
  uly_comm *line = NULL;
  ULY_TRY(world->ops->line(world, n, members, &line));
  line->places = places;
  *out_line = line;
  return ULY_OK;
}

void uly_places_print(const uly_places *places, int64_t rank, char *out, size_t bytes) {
  int wide = 0;
  size_t n = 0;
  *out = 0;
  for (uint32_t a = 0; a < places->grid.n_axes; a++) wide += places->grid.size[a] > 1;
  for (uint32_t a = 0; wide > 1 && a < places->grid.n_axes && n < bytes; a++)
    n += (size_t)snprintf(out + n, bytes - n, "%s%s %lld", a ? ", " : "", places->names[a], (long long)uly_grid_place(&places->grid, rank, a));
}

uly_rank_name uly_comm_member_name(const uly_comm *comm, int member) {
  uly_rank_name name;
  char place[80] = "";
  if (comm->places) uly_places_print(comm->places, member, place, sizeof place);
  snprintf(name.text, sizeof name.text, *place ? "%d (%s)" : "%d", member, place);
  return name;
}

uly_rank_name uly_comm_name(const uly_comm *comm, int rank) { return uly_comm_member_name(comm, uly_comm_member(comm, rank)); }
