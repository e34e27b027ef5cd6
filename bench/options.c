#include "bench/options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_die(const char *what) {
  fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
  exit(1);
}

void bench_check(uly_status status, const uly_error *error) {
  if (status != ULY_OK) bench_die(error->text);
}

static bool read_one(const bench_option *o, const char *word) {
  size_t n = strlen(o->name);
  if (strncmp(word, o->name, n) != 0 || word[n] != '=') return false;
  const char *value = word + n + 1;
  if (o->text) *o->text = value;
  if (o->number) *o->number = atoi(value);
  if (o->size) *o->size = atoll(value);
  if (o->real) *o->real = atof(value);
  if (o->ms) *o->ms = atof(value) * 1e-3;
  return true;
}

void bench_read(int argc, char **argv, const bench_option *options) {
  for (int i = 1; i < argc; i++) {
    const bench_option *o = options;
    while (o->name && !read_one(o, argv[i])) o++;
    if (o->name) continue;
    fprintf(stderr, "%s: cannot read %s\n", program_invocation_short_name, argv[i]);
    exit(2);
  }
}
