// The tables of a model as the runtime works with them: copied out of the blob row by row, so that rows of other minor versions (shorter or longer) become ours, and checked: every
// index is in range and every rule of abi.h that bind and run rely on holds. Nothing after this looks at the blob again.
#ifndef ULY_RUNTIME_TABLES_H
#define ULY_RUNTIME_TABLES_H

#include "runtime/abi.h"
#include "runtime/base/error.h"
#include "runtime/base/nodes.h"
#include "runtime/base/str.h"

typedef struct uly_tables {
#define TABLE(kind, type, field)                                                                                                                               \
  type *field;                                                                                                                                                 \
  uint32_t n_##field;
  ULY_TABLES(TABLE)
#undef TABLE
  uint8_t program[32];
  void *memory;
} uly_tables;

// Reads |blob|, of which |bytes| bytes can be read.
ULY_MUST_USE uly_status uly_tables_read(const uly_blob *blob, uint64_t bytes, uly_error *error, uly_tables *out_tables);
void uly_tables_free(uly_tables *tables);
// Part of uly_tables_read (tables_check.c).
ULY_MUST_USE uly_status uly_tables_check(const uly_tables *tables, uly_error *error);

// Text |span| of the character table, and row |row| of the name table ("" for ULY_NONE).
uly_str uly_tables_text(const uly_tables *tables, uly_span span);
uly_str uly_tables_name(const uly_tables *tables, uint32_t row);
// "B = 1, S = 4096": the symbols that have a value, as far as there is room. Values are ULY_NO_VALUE (base/nodes.h) where there is none.
void uly_tables_sizes(const uly_tables *tables, const int64_t *symbols, char *out, size_t bytes);
// Global size |d| of tensor |tensor| at |nodes|' sizes; ULY_INVALID_ARGUMENT or ULY_OVERFLOW with the tensor, the dim, its place in the spec and the sizes where it is none.
ULY_MUST_USE uly_status uly_tables_dim(const uly_tables *tables, const uly_nodes *nodes, uint32_t tensor, uint32_t d, uly_error *error, int64_t *out_size);
// Row number of the entry of that name, its first variant; ULY_NONE without one. An empty |name| is the only entry.
uint32_t uly_tables_find_entry(const uly_tables *tables, uly_str name);
// Whether entries |a| and |b| are variants of one.
bool uly_tables_same_entry(const uly_tables *tables, uint32_t a, uint32_t b);

#endif
