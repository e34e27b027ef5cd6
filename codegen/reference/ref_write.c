// The reference's kernel and its tables as a model.so. Code is the same for every CPU level: both name the one object.
#include "codegen/cpu/embedded.h"
#include "codegen/reference/ref_program.h"

static uly_code_bytes embedded(const char *name) {
  for (const uly_embedded *e = uly_embedded_files; e->name; e++)
    if (strcmp(e->name, name) == 0 && strcmp(e->level, "reference") == 0) return (uly_code_bytes){e->begin, (size_t)(e->end - e->begin)};
  ULY_ASSERT(false && "a file of the reference");
  return (uly_code_bytes){0};
}

uly_status uly_ref_write(const uly_program *program, const uly_codegen_options *options, const char *path, uly_text *error) {
  const char *symbols[1][ULY_MAX_LEVELS];
  uly_code_bytes objects[ULY_MAX_LEVELS] = {embedded("reference.o")}, libraries[] = {embedded("libm.so"), embedded("libc.so")};
  uly_code code = {.n_kernels = 1, .objects = objects, .symbols = symbols, .more = libraries, .n_more = 2};
  (void)options;
  for (int l = 0; l < uly_n_cpu_levels; l++) {
    code.levels[code.n_levels++] = &uly_cpu_levels[l];
    symbols[0][l] = "uly_reference";
  }
  return uly_codegen_link(program, &code, path, error);
}
