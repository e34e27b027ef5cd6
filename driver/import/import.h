// From a Hugging Face config.json to a spec: `ulyc import`. Only the keys of keys.def are read, nothing is run and nothing is fetched; what the language cannot say is refused by
// key, value and reason. The text of a family is <family>.template; adding one costs a row of families.def, its rows of keys.def and a template.
#ifndef ULY_DRIVER_IMPORT_IMPORT_H
#define ULY_DRIVER_IMPORT_IMPORT_H

#include "frontend/diag.h"

enum { ULY_IMPORT_MAX_BYTES = 1 << 20 };

// The spec of the model that |text|, the bytes of the file |name|, describes: laid out, and accepted by the frontend. |prefix| stands before the names of the parameters
// instead of the architecture's own; ptr NULL: its own. |notes| gets a line for each key that is not read. ULY_INVALID_INPUT with errors in |diags|.
ULY_MUST_USE uly_status uly_import(uly_arena *arena, uly_diags *diags, uly_str name, uly_str text, uly_str prefix, uly_str *out_spec, uly_text *notes);

#endif
