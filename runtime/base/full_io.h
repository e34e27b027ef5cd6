// System calls to their end: what a signal interrupted is called again, and what did less than asked goes on. Each sets errno on failure.
#ifndef ULY_RUNTIME_BASE_FULL_IO_H
#define ULY_RUNTIME_BASE_FULL_IO_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>

int uly_full_open(const char *path, int flags, mode_t mode);
bool uly_full_write(int fd, const void *data, size_t bytes);
// Bytes [0, bytes) of the file |fd|; false where it has fewer.
bool uly_full_read_at_start(int fd, void *to, size_t bytes);
bool uly_full_sync(int fd);

#endif
