// What the processor can do, and how many of its cores this process may use.
#ifndef ULY_RUNTIME_BASE_FEATURES_H
#define ULY_RUNTIME_BASE_FEATURES_H

#include <stddef.h>
#include <stdint.h>

uint32_t uly_cpu_features(void); // bit set of uly_cpu_feature: what processor and operating system both support
// Names of |features| as "AVX2, FMA" in |out|.
void uly_cpu_describe(uint32_t features, char *out, size_t bytes);
int uly_cpu_cores(void); // of the affinity mask, at least 1

#endif
