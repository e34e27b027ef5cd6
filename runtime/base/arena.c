#include "runtime/base/arena.h"

#include "runtime/base/status.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK = 16 * 1024, CHUNK = 256 * 1024 };

// With the address sanitizer every allocation has forbidden bytes behind it, also within a chunk.
#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
enum { GAP = 16 };
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
enum { GAP = 0 };
#endif

typedef struct chunk {
  struct chunk *next;
  size_t used, size;
  _Alignas(16) unsigned char data[];
} chunk;

struct uly_arena {
  chunk *head;
};

void uly_out_of_memory(size_t bytes) {
  fprintf(stderr, "ulyc: out of memory (%zu bytes)\n", bytes);
  exit(uly_status_exit_code(ULY_EXHAUSTED));
}

uly_arena *uly_arena_create(void) {
  uly_arena *arena = calloc(1, sizeof *arena);
  if (!arena) uly_out_of_memory(sizeof *arena);
  return arena;
}

void uly_arena_destroy(uly_arena *arena) {
  if (!arena) return;
  for (chunk *c = arena->head, *next; c; c = next) {
    next = c->next;
    free(c);
  }
  free(arena);
}

static size_t footprint(size_t bytes) { return ((bytes + 15) & ~(size_t)15) + GAP; }

void *uly_arena_alloc(uly_arena *arena, size_t bytes) {
  if (bytes > SIZE_MAX / 2) uly_out_of_memory(bytes);
  size_t need = footprint(bytes);
  chunk *c = arena->head;
  if (!c || c->size - c->used < need) {
    size_t usual = !c ? FIRST_CHUNK : c->size < CHUNK / 2 ? 2 * c->size : CHUNK, size = need > usual ? need : usual;
    c = calloc(1, sizeof *c + size);
    if (!c) uly_out_of_memory(size);
    ASAN_POISON_MEMORY_REGION(c->data, size);
    c->size = size;
    c->next = arena->head;
    arena->head = c;
  }
  void *p = c->data + c->used;
  ASAN_UNPOISON_MEMORY_REGION(p, bytes);
  c->used += need;
  return p;
}

void *uly_arena_grow(uly_arena *arena, void *old, size_t old_bytes, size_t new_bytes) {
  size_t old_size = footprint(old_bytes), new_size = footprint(new_bytes);
  chunk *c = arena->head;
  if (old && c && (unsigned char *)old + old_size == c->data + c->used && c->size - c->used >= new_size - old_size) {
    ASAN_UNPOISON_MEMORY_REGION(old, new_bytes);
    c->used += new_size - old_size;
    return old;
  }
  void *p = uly_arena_alloc(arena, new_bytes);
  if (old_bytes) memcpy(p, old, old_bytes);
  return p;
}

void *uly_arena_copy(uly_arena *arena, const void *data, size_t bytes) {
  void *p = uly_arena_alloc(arena, bytes);
  if (bytes) memcpy(p, data, bytes);
  return p;
}
