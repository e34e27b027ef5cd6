#include "runtime/base/full_io.h"

#include <errno.h>
#include <unistd.h>

enum { STEP = 1 << 30 }; // the kernel moves no more than 2 GB a call

int uly_full_open(const char *path, int flags, mode_t mode) {
  int fd;
  do {
    fd = open(path, flags, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

bool uly_full_write(int fd, const void *data, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    ssize_t n = write(fd, (const char *)data + at, bytes - at < STEP ? bytes - at : STEP);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return false;
    at += (size_t)n;
  }
  return true;
}

bool uly_full_read_at_start(int fd, void *to, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    ssize_t n = pread(fd, (char *)to + at, bytes - at < STEP ? bytes - at : STEP, (off_t)at);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) return false;
    at += (size_t)n;
  }
  return true;
}

bool uly_full_sync(int fd) {
  int failed;
  do {
    failed = fsync(fd);
  } while (failed && errno == EINTR);
  return !failed;
}
