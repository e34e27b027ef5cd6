// A bump allocator: memory is taken, never given back one by one, and freed as a whole. Not thread-safe.
#ifndef ULY_RUNTIME_BASE_ARENA_H
#define ULY_RUNTIME_BASE_ARENA_H

#include <stddef.h>

#include "runtime/base/status.h"

typedef struct uly_arena uly_arena;

uly_arena *uly_arena_create(void);
_Noreturn void uly_out_of_memory(size_t bytes); // says so, and ends the process with exit code 1
void uly_arena_destroy(uly_arena *arena);       // accepts NULL
// Zeroed, aligned to 16 bytes. Never returns NULL: where memory runs out the process ends with a message (compiler only; the runtime uses malloc).
void *uly_arena_alloc(uly_arena *arena, size_t bytes);
// |old| grown from |old_bytes| to |new_bytes|, in place where it was the last allocation.
void *uly_arena_grow(uly_arena *arena, void *old, size_t old_bytes, size_t new_bytes);
void *uly_arena_copy(uly_arena *arena, const void *data, size_t bytes);

// Makes room for item |n| of a growing array in the arena: |items| and its capacity |cap| are variables, |first| the capacity to begin with.
#define ULY_MAKE_ROOM(arena, items, n, cap, first)                                                                                                             \
  do {                                                                                                                                                         \
    if ((n) < (cap)) break;                                                                                                                                    \
    size_t old_bytes_ = sizeof *(items) * (size_t)(cap);                                                                                                       \
    (cap) = (cap) ? 2 * (cap) : (first);                                                                                                                       \
    ULY_ASSERT((n) < (cap));                                                                                                                                   \
    (items) = uly_arena_grow(arena, items, old_bytes_, sizeof *(items) * (size_t)(cap));                                                                       \
  } while (0)

#define ULY_NEW(arena, type) ((type *)uly_arena_alloc(arena, sizeof(type)))
#define ULY_NEW_ARRAY(arena, type, n) ((type *)uly_arena_alloc(arena, sizeof(type) * (size_t)(n)))

#endif
