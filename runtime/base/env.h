// Environment variables, one row of env.def each.
#ifndef ULY_RUNTIME_BASE_ENV_H
#define ULY_RUNTIME_BASE_ENV_H

#include <stdint.h>

#include "runtime/base/error.h"

typedef enum uly_env {
#define ENV(id, name, value, most, doc) ULY_ENV_##id,
#include "runtime/base/env.def"
  ULY_N_ENV
} uly_env;

typedef struct uly_env_info {
  const char *name, *value, *doc; // value: the default
  double most;                    // largest value of a number, 0: a text
} uly_env_info;

const uly_env_info *uly_env_get(uly_env id);
// What the user set, else the default.
const char *uly_env_text(uly_env id);
// The same of a variable that is a number from 0 to `most`; ULY_INVALID_ARGUMENT names the variable and what it holds.
ULY_MUST_USE uly_status uly_env_number(uly_env id, uly_error *error, double *out_number);
// All numbers at once, for commands.
ULY_MUST_USE uly_status uly_env_check(uly_error *error);

#endif
