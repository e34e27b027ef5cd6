// The processor: kernels are functions, threads take chunks of a step's items from a counter. Which thread computes what never changes a result.
//
// The caller works too and closes the job when no items are left; a worker that wakes late finds it closed and goes back to sleep, so a step never waits for
// a thread that has nothing to do.
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/features.h"
#include "runtime/base/pages.h"
#include "runtime/devices/device.h"

extern const uly_device_ops uly_device_cpu;

enum { CHUNKS_PER_THREAD = 16 };
#define OPEN (1u << 31)

typedef struct cpu cpu;
typedef struct worker {
  cpu *owner;
  pthread_t thread;
  void *scratch;
  size_t scratch_bytes;
} worker;

struct cpu {
  uly_device device; // first
  worker *workers;   // [threads]; 0 is the caller
  int n_started;
  uint32_t spin;
  unsigned saved_mode;
  // The job. Written while no worker is inside.
  uly_kernel kernel;
  const uly_call *call;
  int64_t items, chunk;
  _Alignas(64) _Atomic int64_t next;
  _Alignas(64) _Atomic uint32_t state; // OPEN | workers inside
  _Atomic uint32_t waiting;            // the caller sleeps on `state`
  _Alignas(64) _Atomic uint32_t jobs;  // what workers sleep on
  _Atomic uint32_t sleepers, stop;
};

static cpu *of(uly_device *device) { return (cpu *)(void *)device; }

static void sleep_on(_Atomic uint32_t *word, uint32_t seen) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0); }
static void wake(_Atomic uint32_t *word, int n) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0); }

#if defined(__x86_64__)
enum { FTZ_DAZ = 0x8040 };
static unsigned set_mode(unsigned mode) {
  unsigned old = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(mode);
  return old;
}
static unsigned kernel_mode(void) { return __builtin_ia32_stmxcsr() | FTZ_DAZ; }
static void pause_cpu(void) { __builtin_ia32_pause(); }
#else
static unsigned set_mode(unsigned mode) { return mode; }
static unsigned kernel_mode(void) { return 0; }
static void pause_cpu(void) {}
#endif

static void work(cpu *c, void *scratch) {
  uly_call call = *c->call;
  call.scratch = scratch;
  for (;;) {
    call.lo = atomic_fetch_add(&c->next, c->chunk);
    if (call.lo >= c->items) return;
    call.hi = c->items - call.lo < c->chunk ? c->items : call.lo + c->chunk;
    c->kernel(&call);
  }
}

static bool enter(cpu *c) {
  uint32_t state = atomic_load(&c->state);
  while (state & OPEN)
    if (atomic_compare_exchange_weak(&c->state, &state, state + 1)) return true;
  return false;
}

static void leave(cpu *c) {
  if (atomic_fetch_sub(&c->state, 1) == 1 && atomic_load(&c->waiting)) wake(&c->state, 1);
}

static void *worker_main(void *argument) {
  worker *w = argument;
  cpu *c = w->owner;
  set_mode(kernel_mode());
  uint32_t seen = 0, idle = 0;
  for (;;) {
    uint32_t jobs = atomic_load(&c->jobs);
    if (atomic_load(&c->stop)) return NULL;
    if (jobs != seen) {
      seen = jobs;
      idle = 0;
      if (enter(c)) {
        work(c, w->scratch);
        leave(c);
      }
    } else if (idle++ < c->spin) {
      pause_cpu();
    } else {
      atomic_fetch_add(&c->sleepers, 1);
      sleep_on(&c->jobs, seen);
      atomic_fetch_sub(&c->sleepers, 1);
    }
  }
}

static void launch(uly_device *device, uly_kernel kernel, const uly_call *call, int64_t items) {
  cpu *c = of(device);
  if (items <= 0) return;
  if (device->threads == 1 || items == 1) {
    uly_call whole = *call;
    whole.lo = 0;
    whole.hi = items;
    whole.scratch = c->workers[0].scratch;
    kernel(&whole);
    return;
  }
  c->kernel = kernel;
  c->call = call;
  c->items = items;
  c->chunk = items / ((int64_t)device->threads * CHUNKS_PER_THREAD);
  if (c->chunk < 1) c->chunk = 1;
  atomic_store(&c->next, 0);
  atomic_store(&c->state, OPEN);
  atomic_fetch_add(&c->jobs, 1);
  if (atomic_load(&c->sleepers)) wake(&c->jobs, device->threads - 1);
  work(c, c->workers[0].scratch);
  uint32_t inside = atomic_fetch_and(&c->state, ~OPEN) & ~OPEN;
  for (uint32_t i = 0; inside && i < c->spin; i++) {
    pause_cpu();
    inside = atomic_load(&c->state);
  }
  atomic_store(&c->waiting, 1);
  while ((inside = atomic_load(&c->state))) sleep_on(&c->state, inside);
  atomic_store(&c->waiting, 0);
}

static void copy(uly_device *device, void *to, const void *from, size_t bytes) {
  (void)device;
  memmove(to, from, bytes);
}

static void poison(uly_device *device) {
  for (int i = 0; i < device->threads; i++)
    if (of(device)->workers[i].scratch) memset(of(device)->workers[i].scratch, 0xff, of(device)->workers[i].scratch_bytes);
}

static void begin(uly_device *device) { of(device)->saved_mode = set_mode(kernel_mode()); }
static void end(uly_device *device) { set_mode(of(device)->saved_mode); }

static uly_status alloc(uly_device *device, size_t bytes, uly_error *error, void **out_memory) {
  (void)device;
  *out_memory = uly_pages_alloc(bytes);
  if (!*out_memory) return uly_fail(error, ULY_EXHAUSTED, "no memory for %zu bytes", bytes);
  return ULY_OK;
}

static void release(uly_device *device, void *memory, size_t bytes) {
  (void)device;
  uly_pages_free(memory, bytes);
}

static uly_status reserve(uly_device *device, size_t bytes, uly_error *error) {
  for (int i = 0; i < device->threads; i++) {
    worker *w = &of(device)->workers[i];
    void *scratch;
    if (bytes <= w->scratch_bytes) continue;
    ULY_TRY(alloc(device, bytes, error, &scratch));
    release(device, w->scratch, w->scratch_bytes);
    w->scratch = scratch;
    w->scratch_bytes = bytes;
  }
  return ULY_OK;
}

static void destroy(uly_device *device) {
  if (!device) return;
  cpu *c = of(device);
  atomic_store(&c->stop, 1);
  atomic_fetch_add(&c->jobs, 1);
  wake(&c->jobs, INT32_MAX);
  for (int i = 1; i < c->n_started; i++) pthread_join(c->workers[i].thread, NULL);
  for (int i = 0; c->workers && i < device->threads; i++) release(device, c->workers[i].scratch, c->workers[i].scratch_bytes);
  free(c->workers);
  free(c);
}

static uly_status create(int threads, int64_t ranks, uly_error *error, uly_device **out_device) {
  cpu *c = aligned_alloc(_Alignof(cpu), sizeof *c);
  if (!c) return uly_fail(error, ULY_EXHAUSTED, "no memory for a device");
  memset(c, 0, sizeof *c);
  c->device = (uly_device){.ops = &uly_device_cpu, .threads = threads};
  c->spin = threads * ranks <= uly_cpu_cores() ? 2000 : 0;
  c->workers = calloc((size_t)threads, sizeof *c->workers);
  c->n_started = 1;
  for (int i = 1; c->workers && i < threads; i++, c->n_started++) {
    c->workers[i].owner = c;
    if (pthread_create(&c->workers[i].thread, NULL, worker_main, &c->workers[i]) != 0) break;
  }
  if (!c->workers || c->n_started != threads) {
    destroy(&c->device);
    return uly_fail(error, ULY_EXHAUSTED, "no memory or no processes for %d threads", threads);
  }
  *out_device = &c->device;
  return ULY_OK;
}

const uly_device_ops uly_device_cpu = {.name = "cpu",
                                       .create = create,
                                       .destroy = destroy,
                                       .alloc = alloc,
                                       .free = release,
                                       .reserve = reserve,
                                       .begin = begin,
                                       .end = end,
                                       .launch = launch,
                                       .poison = poison,
                                       .copy = copy};
