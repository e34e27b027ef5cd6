#include "runtime/tables.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  size_t row_bytes;
} kinds[ULY_N_TABLES] = {
#define TABLE(kind, type, field) [ULY_TABLE_##kind] = {#field, sizeof(type)},
    ULY_TABLES(TABLE)
#undef TABLE
};

// Files of earlier minor versions lack the later tables.
static uly_table table_of(const uly_blob *blob, int kind) { return (uint32_t)kind < blob->n_tables ? blob->tables[kind] : (uly_table){0}; }

static size_t header_bytes(uint32_t n_tables) { return offsetof(uly_blob, tables) + n_tables * sizeof(uly_table); }

static uly_status check_header(const uly_blob *blob, uint64_t bytes, uly_error *error) {
  if (!blob || bytes < header_bytes(ULY_LEAST_TABLES) || blob->bytes < header_bytes(ULY_LEAST_TABLES) || blob->bytes > bytes)
    return uly_fail(error, ULY_INVALID_INPUT, "the model's tables are truncated");
  if (blob->magic != ULY_BLOB_MAGIC) return uly_fail(error, ULY_INVALID_INPUT, "the model's tables do not start with ulyc's mark");
  if (blob->abi_major != ULY_ABI_MAJOR)
    return uly_fail(error, ULY_INVALID_INPUT, "the model has ABI %u.%u, this runtime reads %u.%u: compile it again", blob->abi_major, blob->abi_minor,
                    ULY_ABI_MAJOR, ULY_ABI_MINOR);
  if (blob->n_tables < ULY_LEAST_TABLES || blob->n_tables > (blob->bytes - offsetof(uly_blob, tables)) / sizeof(uly_table))
    return uly_fail(error, ULY_INVALID_INPUT, "the model has %u tables, expected %d", blob->n_tables, ULY_N_TABLES);
  for (int i = 0; i < ULY_N_TABLES; i++) {
    const uly_table table = table_of(blob, i), *t = &table;
    uint64_t end;
    if (t->offset % 8 || __builtin_add_overflow(t->offset, (uint64_t)t->count * t->row_bytes, &end) || end > blob->bytes || (t->count && !t->row_bytes))
      return uly_fail(error, ULY_INVALID_INPUT, "the model's table of %s (%u rows of %u bytes at %llu) does not lie within its %llu bytes", kinds[i].name,
                      t->count, t->row_bytes, (unsigned long long)t->offset, (unsigned long long)blob->bytes);
    if (t->count > 1u << 28) return uly_fail(error, ULY_INVALID_INPUT, "the model's table of %s has %u rows", kinds[i].name, t->count);
  }
  return ULY_OK;
}

static unsigned char *copy_rows(unsigned char *at, const uly_blob *blob, int kind) {
  const uly_table table = table_of(blob, kind), *t = &table;
  const unsigned char *from = (const unsigned char *)blob + t->offset;
  size_t row = kinds[kind].row_bytes, n = row < t->row_bytes ? row : t->row_bytes;
  for (uint32_t i = 0; i < t->count; i++) memcpy(at + i * row, from + (size_t)i * t->row_bytes, n);
  return at + ((row * t->count + 7) & ~(size_t)7);
}

uly_status uly_tables_read(const uly_blob *blob, uint64_t bytes, uly_error *error, uly_tables *out_tables) {
  *out_tables = (uly_tables){0};
  ULY_TRY(check_header(blob, bytes, error));
  size_t total = 8;
  for (int i = 0; i < ULY_N_TABLES; i++) total += (kinds[i].row_bytes * table_of(blob, i).count + 7) & ~(size_t)7;
  unsigned char *at = calloc(1, total);
  if (!at) return uly_fail(error, ULY_EXHAUSTED, "no memory for %zu bytes of tables", total);
  out_tables->memory = at;
#define TABLE(kind, type, field)                                                                                                                               \
  out_tables->field = (type *)(void *)at;                                                                                                                      \
  out_tables->n_##field = table_of(blob, ULY_TABLE_##kind).count;                                                                                              \
  at = copy_rows(at, blob, ULY_TABLE_##kind);
  ULY_TABLES(TABLE)
#undef TABLE
  memcpy(out_tables->program, blob->program, sizeof out_tables->program);
  uly_status status = uly_tables_check(out_tables, error);
  if (status != ULY_OK) uly_tables_free(out_tables);
  return status;
}

void uly_tables_free(uly_tables *tables) {
  free(tables->memory);
  *tables = (uly_tables){0};
}

uly_str uly_tables_text(const uly_tables *tables, uly_span span) { return (uly_str){tables->chars + span.first, span.count}; }

uly_str uly_tables_name(const uly_tables *tables, uint32_t row) {
  return row < tables->n_names ? uly_tables_text(tables, tables->names[row]) : (uly_str){"", 0};
}

void uly_tables_sizes(const uly_tables *tables, const int64_t *symbols, char *out, size_t bytes) {
  size_t n = 0;
  *out = 0;
  for (uint32_t i = 0; i < tables->n_symbols && n < bytes; i++) {
    uly_str name = uly_tables_text(tables, tables->symbols[i].name);
    if (symbols[i] != ULY_NO_VALUE) n += (size_t)snprintf(out + n, bytes - n, "%s%.*s = %lld", n ? ", " : "", ULY_STR_ARG(name), (long long)symbols[i]);
  }
}

uly_status uly_tables_dim(const uly_tables *tables, const uly_nodes *nodes, uint32_t tensor, uint32_t d, uly_error *error, int64_t *out_size) {
  const uly_tensor *t = &tables->tensors[tensor];
  uly_status status = uly_nodes_size(nodes, t->dims[d], 0, error, out_size);
  if (status == ULY_OK) return ULY_OK;
  char sizes[160];
  uly_str name = uly_tables_name(tables, t->names.first);
  uly_tables_sizes(tables, nodes->symbols, sizes, sizeof sizes);
  if (*out_size < 0 && *out_size != ULY_NO_VALUE)
    return uly_fail(error, status, "dim %u of %.*s, in line %u of the spec, is %lld where %s", d, ULY_STR_ARG(name), t->spec_line, (long long)*out_size, sizes);
  uly_error_prefix(error, "dim %u of %.*s where %s: ", d, ULY_STR_ARG(name), sizes);
  return status;
}

uint32_t uly_tables_find_entry(const uly_tables *tables, uly_str name) {
  for (uint32_t i = 0; i < tables->n_entries; i++)
    if (uly_str_equal(name, uly_tables_name(tables, tables->entries[i].name))) return i;
  if (name.len || !tables->n_entries) return ULY_NONE;
  for (uint32_t i = 1; i < tables->n_entries; i++)
    if (!uly_tables_same_entry(tables, 0, i)) return ULY_NONE;
  return 0;
}

bool uly_tables_same_entry(const uly_tables *tables, uint32_t a, uint32_t b) {
  return uly_str_equal(uly_tables_name(tables, tables->entries[a].name), uly_tables_name(tables, tables->entries[b].name));
}
