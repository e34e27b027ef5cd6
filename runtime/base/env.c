#include "runtime/base/env.h"

#include <stdlib.h>

static const uly_env_info infos[ULY_N_ENV] = {
#define ENV(id, name, value, most, doc) {name, value, doc, most},
#include "runtime/base/env.def"
};

const uly_env_info *uly_env_get(uly_env id) {
  ULY_ASSERT((unsigned)id < ULY_N_ENV);
  return &infos[id];
}

const char *uly_env_text(uly_env id) {
  const char *set = getenv(uly_env_get(id)->name);
  return set && *set ? set : infos[id].value;
}

uly_status uly_env_number(uly_env id, uly_error *error, double *out_number) {
  const char *text = uly_env_text(id);
  char *end;
  *out_number = strtod(text, &end);
  if (end != text && !*end && *out_number >= 0 && *out_number <= infos[id].most) return ULY_OK;
  return uly_fail(error, ULY_INVALID_ARGUMENT, "%s is \"%.40s\", expected a number from 0 to %.0f", infos[id].name, text, infos[id].most);
}

uly_status uly_env_check(uly_error *error) {
  double number;
  for (int i = 0; i < ULY_N_ENV; i++)
    if (infos[i].most > 0) ULY_TRY(uly_env_number((uly_env)i, error, &number));
  return ULY_OK;
}
