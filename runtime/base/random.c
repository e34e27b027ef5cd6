#include "runtime/base/random.h"

#include <math.h>

#define GOLDEN 0x9e3779b97f4a7c15u

static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t uly_random_key(uint64_t seed, uly_str name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < name.len; i++) hash = (hash ^ (unsigned char)name.ptr[i]) * 0x100000001b3u;
  return mix(hash + seed * GOLDEN);
}

double uly_random_uniform(uint64_t key, uint64_t index) { return (double)(mix(key + (index + 1) * GOLDEN) >> 40) * 0x1p-23 - 1.0; }

static bool ends_with(uly_str s, uly_str end) { return s.len >= end.len && memcmp(s.ptr + s.len - end.len, end.ptr, end.len) == 0; }

void uly_random_param(uint64_t seed, uly_str name, uly_dtype dtype, uint32_t rank, const int64_t *dims, int64_t n, void *out) {
  if (!uly_dtype_get(dtype)->is_float) {
    memset(out, 0, (size_t)n * (size_t)uly_dtype_bytes(dtype));
    return;
  }
  bool is_norm = rank == 1 && (ends_with(name, ULY_STR("weight")) || ends_with(name, ULY_STR("scale")));
  double scale = rank >= 2 && dims[rank - 1] > 0 ? sqrt(3.0 / (double)dims[rank - 1]) : 0.1, shift = is_norm ? 1.0 : 0.0;
  uint64_t key = uly_random_key(seed, name);
  for (int64_t i = 0; i < n; i++) uly_dtype_store(dtype, out, i, shift + scale * uly_random_uniform(key, (uint64_t)i));
}
