#include "runtime/base/features.h"

#include <sched.h>
#include <stdio.h>

#include "runtime/abi.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

// Tiles are state that a process must ask the kernel for, once.
static bool may_use_tiles(void) {
  enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; // of arch_prctl, Linux 5.16
  return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

// Sapphire Rapids: all of its vector instructions, as its code may have any.
static bool has_tiles(void) {
  const uint32_t b7 = bit_AVX512IFMA,
                 c7 = bit_AVX512VBMI | bit_AVX512VBMI2 | bit_GFNI | bit_VAES | bit_VPCLMULQDQ | bit_AVX512VNNI | bit_AVX512BITALG | bit_AVX512VPOPCNTDQ;
  enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 }; // compilers' headers do not agree on their names
  const uint32_t d7 = AMX_TILE | AMX_BF16 | bit_AVX512FP16, a71 = bit_AVXVNNI | bit_AVX512BF16;
  uint32_t a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & b7) != b7 || (c & c7) != c7 || (d & d7) != d7) return false;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & a71) == a71 && may_use_tiles();
}

uint32_t uly_cpu_features(uint32_t wanted) {
  uint32_t a, b, c, d, features = 0;
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) features |= ULY_CPU_AVX2;
  if (__builtin_cpu_supports("fma")) features |= ULY_CPU_FMA;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    features |= ULY_CPU_AVX512;
  if ((features & ULY_CPU_AVX2) && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C) features |= ULY_CPU_F16C;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_BMI2) features |= ULY_CPU_BMI2;
  if ((wanted & ULY_CPU_AMX) && (features & ULY_CPU_AVX512) && has_tiles()) features |= ULY_CPU_AMX;
  return features & wanted;
}
#else
uint32_t uly_cpu_features(uint32_t wanted) { return (void)wanted, 0; }
#endif

void uly_cpu_describe(uint32_t features, char *out, size_t bytes) {
  static const struct {
    uint32_t bit;
    const char *name;
  } rows[] = {{ULY_CPU_AVX2, "AVX2"}, {ULY_CPU_FMA, "FMA"},   {ULY_CPU_AVX512, "AVX-512 F, BW, CD, DQ, VL"},
              {ULY_CPU_F16C, "F16C"}, {ULY_CPU_BMI2, "BMI2"}, {ULY_CPU_AMX, "AMX"}};
  size_t at = 0;
  out[0] = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows && at < bytes; features &= ~rows[i++].bit)
    if (features & rows[i].bit) at += (size_t)snprintf(out + at, bytes - at, "%s%s", at ? ", " : "", rows[i].name);
  if (features && at < bytes) snprintf(out + at, bytes - at, "%sfeatures that this version does not know (0x%x)", at ? ", " : "", features);
}

int uly_cpu_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  int n = CPU_COUNT(&set);
  return n > 0 ? n : 1;
}
