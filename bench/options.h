// What benchmarks are told, name=value, and how they end where something is wrong.
#ifndef ULY_BENCH_OPTIONS_H
#define ULY_BENCH_OPTIONS_H

#include <stdint.h>

#include "runtime/base/error.h"

// One of the pointers says where the value goes.
typedef struct bench_option {
  const char *name;
  const char **text;
  int *number;
  int64_t *size;
  double *real, *ms; // ms: milliseconds, kept as seconds
} bench_option;

// Reads the words behind the program's name; |options| end with one without a name. What none of them takes ends the program with 2.
void bench_read(int argc, char **argv, const bench_option *options);

// Ends the program with a message that names it.
_Noreturn void bench_die(const char *what);
void bench_check(uly_status status, const uly_error *error);

#endif
