// `ulyc opt`: passes over IR text, done by the library.
#include "driver/commands.h"
#include "driver/lower.h"

uly_status uly_command_opt(uly_driver *d) {
  void *opt;
  ULY_TRY(uly_driver_lower(d, "uly_lower_opt", &opt));
  int code = ((uly_lower_opt_fn *)(uintptr_t)opt)(d->argc - 1, d->argv + 1);
  if (code == 0) return ULY_OK;
  fflush(stdout);
  exit(code);
}
