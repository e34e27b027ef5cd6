#include "runtime/transports/plugin.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "libulyrt_mpi.so"

// The file that this code is in: the runtime's library, or a program that it is linked into.
static bool own_path(char *out, size_t bytes) {
  Dl_info self;
  void *address;
  uly_status (*function)(const char *, uly_error *, const uly_mpi_plugin **) = uly_mpi_load;
  memcpy(&address, &function, sizeof address);
  if (dladdr(address, &self) && self.dli_fname && strchr(self.dli_fname, '/')) return (size_t)snprintf(out, bytes, "%s", self.dli_fname) < bytes;
  ssize_t n = readlink("/proc/self/exe", out, bytes - 1);
  if (n > 0) out[n] = 0;
  return n > 0;
}

// FILE_NAME in the folder of this code, or in |middle| from there.
static void *open_beside(const char *middle) {
  char self[4096], path[8192];
  if (!own_path(self, sizeof self)) return NULL;
  int folder = (int)(strrchr(self, '/') - self) + 1;
  snprintf(path, sizeof path, "%.*s%s%s", folder, self, middle, FILE_NAME);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

uly_status uly_mpi_load(const char *path, uly_error *error, const uly_mpi_plugin **out) {
  *out = NULL;
  void *library = NULL;
  if (*path) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  } else {
    library = open_beside("");
    if (!library) library = open_beside("../lib/");
    if (!library) library = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) {
    const char *why = dlerror();
    return uly_fail(error, ULY_UNAVAILABLE, "the MPI transport is not there: %s; install MPICH and build " FILE_NAME ", or name it in ULYRT_MPI",
                    why ? why : path);
  }
  void *symbol = dlsym(library, ULY_MPI_PLUGIN_SYMBOL);
  if (!symbol) return uly_fail(error, ULY_UNAVAILABLE, "%s is not an MPI transport of ulyc", *path ? path : FILE_NAME);
  uly_mpi_plugin_function get;
  memcpy(&get, &symbol, sizeof get);
  const uly_mpi_plugin *plugin = get();
  if (plugin->api != ULY_PLUGIN_API || plugin->comm_bytes != sizeof(uly_comm))
    return uly_fail(error, ULY_UNAVAILABLE, "the MPI transport has version %u (%u), the runtime needs version %u (%zu)", plugin->api, plugin->comm_bytes,
                    ULY_PLUGIN_API, sizeof(uly_comm));
  *out = plugin;
  return ULY_OK;
}
