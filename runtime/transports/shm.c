// Every rank has a mailbox: a socket whose other end all ranks hold. Through it peers pass descriptors: of their process, to see its death, when they join, and of
// their receive memory when they map. A thread a rank watches the processes of the others.
#include "runtime/transports/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/pages.h"
#include "runtime/transports/mapped.h"

struct uly_shm_group {
  int n;
  uly_mapped_board *board;
  int mailbox[ULY_SHM_MAX_RANKS]; // what rank r reads
  int slot[ULY_SHM_MAX_RANKS];    // where others write to r
};

typedef struct shm {
  uly_mapped mapped;    // first
  uly_shm_group *group; // a line's is its world's
  uint32_t maps;        // of a world: times that memory was mapped
  int processes[ULY_SHM_MAX_RANKS];
  int stop; // event: ends the watcher
  bool watching;
  pthread_t watcher;
  _Atomic int dead;
} shm;

typedef enum letter_kind { LETTER_PROCESS = 1, LETTER_MEMORY } letter_kind;
typedef struct letter {
  uint32_t kind, number;
  int32_t rank, pid;
  uint64_t bytes;
} letter;

static shm *of(uly_comm *comm) { return (shm *)(void *)comm; }

static void close_all(int *fds, int n) {
  for (int i = 0; i < n; i++) {
    if (fds[i] >= 0) close(fds[i]);
    fds[i] = -1;
  }
}

// ---- group ----

void uly_shm_group_destroy(uly_shm_group *group) {
  if (!group) return;
  close_all(group->mailbox, group->n);
  close_all(group->slot, group->n);
  if (group->board) munmap(group->board, uly_mapped_board_bytes(group->n));
  free(group);
}

uly_status uly_shm_group_create(int n_ranks, uly_shm_group **out) {
  *out = NULL;
  if (n_ranks < 1 || n_ranks > ULY_SHM_MAX_RANKS) return ULY_INVALID_ARGUMENT;
  uly_shm_group *g = calloc(1, sizeof *g);
  if (!g) return ULY_EXHAUSTED;
  g->n = n_ranks;
  for (int r = 0; r < n_ranks; r++) g->mailbox[r] = g->slot[r] = -1;
  void *board = mmap(NULL, uly_mapped_board_bytes(n_ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (board == MAP_FAILED) return uly_shm_group_destroy(g), ULY_EXHAUSTED;
  g->board = board;
  uly_mapped_board_init(g->board, n_ranks);
  for (int r = 0; r < n_ranks; r++) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) return uly_shm_group_destroy(g), ULY_IO;
    g->mailbox[r] = pair[0];
    g->slot[r] = pair[1];
  }
  *out = g;
  return ULY_OK;
}

void uly_shm_group_report(uly_shm_group *group, int rank, const char *reason) {
  char text[256];
  snprintf(text, sizeof text, "rank %d %s", rank, reason);
  uly_mapped_fail(group->board, group->n, ULY_PEER_LOST, text);
}

// ---- letters ----

// 1: sent, 0: not now, -1: cannot, -2: nobody reads it any more.
static int post_letter(int slot, const letter *l, int fd) {
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec iov = {(void *)(uintptr_t)l, sizeof *l};
  struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  if (sendmsg(slot, &m, MSG_NOSIGNAL) == (ssize_t)sizeof *l) return 1;
  if (errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED) return -2;
  return errno == EAGAIN || errno == EINTR || errno == ETOOMANYREFS || errno == ENOBUFS ? 0 : -1;
}

// 1: a letter with a descriptor, 0: none there, -1: what no rank of ours sends.
static int read_letter(int mailbox, letter *l, int *out_fd) {
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(4 * sizeof(int))];
  } control = {0};
  struct iovec iov = {l, sizeof *l};
  struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  *out_fd = -1;
  ssize_t n = recvmsg(mailbox, &m, MSG_CMSG_CLOEXEC);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
  int fds = 0;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      if (*out_fd >= 0) close(*out_fd);
      memcpy(out_fd, CMSG_DATA(c) + at, sizeof *out_fd);
      fds++;
    }
  }
  if (n == (ssize_t)sizeof *l && fds == 1 && !(m.msg_flags & (MSG_CTRUNC | MSG_TRUNC))) return 1;
  if (*out_fd >= 0) close(*out_fd);
  *out_fd = -1;
  return -1;
}

// The peer whose rank in the world is |member|; −1: none of ours.
static int peer_of(const uly_comm *comm, int member) {
  for (int q = 0; q < comm->n_ranks; q++)
    if (q != comm->rank && uly_comm_member(comm, q) == member) return q;
  return -1;
}

// Everyone's descriptor for everyone: sends |fd| to all peers and fills |out_fds|, one a peer (own: -1). On failure those received are closed.
static uly_status swap_descriptors(shm *s, const letter *mine, int fd, int *out_fds) {
  uly_comm *comm = &s->mapped.comm;
  double timeout = uly_comm_world(comm)->timeout, deadline = uly_now() + timeout;
  int sent = 1, missing = comm->n_ranks - 1, mailbox = s->group->mailbox[uly_comm_member(comm, comm->rank)];
  for (int q = 0; q < comm->n_ranks; q++) out_fds[q] = -1;
  while (sent < comm->n_ranks || missing) {
    uly_mapped_beat(&s->mapped);
    int did = 0, got = -1, to = uly_comm_member(comm, (comm->rank + sent) % comm->n_ranks);
    if (sent < comm->n_ranks && (did = post_letter(s->group->slot[to], mine, fd)) > 0) sent++;
    if (did == -2) uly_shm_group_report(s->group, to, "is gone");
    letter l;
    int read = missing ? read_letter(mailbox, &l, &got) : 0, from = read > 0 && l.kind == mine->kind && l.number == mine->number ? peer_of(comm, l.rank) : -1;
    if (from >= 0 && out_fds[from] < 0) {
      out_fds[from] = got;
      missing--;
    } else if (read || did < 0) {
      if (got >= 0) close(got);
      uly_mapped_fail(s->mapped.board, s->group->n, ULY_IO, "a descriptor cannot be passed between ranks; is the limit on open files too low?");
    } else if (!did) {
      struct pollfd p = {mailbox, POLLIN, 0};
      poll(&p, 1, 20);
    }
    uly_status status = uly_mapped_check(&s->mapped);
    if (status == ULY_OK && missing && timeout > 0 && uly_now() > deadline) {
      char text[200];
      int q = 0;
      while (q == comm->rank || out_fds[q] >= 0) q++;
      snprintf(text, sizeof text, "rank %s did not answer within %g s", uly_comm_name(comm, q).text, timeout);
      uly_mapped_fail(s->mapped.board, s->group->n, ULY_PEER_LOST, text);
      status = uly_mapped_check(&s->mapped);
    }
    if (status != ULY_OK) return close_all(out_fds, comm->n_ranks), status;
  }
  return ULY_OK;
}

// ---- memory ----

// Memory of |bytes| that exists in full and cannot be cut, or -1.
static int create_memory(size_t bytes) {
  int fd = memfd_create("ulyrt", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(fd, 0, (off_t)bytes);
  if (error == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) return fd;
  close(fd);
  errno = error ? error : errno;
  return -1;
}

// Maps |fd|, of |bytes|, at |at|, or anywhere where that is NULL.
static void *map_memory(int fd, size_t bytes, void *at) {
  off_t size = lseek(fd, 0, SEEK_END);
  int seals = fcntl(fd, F_GET_SEALS);
  if (size < 0 || (size_t)size != bytes || seals < 0 || !(seals & F_SEAL_SHRINK)) return NULL;
  void *p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
  return p == MAP_FAILED ? NULL : p;
}

static size_t whole_pages(size_t bytes) { return bytes ? (bytes + 4095) & ~(size_t)4095 : 4096; }

// What lies behind the pages that are shared belongs to the own mapping.
static size_t own_bytes(size_t shared, size_t bytes) { return bytes > whole_pages(shared) ? bytes : whole_pages(shared); }

static void unmap(uly_comm *comm, void *own, void **peers, size_t shared, size_t bytes) {
  (void)own;
  for (int q = 0; q < comm->n_ranks; q++) {
    if (q == comm->rank)
      uly_pages_free(peers[q], own_bytes(shared, bytes));
    else if (peers[q])
      munmap(peers[q], whole_pages(shared));
    peers[q] = NULL;
  }
}

static uly_status fail_all(shm *s, uly_status status, const char *text) {
  uly_mapped_fail(s->mapped.board, s->group->n, status, text);
  return uly_mapped_check(&s->mapped);
}

static uly_status check_sizes(shm *s, size_t bytes) {
  uint64_t mine = bytes, all[ULY_SHM_MAX_RANKS];
  uly_comm *comm = &s->mapped.comm;
  char text[300];
  ULY_TRY(uly_mapped_all_gather(comm, &mine, sizeof mine, all));
  for (int q = 0; q < comm->n_ranks; q++)
    if (all[q] != mine) {
      snprintf(text, sizeof text, "rank %s maps %zu bytes, rank %s %llu", uly_comm_name(comm, comm->rank).text, bytes, uly_comm_name(comm, q).text,
               (unsigned long long)all[q]);
      return fail_all(s, ULY_MISMATCH, text);
    }
  return ULY_OK;
}

// Nobody goes on, perhaps to fail, while another still swaps descriptors.
static uly_status wait_for_all(shm *s) {
  uint8_t nothing = 0;
  return uly_mapped_all_gather(&s->mapped.comm, &nothing, 0, &nothing);
}

// The gather in check_sizes also sees to it that no rank of the world sends descriptors of this memory while another still collects those of the last.
static uly_status map(uly_comm *comm, size_t shared, size_t bytes, void **out_own, void **out_peers) {
  shm *s = of(comm);
  char text[300];
  int fds[ULY_SHM_MAX_RANKS];
  size_t size = whole_pages(shared);
  memset(out_peers, 0, sizeof *out_peers * (size_t)comm->n_ranks);
  ULY_TRY(check_sizes(s, shared));
  out_peers[comm->rank] = uly_pages_alloc(own_bytes(shared, bytes));
  int own = out_peers[comm->rank] ? create_memory(size) : -1;
  if (own < 0) {
    snprintf(text, sizeof text, "rank %s has no memory for %zu bytes of receive buffers: %s", uly_comm_name(comm, comm->rank).text, bytes, strerror(errno));
    unmap(comm, NULL, out_peers, shared, bytes);
    return fail_all(s, ULY_EXHAUSTED, text);
  }
  letter mine = {.kind = LETTER_MEMORY, .number = ++of(uly_comm_world(comm))->maps, .rank = uly_comm_member(comm, comm->rank), .bytes = size};
  uly_status status = swap_descriptors(s, &mine, own, fds);
  for (int q = 0; status == ULY_OK && q < comm->n_ranks; q++) {
    void *memory = map_memory(q == comm->rank ? own : fds[q], size, out_peers[q]);
    if (memory) {
      out_peers[q] = memory;
      continue;
    }
    snprintf(text, sizeof text, "rank %s cannot map %zu bytes of rank %s: %s", uly_comm_name(comm, comm->rank).text, shared, uly_comm_name(comm, q).text,
             strerror(errno));
    status = fail_all(s, ULY_EXHAUSTED, text);
  }
  close(own);
  close_all(fds, comm->n_ranks);
  if (status == ULY_OK) status = wait_for_all(s);
  if (status != ULY_OK) unmap(comm, NULL, out_peers, shared, bytes);
  *out_own = out_peers[comm->rank];
  return status;
}

// ---- watching ----

static int find_dead(uly_mapped *mapped) { return atomic_load(&((shm *)(void *)mapped)->dead); }

static void *watch(void *arg) {
  shm *s = arg;
  int n = s->mapped.comm.n_ranks;
  struct pollfd polls[ULY_SHM_MAX_RANKS + 1];
  for (int q = 0; q < n; q++) polls[q] = (struct pollfd){s->processes[q], POLLIN, 0};
  polls[n] = (struct pollfd){s->stop, POLLIN, 0};
  for (;;) {
    if (poll(polls, (nfds_t)n + 1, -1) < 0) continue;
    if (polls[n].revents) return NULL;
    for (int q = 0; q < n; q++) {
      if (polls[q].fd < 0 || !polls[q].revents) continue;
      polls[q].fd = -1;
      if (uly_mapped_has_left(s->mapped.board, q)) continue;
      int none = -1;
      atomic_compare_exchange_strong(&s->dead, &none, q);
      uly_shm_group_report(s->group, q, "died");
    }
  }
}

static uly_status start_watcher(shm *s) {
  sigset_t all, old;
  sigfillset(&all);
  s->stop = eventfd(0, EFD_CLOEXEC);
  if (s->stop < 0) return fail_all(s, ULY_IO, "no descriptor to watch the ranks with");
  pthread_sigmask(SIG_SETMASK, &all, &old);
  s->watching = pthread_create(&s->watcher, NULL, watch, s) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return s->watching ? ULY_OK : fail_all(s, ULY_EXHAUSTED, "no thread to watch the ranks with");
}

// ---- life ----

static uly_status line(uly_comm *world, int n, const int *members, uly_comm **out_line) {
  shm *l = calloc(1, sizeof *l);
  if (!l) return fail_all(of(world), ULY_EXHAUSTED, "no memory for a line of the grid");
  l->group = of(world)->group;
  uly_mapped_init_line(&l->mapped, &of(world)->mapped, n, members);
  *out_line = &l->mapped.comm;
  return ULY_OK;
}

static void destroy(uly_comm *comm) {
  shm *s = of(comm);
  uly_mapped_leave(&s->mapped);
  if (comm->world) {
    free(s);
    return;
  }
  if (s->watching) {
    uint64_t one = 1;
    if (write(s->stop, &one, sizeof one) == sizeof one) pthread_join(s->watcher, NULL);
  }
  if (s->stop >= 0) close(s->stop);
  close_all(s->processes, comm->n_ranks);
  uly_shm_group_destroy(s->group);
  free(s);
}

static const uly_comm_ops ops = {ULY_MAPPED_OPS, .name = "shm", .map = map, .unmap = unmap, .destroy = destroy, .line = line};

static bool fits_cores(int n_ranks) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= n_ranks;
}

uly_status uly_shm_group_join(uly_shm_group *group, int rank, double timeout, uly_comm **out_comm) {
  *out_comm = NULL;
  if (rank < 0 || rank >= group->n) return ULY_INVALID_ARGUMENT;
  shm *s = calloc(1, sizeof *s);
  if (!s) return ULY_EXHAUSTED;
  s->group = group;
  s->stop = s->dead = -1;
  for (int q = 0; q < ULY_SHM_MAX_RANKS; q++) s->processes[q] = -1;
  s->mapped.comm = (uly_comm){.ops = &ops, .rank = rank, .n_ranks = group->n, .timeout = timeout};
  s->mapped.find_dead = find_dead;
  s->mapped.spin = fits_cores(group->n) ? 2000 : 0;
  uly_mapped_init(&s->mapped, group->board);
  *out_comm = &s->mapped.comm;
  for (int q = 0; q < group->n; q++)
    if (q != rank) close_all(&group->mailbox[q], 1);
  int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
  if (self < 0) return fail_all(s, ULY_UNAVAILABLE, "the kernel has no pidfd_open: Linux 5.3 or newer is needed");
  letter mine = {.kind = LETTER_PROCESS, .rank = rank, .pid = getpid()};
  uly_status status = swap_descriptors(s, &mine, self, s->processes);
  close(self);
  ULY_TRY(status);
  ULY_TRY(start_watcher(s));
  return wait_for_all(s);
}
