// The command line, read by the tables commands.def and options.def. Called by ulyc.c.
#ifndef ULY_DRIVER_ARGS_H
#define ULY_DRIVER_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/str.h"

typedef enum uly_command {
#define COMMAND(id, name, operands, n_operands, summary) ULY_COMMAND_##id,
#include "driver/commands.def"
  ULY_N_COMMANDS
} uly_command;

typedef enum uly_option {
#define OPTION(id, commands, long_name, short_name, value, doc) ULY_OPTION_##id,
#include "driver/options.def"
  ULY_N_OPTIONS
} uly_option;

typedef struct uly_command_info {
  const char *name, *operands, *summary;
  int n_operands; // exactly; −n: at least n
} uly_command_info;

typedef struct uly_option_info {
  uint32_t commands; // bit by uly_command
  const char *name;
  char letter;
  const char *value, *doc;
} uly_option_info;

#define ULY_ANY_COMMAND ((1u << ULY_N_COMMANDS) - 1)
extern const uly_command_info uly_commands[ULY_N_COMMANDS];
extern const uly_option_info uly_options[ULY_N_OPTIONS];

typedef struct uly_args {
  uly_command command;
  bool has_command; // written out, or implied by an operand
  bool given[ULY_N_OPTIONS];
  const char *value[ULY_N_OPTIONS]; // of the last one given
  uly_str *defines;                 // every -D
  int32_t n_defines;
  const char **operands; // as many as the command takes
  int32_t n_operands;
} uly_args;

// False: |error| says why, in a line or two, and the exit code is 2.
bool uly_args_parse(uly_arena *arena, int argc, char **argv, uly_args *out_args, uly_text *error);

// Help of one command, or of ulyc where |args| has none.
void uly_args_help(uly_text *out, const uly_args *args);
// "-o, --output FILE"
void uly_args_option_text(uly_text *out, const uly_option_info *option);

#endif
