// Copies for templates, which have no library: whole vectors, then single bytes. Source and destination do not overlap.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_COPY_BYTES_H
#define ULY_CODEGEN_CPU_TEMPLATES_COPY_BYTES_H

#include <stdbool.h>

#include "codegen/cpu/templates/template.h"

typedef uint8_t vbytes __attribute__((vector_size(VL * 4), aligned(1), may_alias));

ULY_INLINE void copy_bytes(char *to, const char *from, int64_t n) {
  int64_t i = 0;
  for (; i + 4 * VL <= n; i += 4 * VL) *(vbytes *)(to + i) = *(const vbytes *)(from + i);
  if (i == n) return;
  if (n >= 4 * VL) { // the last vector overlaps the one before
    *(vbytes *)(to + n - 4 * VL) = *(const vbytes *)(from + n - 4 * VL);
    return;
  }
#pragma clang loop vectorize(disable) unroll(disable)
  for (; i < n; i++) to[i] = from[i];
}

ULY_INLINE void zero_bytes(char *to, int64_t n) {
  int64_t i = 0;
  for (; i + 4 * VL <= n; i += 4 * VL) *(vbytes *)(to + i) = (vbytes){0};
#pragma clang loop vectorize(disable) unroll(disable)
  for (; i < n; i++) to[i] = 0;
}

#endif
