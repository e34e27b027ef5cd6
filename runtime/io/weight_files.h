// The tensors of a model: one safetensors file, or several with an index (model.safetensors.index.json) that says which file holds which tensor.
//
// A set is taken only where it is whole: every file that the index names is there, below the index's folder, and holds what the index says; no tensor is in two files.
#ifndef ULY_RUNTIME_IO_WEIGHT_FILES_H
#define ULY_RUNTIME_IO_WEIGHT_FILES_H

#include "runtime/io/safetensors.h"

typedef struct uly_weight_files uly_weight_files;

// |path|: a safetensors file, an index (its name ends in .json), or a folder that holds model.safetensors or model.safetensors.index.json.
ULY_MUST_USE uly_status uly_weight_files_open(const char *path, uly_weight_files **out, uly_error *error);
void uly_weight_files_close(uly_weight_files *weights); // accepts NULL
int64_t uly_weight_files_count(const uly_weight_files *weights);
// Tensor |i| in the order of names, and the path of its file; borrowed.
const uly_safetensor *uly_weight_files_get(const uly_weight_files *weights, int64_t i);
const char *uly_weight_files_file(const uly_weight_files *weights, int64_t i);
// The number of the tensor of that name, -1 where there is none.
int64_t uly_weight_files_find(const uly_weight_files *weights, uly_str name);

#endif
