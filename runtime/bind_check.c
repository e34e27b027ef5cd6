// Do all ranks of a bind agree? Every rank sends a record of what it is about to do and how it fares, and compares all records in the same way, so that every
// rank ends with the same answer and, where they differ, with the same sentence about the first two that do.
#include <stdlib.h>
#include <string.h>

#include "runtime/bound.h"

typedef struct record {
  int32_t status;
  uint32_t entry, level;
  int32_t grid[ULY_MAX_AXES];
  uint8_t program[32];
  int64_t symbols[ULY_MAX_SYMBOLS];
  int64_t bytes[1 + ULY_MAX_AXES]; // of the arena and of the receive buffers
  uint64_t offsets;                // hash
  char device[16];
  char text[256];
} record;

static uint64_t hash_offsets(const uly_bound *b) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint32_t i = 0; b->offsets && b->slot_bytes && i < b->loaded->tables.n_buffers; i++) {
    hash = (hash ^ (uint64_t)b->offsets[i]) * 0x100000001b3u;
    hash = (hash ^ (uint64_t)b->slot_bytes[i]) * 0x100000001b3u;
  }
  return hash;
}

// |where|: " on axis dp" where ranks of one axis are compared.
static uly_status differ(const uly_bound *b, const record *x, const record *y, int q, const char *where, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  if (memcmp(x->program, y->program, sizeof x->program) != 0)
    return uly_fail(error, ULY_MISMATCH, "ranks 0 and %d%s run different models: program %02x%02x%02x%02x… and %02x%02x%02x%02x…", q, where, x->program[0],
                    x->program[1], x->program[2], x->program[3], y->program[0], y->program[1], y->program[2], y->program[3]);
  if (memcmp(x->grid, y->grid, sizeof x->grid) != 0) {
    char mine[120], theirs[120];
    uly_grid_text(t, x->grid, mine, sizeof mine);
    uly_grid_text(t, y->grid, theirs, sizeof theirs);
    return uly_fail(error, ULY_MISMATCH, "rank 0%s has the grid %s, rank %d %s", where, mine, q, theirs);
  }
  if (x->entry != y->entry) {
    uly_str a = uly_tables_name(t, x->entry < t->n_entries ? t->entries[x->entry].name : ULY_NONE),
            c = uly_tables_name(t, y->entry < t->n_entries ? t->entries[y->entry].name : ULY_NONE);
    return uly_fail(error, ULY_MISMATCH, "rank 0%s binds entry \"%.*s\" (row %u), rank %d \"%.*s\" (row %u)", where, ULY_STR_ARG(a), x->entry, q,
                    ULY_STR_ARG(c), y->entry);
  }
  for (uint32_t i = 0; i < t->n_symbols; i++)
    if (x->symbols[i] != y->symbols[i]) {
      uly_str name = uly_tables_text(t, t->symbols[i].name);
      return uly_fail(error, ULY_MISMATCH, "rank 0%s has %.*s = %lld, rank %d has %.*s = %lld", where, ULY_STR_ARG(name), (long long)x->symbols[i], q,
                      ULY_STR_ARG(name), (long long)y->symbols[i]);
    }
  if (strncmp(x->device, y->device, sizeof x->device) != 0)
    return uly_fail(error, ULY_MISMATCH, "rank 0%s runs on device %.15s, rank %d on %.15s", where, x->device, q, y->device);
  if (x->offsets != y->offsets || memcmp(x->bytes, y->bytes, sizeof x->bytes) != 0)
    return uly_fail(error, ULY_MISMATCH, "ranks 0 and %d%s lay buffers out differently: %lld and %lld bytes", q, where, (long long)x->bytes[0],
                    (long long)y->bytes[0]);
  return ULY_OK;
}

// Gathers |mine| over |comm|, compares, and takes over the first failure into |mine|.
static uly_status agree_on(uly_bound *b, uly_comm *comm, const char *where, record *mine, uly_error *error) {
  size_t n = (size_t)comm->n_ranks;
  record *all = calloc(n, sizeof *all);
  if (!all) {
    comm->ops->abort(comm, "no memory to bind");
    return uly_fail(error, ULY_EXHAUSTED, "no memory to bind");
  }
  uly_status status = comm->ops->all_gather(comm, mine, sizeof *mine, all);
  if (status != ULY_OK) {
    uly_fail(error, status, "%s", comm->error);
  } else {
    for (size_t q = 0; q < n; q++)
      if (all[q].level < mine->level) mine->level = all[q].level;
    for (size_t q = 0; q < n && status == ULY_OK; q++) {
      if (!all[q].status) continue;
      status = uly_status_failure(all[q].status);
      all[q].text[sizeof all[q].text - 1] = 0;
      uly_fail(error, status, "rank %zu%s cannot bind: %s", q, where, all[q].text);
    }
    for (size_t q = 1; q < n && status == ULY_OK; q++) status = differ(b, &all[0], &all[q], (int)q, where, error);
  }
  free(all);
  return status;
}

// Over the world, or over all axes, one after the other: what one rank says reaches every rank of the grid.
static uly_status agree(uly_bound *b, uly_status own, uly_error *error, record *mine) {
  const uly_tables *t = &b->loaded->tables;
  uly_status status = own;
  memcpy(mine->grid, b->nodes.grid.size, sizeof mine->grid);
  memcpy(mine->program, t->program, sizeof mine->program);
  for (uint32_t a = 0; a < (b->world ? 1 : t->n_axes); a++) {
    uly_comm *comm = b->world ? b->world : b->comms[a];
    char where[48] = "";
    if (b->nodes.n_ranks == 1 || comm->n_ranks == 1) continue;
    if (!b->world && t->n_axes > 1) snprintf(where, sizeof where, " on axis %.*s", ULY_STR_ARG(uly_tables_text(t, t->axes[a].name)));
    mine->status = (int32_t)status;
    if (status != ULY_OK) snprintf(mine->text, sizeof mine->text, "%.*s", (int)sizeof mine->text - 1, error->text);
    uly_error found;
    uly_status here = agree_on(b, comm, where, mine, &found);
    if (status != ULY_OK || here == ULY_OK) continue; // what this rank knows of itself says more
    status = here;
    *error = found;
  }
  b->level = mine->level;
  return status;
}

uly_status uly_bind_agree(uly_bound *b, uly_status own, uly_error *error) {
  record mine = {.entry = b->entry, .level = b->level};
  memcpy(mine.symbols, b->symbols, sizeof mine.symbols);
  return agree(b, own, error, &mine);
}

uly_status uly_bind_agree_plan(uly_bound *b, uly_status own, uly_error *error) {
  record mine = {.entry = b->entry, .level = b->level, .offsets = hash_offsets(b)};
  memcpy(mine.symbols, b->symbols, sizeof mine.symbols);
  mine.bytes[0] = b->arena.bytes;
  for (int a = 0; a < ULY_MAX_AXES; a++) mine.bytes[1 + a] = b->received[a].bytes;
  if (b->device) snprintf(mine.device, sizeof mine.device, "%s", b->device->ops->name);
  return agree(b, own, error, &mine);
}
