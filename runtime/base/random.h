// Seeded values for parameters and inputs that have no file. The value of an element depends on the seed, the name and the element's global index, and on nothing else: not on
// ranks, order or the rest of the tensor. The generator is part of the ABI: it never changes.
//
//   mix(z):  z ^= z >> 30, z *= 0xbf58476d1ce4e5b9, z ^= z >> 27, z *= 0x94d049bb133111eb, z ^= z >> 31   (SplitMix64's)
//   key    = mix(FNV-1a-64(name) + seed · 0x9e3779b97f4a7c15)
//   u(i)   = (mix(key + (i + 1) · 0x9e3779b97f4a7c15) >> 40) · 2^-23 − 1        in [−1, 1)
#ifndef ULY_RUNTIME_BASE_RANDOM_H
#define ULY_RUNTIME_BASE_RANDOM_H

#include <stdint.h>

#include "runtime/base/dtype.h"

uint64_t uly_random_key(uint64_t seed, uly_str name);
double uly_random_uniform(uint64_t key, uint64_t index); // u(index)

// Elements [0, n) of a parameter of shape |dims|. Floats: u · √(3 / fan-in) for two or more dims, fan-in being the last; 1 + u / 10 for a vector whose name ends in
// "weight" or "scale" (a norm's), u / 10 for other vectors and scalars. Integers and bools: 0.
void uly_random_param(uint64_t seed, uly_str name, uly_dtype dtype, uint32_t rank, const int64_t *dims, int64_t n, void *out);

#endif
