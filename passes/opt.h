// `ulyc opt`: IR text through passes, for tests and for looking at what a pass does.
#ifndef ULY_PASSES_OPT_H
#define ULY_PASSES_OPT_H

#include "passes/pipeline.h"

// Reads |path| ("-": standard input), runs the passes that |options| name (none where |options->passes| is empty and |whole| is false), and prints the module to
// |out|. Diagnostics go to |err|. Returns the exit code.
int uly_opt(const char *path, const uly_pipeline_options *options, bool whole, FILE *out, FILE *err);

#endif
