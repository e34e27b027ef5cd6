// Runs the linker on objects in memory: its inputs are memory files that it inherits as /proc/self/fd/N, its output and its messages go to two more. So
// nothing is left behind wherever this process ends, and no path enters the result.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "runtime/base/full_io.h"

extern char **environ;

const char uly_linker[] = ULY_LINKER;

static uly_status fail_errno(uly_text *error, uly_status status, const char *what) {
  uly_text_add(error, "%s: %s", what, strerror(errno));
  return status;
}

static uly_status write_memory_file(uly_code_bytes bytes, int *out_fd, uly_text *error) {
  int fd = memfd_create("ulyc", 0);
  if (fd < 0) return fail_errno(error, ULY_EXHAUSTED, "cannot create a memory file");
  *out_fd = fd;
  return uly_full_write(fd, bytes.ptr, bytes.n) ? ULY_OK : fail_errno(error, ULY_EXHAUSTED, "cannot fill a memory file");
}

static uly_status read_memory_file(uly_arena *arena, int fd, uly_code_bytes *out, uly_text *error) {
  struct stat st;
  if (fstat(fd, &st) < 0) return fail_errno(error, ULY_IO, "cannot look at the linker's output");
  out->n = (size_t)st.st_size;
  char *to = uly_arena_alloc(arena, out->n + 1);
  out->ptr = to;
  return uly_full_read_at_start(fd, to, out->n) ? ULY_OK : fail_errno(error, ULY_IO, "cannot read the linker's output");
}

static uly_status run(char **args, int output, int messages, int *out_wait, uly_text *error) {
  posix_spawn_file_actions_t actions;
  pid_t pid;
  if (posix_spawn_file_actions_init(&actions)) return ULY_EXHAUSTED;
  int failed = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
  if (!failed) failed = posix_spawn(&pid, args[0], &actions, NULL, args, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) {
    uly_text_add(error, "cannot start the linker %s: %s", args[0], strerror(failed));
    return ULY_UNAVAILABLE;
  }
  while (waitpid(pid, out_wait, 0) < 0)
    if (errno != EINTR) return fail_errno(error, ULY_INTERNAL, "cannot wait for the linker");
  return ULY_OK;
}

static uly_status link_files(uly_arena *arena, const int *inputs, int n_inputs, const int outputs[2], uly_code_bytes *out, uly_text *error) {
  static const char *const fixed[] = {
      ULY_LINKER,        "-shared",       "-o",          "-",           "-z", "now", "-z", "relro", "-z", "noexecstack", "-z", "defs", "--hash-style=gnu",
      "--build-id=none", "--gc-sections", "--as-needed", "--threads=1", "-O0"};
  enum { N_FIXED = sizeof fixed / sizeof *fixed };
  char **args = ULY_NEW_ARRAY(arena, char *, N_FIXED + n_inputs + 1);
  for (int i = 0; i < N_FIXED; i++) args[i] = (char *)(uintptr_t)fixed[i];
  for (int i = 0; i < n_inputs; i++) args[N_FIXED + i] = (char *)(uintptr_t)uly_str_format(arena, "/proc/self/fd/%d", inputs[i]).ptr;
  int wait_status;
  uly_code_bytes text;
  ULY_TRY(run(args, outputs[0], outputs[1], &wait_status, error));
  ULY_TRY(read_memory_file(arena, outputs[0], out, error));
  ULY_TRY(read_memory_file(arena, outputs[1], &text, error));
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0 && out->n > 0) return ULY_OK;
  bool exited = WIFEXITED(wait_status);
  uly_text_add(error, "the linker failed (%s %d): %.*s", exited ? "exit code" : "signal", exited ? WEXITSTATUS(wait_status) : WTERMSIG(wait_status),
               (int)text.n, (const char *)text.ptr);
  return ULY_INTERNAL;
}

uly_status uly_link_shared(uly_arena *arena, const uly_code_bytes *objects, int n_objects, uly_code_bytes *out_library, uly_text *error) {
  int *inputs = ULY_NEW_ARRAY(arena, int, n_objects + 1), outputs[2] = {-1, -1};
  for (int i = 0; i < n_objects; i++) inputs[i] = -1;
  uly_status status = ULY_OK;
  for (int i = 0; i < n_objects && status == ULY_OK; i++) status = write_memory_file(objects[i], &inputs[i], error);
  for (int i = 0; i < 2 && status == ULY_OK; i++) status = write_memory_file((uly_code_bytes){"", 0}, &outputs[i], error);
  if (status == ULY_OK) status = link_files(arena, inputs, n_objects, outputs, out_library, error);
  for (int i = 0; i < n_objects; i++)
    if (inputs[i] >= 0) close(inputs[i]);
  for (int i = 0; i < 2; i++)
    if (outputs[i] >= 0) close(outputs[i]);
  return status;
}
