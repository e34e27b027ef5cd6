// Inside of the import: what config.json gives to a template, by name, and the reading of the keys.
#ifndef ULY_DRIVER_IMPORT_IMPORT_VALUES_H
#define ULY_DRIVER_IMPORT_IMPORT_VALUES_H

#include "runtime/io/json.h"

#include "frontend/diag.h"

typedef enum uly_import_family {
#define FAMILY(id, model_type, template) ULY_IMPORT_##id,
#include "driver/import/families.def"
  ULY_N_IMPORT_FAMILIES
} uly_import_family;

typedef struct uly_import_value {
  const char *name;
  uly_str text;   // of a spec
  uly_str origin; // the key that it comes from
  bool is_const;  // written as `const name = text`
} uly_import_value;

enum { ULY_IMPORT_MAX_VALUES = 64 };
typedef struct uly_import_values {
  uly_import_value items[ULY_IMPORT_MAX_VALUES]; // in the order in which they were set
  int n;
} uly_import_values;

// Replaces a value of the same name. An empty text unsets it.
void uly_import_set(uly_import_values *values, const char *name, uly_str text, uly_str origin, bool is_const);
const uly_import_value *uly_import_get(const uly_import_values *values, uly_str name); // NULL where it is not set
// "x", "not x", "x = y" or "not x = y".
bool uly_import_holds(const uly_import_values *values, uly_str condition);

typedef struct uly_import_reader {
  uly_arena *arena;
  uly_diags *diags;
  int32_t source; // config.json
  const json_t *root;
  uly_import_family family;
  uly_import_values values;
} uly_import_reader;

// The place of the value at |path| (names with dots), or of the file's first byte.
uly_loc uly_import_place(const uly_import_reader *reader, uly_str path);
// A value as text, cut where it is long.
uly_str uly_import_show(uly_arena *arena, const json_t *value);
// Reads all keys of the family into |reader->values|. Errors go to its diags.
void uly_import_read_keys(uly_import_reader *reader);
// A line for each key that no row of the family has.
void uly_import_note_unread(const uly_import_reader *reader, uly_text *notes);

// Which layers have a window: |listed| is layer_types or NULL, |rule| what the family does without. Sets window (all, from, even, list), mixed and mask, and drops what then has no use.
void uly_import_settle_windows(uly_import_reader *reader, const json_t *listed, uly_str path, uly_str rule);

// The template |name| with its holes filled.
void uly_import_expand(uly_text *out, const uly_import_values *values, const char *name);

#endif
