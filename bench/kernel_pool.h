// Threads that run one kernel call after another, as a model's would, for benchmarks of single kernels: all start together and take items one by one. The same threads
// run a loop of nothing but FMAs, the hardware's limit.
#ifndef ULY_BENCH_KERNEL_POOL_H
#define ULY_BENCH_KERNEL_POOL_H

#include <stddef.h>

#include "runtime/abi.h"

enum { POOL_MAX_THREADS = 64 };

// Starts |n| threads, the caller is the first; each is bound to its core and has |scratch_bytes|. |fma_loop| runs n steps and returns the operations done. They end with the process.
void pool_start(int n, size_t scratch_bytes, double (*fma_loop)(int64_t n));
// Runs all items of |call|; returns seconds. |item_best|, if not NULL: each item's least time is lowered to this run's.
double pool_run(uly_kernel kernel, const uly_call *call, int64_t items, double *item_best);
// Operations a second of the FMA loop on all threads at once.
double pool_peak(void);
// |n| floats in [-scale, scale), in huge pages where there are some.
float *pool_floats(int64_t n, float scale);

#endif
