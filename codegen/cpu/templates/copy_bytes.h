// Copies for templates, which have no library. Source and destination do not overlap.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_COPY_BYTES_H
#define ULY_CODEGEN_CPU_TEMPLATES_COPY_BYTES_H

#include <stdbool.h>

#include "codegen/cpu/templates/template.h"

typedef uint8_t vbytes __attribute__((vector_size(VL * 4), aligned(1), may_alias));
typedef uint8_t vstream __attribute__((vector_size(VL * 4), may_alias));
typedef uint8_t half_bytes __attribute__((vector_size(VL * 2), aligned(1), may_alias));
typedef uint64_t eight_bytes __attribute__((aligned(1), may_alias));
typedef uint32_t four_bytes __attribute__((aligned(1), may_alias));

// |n| below a vector: two pieces that may overlap, or single bytes.
ULY_INLINE void copy_few(char *to, const char *from, int64_t n) {
  if (n >= 2 * VL) {
    *(half_bytes *)to = *(const half_bytes *)from;
    *(half_bytes *)(to + n - 2 * VL) = *(const half_bytes *)(from + n - 2 * VL);
    return;
  }
#pragma clang loop vectorize(disable) unroll(disable)
  for (; n >= 8; n -= 8, to += 8, from += 8) *(eight_bytes *)to = *(const eight_bytes *)from;
  if (n >= 4) *(four_bytes *)to = *(const four_bytes *)from, n -= 4, to += 4, from += 4;
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t i = 0; i < n; i++) to[i] = from[i];
}

ULY_INLINE void copy_bytes(char *to, const char *from, int64_t n) {
  int64_t i = 0;
  if (n < 4 * VL) return copy_few(to, from, n);
  for (; i + 4 * VL <= n; i += 4 * VL) *(vbytes *)(to + i) = *(const vbytes *)(from + i);
  if (i < n) *(vbytes *)(to + n - 4 * VL) = *(const vbytes *)(from + n - 4 * VL); // overlaps the one before
}

// Past the caches, where whole vectors go to aligned places. stream_end before anybody else may read them.
ULY_INLINE void stream_bytes(char *to, const char *from, int64_t n) {
  int64_t i = -(int64_t)(uintptr_t)to & (4 * VL - 1);
  if (n < 16 * VL) return copy_bytes(to, from, n);
  if (i) *(vbytes *)to = *(const vbytes *)from;
  for (; i + 4 * VL <= n; i += 4 * VL) __builtin_nontemporal_store(*(const vbytes *)(from + i), (vstream *)(to + i));
  if (i < n) *(vbytes *)(to + n - 4 * VL) = *(const vbytes *)(from + n - 4 * VL);
}

ULY_INLINE void stream_end(void) {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

ULY_INLINE void zero_bytes(char *to, int64_t n) {
  int64_t i = 0;
  for (; i + 4 * VL <= n; i += 4 * VL) *(vbytes *)(to + i) = (vbytes){0};
#pragma clang loop vectorize(disable) unroll(disable)
  for (; i < n; i++) to[i] = 0;
}

#endif
