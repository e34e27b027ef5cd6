// Names from files and specs on their way to a terminal or a log, which they must neither control nor lay out anew.
#ifndef ULY_RUNTIME_BASE_ESCAPE_H
#define ULY_RUNTIME_BASE_ESCAPE_H

#include "runtime/base/str.h"

// |s| with \\, \n, \t, \x1b and the like for control characters and for bytes that are no UTF-8, and \u{202e} for characters that hide, or change the order of what is shown.
// Other characters stay.
void uly_text_add_escaped(uly_text *text, uly_str s);
// |before|, |s| and |after| to a stream, in one piece where it is short; of |s| line ends and backslashes stay too: for texts of ours with names in them.
void uly_print_escaped(FILE *stream, const char *before, uly_str s, const char *after);

#endif
