#include "runtime/ulyrun_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/base/env.h"

typedef enum kind { FLAG, TEXT, LIST, INT, REAL } kind;
typedef struct row {
  const char *name, *argument, *help;
  kind kind;
  int64_t most; // of INT
  size_t offset;
} row;

static const row rows[] = {
#define OPTION(field, kind, name, argument, most, help) {name, argument, help, kind, most, offsetof(uly_run_options, field)},
#include "runtime/ulyrun_options.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static const char notes[] = "A SOURCE is @file.npy, @file.safetensors:key, @text (its bytes) or rand:seed=N.\n"
                            "Under mpirun each process is a rank. ULYRT_TIMEOUT: seconds to wait for a rank.\n";

void uly_options_help(FILE *out) {
  fputs("usage: ulyrun model.so [options]          run a compiled model\n\n", out);
  for (int i = 0; i < N_ROWS; i++) {
    char left[64];
    if (!*rows[i].help) continue;
    snprintf(left, sizeof left, "%s%s%s", rows[i].name, *rows[i].argument ? " " : "", rows[i].argument);
    fprintf(out, "  %-22s%s\n", left, rows[i].help);
  }
  fprintf(out, "\n%s", notes);
}

// |text| with the hyphens of options kept from becoming dashes.
static void print_roff(FILE *out, const char *text) {
  for (; *text; text++) fprintf(out, *text == '-' ? "\\-" : "%c", *text);
}

void uly_options_man(FILE *out) {
  fputs(".TH ULYRUN 1 \"\" \"ulyc " ULY_VERSION "\"\n.SH NAME\nulyrun \\- run a compiled model\n.SH SYNOPSIS\n.B ulyrun\n.I model.so\n[options]\n.SH OPTIONS\n",
        out);
  for (int i = 0; i < N_ROWS; i++) {
    if (!*rows[i].help) continue;
    fputs(".TP\n.B ", out);
    print_roff(out, rows[i].name);
    fprintf(out, " %s\n", rows[i].argument);
    print_roff(out, rows[i].help);
    fputc('\n', out);
  }
  fputs(".SH SOURCES\n", out);
  print_roff(out, notes);
  fputs(".SH ENVIRONMENT\n", out);
  for (int i = 0; i < ULY_N_ENV; i++) {
    fprintf(out, ".TP\n.B %s\n", uly_env_get((uly_env)i)->name);
    print_roff(out, uly_env_get((uly_env)i)->doc);
    fputc('\n', out);
  }
  fputs(".SH EXIT STATUS\n0, 1 what was diagnosed, 2 usage, 3 mismatch, 69 missing backend, 70 internal error, 74 input or output, 75 a rank was lost\n", out);
}

void uly_options_completion(FILE *out) {
  fputs("complete -o default -W \"", out);
  for (int i = 0; i < N_ROWS; i++)
    if (*rows[i].help) fprintf(out, "%s%s", i ? " " : "", rows[i].name);
  fputs("\" ulyrun\n", out);
}

static const row *find_row(uly_str name, uly_text *error) {
  uly_str names[N_ROWS];
  for (int i = 0; i < N_ROWS; i++) {
    names[i] = uly_str_of(rows[i].name);
    if (uly_str_equal(names[i], name)) return &rows[i];
  }
  uly_str nearest = uly_str_nearest(name, names, N_ROWS);
  uly_text_add(error, "unknown option %.*s", ULY_STR_ARG(name));
  if (nearest.len) uly_text_add(error, "; did you mean %.*s?", ULY_STR_ARG(nearest));
  return NULL;
}

static bool set_value(uly_arena *arena, const row *r, const char *text, uly_run_options *out, uly_text *error) {
  void *field = (char *)out + r->offset;
  char *end = NULL;
  errno = 0;
  switch (r->kind) {
  case FLAG: return *(bool *)field = true;
  case TEXT: *(const char **)field = text; return true;
  case LIST: {
    uly_text_list *list = field;
    size_t bytes = sizeof *list->items * (size_t)list->n;
    list->items = uly_arena_grow(arena, list->items, bytes, bytes + sizeof *list->items);
    list->items[list->n++] = text;
    return true;
  }
  case INT: {
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < 1 || value > r->most)
      return uly_text_add(error, "%s takes a number from 1 to %lld, not '%s'", r->name, (long long)r->most, text), false;
    *(int64_t *)field = value;
    return true;
  }
  case REAL: {
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0) || isinf(value))
      return uly_text_add(error, "%s takes a number that is not negative, not '%s'", r->name, text), false;
    *(double *)field = value;
    return true;
  }
  }
  return false;
}

// argv[*at] is an option: `--name value`, `--name=value` or a flag. |given|: the rows so far.
static bool take_option(uly_arena *arena, int argc, char **argv, int *at, bool *given, uly_run_options *out, uly_text *error) {
  const char *text = argv[*at], *equals = strchr(text, '=');
  uly_str name = equals ? (uly_str){text, (size_t)(equals - text)} : uly_str_of(text);
  const row *r = find_row(name, error);
  if (!r) return false;
  if (given[r - rows] && r->kind != LIST && r->kind != FLAG) return uly_text_add(error, "%s is given twice", r->name), false;
  given[r - rows] = true;
  if (r->kind == FLAG) return equals ? (uly_text_add(error, "%s takes no value", r->name), false) : set_value(arena, r, NULL, out, error);
  if (equals) return set_value(arena, r, equals + 1, out, error);
  if (*at + 1 == argc) return uly_text_add(error, "%s needs %s", r->name, r->argument), false;
  return set_value(arena, r, argv[++*at], out, error);
}

bool uly_options_parse(uly_arena *arena, int argc, char **argv, uly_run_options *out, uly_text *error) {
  bool names_only = false, given[N_ROWS] = {false};
  for (int i = 1; i < argc; i++) {
    if (!names_only && strcmp(argv[i], "--") == 0) {
      names_only = true;
    } else if (!names_only && argv[i][0] == '-' && argv[i][1]) {
      if (!take_option(arena, argc, argv, &i, given, out, error)) return false;
    } else if (out->model) {
      return uly_text_add(error, "one model at a time: %s and %s", out->model, argv[i]), false;
    } else {
      out->model = argv[i];
    }
  }
  return true;
}
