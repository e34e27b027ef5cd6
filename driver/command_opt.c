// `ulyc opt`: passes over IR text, done by the library; and the replay of a crash.
#include <errno.h>
#include <unistd.h>

#include "driver/commands.h"
#include "driver/crash.h"
#include "driver/lower.h"

// ---- --run-reproducer

enum { MAX_ARGUMENTS = 1000, MAX_ARGUMENT_BYTES = 1 << 20 };

static uly_status fail_file(uly_driver *d, const char *folder, const char *name) {
  uly_text_add(&d->error, "%s/%s: %s", folder, name, strerror(errno));
  return ULY_IO;
}

// The command line of the folder: argv of a process that does the same.
static uly_status read_arguments(uly_driver *d, const char *folder, uly_driver *out) {
  uly_str text;
  ULY_TRY(uly_driver_read(d, ULY_CRASH_ARGUMENTS, MAX_ARGUMENT_BYTES, &text));
  out->argv = ULY_NEW_ARRAY(d->arena, char *, MAX_ARGUMENTS + 2);
  out->argv[out->argc++] = d->argv[0];
  for (size_t at = 0; at < text.len && out->argc < MAX_ARGUMENTS; at += strlen(out->argv[out->argc - 1]) + 1)
    out->argv[out->argc++] = (char *)(uintptr_t)uly_str_copy(d->arena, (uly_str){text.ptr + at, strnlen(text.ptr + at, text.len - at)}).ptr;
  if (out->argc > 1 && text.ptr[text.len - 1] == 0) return ULY_OK;
  uly_text_add(&d->error, "%s/%s is not the command line of a crash", folder, ULY_CRASH_ARGUMENTS);
  return ULY_INVALID_INPUT;
}

// In the folder, with its copies of the inputs. What the command would write goes nowhere; the IR before each pass goes to a file there, the last one stays.
static uly_status replay(uly_driver *d, const char *folder) {
  uly_driver again = {.arena = d->arena, .error = {.arena = d->arena}, .out = {.arena = d->arena}, .replays = true};
  uly_diags_init(&again.diags, d->arena);
  uly_crash_leave_nothing();
  if (chdir(folder) != 0) return fail_file(d, folder, "");
  ULY_TRY(read_arguments(d, folder, &again));
  again.last_ir = fopen(ULY_CRASH_LAST_IR, "w+");
  if (!again.last_ir) return fail_file(d, folder, ULY_CRASH_LAST_IR);
  uly_status status = uly_driver_run(&again);
  fclose(again.last_ir);
  uly_diags_print(&again.diags, stderr);
  d->diags.n_errors += again.diags.n_errors;
  uly_text_add_str(&d->error, uly_text_str(&again.error));
  uly_text_add(&d->out, "the command of %s did not crash\n", folder);
  return status;
}

void uly_driver_keep_last_ir(const uly_driver *d, uly_lower_options *options) {
  if (!d->last_ir || options->target) return;
  options->print_to = d->last_ir;
  options->print_last = true;
  options->print_after = "all";
}

uly_status uly_command_opt(uly_driver *d) {
  void *opt;
  uly_lower_options options = {
      .passes = d->args.value[ULY_OPTION_PASSES],
      .print_after = d->args.value[ULY_OPTION_PRINT_AFTER],
      .stop_after = d->args.value[ULY_OPTION_STOP_AFTER],
      .verify_each = !d->args.given[ULY_OPTION_NO_VERIFY],
      .print_to = stdout,
  };
  if (d->args.given[ULY_OPTION_RUN_REPRODUCER] && !d->replays) return replay(d, d->args.operands[0]);
  uly_driver_keep_last_ir(d, &options);
  ULY_TRY(uly_driver_level(d, &options.level));
  ULY_TRY(uly_driver_lower(d, "uly_lower_opt", &opt));
  int code = ((uly_lower_opt_fn *)(uintptr_t)opt)(d->args.operands[0], &options);
  if (code == 0) return ULY_OK;
  fflush(stdout);
  exit(code);
}
