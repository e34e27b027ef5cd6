#include "runtime/base/error.h"

#include <string.h>

uly_status uly_fail(uly_error *error, uly_status status, const char *format, ...) {
  if (!error) return status;
  error->status = status;
  va_list args;
  va_start(args, format);
  vsnprintf(error->text, sizeof error->text, format, args);
  va_end(args);
  return status;
}

void uly_error_prefix(uly_error *error, const char *format, ...) {
  if (!error) return;
  char old[sizeof error->text];
  memcpy(old, error->text, sizeof old);
  va_list args;
  va_start(args, format);
  int n = vsnprintf(error->text, sizeof error->text, format, args);
  va_end(args);
  if (n >= 0 && (size_t)n < sizeof error->text) snprintf(error->text + n, sizeof error->text - (size_t)n, "%s", old);
}
