#include "runtime/io/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/full_io.h"

bool uly_bytes_slice(uly_bytes from, uint64_t offset, uint64_t len, uly_bytes *out) {
  if (offset > from.len || len > from.len - offset) return false;
  *out = (uly_bytes){from.ptr + offset, len};
  return true;
}

static bool read_number(uly_bytes from, uint64_t offset, int n, uint64_t *out) {
  uly_bytes slice;
  if (!uly_bytes_slice(from, offset, (uint64_t)n, &slice)) return false;
  uint64_t value = 0;
  for (int i = 0; i < n; i++) value |= (uint64_t)slice.ptr[i] << (8 * i);
  *out = value;
  return true;
}

bool uly_bytes_u64(uly_bytes from, uint64_t offset, uint64_t *out) { return read_number(from, offset, 8, out); }

#define READ(bits, n)                                                                                                                                          \
  bool uly_bytes_u##bits(uly_bytes from, uint64_t offset, uint##bits##_t *out) {                                                                               \
    uint64_t value;                                                                                                                                            \
    if (!read_number(from, offset, n, &value)) return false;                                                                                                   \
    *out = (uint##bits##_t)value;                                                                                                                              \
    return true;                                                                                                                                               \
  }
READ(8, 1)
READ(16, 2)
READ(32, 4)
#undef READ

uly_status uly_mapping_open(const char *path, uly_mapping *out, uly_error *error) {
  static const uint8_t nothing;
  *out = (uly_mapping){0};
  int fd = uly_full_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) return uly_fail(error, ULY_IO, "%s: %s", path, strerror(errno));
  struct stat st;
  uly_status status = ULY_OK;
  if (fstat(fd, &st) != 0) {
    status = uly_fail(error, ULY_IO, "%s: %s", path, strerror(errno));
  } else if (!S_ISREG(st.st_mode)) {
    status = uly_fail(error, ULY_IO, "%s: not a regular file", path);
  } else if (st.st_size == 0) {
    out->bytes.ptr = &nothing;
  } else {
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
      status = uly_fail(error, ULY_IO, "%s: cannot map %lld bytes: %s", path, (long long)st.st_size, strerror(errno));
    else
      out->bytes = (uly_bytes){p, (uint64_t)st.st_size};
  }
  close(fd);
  return status;
}

void uly_mapping_close(uly_mapping *mapping) {
  if (mapping->bytes.len && !mapping->borrowed) munmap((void *)(uintptr_t)mapping->bytes.ptr, mapping->bytes.len);
  free(mapping->copy);
  *mapping = (uly_mapping){0};
}

void uly_files_reserve_standard(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd) return;
}

bool uly_ndarray_size(uly_dtype dtype, int rank, const int64_t *dims, int64_t *out_elements, int64_t *out_bytes) {
  int64_t elements = 1, bytes;
  bool empty = false;
  if (rank < 0 || rank > ULY_NDARRAY_DIMS) return false;
  for (int i = 0; i < rank; i++) {
    if (dims[i] < 0) return false;
    if (dims[i] == 0)
      empty = true;
    else if (__builtin_mul_overflow(elements, dims[i], &elements))
      return false;
  }
  if (__builtin_mul_overflow(elements, (int64_t)uly_dtype_bytes(dtype), &bytes) || bytes > INT64_C(1) << 62) return false;
  *out_elements = empty ? 0 : elements;
  *out_bytes = empty ? 0 : bytes;
  return true;
}

const char *uly_ndarray_shape_text(int rank, const int64_t *dims, char *buffer, size_t bytes) {
  size_t used = (size_t)snprintf(buffer, bytes, "[");
  for (int i = 0; i < rank && used < bytes; i++) used += (size_t)snprintf(buffer + used, bytes - used, "%s%lld", i ? ", " : "", (long long)dims[i]);
  if (used < bytes) snprintf(buffer + used, bytes - used, "]");
  return buffer;
}

// ---- output ----

static char *format_path(const char *folder, size_t folder_len, const char *rest) {
  char *p = malloc(folder_len + strlen(rest) + 2);
  if (p) sprintf(p, "%.*s%s", (int)folder_len, folder, rest);
  return p;
}

static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) + 1 : 0;
}

// A name beside |path|: |path|'s own one for the moment between two system calls, which a later output of |path| takes over if a kill left it behind; or one that nobody else uses.
static char *temp_name(const char *path, bool own) {
  char rest[32];
  uint64_t number = uly_str_hash(uly_str_of(path + folder_length(path)));
  if (!own && getrandom(&number, sizeof number, 0) != sizeof number) number = (uint64_t)getpid();
  snprintf(rest, sizeof rest, ".uly-%016llx.tmp", (unsigned long long)number);
  return format_path(path, folder_length(path), rest);
}

// A file without a name, which a kill cannot leave behind; -1 where the system cannot name it later (no /proc).
static int open_unnamed(const char *path) {
  if (access("/proc/self/fd", X_OK) != 0) return -1;
  char *folder = format_path(path, folder_length(path), ".");
  int fd = folder ? uly_full_open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
  free(folder);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) errno = 0; // says that whoever holds it lives; some file systems have no locks
  return fd;
}

uly_status uly_output_open(const char *path, uly_output *out, uly_error *error) {
  *out = (uly_output){.fd = -1};
  struct stat st;
  if (stat(path, &st) == 0) {
    if (S_ISDIR(st.st_mode)) return uly_fail(error, ULY_IO, "%s: is a directory", path);
    if (!S_ISREG(st.st_mode)) {
      out->direct = true;
      out->fd = uly_full_open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY, 0);
      out->path = strdup(path);
    } else if (access(path, W_OK) != 0) {
      return uly_fail(error, ULY_IO, "%s: %s", path, strerror(errno));
    } else {
      out->path = realpath(path, NULL);
    }
  } else {
    out->path = strdup(path);
  }
  if (!out->path) return uly_fail(error, ULY_IO, "%s: %s", path, strerror(errno ? errno : ENOMEM));
  if (!out->direct) {
    out->fd = open_unnamed(out->path);
    out->temp = temp_name(out->path, out->fd >= 0);
    if (out->fd < 0 && out->temp) {
      out->fd = uly_full_open(out->temp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
      out->named = out->fd >= 0;
    }
  }
  if (out->fd >= 0 && (out->direct || out->temp)) return ULY_OK;
  uly_status status = uly_fail(error, ULY_IO, "%s: cannot write: %s", path, strerror(errno));
  uly_output_discard(out);
  return status;
}

uly_status uly_output_write(uly_output *output, const void *data, uint64_t bytes, uly_error *error) {
  if (uly_full_write(output->fd, data, (size_t)bytes)) return ULY_OK;
  return uly_fail(error, ULY_IO, "%s: cannot write: %s", output->path, strerror(errno));
}

static bool sync_folder(const char *path) {
  char *folder = format_path(path, folder_length(path), ".");
  int fd = folder ? uly_full_open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) : -1;
  free(folder);
  if (fd < 0) return false;
  // Some file systems cannot sync a folder; what counts then is that the rename happened.
  bool ok = uly_full_sync(fd) || errno == EINVAL || errno == EROFS;
  close(fd);
  return ok;
}

static bool link_to(int fd, const char *name) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

// Removes what a killed output left under |temp|: a file that nobody has locked, and that is still there.
static bool remove_leftover(const char *temp) {
  struct stat locked, there;
  int fd = uly_full_open(temp, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
  if (fd < 0) return errno == ENOENT;
  bool mine = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &locked) == 0 && lstat(temp, &there) == 0 && locked.st_dev == there.st_dev &&
              locked.st_ino == there.st_ino;
  bool ok = mine && unlink(temp) == 0;
  close(fd);
  return ok;
}

// Gives a file without a name the one that it replaces, where there is none yet, or else the temporary one; where another output is as far, a name of its own.
static bool give_name(uly_output *output) {
  if (link_to(output->fd, output->path)) return true;
  if (errno != EEXIST) return false;
  output->named = link_to(output->fd, output->temp);
  if (output->named || errno != EEXIST) return output->named;
  output->named = remove_leftover(output->temp) && link_to(output->fd, output->temp);
  if (!output->named) {
    free(output->temp);
    output->temp = temp_name(output->path, false);
    output->named = output->temp && link_to(output->fd, output->temp);
  }
  return output->named;
}

static bool put_in_place(uly_output *output) {
  if (!uly_full_sync(output->fd)) return false;
  if (!output->named && !give_name(output)) return false;
  if (output->named && rename(output->temp, output->path) != 0) return false;
  output->named = false;
  return sync_folder(output->path);
}

uly_status uly_output_commit(uly_output *output, uly_error *error) {
  uly_status status = ULY_OK;
  if (!output->direct && !put_in_place(output)) status = uly_fail(error, ULY_IO, "%s: cannot write: %s", output->path, strerror(errno));
  int fd = output->fd;
  output->fd = -1;
  if (close(fd) != 0 && status == ULY_OK) status = uly_fail(error, ULY_IO, "%s: cannot write: %s", output->path, strerror(errno));
  uly_output_discard(output);
  return status;
}

void uly_output_discard(uly_output *output) {
  if (output->path && output->fd >= 0) close(output->fd);
  if (output->named) unlink(output->temp);
  free(output->path);
  free(output->temp);
  *output = (uly_output){.fd = -1};
}

uly_status uly_file_write(const char *path, const void *data, uint64_t bytes, uly_error *error) {
  uly_output output;
  ULY_TRY(uly_output_open(path, &output, error));
  uly_status status = uly_output_write(&output, data, bytes, error);
  if (status == ULY_OK) return uly_output_commit(&output, error);
  uly_output_discard(&output);
  return status;
}
