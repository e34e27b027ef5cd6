// `ulyc import`: a config.json to a spec, see driver/import/import.h.
#include "driver/commands.h"
#include "driver/import/import.h"
#include "runtime/io/files.h"

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
  uly_output output = {0};
  uly_status status = uly_output_open(path, &output, &error);
  if (status == ULY_OK) status = uly_output_write(&output, spec.ptr, spec.len, &error);
  if (status == ULY_OK)
    status = uly_output_commit(&output, &error);
  else
    uly_output_discard(&output);
  if (status != ULY_OK) uly_text_add(&d->error, "%s", error.text);
  return status;
}

uly_status uly_command_import(uly_driver *d) {
  const char *path = d->args.operands[0], *output = d->args.value[ULY_OPTION_OUTPUT];
  uly_str text, prefix, spec;
  uly_text notes = {.arena = d->arena};
  ULY_TRY(read_prefix(d, &prefix));
  ULY_TRY(uly_driver_read(d, path, ULY_IMPORT_MAX_BYTES, &text));
  uly_status status = uly_import(d->arena, &d->diags, uly_str_of(strcmp(path, "-") == 0 ? "<stdin>" : path), text, prefix, &spec, &notes);
  if (notes.len) fprintf(stderr, "%s", notes.ptr);
  if (status != ULY_OK) return status;
  if (output) return write_spec(d, output, spec);
  uly_text_add_str(&d->out, spec);
  return ULY_OK;
}
