// Kernels of the scale program, free of state and of calls, as a model's are: also compiled into a model file for the loader's test.
#ifndef ULY_TESTS_UNIT_SCALE_KERNELS_H
#define ULY_TESTS_UNIT_SCALE_KERNELS_H

#include "runtime/abi.h"

#define SCALE_KERNELS(KERNEL) KERNEL(pack) KERNEL(multiply) KERNEL(partial) KERNEL(finish)
#define KERNEL(name) void scale_##name(const uly_call *call);
SCALE_KERNELS(KERNEL)
#undef KERNEL

#endif
