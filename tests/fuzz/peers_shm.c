// The letters of shm.c, through real sockets: of any length, with any number of descriptors, and memory of any size and seals.
#include "tests/fuzz/peers.h"

#include <poll.h>
#include <time.h>

static int fake_poll(struct pollfd *polls, nfds_t n, int ms) {
  (void)polls, (void)n;
  fuzz_now += ms * 1e-3;
  return 0;
}
#define clock_gettime(clock, out) fuzz_clock(clock, out)
#define poll(polls, n, ms) fake_poll(polls, n, ms)
#include "runtime/transports/shm.c"
#undef clock_gettime
#undef poll

enum { RANKS = 3, MAX_LETTERS = 8, MAX_FDS = 6, MAX_BYTES = 96 };

// A peer's letter: what rank 0 expects of it, with changes.
static void send_letter(uly_shm_group *g, fuzz_input *in, int descriptor) {
  unsigned char bytes[MAX_BYTES] = {0};
  letter right = {.kind = LETTER_MEMORY, .number = 1, .rank = 1 + fuzz_u8(in) % (RANKS - 1), .bytes = 4096};
  memcpy(bytes, &right, sizeof right);
  uint8_t how = fuzz_u8(in);
  size_t n = sizeof right;
  if (how & 1) bytes[fuzz_u8(in) % sizeof right] = fuzz_u8(in);
  if (how & 2) n = fuzz_u8(in) % MAX_BYTES;
  int n_fds = how & 4 ? fuzz_u8(in) % MAX_FDS : 1;
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
  } control = {0};
  struct iovec iov = {bytes, n};
  struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
  if (n_fds) {
    m.msg_control = &control;
    m.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int))};
    for (int i = 0; i < n_fds; i++) memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &descriptor, sizeof descriptor);
  }
  if (sendmsg(g->slot[0], &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
}

static int lowest_free(void) {
  int fd = dup(STDERR_FILENO);
  close(fd);
  return fd;
}

void fuzz_shm(fuzz_input *in) {
  int free_before = lowest_free(), fds[ULY_SHM_MAX_RANKS];
  uly_shm_group *g = NULL;
  if (uly_shm_group_create(RANKS, &g) != ULY_OK) return;
  shm s = {.mapped.comm = {.ops = &ops, .rank = 0, .n_ranks = RANKS, .timeout = 0.1}, .group = g, .stop = -1, .dead = -1};
  uly_mapped_init(&s.mapped, g->board);
  int memory = fuzz_u8(in) & 1 ? create_memory(4096) : memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  uint8_t size = fuzz_u8(in);
  if (size & 1 && ftruncate(memory, size * 100) != 0) size = 0;
  for (int i = 0; i < MAX_LETTERS && in->n; i++) send_letter(g, in, memory);
  letter mine = {.kind = LETTER_MEMORY, .number = 1, .rank = 0, .bytes = 4096};
  if (swap_descriptors(&s, &mine, memory, fds) == ULY_OK) {
    for (int q = 1; q < RANKS; q++) {
      void *p = map_memory(fds[q], 4096, NULL);
      if (!p) continue;
      *(volatile char *)p = 1;
      munmap(p, 4096);
    }
    close_all(fds, RANKS);
  }
  close(memory);
  uly_shm_group_destroy(g);
  ULY_ASSERT(lowest_free() == free_before); // no descriptor is left
}
