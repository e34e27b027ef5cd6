// The compiler's command: reads the command line, runs the subcommand, prints what it says, and turns its status into the exit code.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/commands.h"
#include "driver/crash.h"
#include "frontend/parse.h"
#include "frontend/spec.h"
#include "runtime/base/escape.h"
#include "runtime/base/full_io.h"
#include "runtime/io/files.h"

static uly_command_fn *const functions[ULY_N_COMMANDS] = {
#define COMMAND(id, name, operands, n_operands, summary) [ULY_COMMAND_##id] = uly_command_##name,
#include "driver/commands.def"
};

uly_status uly_driver_read(uly_driver *d, const char *path, size_t most, uly_str *out_text) {
  bool standard = strcmp(path, "-") == 0;
  int fd = standard ? STDIN_FILENO : uly_full_open(path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) {
    uly_text_add(&d->error, "cannot open %s: %s", path, strerror(errno));
    return ULY_IO;
  }
  char *data = NULL;
  size_t n = 0, cap = 0;
  ssize_t got = 1;
  while (got != 0 && n <= most) {
    if (n == cap) {
      size_t more = cap ? 2 * cap : 1 << 16;
      data = uly_arena_grow(d->arena, data, cap, more);
      cap = more;
    }
    got = read(fd, data + n, cap - n);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) n += (size_t)got;
  }
  if (got < 0) uly_text_add(&d->error, "cannot read %s: %s", standard ? "standard input" : path, strerror(errno));
  if (!standard) close(fd);
  *out_text = (uly_str){data, n < most + 1 ? n : most + 1};
  uly_crash_add_input(path, *out_text);
  return got < 0 ? ULY_IO : ULY_OK;
}

uly_status uly_driver_check_output(uly_driver *d, const char *path) {
  uly_error error = {0};
  uly_output output = {0};
  struct stat input, old;
  if (stat(d->args.operands[0], &input) == 0 && stat(path, &old) == 0 && input.st_dev == old.st_dev && input.st_ino == old.st_ino) {
    uly_text_add(&d->error, "the output `%s` would overwrite the input", path);
    return ULY_INVALID_ARGUMENT;
  }
  uly_status status = uly_output_open(path, &output, &error);
  uly_output_discard(&output);
  if (status != ULY_OK) uly_text_add(&d->error, "%s", error.text);
  return status;
}

uly_status uly_driver_read_spec(uly_driver *d, uly_graph **out_graph) {
  uly_str text;
  ULY_TRY(uly_driver_read(d, d->args.operands[0], ULY_MAX_SOURCE_BYTES, &text));
  *out_graph = uly_spec_read(d->arena, &d->diags, uly_str_of(d->args.operands[0]), text, d->args.defines, d->args.n_defines);
  return *out_graph ? ULY_OK : ULY_INVALID_INPUT;
}

// Options that print something and end. False where none is given.
static bool print_information(uly_driver *d) {
  const bool *given = d->args.given;
  if (given[ULY_OPTION_VERSION])
    uly_text_add(&d->out, "ulyc %s\n", ULY_VERSION);
  else if (given[ULY_OPTION_HELP_OPS])
    uly_manual_ops(&d->out);
  else if (given[ULY_OPTION_MAN])
    uly_manual_page(&d->out);
  else if (given[ULY_OPTION_COMPLETION])
    uly_manual_completion(&d->out);
  else if (given[ULY_OPTION_HELP])
    uly_args_help(&d->out, &d->args);
  else
    return false;
  return true;
}

static void write_nothing(uly_args *args) {
  if (args->command == ULY_COMMAND_COMPILE || args->given[ULY_OPTION_OUTPUT]) args->value[ULY_OPTION_OUTPUT] = "/dev/null";
  if (args->command == ULY_COMMAND_FMT) args->given[ULY_OPTION_CHECK_ONLY] = true;
}

uly_status uly_driver_run(uly_driver *d) {
  if (!uly_args_parse(d->arena, d->argc, d->argv, &d->args, &d->error)) {
    uly_text_add(&d->error, "\nsee ulyc --help");
    return ULY_INVALID_ARGUMENT;
  }
  if (print_information(d)) return ULY_OK;
  if (!d->args.has_command) {
    uly_args_help(&d->error, &d->args);
    return ULY_INVALID_ARGUMENT;
  }
  if (d->replays) write_nothing(&d->args);
  for (int32_t i = 0; i < d->args.n_operands; i++) uly_crash_add_input(d->args.operands[i], (uly_str){0});
  return functions[d->args.command](d);
}

int main(int argc, char **argv) {
  uly_files_reserve_standard();
  uly_crash_watch(argc, argv);
  uly_arena *arena = uly_arena_create();
  uly_driver d = {.arena = arena, .argc = argc, .argv = argv, .error = {.arena = arena}, .out = {.arena = arena}};
  uly_diags_init(&d.diags, arena);
  uly_status status = uly_driver_run(&d);
  uly_diags_print(&d.diags, stderr);
  bool usage = status == ULY_INVALID_ARGUMENT && !d.args.has_command && argc < 2;
  if (d.error.len) {
    uly_print_escaped(stderr, usage ? "" : "ulyc: ", uly_text_str(&d.error), usage ? "" : "\n");
  } else if (status != ULY_OK && !d.diags.n_errors) {
    fprintf(stderr, "ulyc: %s\n", uly_status_text(status));
  }
  if (d.out.len) fwrite(d.out.ptr, 1, d.out.len, stdout);
  if ((fflush(stdout) != 0 || ferror(stdout)) && status == ULY_OK) {
    fprintf(stderr, "ulyc: cannot write standard output\n");
    status = ULY_IO;
  }
  uly_arena_destroy(arena);
  return uly_status_exit_code(status);
}
