#include "runtime/base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ULY_ARENA_CHUNK
#define ULY_ARENA_CHUNK ((size_t)256 * 1024)
#endif

typedef struct chunk {
  struct chunk *next;
  size_t used, size;
  _Alignas(16) unsigned char data[];
} chunk;

struct uly_arena {
  chunk *head;
};

static void die_out_of_memory(size_t bytes) {
  fprintf(stderr, "ulyc: out of memory (%zu bytes)\n", bytes);
  exit(1);
}

uly_arena *uly_arena_create(void) {
  uly_arena *arena = calloc(1, sizeof *arena);
  if (!arena) die_out_of_memory(sizeof *arena);
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

void *uly_arena_alloc(uly_arena *arena, size_t bytes) {
  if (bytes > SIZE_MAX / 2) die_out_of_memory(bytes);
  bytes = (bytes + 15) & ~(size_t)15;
  chunk *c = arena->head;
  if (!c || c->size - c->used < bytes) {
    size_t size = bytes > ULY_ARENA_CHUNK ? bytes : ULY_ARENA_CHUNK;
    c = calloc(1, sizeof *c + size);
    if (!c) die_out_of_memory(size);
    c->size = size;
    c->next = arena->head;
    arena->head = c;
  }
  void *p = c->data + c->used;
  c->used += bytes;
  return p;
}

void *uly_arena_grow(uly_arena *arena, void *old, size_t old_bytes, size_t new_bytes) {
  size_t old_size = (old_bytes + 15) & ~(size_t)15, new_size = (new_bytes + 15) & ~(size_t)15;
  chunk *c = arena->head;
  if (old && c && (unsigned char *)old + old_size == c->data + c->used && c->size - c->used >= new_size - old_size) {
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
