// From a Hugging Face config.json to a spec: `ulyc import`. Only the keys of keys.def are read, nothing is run and nothing is fetched; what the language cannot say is refused by
// key, value and reason. The text of a family is <family>.template; adding one costs a row of families.def, its rows of keys.def and a template.
#ifndef ULY_DRIVER_IMPORT_IMPORT_H
#define ULY_DRIVER_IMPORT_IMPORT_H

#include "frontend/diag.h"

enum { ULY_IMPORT_MAX_BYTES = 1 << 20 };

// How the parameters are called where published files differ in it.
typedef struct uly_import_names {
  uly_str prefix; // instead of the architecture's own; ptr NULL: its own
  bool gamma;     // norms of BERT have gamma and beta, as files of before 2020 do
} uly_import_names;

// The spec of the model that |text|, the bytes of the file |name|, describes: laid out, and accepted by the frontend, whose graph of it is |out_graph| (may be NULL). |notes| gets
// a line for each key that is not read. ULY_INVALID_INPUT with errors in |diags|.
ULY_MUST_USE uly_status uly_import(uly_arena *arena, uly_diags *diags, uly_str name, uly_str text, const uly_import_names *names, uly_str *out_spec,
                                   uly_graph **out_graph, uly_text *notes);

#endif
