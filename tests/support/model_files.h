// A model's folder under tests/models: its spec, checked, and where they are there its weights, inputs and expected outputs.
#ifndef ULY_TESTS_SUPPORT_MODEL_FILES_H
#define ULY_TESTS_SUPPORT_MODEL_FILES_H

#include "frontend/diag.h"
#include "frontend/graph.h"
#include "runtime/io/safetensors.h"

typedef struct uly_model_files {
  uly_arena *arena;
  uly_diags diags;
  uly_graph *graph; // NULL where the spec is refused
  uly_safetensors *weights, *inputs, *expected;
} uly_model_files;

// Ends the process where the spec cannot be read; |defines|, NAME=VALUE, may be added to those of the folder.
void uly_model_files_open(uly_model_files *files, const char *folder);
void uly_model_files_close(uly_model_files *files);
// A whole file as text in |arena|; |folder| is its path where |name| is empty.
uly_str uly_model_files_text(uly_arena *arena, const char *folder, const char *name);
// A tensor's elements as float64; NULL where there is none of the name and shape ([1] for []).
double *uly_model_files_elements(uly_arena *arena, const uly_safetensors *from, uly_str name, int32_t rank, const int64_t *dims);
// The first entry evaluated in float64 on the inputs; the largest error of a result that is expected, over the largest expected magnitude, and its name.
ULY_MUST_USE uly_status uly_model_files_evaluate(uly_model_files *files, double *out_error, uly_str *out_name);

#endif
