// The MPI transport lives in a library of its own, libulyrt_mpi.so, because every MPI has its own ABI and most users have none. The runtime loads it when it is asked for and
// refuses one that was built against another version of this file or of transport.h.
#ifndef ULY_RUNTIME_TRANSPORTS_PLUGIN_H
#define ULY_RUNTIME_TRANSPORTS_PLUGIN_H

#include "runtime/base/error.h"
#include "runtime/transports/transport.h"

// Changes with any change of uly_comm, uly_comm_ops, uly_route or uly_mpi_plugin.
#define ULY_PLUGIN_API 3
#define ULY_MPI_PLUGIN_SYMBOL "uly_mpi_plugin_get"

typedef struct uly_mpi_plugin {
  uint32_t api;        // ULY_PLUGIN_API
  uint32_t comm_bytes; // sizeof(uly_comm)
  const char *library; // what it was built with: "MPICH 4.0.2"
  // A communicator over a duplicate of |*mpi_comm| (an MPI_Comm), or of all processes where it is NULL. Collective. Initialises MPI where the process has not, and
  // ends it then at exit. On failure |out_comm| is NULL or a failed communicator.
  uly_status (*create)(const void *mpi_comm, double timeout, uly_comm **out_comm);
} uly_mpi_plugin;
typedef const uly_mpi_plugin *(*uly_mpi_plugin_function)(void);

// Loads the library: |path|, or libulyrt_mpi.so beside the runtime, or where the system looks. It stays loaded. ULY_UNAVAILABLE says what is missing.
ULY_MUST_USE uly_status uly_mpi_load(const char *path, uly_error *error, const uly_mpi_plugin **out);

#endif
