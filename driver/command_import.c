// `ulyc import`: a config.json to a spec, see driver/import/import.h. With --weights the names of the parameters are those that this file has.
#include "driver/commands.h"
#include "driver/import/import.h"
#include "runtime/io/weight_files.h"

// What may stand in a spec's string.
static uly_status read_prefix(uly_driver *d, uly_str *out_prefix) {
  *out_prefix = (uly_str){0};
  if (!d->args.given[ULY_OPTION_PREFIX]) return ULY_OK;
  *out_prefix = uly_str_of(d->args.value[ULY_OPTION_PREFIX]);
  for (size_t i = 0; i < out_prefix->len; i++) {
    char c = out_prefix->ptr[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-') continue;
    uly_text_add(&d->error, "`--prefix %s`: names of parameters have letters, digits, `_`, `-` and dots", out_prefix->ptr);
    return ULY_INVALID_ARGUMENT;
  }
  return ULY_OK;
}

static uly_status write_spec(uly_driver *d, const char *path, uly_str spec) {
  uly_error error = {0};
  uly_status status = uly_file_write(path, spec.ptr, spec.len, &error);
  if (status != ULY_OK) uly_text_add(&d->error, "%s", error.text);
  return status;
}

// ---- names

typedef struct fit {
  int64_t parameters, missing;
  uly_str first_missing;
} fit;

static void count_missing(const uly_graph_region *region, const uly_weight_files *files, fit *f) {
  for (int32_t i = 0; i < region->n_values; i++) {
    const uly_graph_value *v = region->values[i];
    if (v->op == ULY_OP_REPEAT) count_missing(v->u.repeat.body, files, f);
    for (int32_t n = 0; v->op == ULY_OP_PARAM && n < v->u.param.n_names; n++) {
      f->parameters++;
      if (uly_weight_files_find(files, v->u.param.names[n]) >= 0) continue;
      if (!f->missing++) f->first_missing = v->u.param.names[n];
    }
  }
}

// Of the ways in which published files call the parameters, the one of |files|.
static void choose_names(uly_driver *d, uly_str name, uly_str text, uly_str prefix, const uly_weight_files *files, uly_str *spec) {
  const uly_import_names ways[] = {{prefix, false}, {prefix, true}, {ULY_STR(""), false}, {ULY_STR(""), true}};
  fit best = {.missing = INT64_MAX};
  for (size_t i = 0; i < sizeof ways / sizeof *ways && best.missing; i++) {
    uly_diags diags;
    uly_text notes = {.arena = d->arena};
    uly_str other;
    uly_graph *graph;
    uly_diags_init(&diags, d->arena);
    if ((prefix.ptr && i >= 2) || uly_import(d->arena, &diags, name, text, &ways[i], &other, &graph, &notes) != ULY_OK) continue;
    fit f = {0};
    for (int32_t e = 0; e < graph->n_entries; e++) count_missing(&graph->entries[e].body, files, &f);
    if (f.missing < best.missing) best = f, *spec = other;
  }
  if (best.missing)
    fprintf(stderr, "note: %jd of %jd parameters are not in %s, first %.*s\n", (intmax_t)best.missing, (intmax_t)best.parameters,
            d->args.value[ULY_OPTION_WEIGHTS], ULY_STR_ARG(best.first_missing));
}

uly_status uly_command_import(uly_driver *d) {
  const char *path = d->args.operands[0], *output = d->args.value[ULY_OPTION_OUTPUT], *weights = d->args.value[ULY_OPTION_WEIGHTS];
  uly_str text, spec, name = uly_str_of(strcmp(path, "-") == 0 ? "<stdin>" : path);
  uly_import_names names = {0};
  uly_text notes = {.arena = d->arena};
  uly_error error = {0};
  uly_weight_files *files = NULL;
  ULY_TRY(read_prefix(d, &names.prefix));
  if (output) ULY_TRY(uly_driver_check_output(d, output));
  ULY_TRY(uly_driver_read(d, path, ULY_IMPORT_MAX_BYTES, &text));
  uly_status status = uly_import(d->arena, &d->diags, name, text, &names, &spec, NULL, &notes);
  if (notes.len) fprintf(stderr, "%s", notes.ptr);
  if (status != ULY_OK) return status;
  if (weights) {
    status = uly_weight_files_open(weights, &files, &error);
    if (status != ULY_OK) return uly_text_add(&d->error, "%s", error.text), status;
    choose_names(d, name, text, names.prefix, files, &spec);
    uly_weight_files_close(files);
  }
  if (output) return write_spec(d, output, spec);
  uly_text_add_str(&d->out, spec);
  return ULY_OK;
}
