// ulyrt.h: communicators.
#include "runtime/base/env.h"
#include "runtime/capi.h"
#include "runtime/transports/callbacks.h"
#include "runtime/transports/plugin.h"
#include "runtime/transports/shm.h"

static uly_comm *of(const ulyrt_comm *comm) { return (uly_comm *)(uintptr_t)comm; }

static ulyrt_status created(uly_status status, uly_comm *comm, double timeout, ulyrt_comm **out_comm, ulyrt_error *error) {
  if (status == ULY_OK) {
    comm->timeout = timeout;
    *out_comm = (ulyrt_comm *)comm;
    return ULYRT_OK;
  }
  ulyrt_status result = uly_capi_fail(error, status, "cannot make a communicator: %s", comm && comm->error[0] ? comm->error : uly_status_text(status));
  if (comm) comm->ops->destroy(comm);
  return result;
}

ulyrt_status ulyrt_comm_create_local(int32_t n, ulyrt_comm **out_comms, ulyrt_error *error) {
  uly_error e;
  double timeout;
  if (n < 1 || n > 4096 || !out_comms) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "%d ranks, expected 1 … 4096", n);
  uly_status status = uly_env_number(ULY_ENV_TIMEOUT, &e, &timeout);
  if (status != ULY_OK) return uly_capi_error(error, &e, status);
  status = uly_comm_local_create(n, (uly_comm **)(void *)out_comms);
  if (status != ULY_OK) return uly_capi_fail(error, status, "no memory for %d ranks", n);
  for (int32_t r = 0; r < n; r++) of(out_comms[r])->timeout = timeout;
  return ULYRT_OK;
}

ulyrt_status ulyrt_comm_create_mpi(const void *mpi_comm, ulyrt_comm **out_comm, ulyrt_error *error) {
  uly_error e;
  double timeout;
  const uly_mpi_plugin *plugin;
  if (!out_comm) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "ulyrt_comm_create_mpi: an argument is NULL");
  uly_status status = uly_env_number(ULY_ENV_TIMEOUT, &e, &timeout);
  if (status == ULY_OK) status = uly_mpi_load(uly_env_text(ULY_ENV_MPI), &e, &plugin);
  if (status != ULY_OK) return uly_capi_error(error, &e, status);
  uly_comm *comm = NULL;
  status = plugin->create(mpi_comm, timeout, &comm);
  return created(status, comm, timeout, out_comm, error);
}

ulyrt_status ulyrt_group_create(int32_t n, ulyrt_group **out_group, ulyrt_error *error) {
  if (n < 1 || n > ULY_SHM_MAX_RANKS) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "a group has 1 to %d processes, not %d", ULY_SHM_MAX_RANKS, n);
  uly_status status = out_group ? uly_shm_group_create(n, (uly_shm_group **)(void *)out_group) : ULY_INVALID_ARGUMENT;
  return status == ULY_OK ? ULYRT_OK : uly_capi_fail(error, status, "cannot make a group of %d processes: %s", n, uly_status_text(status));
}

ulyrt_status ulyrt_group_join(ulyrt_group *group, int32_t rank, ulyrt_comm **out_comm, ulyrt_error *error) {
  uly_error e;
  double timeout;
  if (!group || !out_comm) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "ulyrt_group_join: an argument is NULL");
  uly_status status = uly_env_number(ULY_ENV_TIMEOUT, &e, &timeout);
  if (status != ULY_OK) return uly_capi_error(error, &e, status);
  uly_comm *comm = NULL;
  status = uly_shm_group_join((uly_shm_group *)group, rank, timeout, &comm);
  return created(status, comm, timeout, out_comm, error);
}

void ulyrt_group_report(ulyrt_group *group, int32_t rank, const char *reason) { uly_shm_group_report((uly_shm_group *)group, rank, reason); }
void ulyrt_group_destroy(ulyrt_group *group) { uly_shm_group_destroy((uly_shm_group *)group); }

ulyrt_status ulyrt_comm_create_callbacks(const ulyrt_callbacks *c, ulyrt_comm **out_comm, ulyrt_error *error) {
  if (!c || !out_comm || c->struct_size < offsetof(ulyrt_callbacks, abort) || !c->all_gather || !c->all_to_all)
    return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "ulyrt_comm_create_callbacks: a function is missing, or struct_size is too small");
  if (c->n_ranks < 1 || c->rank < 0 || c->rank >= c->n_ranks) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "rank %d of %d", c->rank, c->n_ranks);
  uly_callbacks host = {c->context, c->rank, c->n_ranks, c->all_gather, c->all_to_all, c->struct_size >= sizeof *c ? c->abort : NULL};
  uly_comm *comm = NULL;
  uly_status status = uly_comm_callbacks_create(&host, &comm);
  return created(status, comm, 0, out_comm, error);
}

void ulyrt_comm_destroy(ulyrt_comm *comm) {
  if (comm) of(comm)->ops->destroy(of(comm));
}

int32_t ulyrt_comm_rank(const ulyrt_comm *comm) { return of(comm)->rank; }
int32_t ulyrt_comm_size(const ulyrt_comm *comm) { return of(comm)->n_ranks; }
uint64_t ulyrt_comm_sent_bytes(const ulyrt_comm *comm) { return of(comm)->sent_bytes; }
void ulyrt_comm_set_timeout(ulyrt_comm *comm, double seconds) { of(comm)->timeout = seconds > 0 ? seconds : 0; }
void ulyrt_comm_abort(ulyrt_comm *comm, const char *reason) { of(comm)->ops->abort(of(comm), reason ? reason : "no reason given"); }

ulyrt_status ulyrt_comm_all_gather(ulyrt_comm *comm, const void *mine, size_t bytes, void *out_all, ulyrt_error *error) {
  uly_status status = of(comm)->ops->all_gather(of(comm), mine, bytes, out_all);
  return status == ULY_OK ? ULYRT_OK : uly_capi_fail(error, status, "%s", of(comm)->error);
}
