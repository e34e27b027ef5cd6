// What the processor can do, and how many of its cores this process may use.
#ifndef ULY_RUNTIME_BASE_FEATURES_H
#define ULY_RUNTIME_BASE_FEATURES_H

#include <stddef.h>
#include <stdint.h>

// Those of |wanted|, bits of uly_cpu_feature, that processor and operating system both support. Where AMX is among them, this process asks for its tiles: from then on the kernel
// refuses it signal stacks that are too small for them.
uint32_t uly_cpu_features(uint32_t wanted);
// Names of |features| as "AVX2, FMA" in |out|.
void uly_cpu_describe(uint32_t features, char *out, size_t bytes);
int uly_cpu_cores(void); // of the affinity mask, at least 1

#endif
