#include "runtime/base/pages.h"

#include <sys/mman.h>

enum { HUGE_FROM = 4 << 20 };

void *uly_pages_alloc(size_t bytes) {
  void *memory = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  if (bytes >= HUGE_FROM) madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

void uly_pages_free(void *memory, size_t bytes) {
  if (memory) munmap(memory, bytes ? bytes : 1);
}
