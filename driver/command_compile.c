// `ulyc model.spec`: frontend, then the library with passes and codegen, then the file in one piece. The library writes into memory, so that nothing is
// left behind wherever this process ends.
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/commands.h"
#include "driver/lower.h"
#include "runtime/base/progress.h"
#include "runtime/io/files.h"

// model.spec → model.so, in the current directory as compilers do.
static const char *default_output(uly_arena *arena, const char *spec) {
  const char *slash = strrchr(spec, '/');
  uly_str base = uly_str_of(slash ? slash + 1 : spec);
  if (base.len > 5 && strcmp(base.ptr + base.len - 5, ".spec") == 0) base.len -= 5;
  uly_text name = {.arena = arena};
  uly_text_add(&name, "%.*s.so", ULY_STR_ARG(base));
  return name.ptr;
}

// Copies what |fd| holds to |path|, which then is the old file or the whole new one.
static uly_status write_model(uly_driver *d, int fd, const char *path) {
  uly_error error = {0};
  struct stat st;
  if (fstat(fd, &st) != 0 || st.st_size == 0) {
    uly_text_add(&d->error, "the compiler made no model");
    return ULY_INTERNAL;
  }
  void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED) {
    uly_text_add(&d->error, "cannot map the model: %s", strerror(errno));
    return ULY_EXHAUSTED;
  }
  uly_status status = uly_file_write(path, bytes, (uint64_t)st.st_size, &error);
  munmap(bytes, (size_t)st.st_size);
  if (status != ULY_OK) uly_text_add(&d->error, "%s", error.text);
  return status;
}

uly_status uly_command_compile(uly_driver *d) {
  uly_lower_options options = {
      .source_name = uly_str_of(d->args.operands[0]),
      .target = d->args.value[ULY_OPTION_TARGET],
      .march = d->args.value[ULY_OPTION_MARCH],
      .passes = d->args.value[ULY_OPTION_PASSES],
      .print_after = d->args.value[ULY_OPTION_PRINT_AFTER],
      .stop_after = d->args.value[ULY_OPTION_STOP_AFTER],
      .print_to = stdout,
  };
  uly_driver_keep_last_ir(d, &options);
  const char *path = d->args.value[ULY_OPTION_OUTPUT] ? d->args.value[ULY_OPTION_OUTPUT] : default_output(d->arena, d->args.operands[0]);
  uly_graph *graph;
  void *compile;
  ULY_TRY(uly_driver_level(d, &options.level));
  ULY_TRY(uly_driver_read_spec(d, &graph));
  ULY_TRY(uly_driver_lower(d, "uly_lower_compile", &compile));
  options.source = d->diags.sources[0].text;
  bool writes = !options.stop_after && !options.passes;
  if (writes) ULY_TRY(uly_driver_check_output(d, path));
  int fd = memfd_create("model.so", MFD_CLOEXEC);
  if (fd < 0) {
    uly_text_add(&d->error, "cannot create a memory file: %s", strerror(errno));
    return ULY_EXHAUSTED;
  }
  if (writes) options.output = uly_str_format(d->arena, "/proc/self/fd/%d", fd).ptr;
  uly_progress_start("compiling");
  uly_status status = ((uly_lower_compile_fn *)(uintptr_t)compile)(d->arena, graph, &options, &d->diags, &d->error);
  uly_progress_stop();
  if (status == ULY_OK && d->diags.n_errors) status = ULY_INVALID_INPUT;
  if (status == ULY_OK && options.output) status = write_model(d, fd, path);
  close(fd);
  return status;
}
