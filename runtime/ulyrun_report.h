// What ulyrun says about an output: one line of statistics, and its difference from what is expected.
#ifndef ULY_RUNTIME_ULYRUN_REPORT_H
#define ULY_RUNTIME_ULYRUN_REPORT_H

#include <stdio.h>

#include "runtime/io/files.h"

// "out f32 [1, 8] min … mean … max … hash …": the hash is BLAKE2b of the bytes, cut to 64 bits.
void uly_report_line(FILE *out, const char *name, const uly_ndarray *array);
// |got - want| <= atol + rtol · |want| everywhere, NaN equal to NaN, one line about the largest difference to |out|. The dtypes may differ. ULY_MISMATCH names
// the worst index and both values.
ULY_MUST_USE uly_status uly_report_compare(FILE *out, const char *name, const uly_ndarray *got, const uly_ndarray *want, double rtol, double atol,
                                           uly_error *error);

#endif
