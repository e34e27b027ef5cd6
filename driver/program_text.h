// The tables of a model as text, for `ulyc inspect` and for golden tests of what the passes emit. The form is for people: it may change with any version.
#ifndef ULY_DRIVER_PROGRAM_TEXT_H
#define ULY_DRIVER_PROGRAM_TEXT_H

#include "runtime/base/arena.h"
#include "runtime/tables.h"

// "x f32[B, S over sp, 64]".
void uly_program_print_tensor(uly_text *out, const uly_tables *tables, const uly_tensor *tensor, uint32_t name);
// Steps of every entry and phase, buffers, exchanges.
// What `ulyrun --check` and a host's watch function are shown, entry by entry: the values, and after which steps they stand where.
void uly_program_print_values(uly_text *out, const uly_tables *tables);
void uly_program_print(uly_text *out, const uly_tables *tables);

#endif
