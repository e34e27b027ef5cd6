// What the subcommands share: one function each, called by ulyc.c with checked arguments. Returns the exit code.
#ifndef ULY_DRIVER_COMMANDS_H
#define ULY_DRIVER_COMMANDS_H

#include "driver/args.h"
#include "driver/lower.h"
#include "frontend/diag.h"
#include "frontend/graph.h"

typedef struct uly_driver {
  uly_arena *arena;
  uly_args args;
  int argc;
  char **argv;
  uly_diags diags;
  uly_text error; // what a command that fails without a diagnostic has to say
  uly_text out;   // standard output, printed at the end
  // Of a replay (--run-reproducer): nothing is written but this.
  bool replays;
  FILE *last_ir; // the IR before each pass, in the place of that before
} uly_driver;

typedef uly_status uly_command_fn(uly_driver *driver);
#define COMMAND(id, name, operands, n_operands, summary) uly_command_fn uly_command_##name;
#include "driver/commands.def"

// Reads the command line of |driver| and runs its command.
ULY_MUST_USE uly_status uly_driver_run(uly_driver *driver);
// A file's bytes, or those of standard input where |path| is "-": one byte more than |most| where there are more. May be a pipe.
ULY_MUST_USE uly_status uly_driver_read(uly_driver *driver, const char *path, size_t most, uly_str *out_text);
// What can be known of an output before there is one: that |path| can be written, and is not the file that the command reads.
ULY_MUST_USE uly_status uly_driver_check_output(uly_driver *driver, const char *path);
// Reads and checks the spec that the command line names. The source is diags.sources[0].
ULY_MUST_USE uly_status uly_driver_read_spec(uly_driver *driver, uly_graph **out_graph);

// The number of -O, 2 where it is not given.
ULY_MUST_USE uly_status uly_driver_level(uly_driver *driver, int *out_level);

// In a replay: IR goes to its file.
void uly_driver_keep_last_ir(const uly_driver *driver, uly_lower_options *options);

// A function of libulyc_lower.so. ULY_UNAVAILABLE where the library is not there or is another build.
ULY_MUST_USE uly_status uly_driver_lower(uly_driver *driver, const char *name, void **out_function);

void uly_manual_page(uly_text *out);
void uly_manual_completion(uly_text *out);
void uly_manual_ops(uly_text *out);

#endif
