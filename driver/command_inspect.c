// `ulyc inspect`: what a model.so holds.
#include "driver/commands.h"

uly_status uly_command_inspect(uly_driver *d) {
  uly_text_add(&d->error, "cannot inspect %s", d->args.operand);
  return ULY_UNSUPPORTED;
}
