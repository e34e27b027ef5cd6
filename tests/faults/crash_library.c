// Stands in for libulyc_lower.so in crash_test.py: compiles as far as the pass that CRASH_AFTER names, with the real library, and then fails in the way that CRASH says.
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "driver/lower.h"

static void *real(const char *name) {
  void *library = dlopen(REAL_LIBRARY, RTLD_NOW | RTLD_LOCAL), *symbol = library ? dlsym(library, name) : NULL;
  ULY_ASSERT(symbol);
  return symbol;
}

static volatile int depth;
static int sink(int n) { // NOLINT: until the stack ends
  volatile char frame[4096];
  frame[0] = (char)n;
  depth++;
  return n < 0 ? 0 : sink(n + 1) + frame[0];
}

static void *fall(void *unused) {
  (void)unused;
  *(volatile int *)(uintptr_t)8 = 1;
  return NULL;
}

static void fail(void) {
  const char *how = getenv("CRASH");
  pthread_t thread;
  if (!how) return;
  if (strcmp(how, "assert") == 0) ULY_ASSERT(depth < 0);
  if (strcmp(how, "segv") == 0) fall(NULL);
  if (strcmp(how, "stack") == 0) sink(1);
  if (strcmp(how, "trap") == 0) __builtin_trap();
  if (strcmp(how, "spin") == 0)
    for (;;) depth++;
  if (strcmp(how, "thread") == 0 && pthread_create(&thread, NULL, fall, NULL) == 0) pthread_join(thread, NULL);
}

uly_status uly_lower_compile(uly_arena *arena, const uly_graph *graph, const uly_lower_options *options, uly_diags *diags, uly_text *error) {
  uly_lower_options some = *options;
  some.stop_after = getenv("CRASH_AFTER");
  some.output = NULL;
  uly_status status = ((uly_lower_compile_fn *)(uintptr_t)real("uly_lower_compile"))(arena, graph, &some, diags, error);
  fail();
  return status == ULY_OK ? ULY_UNAVAILABLE : status;
}

int uly_lower_opt(const char *path, const uly_lower_options *options) {
  int code = ((uly_lower_opt_fn *)(uintptr_t)real("uly_lower_opt"))(path, options);
  fail();
  return code;
}

int uly_lower_abi(void) { return ULY_LOWER_ABI; }
const char *uly_lower_versions(void) { return ((uly_lower_versions_fn *)(uintptr_t)real("uly_lower_versions"))(); }
