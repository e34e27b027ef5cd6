// Reads and writes files for the driver: see files.h.
#include "driver/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static uly_status fail(uly_text *error, const char *what, const char *path) {
  uly_text_add(error, "cannot %s %s: %s", what, path, strerror(errno));
  return ULY_IO;
}

uly_status uly_file_read(uly_arena *arena, const char *path, size_t max_bytes, uly_str *out_text, uly_text *error) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(error, "open", path);
  char *data = NULL;
  size_t n = 0, cap = 0;
  for (;;) {
    if (n == cap) {
      size_t more = cap ? 2 * cap : 1 << 16;
      if (more > max_bytes + 1) more = max_bytes + 1;
      if (more == cap) break;
      data = uly_arena_grow(arena, data, cap, more);
      cap = more;
    }
    ssize_t got = read(fd, data + n, cap - n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      uly_status status = fail(error, "read", path);
      close(fd);
      return status;
    }
    if (got == 0) break;
    n += (size_t)got;
  }
  close(fd);
  *out_text = (uly_str){data, n};
  return ULY_OK;
}

uly_status uly_output_begin(uly_arena *arena, const char *path, uly_output *out_output, uly_text *error) {
  struct stat st;
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
    errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    return fail(error, "write", path);
  }
  uly_str name = uly_str_format(arena, "%s.XXXXXX", path);
  out_output->path = path;
  out_output->temporary = uly_arena_copy(arena, name.ptr, name.len + 1);
  int fd = mkstemp(out_output->temporary);
  if (fd < 0) {
    out_output->temporary = NULL;
    return fail(error, "write", path);
  }
  close(fd);
  return ULY_OK;
}

static uly_status sync_path(const char *path, int flags, uly_text *error, mode_t mode) {
  int fd = open(path, flags | O_CLOEXEC);
  if (fd < 0) return fail(error, "open", path);
  bool ok = fsync(fd) == 0 && (!mode || fchmod(fd, mode) == 0);
  uly_status status = ok ? ULY_OK : fail(error, "write", path);
  close(fd);
  return status;
}

uly_status uly_output_commit(uly_output *output, uly_text *error) {
  mode_t mask = umask(0);
  umask(mask);
  uly_status status = sync_path(output->temporary, O_RDWR, error, 0777 & ~mask);
  if (status == ULY_OK && rename(output->temporary, output->path) != 0) status = fail(error, "write", output->path);
  if (status != ULY_OK) return status;
  output->temporary = NULL;
  uly_str folder = uly_str_of(output->path);
  while (folder.len && folder.ptr[folder.len - 1] != '/') folder.len--;
  uly_str z = folder.len ? uly_str_copy(error->arena, folder) : ULY_STR("./");
  return sync_path(z.ptr, O_RDONLY | O_DIRECTORY, error, 0);
}

void uly_output_drop(uly_output *output) {
  if (output->temporary) unlink(output->temporary);
  output->temporary = NULL;
}
