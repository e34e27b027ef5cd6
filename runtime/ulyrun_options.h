// The command line of ulyrun, read by one table (ulyrun_options.def).
#ifndef ULY_RUNTIME_ULYRUN_OPTIONS_H
#define ULY_RUNTIME_ULYRUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/str.h"

typedef struct uly_text_list {
  const char **items;
  int n;
} uly_text_list;

typedef struct uly_run_options {
  const char *model;
#define FLAG bool
#define TEXT const char *
#define LIST uly_text_list
#define INT int64_t
#define REAL double
#define OPTION(field, kind, name, argument, most, help) kind field;
#include "runtime/ulyrun_options.def"
#undef FLAG
#undef TEXT
#undef LIST
#undef INT
#undef REAL
} uly_run_options;

// Fills |out| from the command line; numbers that were not given keep what |out| holds. False: |error| says what is wrong (a line or two).
bool uly_options_parse(uly_arena *arena, int argc, char **argv, uly_run_options *out, uly_text *error);
void uly_options_help(FILE *out);
void uly_options_man(FILE *out);
void uly_options_completion(FILE *out);

#endif
