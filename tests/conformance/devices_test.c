// One suite for all devices. Run with the name of one; what a device leaves out stands in its row, with the reason.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/devices/device.h"

static char problem[1200];

#define CHECK(cond, ...)                                                                                                                                       \
  do {                                                                                                                                                         \
    if (!(cond)) {                                                                                                                                             \
      snprintf(problem, sizeof problem, __VA_ARGS__);                                                                                                          \
      return;                                                                                                                                                  \
    }                                                                                                                                                          \
  } while (0)

static uly_device *make(const uly_device_ops *ops, int threads) {
  uly_device *device = NULL;
  uly_error error;
  if (ops->create(threads, 1 + threads % 2, &error, &device) != ULY_OK) snprintf(problem, sizeof problem, "%s", error.text);
  return device;
}

// ---- tests --------------------------------------------------------------------------------------------------------------------------------

static void memory(const uly_device_ops *ops) {
  static const size_t sizes[] = {0, 1, 63, 64, 4097, (size_t)5 << 20};
  uly_device *d = make(ops, 1);
  for (int i = 0; d && i < 6 && !problem[0]; i++) {
    void *p = NULL;
    uly_error error;
    if (ops->alloc(d, sizes[i], &error, &p) != ULY_OK || !p || (uintptr_t)p % 64) snprintf(problem, sizeof problem, "%zu bytes at %p", sizes[i], p);
    for (size_t k = 0; k < sizes[i]; k++)
      if (((unsigned char *)p)[k]) snprintf(problem, sizeof problem, "byte %zu of %zu is not zero", k, sizes[i]);
    if (sizes[i]) memset(p, 1, sizes[i]);
    ops->free(d, p, sizes[i]);
  }
  void *p;
  uly_error error;
  if (d && !problem[0] && ops->alloc(d, SIZE_MAX / 2, &error, &p) != ULY_EXHAUSTED) snprintf(problem, sizeof problem, "half of all addresses were granted");
  ops->destroy(d);
}

enum { MOST = 3000 };
static void count(const uly_call *c) {
  for (int64_t i = c->lo; i < c->hi; i++) atomic_fetch_add((_Atomic int *)c->op[0].p[0] + i, 1);
}

static void every_item_once(const uly_device_ops *ops) {
  static _Atomic int seen[MOST + 1];
  void *pointer = seen;
  uly_arg arg = {&pointer, 1};
  uly_call call = {.op = &arg, .n_peers = 1};
  for (int threads = 1; threads <= 5; threads++) {
    uly_device *d = make(ops, threads);
    for (int64_t items = 0; d && items < MOST; items += items < 40 ? 1 : 397) {
      for (int i = 0; i <= MOST; i++) atomic_store(&seen[i], 0);
      ops->launch(d, count, &call, items);
      for (int i = 0; i <= MOST; i++)
        if (atomic_load(&seen[i]) != (i < items))
          snprintf(problem, sizeof problem, "%d threads: item %d of %d was computed %d times", threads, i, (int)items, atomic_load(&seen[i]));
    }
    ops->destroy(d);
  }
}

// Each launch reads what the one before it wrote, item by item in another order.
static void chain(const uly_call *c) {
  int64_t n = c->val[0][0];
  const int *from = c->op[0].p[0];
  int *to = c->op[1].p[0];
  for (int64_t i = c->lo; i < c->hi; i++) to[i] = from[(i + 7) % n] + 1;
}

static void launches_follow_each_other(const uly_device_ops *ops) {
  enum { N = 64, TIMES = 4000 };
  static int a[N], b[N];
  uly_device *d = make(ops, 4);
  int64_t n = N;
  const int64_t *val[] = {&n};
  memset(a, 0, sizeof a);
  for (int i = 0; d && i < TIMES; i++) {
    void *from = i % 2 ? b : a, *to = i % 2 ? a : b;
    uly_arg op[] = {{&from, 1}, {&to, 1}};
    uly_call call = {.op = op, .val = val, .n_peers = 1};
    ops->launch(d, chain, &call, N);
  }
  ops->destroy(d);
  for (int i = 0; i < N; i++) CHECK(a[i] == TIMES, "element %d is %d after %d launches", i, a[i], TIMES);
}

static void use_scratch(const uly_call *c) {
  unsigned char *s = c->scratch;
  int64_t bytes = c->val[0][0];
  memset(s, (int)(c->lo & 0xff), (size_t)bytes);
  for (int64_t i = 0; i < bytes; i++)
    if (s[i] != (c->lo & 0xff)) atomic_fetch_add((_Atomic int *)c->op[0].p[0], 1);
  if ((uintptr_t)s % 64) atomic_fetch_add((_Atomic int *)c->op[0].p[0], 1);
}

static void scratch(const uly_device_ops *ops) {
  _Atomic int wrong = 0;
  void *pointer = &wrong;
  uly_arg arg = {&pointer, 1};
  uly_device *d = make(ops, 3);
  uly_error error;
  for (int64_t bytes = 64; d && bytes < 200000 && !problem[0]; bytes *= 5) {
    const int64_t *val[] = {&bytes};
    uly_call call = {.op = &arg, .val = val, .n_peers = 1};
    if (ops->reserve(d, (size_t)bytes, &error) != ULY_OK || ops->reserve(d, 1, &error) != ULY_OK) snprintf(problem, sizeof problem, "%s", error.text);
    ops->launch(d, use_scratch, &call, 300);
  }
  ops->destroy(d);
  CHECK(atomic_load(&wrong) == 0, "scratch of two threads met, or is not aligned");
}

static void copies(const uly_device_ops *ops) {
  char a[100], b[100] = {0};
  uly_device *d = make(ops, 2);
  for (int i = 0; i < 100; i++) a[i] = (char)i;
  if (d) ops->copy(d, b, a, 99);
  ops->destroy(d);
  CHECK(memcmp(a, b, 99) == 0 && b[99] == 0, "copied bytes differ");
}

static void float_mode_comes_back(const uly_device_ops *ops) {
#if defined(__x86_64__)
  uly_device *d = make(ops, 2);
  unsigned before = __builtin_ia32_stmxcsr();
  for (int i = 0; d && i < 3; i++) {
    ops->begin(d);
    ops->end(d);
  }
  ops->destroy(d);
  CHECK(__builtin_ia32_stmxcsr() == before, "the floating-point mode is %x, it was %x", __builtin_ia32_stmxcsr(), before);
#endif
}

static void comes_and_goes(const uly_device_ops *ops) {
  for (int i = 0; i < 200 && !problem[0]; i++) ops->destroy(make(ops, 1 + i % 4));
  ops->destroy(NULL);
}

// ---- the tables -----------------------------------------------------------------------------------------------------------------------------

static const struct {
  const char *name;
  void (*body)(const uly_device_ops *ops);
} tests[] = {{"memory", memory},
             {"every_item_once", every_item_once},
             {"launches_follow_each_other", launches_follow_each_other},
             {"scratch", scratch},
             {"copies", copies},
             {"float_mode_comes_back", float_mode_comes_back},
             {"comes_and_goes", comes_and_goes}};

// A skip is tried all the same: one that passes has no reason to be here.
static const struct {
  const char *device, *test, *reason;
} skips[] = {
    {"null", "every_item_once", "computes nothing"}, {"null", "launches_follow_each_other", "computes nothing"}, {"null", "copies", "computes nothing"}};

static const char *reason_to_skip(const char *device, const char *test) {
  for (size_t i = 0; i < sizeof skips / sizeof *skips; i++)
    if (strcmp(skips[i].device, device) == 0 && strcmp(skips[i].test, test) == 0) return skips[i].reason;
  return NULL;
}

int main(int argc, char **argv) {
  const uly_device_ops *ops;
  uly_error error;
  int passed = 0, failed = 0, skipped = 0;
  if (argc != 2 || uly_device_find(argv[1], &error, &ops) != ULY_OK) return fprintf(stderr, "usage: devices_test DEVICE\n"), 2;
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    const char *reason = reason_to_skip(argv[1], tests[i].name);
    problem[0] = 0;
    tests[i].body(ops);
    if (reason && problem[0])
      printf("SKIP %s.%s: %s\n", argv[1], tests[i].name, reason), skipped++;
    else if (reason)
      printf("FAIL %s.%s: passes, though it is to be skipped (%s)\n", argv[1], tests[i].name, reason), failed++;
    else if (problem[0])
      printf("FAIL %s.%s: %s\n", argv[1], tests[i].name, problem), failed++;
    else
      passed++;
  }
  printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed != 0;
}
