// A run of a bind: its forward steps, then what kernels found wrong on any rank.
#include <string.h>

#include "runtime/bound.h"
#include "runtime/poison.h"

typedef struct report {
  uly_fault fault;
  int64_t rank; // of the grid
} report;
_Static_assert(sizeof(report) <= ULY_FAULT_RECORD, "faults are gathered in records of ULY_FAULT_RECORD bytes");

static uly_status fail_fault(const uly_bound *b, const report *r, uly_error *error) {
  const uly_tables *t = &b->loaded->tables;
  const uly_step *s = &t->steps[r->fault.step < t->n_steps ? r->fault.step : 0];
  uly_str name = uly_tables_name(t, s->name);
  const uly_fault *f = &r->fault;
  char where[160], who[120] = "", place[80], at[160] = "";
  size_t n = 0;
  snprintf(where, sizeof where, "(%.*s, spec line %u)", ULY_STR_ARG(name), s->spec_line);
  uly_places_print(&b->places, r->rank, place, sizeof place);
  if (r->rank != b->rank) snprintf(who, sizeof who, *place ? "rank %lld (%s): " : "rank %lld: ", (long long)r->rank, place);
  if (f->code == ULY_FAULT_CAPTURE_RANGE)
    return uly_fail(error, ULY_FAULT, "%sindex %lld of a captured tensor is out of range at batch %lld, query row %lld, key row %lld %s", who, (long long)f->a,
                    (long long)f->at[0], (long long)f->at[1], (long long)f->at[2], where);
  for (int64_t d = 0; d < f->n_at && d < ULY_MAX_DIMS; d++) n += (size_t)snprintf(at + n, sizeof at - n, d ? ", %lld" : "%lld", (long long)f->at[d]);
  return uly_fail(error, ULY_FAULT, "%sindex %lld at [%s] is out of range: at least 0 and below %lld %s", who, (long long)f->a, at, (long long)f->b, where);
}

// Gathers |mine| over |comm|: the lowest rank's fault comes out.
static uly_status meet(uly_bound *b, uly_comm *comm, report *mine, uly_error *error) {
  report theirs;
  if (comm->n_ranks == 1) return ULY_OK;
  uly_status status = comm->ops->all_gather(comm, mine, sizeof *mine, b->gathered);
  if (status != ULY_OK) {
    b->failed = true;
    return uly_fail(error, status, "%s", comm->error);
  }
  for (size_t q = 0; q < (size_t)comm->n_ranks; q++) {
    memcpy(&theirs, b->gathered + q * sizeof theirs, sizeof theirs);
    if (theirs.fault.code && (!mine->fault.code || theirs.rank < mine->rank)) *mine = theirs;
  }
  return ULY_OK;
}

static bool exchanges(const uly_bound *b) {
  bool any = false;
  for (int a = 0; a < ULY_MAX_AXES; a++) any = any || b->exchanges_on[a];
  return any;
}

// A fault does not stop a rank, so that its peers do not wait for it in vain; but their results are wrong too, so all ranks learn of it, the lowest rank's first.
static uly_status share_fault(uly_bound *b, uly_error *error) {
  report mine = {.fault = b->machine.fault, .rank = b->rank};
  if (b->world && exchanges(b)) ULY_TRY(meet(b, b->world, &mine, error));
  for (uint32_t a = 0; !b->world && a < b->loaded->tables.n_axes; a++)
    if (b->exchanges_on[a]) ULY_TRY(meet(b, b->comms[a], &mine, error));
  return mine.fault.code ? fail_fault(b, &mine, error) : ULY_OK;
}

uly_status uly_run(uly_bound *b, void *const *tensors, uly_error *error) {
  uly_span own = b->loaded->tables.entries[b->entry].tensors;
  if (b->failed) return uly_fail(error, ULY_CANCELLED, "an earlier run of this bind failed: its ranks are out of step");
  for (uint32_t k = 0; k < own.count; k++) b->tensors[own.first + k] = tensors[k];
  if (b->machine.poison) uly_poison_outputs(&b->machine, &b->loaded->tables.entries[b->entry]);
  b->device->ops->begin(b->device);
  uly_status status = uly_machine_run(&b->machine, error);
  b->device->ops->end(b->device);
  if (status == ULY_OK) {
    status = share_fault(b, error);
  } else {
    b->failed = true;
    uly_bind_abort(b, error->text); // of all axes
  }
  if (status != ULY_OK) uly_bound_prefix(b, error);
  return status;
}

void uly_run_refuse(uly_bound *b, uly_error *error) {
  if (b->nodes.n_ranks > 1 && exchanges(b)) {
    uly_bind_abort(b, error->text);
    b->failed = true;
  }
  uly_bound_prefix(b, error);
}

uly_status uly_bound_shape(const uly_bound *b, uint32_t tensor, uly_error *error, int64_t *out_dims, int64_t *out_start, int64_t *out_local) {
  const uly_tensor *t = &b->loaded->tables.tensors[tensor];
  for (uint32_t d = 0; d < t->rank; d++) {
    ULY_TRY(uly_nodes_size(&b->nodes, t->dims[d], b->rank, error, &out_dims[d]));
    ULY_TRY(uly_nodes_size(&b->nodes, t->start[d], b->rank, error, &out_start[d]));
    ULY_TRY(uly_nodes_size(&b->nodes, t->local[d], b->rank, error, &out_local[d]));
  }
  return ULY_OK;
}
