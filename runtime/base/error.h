// A failure on its way out: the status and what to tell the user. The caller of an operation provides it, so concurrent callers never share one.
#ifndef ULY_RUNTIME_BASE_ERROR_H
#define ULY_RUNTIME_BASE_ERROR_H

#include <stdarg.h>

#include "runtime/base/status.h"

typedef struct uly_error {
  uly_status status;
  char text[1024];
} uly_error;

// Fills |error| (may be NULL) and returns |status|.
uly_status uly_fail(uly_error *error, uly_status status, const char *format, ...) ULY_PRINTF(3, 4);
// Puts "|prefix|: " before what |error| says.
void uly_error_prefix(uly_error *error, const char *format, ...) ULY_PRINTF(2, 3);

#endif
