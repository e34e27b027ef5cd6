// Writes the scale program as initialisers of C arrays, for model_file.c: `make_model FILE`, or `make_model FILE 1.0` as the first version of the format had it, without what
// later minor versions appended to rows and to the tables.
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/scale_program.h"

static uint32_t first_row_bytes(int table, uint32_t bytes) {
  return table == ULY_TABLE_ENTRIES ? offsetof(uly_entry, probes) : table == ULY_TABLE_BUFFERS ? offsetof(uly_buffer, words) : bytes;
}

static uly_blob *first_version(const uly_blob *blob) {
  uint64_t at = (offsetof(uly_blob, tables) + ULY_LEAST_TABLES * sizeof(uly_table) + 7) & ~(uint64_t)7;
  unsigned char *old = calloc(1, blob->bytes);
  if (!old) exit(1);
  memcpy(old, blob, offsetof(uly_blob, tables));
  uly_blob *header = (uly_blob *)(void *)old;
  header->abi_minor = 0;
  header->n_tables = ULY_LEAST_TABLES;
  for (int t = 0; t < ULY_LEAST_TABLES; t++) {
    const uly_table *from = &blob->tables[t];
    const uly_table table = {at, from->count, first_row_bytes(t, from->row_bytes)};
    memcpy(old + offsetof(uly_blob, tables) + (size_t)t * sizeof table, &table, sizeof table);
    for (uint32_t r = 0; r < from->count; r++)
      memcpy(old + at + (uint64_t)r * table.row_bytes, (const char *)blob + from->offset + (uint64_t)r * from->row_bytes, table.row_bytes);
    at += ((uint64_t)table.count * table.row_bytes + 7) & ~(uint64_t)7;
  }
  header->bytes = at;
  return header;
}

int main(int argc, char **argv) {
  FILE *out = argc >= 2 ? fopen(argv[1], "w") : NULL;
  if (!out) return 1;
  fx_program *f = scale_program();
  uly_blob *old = argc > 2 ? first_version(f->model.blob) : NULL;
  const uly_blob *blob = old ? old : f->model.blob;
  fprintf(out, "#define MINOR %u\n#define BLOB_BYTES %llu\n#define PROGRAM_BYTES {", blob->abi_minor, (unsigned long long)blob->bytes);
  for (int i = 0; i < 32; i++) fprintf(out, "%d,", blob->program[i]);
  fprintf(out, "}\n#define BLOB {");
  for (uint64_t i = 0; i < blob->bytes; i++) fprintf(out, "%d,", ((const unsigned char *)blob)[i]);
  fprintf(out, "}\n");
  free(old);
  fx_destroy(f);
  return fclose(out) != 0;
}
