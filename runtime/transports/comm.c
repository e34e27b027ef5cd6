// What all communicators share: how they record a failure.
#include <stdarg.h>
#include <stdio.h>

#include "runtime/transports/transport.h"

uly_status uly_comm_fail(uly_comm *comm, uly_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(comm->error, sizeof comm->error, format, args);
  va_end(args);
  return status;
}
