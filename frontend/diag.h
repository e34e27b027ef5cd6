// Diagnostics: what a user did wrong, where, and in numbers. They are collected while a spec is read and printed at the end, so that one run
// shows several. Everything that is not a user's mistake is a uly_status instead.
//
//   uly_diag *d = uly_diag_add(diags, loc, ULY_D(UNKNOWN_NAME), ULY_STR_ARG(name));
//   uly_diag_note(diags, d, other_loc, ULY_D(DECLARED_HERE), ULY_STR_ARG(name));
//
// A place is an offset into all sources of a compilation laid one after the other: the spec first, at 0, then the prelude and the -D values.
#ifndef ULY_FRONTEND_DIAG_H
#define ULY_FRONTEND_DIAG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "frontend/graph.h" // uly_loc
#include "runtime/base/arena.h"
#include "runtime/base/str.h"

typedef enum uly_severity { ULY_ERROR, ULY_WARNING, ULY_NOTE } uly_severity;

typedef enum uly_diag_id {
#define DIAG(id, severity, format) ULY_DIAG_##id,
#include "frontend/diag.def"
  ULY_N_DIAGS
} uly_diag_id;

// The formats as constants, so that the compiler checks each call's arguments.
#define DIAG(id, severity, format) static const char uly_diag_format_##id[] __attribute__((unused)) = format;
#include "frontend/diag.def"
#define ULY_D(id) ULY_DIAG_##id, uly_diag_format_##id

typedef struct uly_source {
  uly_str name; // as the user wrote it, or "<prelude>"
  uly_str text;
  uint32_t base; // offset of its first byte
} uly_source;

typedef struct uly_diag uly_diag;
struct uly_diag {
  uly_diag_id id;
  uly_severity severity;
  uly_loc loc; // line 0: no place
  uly_str message;
  uly_diag *notes; // in order
  uly_diag *next;
};

enum {
  ULY_MAX_DIAGS = 20, // errors shown in one run
};

typedef struct uly_diags {
  uly_arena *arena;
  uly_source *sources;
  int32_t n_sources, cap_sources;
  uly_diag *first;              // in the order of the text
  int32_t n_errors, n_warnings; // counted beyond ULY_MAX_DIAGS too
  uly_diag dropped;             // stands for those that are not kept
} uly_diags;

void uly_diags_init(uly_diags *diags, uly_arena *arena);
// The number of a new source. |name| and |text| must outlive |diags|.
int32_t uly_diags_add_source(uly_diags *diags, uly_str name, uly_str text);

// Never NULL, whatever was dropped. Errors beyond ULY_MAX_DIAGS, and a second one of the same id at the same place, are counted or ignored, not kept.
uly_diag *uly_diag_add(uly_diags *diags, uly_loc loc, uly_diag_id id, const char *format, ...) ULY_PRINTF(4, 5);
void uly_diag_note(uly_diags *diags, uly_diag *diag, uly_loc loc, uly_diag_id id, const char *format, ...) ULY_PRINTF(5, 6);
// Adds the note "did you mean `x`?" where one of |names| is close to |name|.
void uly_diag_suggest(uly_diags *diags, uly_diag *diag, uly_str name, const uly_str *names, size_t n);

// From a's begin to b's end.
static inline uly_loc uly_loc_join(uly_loc a, uly_loc b) { return (uly_loc){a.begin, b.end > a.end ? b.end : a.end, a.line, a.column}; }

// `file:line:col: error: message`, the line, a caret range, notes. Columns count characters from 1; carets align by display width. Control characters
// of the source are never sent to the stream.
void uly_diags_print(const uly_diags *diags, FILE *stream);
// |s| as it may go to a terminal.
void uly_diags_add_clean(uly_text *out, uly_str s);
// The same as text in |diags|' arena: for tests and embedding.
uly_str uly_diags_text(const uly_diags *diags);

#endif
