// `ulyc env`: the environment variables that the runtime reads, from their table.
#include "driver/commands.h"
#include "runtime/base/env.h"

uly_status uly_command_env(uly_driver *d) {
  for (int i = 0; i < ULY_N_ENV; i++) {
    const uly_env_info *e = uly_env_get((uly_env)i);
    const char *now = uly_env_text((uly_env)i);
    uly_text_add(&d->out, "%-16s %s\n%-16s default: %s", e->name, e->doc, "", e->value[0] ? e->value : "none");
    if (strcmp(now, e->value) != 0) uly_text_add(&d->out, ", now: %s", now);
    uly_text_add(&d->out, "\n");
  }
  return ULY_OK;
}
