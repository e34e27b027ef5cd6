// Reads the command line and prints help: see args.h.
#include "driver/args.h"

#include <stdlib.h>
#include <unistd.h>

#define ON(command) (1u << ULY_COMMAND_##command)
#define ANY ULY_ANY_COMMAND
#define NONE 0u

const uly_command_info uly_commands[ULY_N_COMMANDS] = {
#define COMMAND(id, name, operands, n_operands, summary) [ULY_COMMAND_##id] = {#name, operands, summary, n_operands},
#include "driver/commands.def"
};

const uly_option_info uly_options[ULY_N_OPTIONS] = {
#define OPTION(id, commands, long_name, short_name, value, doc) [ULY_OPTION_##id] = {commands, long_name, short_name, value, doc},
#include "driver/options.def"
};

enum { HELP_COLUMN = 28 };

static bool has_value(int option) { return uly_options[option].value[0] != 0; }

static bool known_to(const uly_args *args, int option) {
  uint32_t commands = uly_options[option].commands;
  return commands == ULY_ANY_COMMAND || commands == NONE || (commands & (1u << args->command)) != 0;
}

static int find_long(uly_str name) {
  for (int i = 0; i < ULY_N_OPTIONS; i++)
    if (name.len && uly_str_is(name, uly_options[i].name)) return i;
  return -1;
}

static int find_short(char letter) {
  for (int i = 0; i < ULY_N_OPTIONS; i++)
    if (letter && uly_options[i].letter == letter) return i;
  return -1;
}

static void say_unknown_option(uly_text *error, const uly_args *args, const char *text) {
  uly_str names[ULY_N_OPTIONS], name = uly_str_of(text[1] == '-' ? text + 2 : text + 1);
  size_t n = 0;
  const char *equal = memchr(name.ptr, '=', name.len);
  if (equal) name.len = (size_t)(equal - name.ptr);
  for (int i = 0; i < ULY_N_OPTIONS; i++)
    if (known_to(args, i) && uly_options[i].name[0]) names[n++] = uly_str_of(uly_options[i].name);
  uly_text_add(error, "unknown option `%s`", text);
  uly_str near = uly_str_nearest(name, names, n);
  if (near.len) uly_text_add(error, "; did you mean `--%.*s`?", ULY_STR_ARG(near));
}

static void store(uly_arena *arena, uly_args *args, int option, const char *value) {
  args->given[option] = true;
  args->value[option] = value;
  if (option != ULY_OPTION_DEFINE) return;
  size_t bytes = sizeof(uly_str) * (size_t)args->n_defines;
  args->defines = uly_arena_grow(arena, args->defines, bytes, bytes + sizeof(uly_str));
  args->defines[args->n_defines++] = uly_str_of(value);
}

// The option argv[*i], and its value, which may be the next argument.
static bool parse_option(uly_arena *arena, int argc, char **argv, int *i, uly_args *args, uly_text *error) {
  const char *text = argv[*i], *attached = NULL;
  int option;
  if (text[1] == '-') {
    const char *equal = strchr(text, '=');
    option = find_long(equal ? (uly_str){text + 2, (size_t)(equal - text - 2)} : uly_str_of(text + 2));
    if (equal) attached = equal + 1;
  } else {
    option = find_short(text[1]);
    if (text[2]) attached = text + 2;
  }
  if (option < 0) return say_unknown_option(error, args, text), false;
  if (!known_to(args, option)) return uly_text_add(error, "`%s` is not an option of `ulyc %s`", text, uly_commands[args->command].name), false;
  if (attached && !has_value(option)) return uly_text_add(error, "`%s` takes no value", text), false;
  if (!attached && has_value(option)) {
    if (*i + 1 >= argc) return uly_text_add(error, "`%s` wants a value: %s", text, uly_options[option].value), false;
    attached = argv[++*i];
  }
  if (args->given[option] && attached && option != ULY_OPTION_DEFINE) return uly_text_add(error, "`%s` is given twice", text), false;
  store(arena, args, option, attached);
  return true;
}

// The first operand may be a command; else it is the spec to compile. A word that is no file is probably a mistyped command.
static bool parse_command(const char *text, uly_args *args, uly_text *error, bool *out_is_command) {
  uly_str names[ULY_N_COMMANDS];
  *out_is_command = true;
  for (int c = 0; c < ULY_N_COMMANDS; c++) {
    names[c] = uly_str_of(uly_commands[c].name);
    if (strcmp(text, uly_commands[c].name) != 0) continue;
    args->command = (uly_command)c;
    return args->has_command = true;
  }
  *out_is_command = false;
  args->command = ULY_COMMAND_COMPILE;
  args->has_command = true;
  if (strpbrk(text, "./") || access(text, F_OK) == 0) return true;
  uly_text_add(error, "`%s` is neither a command nor a file", text);
  uly_str near = uly_str_nearest(uly_str_of(text), names, ULY_N_COMMANDS);
  if (near.len) uly_text_add(error, "; did you mean `ulyc %.*s`?", ULY_STR_ARG(near));
  return false;
}

// The command decides which options are known, wherever it stands: `ulyc -o x.so model.spec`.
static bool find_command(int argc, char **argv, uly_args *args, int *out_at, uly_text *error) {
  bool is_command = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--") == 0) break;
    if (argv[i][0] == '-' && argv[i][1]) {
      int option = argv[i][1] == '-' ? find_long(uly_str_of(argv[i] + 2)) : argv[i][2] ? -1 : find_short(argv[i][1]);
      if (option >= 0 && has_value(option)) i++;
      continue;
    }
    if (!parse_command(argv[i], args, error, &is_command)) return false;
    *out_at = is_command ? i : 0;
    return true;
  }
  return true;
}

static bool check_operands(const uly_args *args, uly_text *error) {
  const uly_command_info *c = &uly_commands[args->command];
  int n = args->n_operands, least = abs(c->n_operands);
  if (n < least) return uly_text_add(error, "`ulyc %s` wants a file: %s", c->name, c->operands), false;
  if (n > least && c->n_operands >= 0) return uly_text_add(error, "`ulyc %s` takes %d file%s, %d given", c->name, least, least == 1 ? "" : "s", n), false;
  return true;
}

bool uly_args_parse(uly_arena *arena, int argc, char **argv, uly_args *out_args, uly_text *error) {
  int command_at = 0;
  *out_args = (uly_args){.command = ULY_COMMAND_COMPILE};
  if (!find_command(argc, argv, out_args, &command_at, error)) return false;
  out_args->operands = ULY_NEW_ARRAY(arena, const char *, argc + 1);
  bool options_end = false;
  for (int i = 1; i < argc; i++) {
    if (i == command_at) continue;
    if (!options_end && strcmp(argv[i], "--") == 0) {
      options_end = true;
    } else if (!options_end && argv[i][0] == '-' && argv[i][1]) {
      if (!parse_option(arena, argc, argv, &i, out_args, error)) return false;
    } else {
      out_args->has_command = true;
      out_args->operands[out_args->n_operands++] = argv[i];
    }
  }
  for (int i = 0; i < ULY_N_OPTIONS; i++)
    if (out_args->given[i] && (uly_options[i].commands == ULY_ANY_COMMAND || uly_options[i].commands == NONE)) return true; // prints something and ends
  if (argc < 2) return true;
  out_args->has_command = true;
  return check_operands(out_args, error);
}

void uly_args_option_text(uly_text *out, const uly_option_info *o) {
  if (o->letter) uly_text_add(out, "-%c", o->letter);
  if (o->letter && o->name[0]) uly_text_add(out, ", ");
  if (o->name[0]) uly_text_add(out, "--%s", o->name);
  if (o->value[0]) uly_text_add(out, " %s", o->value);
}

static void add_option_row(uly_text *out, const uly_option_info *o) {
  size_t begin = out->len;
  uly_text_add(out, "  ");
  uly_args_option_text(out, o);
  int pad = HELP_COLUMN - (int)(out->len - begin);
  uly_text_add(out, "%*s%s\n", pad > 1 ? pad : 1, "", o->doc);
}

void uly_args_help(uly_text *out, const uly_args *args) {
  bool whole = !args->has_command;
  if (whole) {
    uly_text_add(out, "ulyc compiles specs of parallel attention to model.so files.\n\nusage: ulyc model.spec [-o model.so] [option...]\n");
    for (int c = 0; c < ULY_N_COMMANDS; c++) {
      int pad = HELP_COLUMN - 8 - (int)strlen(uly_commands[c].name) - (int)strlen(uly_commands[c].operands);
      uly_text_add(out, "  ulyc %s %s%*s%s\n", uly_commands[c].name, uly_commands[c].operands, pad, "", uly_commands[c].summary);
    }
  } else {
    const uly_command_info *c = &uly_commands[args->command];
    uly_text_add(out, "usage: ulyc %s %s%s[option...]\n%s\n", c->name, c->operands, c->operands[0] ? " " : "", c->summary);
  }
  uly_text_add(out, "\noptions%s:\n", whole ? " of every command (more: ulyc COMMAND --help)" : "");
  for (int i = 0; i < ULY_N_OPTIONS; i++) {
    uint32_t commands = uly_options[i].commands;
    if (whole ? commands == ULY_ANY_COMMAND : (commands & (1u << args->command))) add_option_row(out, &uly_options[i]);
  }
  if (whole) uly_text_add(out, "\nexit: 0 fine, 1 the spec is wrong, 2 usage, 69 a part is missing, 70 internal,\n      74 input or output\n");
}
