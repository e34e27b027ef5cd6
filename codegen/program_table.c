#include "codegen/program_table.h"

#include <sodium.h>

// Rows have no padding that is not zero: the passes build them from zeroed memory or with initialisers, which the hash relies on. Structs with padding would be listed here.
_Static_assert(sizeof(uly_node) == 24 && sizeof(uly_operand) == 36 && sizeof(uly_step) == 48 && sizeof(uly_exchange) == 48 && sizeof(uly_buffer) == 32 &&
                   sizeof(uly_call_value) == 8,
               "rows without padding");

typedef struct source {
  const void *rows;
  uint32_t count, row_bytes;
} source;

static void hash_code(const uly_code_bytes *objects, uint32_t n_levels, uint8_t *out, size_t out_bytes) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, NULL, 0, out_bytes);
  for (uint32_t l = 0; l < n_levels; l++) crypto_generichash_update(&state, objects[l].ptr, objects[l].n);
  crypto_generichash_final(&state, out, out_bytes);
}

static void add_kernels(uly_program *p, uly_kernel_row *rows, const uly_code_bytes *objects, uint32_t n_levels) {
  for (uint32_t k = 0; k < p->n_kernels; k++) {
    const uly_kernel_desc *desc = p->kernels[k];
    uint32_t name = uly_program_name(p, uly_str_format(p->arena, "k%u_%s", k, uly_kernel_kind_name(desc->kind)));
    rows[k] = (uly_kernel_row){.name = p->names[name], .kind = (uint32_t)desc->kind, .spec_line = desc->loc.line};
    hash_code(objects + k * n_levels, n_levels, rows[k].code, sizeof rows[k].code);
  }
}

static uint64_t aligned(uint64_t n) { return (n + 7) & ~(uint64_t)7; }

// Of what ranks compare: all rows, but neither the name of the spec's file, the last of the characters, nor where it stands.
static void hash_rows(const uly_program *p, const source *sources, uint8_t *out, size_t out_bytes) {
  crypto_generichash_state state;
  crypto_generichash_init(&state, NULL, 0, out_bytes);
  for (int t = 0; t < ULY_N_TABLES; t++) {
    const void *rows = sources[t].rows;
    uint64_t n = sources[t].count;
    uly_source_row nameless = {.name = {0}};
    if (t == ULY_TABLE_CHARS) n -= p->source_name.len;
    if (t == ULY_TABLE_SOURCES && n) {
      nameless = p->sources[0];
      nameless.name = (uly_span){0};
      rows = &nameless;
    }
    crypto_generichash_update(&state, (const unsigned char *)&n, sizeof n);
    if (n) crypto_generichash_update(&state, rows, n * sources[t].row_bytes);
  }
  crypto_generichash_final(&state, out, out_bytes);
}

static uly_span add_chars(uly_program *p, uly_str text) {
  uly_span span = {p->n_chars, (uint32_t)text.len};
  for (size_t i = 0; i < text.len; i++) uly_program_add_chars(p, text.ptr[i]);
  return span;
}

uly_blob *uly_program_blob(const uly_program *program, const uly_code_bytes *objects, uint32_t n_levels) {
  uly_program *p = (uly_program *)program; // gets the kernels' names
  uly_kernel_row *kernels = ULY_NEW_ARRAY(p->arena, uly_kernel_row, p->n_kernels + 1);
  add_kernels(p, kernels, objects, n_levels);
  if (p->n_sources) p->sources[0].name = add_chars(p, p->source_name);
  const source sources[ULY_N_TABLES] = {
#define TABLE(kind, type, name) [ULY_TABLE_##kind] = {p->name, p->n_##name, sizeof(type)},
      ULY_PROGRAM_TABLES(TABLE)
#undef TABLE
          [ULY_TABLE_KERNELS] = {kernels, p->n_kernels, sizeof(uly_kernel_row)},
  };
  uint64_t bytes = aligned(sizeof(uly_blob));
  for (int t = 0; t < ULY_N_TABLES; t++) bytes += aligned((uint64_t)sources[t].count * sources[t].row_bytes);
  uly_blob *blob = uly_arena_alloc(p->arena, bytes);
  *blob = (uly_blob){.magic = ULY_BLOB_MAGIC, .abi_major = ULY_ABI_MAJOR, .abi_minor = ULY_ABI_MINOR, .bytes = bytes, .n_tables = ULY_N_TABLES};
  uint64_t at = aligned(sizeof(uly_blob));
  for (int t = 0; t < ULY_N_TABLES; t++) {
    uint64_t n = (uint64_t)sources[t].count * sources[t].row_bytes;
    blob->tables[t] = (uly_table){at, sources[t].count, sources[t].row_bytes};
    if (n) memcpy((char *)blob + at, sources[t].rows, n);
    at += aligned(n);
  }
  hash_rows(p, sources, blob->program, sizeof blob->program);
  return blob;
}

void uly_program_set_source(uly_program *p, uly_str name, uly_str text, uly_str printed) {
  for (size_t i = name.len; i-- > 0;)
    if (name.ptr[i] == '/') {
      name = (uly_str){name.ptr + i + 1, name.len - i - 1};
      break;
    }
  uly_source_row row = {.text = add_chars(p, text)};
  p->source_name = name;
  crypto_generichash(row.hash, sizeof row.hash, (const unsigned char *)printed.ptr, printed.len, NULL, 0);
  uly_program_add_sources(p, row);
}
