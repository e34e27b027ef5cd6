// Preloaded into a program: makes the n-th call of one function fail, or do less than asked. FAULTS="write 3 ENOSPC" fails the third write; "read 2 short" moves one byte; "alloc 40 fail" is
// any function that allocates. FAULTS_COUNT=FILE appends how often each was called. Calls that the C library makes itself are not seen, except its allocations.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS(X) X(alloc) X(open) X(read) X(write) X(fsync) X(close) X(rename) X(linkat) X(unlink) X(memfd_create) X(mmap) X(waitpid) X(getrandom)
enum {
#define X(name) CALL_##name,
  CALLS(X)
#undef X
      N_CALLS
};
static const char *const call_names[] = {
#define X(name) #name,
    CALLS(X)
#undef X
};

static const struct {
  const char *name;
  int number;
} errors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR}, {"EACCES", EACCES},
              {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"EPERM", EPERM}, {"EOPNOTSUPP", EOPNOTSUPP}};

static _Atomic int counts[N_CALLS];
static int wanted = -1, at;
static int failure; // errno; 0: short

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("FAULTS");
  char name[32], what[32];
  if (!text || sscanf(text, "%31s %d %31s", name, &at, what) != 3) return;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (strcmp(what, errors[i].name) == 0) failure = errors[i].number;
  for (int i = 0; i < N_CALLS; i++) atomic_store(&counts[i], 0);
  for (int i = 0; i < N_CALLS; i++)
    if (strcmp(name, call_names[i]) == 0) wanted = i;
}

__attribute__((destructor)) static void end(void) {
  const char *path = getenv("FAULTS_COUNT");
  char text[1024];
  size_t n = 0;
  if (!path) return;
  for (int i = 0; i < N_CALLS; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "%s %s %d\n", program_invocation_short_name, call_names[i], atomic_load(&counts[i]));
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  syscall(SYS_write, fd, text, n);
  syscall(SYS_close, fd);
}

static bool hit(int call) { return atomic_fetch_add(&counts[call], 1) + 1 == at && call == wanted; }
static bool refused(int call, int *out_error) {
  if (!hit(call)) return false;
  *out_error = failure;
  return failure != 0;
}
#define REFUSE(call, result)                                                                                                                                   \
  do {                                                                                                                                                         \
    int error = 0;                                                                                                                                             \
    if (refused(CALL_##call, &error)) {                                                                                                                        \
      errno = error;                                                                                                                                           \
      return result;                                                                                                                                           \
    }                                                                                                                                                          \
  } while (0)

// ---- allocation

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static bool no_memory(void) {
  if (!hit(CALL_alloc)) return false;
  errno = ENOMEM;
  return true;
}
void *malloc(size_t bytes) { return no_memory() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return no_memory() ? NULL : __libc_calloc(n, bytes); }
void *realloc(void *old, size_t bytes) { return no_memory() ? NULL : __libc_realloc(old, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return no_memory() ? NULL : __libc_memalign(align, bytes); }
void *memalign(size_t align, size_t bytes);
void *memalign(size_t align, size_t bytes) { return no_memory() ? NULL : __libc_memalign(align, bytes); }
int posix_memalign(void **out, size_t align, size_t bytes) { return no_memory() ? ENOMEM : (*out = __libc_memalign(align, bytes)) ? 0 : ENOMEM; }

// ---- files

static int open_at(int folder, const char *path, int flags, mode_t mode) {
  REFUSE(open, -1);
  return (int)syscall(SYS_openat, folder, path, flags, mode);
}
#define MODE(flags) ((flags) & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0)
#define OPEN(name)                                                                                                                                             \
  int name(const char *path, int flags, ...) {                                                                                                                 \
    va_list args;                                                                                                                                              \
    va_start(args, flags);                                                                                                                                     \
    mode_t mode = MODE(flags);                                                                                                                                 \
    va_end(args);                                                                                                                                              \
    return open_at(AT_FDCWD, path, flags, mode);                                                                                                               \
  }
OPEN(open)
OPEN(open64)

static ssize_t read_some(int fd, void *to, size_t n, off_t from, bool has_place) {
  int error = 0;
  bool is_hit = refused(CALL_read, &error);
  if (is_hit) return errno = error, -1;
  if (!failure && wanted == CALL_read && atomic_load(&counts[CALL_read]) == at && n > 1) n = 1;
  return has_place ? syscall(SYS_pread64, fd, to, n, from) : syscall(SYS_read, fd, to, n);
}
ssize_t read(int fd, void *to, size_t n) { return read_some(fd, to, n, 0, false); }
ssize_t pread(int fd, void *to, size_t n, off_t from) { return read_some(fd, to, n, from, true); }
ssize_t pread64(int fd, void *to, size_t n, off_t from) { return read_some(fd, to, n, from, true); }
ssize_t write(int fd, const void *from, size_t n) {
  int error = 0;
  if (refused(CALL_write, &error)) return errno = error, -1;
  if (!failure && wanted == CALL_write && atomic_load(&counts[CALL_write]) == at && n > 1) n = 1;
  return syscall(SYS_write, fd, from, n);
}
int fsync(int fd) {
  REFUSE(fsync, -1);
  return (int)syscall(SYS_fsync, fd);
}
int close(int fd) { // closed all the same, as Linux does
  int result = (int)syscall(SYS_close, fd);
  REFUSE(close, -1);
  return result;
}
int rename(const char *from, const char *to) {
  REFUSE(rename, -1);
  return (int)syscall(SYS_rename, from, to);
}
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
  REFUSE(linkat, -1);
  return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}
int unlink(const char *path) {
  REFUSE(unlink, -1);
  return (int)syscall(SYS_unlink, path);
}
int memfd_create(const char *name, unsigned flags) {
  REFUSE(memfd_create, -1);
  return (int)syscall(SYS_memfd_create, name, flags);
}
static void *map(void *place, size_t bytes, int protection, int flags, int fd, off_t from) {
  REFUSE(mmap, MAP_FAILED);
  return (void *)syscall(SYS_mmap, place, bytes, protection, flags, fd, from); // NOLINT
}
void *mmap(void *place, size_t bytes, int protection, int flags, int fd, off_t from) { return map(place, bytes, protection, flags, fd, from); }
void *mmap64(void *place, size_t bytes, int protection, int flags, int fd, off_t from) { return map(place, bytes, protection, flags, fd, from); }
pid_t waitpid(pid_t pid, int *status, int options) {
  REFUSE(waitpid, -1);
  return (pid_t)syscall(SYS_wait4, pid, status, options, NULL);
}
ssize_t getrandom(void *to, size_t n, unsigned flags) {
  REFUSE(getrandom, -1);
  return syscall(SYS_getrandom, to, n, flags);
}
