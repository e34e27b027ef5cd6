// Writes the scale program as the initialiser of a C array, for model_file.c.
#include <stdio.h>

#include "tests/unit/scale_program.h"

int main(int argc, char **argv) {
  FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
  if (!out) return 1;
  fx_program *f = scale_program();
  const unsigned char *blob = (const unsigned char *)f->model.blob;
  fprintf(out, "#define BLOB_BYTES %llu\n#define PROGRAM_BYTES {", (unsigned long long)f->model.blob->bytes);
  for (int i = 0; i < 32; i++) fprintf(out, "%d,", f->model.blob->program[i]);
  fprintf(out, "}\n#define BLOB {");
  for (uint64_t i = 0; i < f->model.blob->bytes; i++) fprintf(out, "%d,", blob[i]);
  fprintf(out, "}\n");
  fx_destroy(f);
  return fclose(out) != 0;
}
