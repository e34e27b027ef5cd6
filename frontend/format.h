// The one layout of a spec: `ulyc fmt`, and what `ulyc import` writes. Words, signs, comments and the ends of lines stay where they are; only blanks change.
//
//   - Two blanks of indentation a block. A line that goes on with a statement has two more than the line in which its innermost bracket was opened, or than the
//     statement's first line; one that begins with the closing bracket has as many as that line.
//   - One blank around signs and words, none inside ( and [, none behind a unary minus and before what a name is called or indexed with.
//   - `const free grid dtype` in lines that follow each other are padded to one width, and so are `mask score`.
//   - Comments behind code stand two blanks behind it, in lines that follow each other in one column.
//   - At most one empty line, none at the edges of a block or of the file.
#ifndef ULY_FRONTEND_FORMAT_H
#define ULY_FRONTEND_FORMAT_H

#include "frontend/diag.h"

// sources[|source|], which must parse, in |arena|. ULY_INVALID_INPUT with an error in |diags| where it does not.
ULY_MUST_USE uly_status uly_format(uly_arena *arena, uly_diags *diags, int32_t source, uly_str *out_text);

#endif
