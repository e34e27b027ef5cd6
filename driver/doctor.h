// The part of `ulyc doctor` that does what a user would: compiles a spec and runs it.
#ifndef ULY_DRIVER_DOCTOR_H
#define ULY_DRIVER_DOCTOR_H

#include "driver/commands.h"
#include "runtime/base/error.h"

// Attention on two ranks that are threads, through a file in TMPDIR, which is gone afterwards. |error| says which step failed.
ULY_MUST_USE uly_status uly_doctor_self_test(uly_driver *driver, uly_error *error, double *out_seconds);

#endif
