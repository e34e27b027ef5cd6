// `ulyc fmt`: lays specs out in the one way, see frontend/format.h. A file is replaced as a whole, and only where something changes.
#include <errno.h>
#include <sys/stat.h>

#include "driver/commands.h"
#include "frontend/format.h"
#include "frontend/parse.h"
#include "runtime/io/files.h"

// Puts |text| into the place of |path|, with the same permissions.
static uly_status rewrite(uly_driver *d, const char *path, uly_str text) {
  uly_error error = {0};
  uly_output output = {0};
  struct stat st;
  if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
    uly_text_add(&d->error, "%s: not a regular file; - lays standard input out", path);
    return ULY_IO;
  }
  uly_status status = uly_output_open(path, &output, &error);
  if (status == ULY_OK && fchmod(output.fd, st.st_mode & 07777) != 0)
    status = uly_fail(&error, ULY_IO, "%s: cannot set permissions: %s", path, strerror(errno));
  if (status == ULY_OK) status = uly_output_write(&output, text.ptr, text.len, &error);
  if (status == ULY_OK)
    status = uly_output_commit(&output, &error);
  else
    uly_output_discard(&output);
  if (status != ULY_OK) uly_text_add(&d->error, "%s", error.text);
  return status;
}

// The line that begins at byte |at|, without its end.
static uly_str line_at(uly_str text, size_t at) {
  if (at >= text.len) return (uly_str){0};
  const char *end = memchr(text.ptr + at, '\n', text.len - at);
  return (uly_str){text.ptr + at, end ? (size_t)(end - text.ptr) - at : text.len - at};
}

static void report_first_difference(uly_diags *diags, uly_str before, uly_str after) {
  size_t at = 0, begin = 0;
  uint32_t line = 1;
  for (; at < before.len && at < after.len && before.ptr[at] == after.ptr[at]; at++)
    if (before.ptr[at] == '\n') line++, begin = at + 1;
  uly_str want = line_at(after, begin);
  uly_diag *diag = uly_diag_add(diags, (uly_loc){(uint32_t)begin, (uint32_t)begin, line, 1}, ULY_D(LAYOUT));
  if (want.len) uly_diag_note(diags, diag, (uly_loc){0}, ULY_D(LAYOUT_WANTED), ULY_STR_ARG(want));
}

static uly_status format_one(uly_driver *d, uly_diags *diags, const char *path) {
  uly_str before, after;
  bool standard = strcmp(path, "-") == 0;
  ULY_TRY(uly_driver_read(d, path, ULY_MAX_SOURCE_BYTES, &before));
  ULY_TRY(uly_format(d->arena, diags, uly_diags_add_source(diags, uly_str_of(standard ? "<stdin>" : path), before), &after));
  if (d->args.given[ULY_OPTION_CHECK_ONLY]) {
    if (uly_str_equal(before, after)) return ULY_OK;
    report_first_difference(diags, before, after);
    return ULY_INVALID_INPUT;
  }
  if (standard) return uly_text_add_str(&d->out, after), ULY_OK;
  return uly_str_equal(before, after) ? ULY_OK : rewrite(d, path, after);
}

// Each file has its own diagnostics, so that errors in one do not count against another.
uly_status uly_command_fmt(uly_driver *d) {
  uly_status worst = ULY_OK;
  for (int32_t i = 0; i < d->args.n_operands; i++) {
    uly_diags diags;
    uly_diags_init(&diags, d->arena);
    if (d->error.len) uly_text_add(&d->error, "\nulyc: ");
    uly_status status = format_one(d, &diags, d->args.operands[i]);
    uly_diags_print(&diags, stderr);
    d->diags.n_errors += diags.n_errors;
    if (worst == ULY_OK) worst = status;
  }
  return worst;
}
