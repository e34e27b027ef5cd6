#include "tests/numerics/guarded_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

uly_guarded uly_guarded_create(size_t bytes, bool at_end) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = (bytes + page - 1) / page * page;
  uly_guarded memory = {.map_bytes = inner + 2 * page};
  memory.map = mmap(NULL, memory.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory.map == MAP_FAILED) abort();
  char *first = (char *)memory.map + page;
  if (inner && mprotect(first, inner, PROT_READ | PROT_WRITE)) abort();
  memory.data = at_end ? first + inner - bytes : first;
  if (inner) memset(first, 0xff, inner);
  return memory;
}

void uly_guarded_destroy(uly_guarded *memory) {
  if (memory->map) munmap(memory->map, memory->map_bytes);
  *memory = (uly_guarded){0};
}
