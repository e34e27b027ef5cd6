// Opens the back half of the compiler: see lower.h.
#include "driver/lower.h"

#include <dlfcn.h>

#include "driver/commands.h"
#include "driver/crash.h"

uly_status uly_driver_level(uly_driver *d, int *out_level) {
  const char *level = d->args.value[ULY_OPTION_LEVEL];
  *out_level = 2;
  if (!level) return ULY_OK;
  if (strlen(level) == 1 && level[0] >= '0' && level[0] <= '2') {
    *out_level = level[0] - '0';
    return ULY_OK;
  }
  uly_text_add(&d->error, "`-O%s`: levels are 0, 1 and 2", level);
  return ULY_INVALID_ARGUMENT;
}

uly_status uly_driver_lower(uly_driver *d, const char *name, void **out_function) {
  void *library = dlopen(ULY_LOWER_LIBRARY, RTLD_NOW | RTLD_LOCAL); // found by the RUNPATH of ulyc
  if (!library) {
    uly_text_add(&d->error, "cannot load %s, which compiles: %s", ULY_LOWER_LIBRARY, dlerror());
    return ULY_UNAVAILABLE;
  }
  uly_lower_abi_fn *abi = (uly_lower_abi_fn *)(uintptr_t)dlsym(library, "uly_lower_abi");
  int found = abi ? abi() : 0;
  *out_function = dlsym(library, name);
  uly_lower_versions_fn *versions = (uly_lower_versions_fn *)(uintptr_t)dlsym(library, "uly_lower_versions");
  if (found == ULY_LOWER_ABI && *out_function && versions) {
    uly_crash_add_versions(versions());
    return ULY_OK;
  }
  uly_text_add(&d->error, "%s is of another build: interface %d, this ulyc wants %d", ULY_LOWER_LIBRARY, found, ULY_LOWER_ABI);
  return ULY_UNAVAILABLE;
}
