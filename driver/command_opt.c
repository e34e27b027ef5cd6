// `ulyc opt`: passes over IR text, done by the library.
#include "driver/commands.h"
#include "driver/lower.h"

uly_status uly_command_opt(uly_driver *d) {
  void *opt;
  uly_lower_options options = {
      .passes = d->args.value[ULY_OPTION_PASSES],
      .print_after = d->args.value[ULY_OPTION_PRINT_AFTER],
      .stop_after = d->args.value[ULY_OPTION_STOP_AFTER],
      .verify_each = !d->args.given[ULY_OPTION_NO_VERIFY],
      .print_to = stdout,
  };
  ULY_TRY(uly_driver_level(d, &options.level));
  ULY_TRY(uly_driver_lower(d, "uly_lower_opt", &opt));
  int code = ((uly_lower_opt_fn *)(uintptr_t)opt)(d->args.operands[0], &options);
  if (code == 0) return ULY_OK;
  fflush(stdout);
  exit(code);
}
