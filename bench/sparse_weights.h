// A safetensors file with all the parameters of a model, every number 0, that takes up no room on the disk.
#ifndef ULY_BENCH_SPARSE_WEIGHTS_H
#define ULY_BENCH_SPARSE_WEIGHTS_H

#include "runtime/loaded.h"

// Writes |path|; returns the bytes of its tensors. Ends the program where that fails.
int64_t sparse_weights_write(const uly_loaded *loaded, const char *path);

#endif
