// What the tables make for reading: the list of operations, the man page, the completion of bash.
#include "driver/commands.h"
#include "frontend/spec.h"

static const struct {
  const char *name, *params, *doc;
} functions[] = {
#define BUILTIN(name, params, takes, gives, op, doc, formula) {#name, params, doc},
#include "frontend/builtins.def"
};

static const struct {
  const char *text, *doc;
  uly_scalar_class class;
} scalars[] = {
#define SCALAR(id, text, n_args, class, doc) {text, doc, ULY_SCALAR_##class},
#include "frontend/scalar.def"
};

// "x n? weight?" as the language would write it: x, n, weight, with the optional ones in brackets.
static void add_params(uly_text *out, const char *params) {
  const char *separator = "";
  while (*params) {
    size_t n = strcspn(params, " "), bare = strcspn(params, "?* ");
    uly_text_add(out, params[bare] == '?' ? "%s[%.*s]" : params[bare] == '*' ? "%s%.*s..." : "%s%.*s", separator, (int)bare, params);
    separator = ", ";
    params += n + (params[n] == ' ');
  }
}

void uly_manual_ops(uly_text *out) {
  uly_text_add(out, "Functions of tensors; [optional]:\n");
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    uly_text_add(out, "  %s(", functions[i].name);
    add_params(out, functions[i].params);
    uly_text_add(out, ")\n      %s\n", functions[i].doc);
  }
  uly_text_add(out, "\nScalar operations, also elementwise on tensors, in masks and scores:\n");
  for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
    if (scalars[i].text[0] && scalars[i].class != ULY_SCALAR_STORED) uly_text_add(out, "  %-9s %s\n", scalars[i].text, scalars[i].doc);
  uly_text_add(out, "\nDeclared in the prelude:\n");
  uly_str prelude = uly_spec_prelude();
  for (size_t i = 0; i < prelude.len;) {
    const char *end = memchr(prelude.ptr + i, '\n', prelude.len - i);
    size_t n = end ? (size_t)(end - prelude.ptr) - i : prelude.len - i;
    if (n && prelude.ptr[i] != '#' && memcmp(prelude.ptr + i, "ulyc", 4) != 0) uly_text_add(out, "  %.*s\n", (int)n, prelude.ptr + i);
    i += n + 1;
  }
}

// roff takes - and a leading . or ' for itself.
static void add_roff(uly_text *out, const char *text) {
  for (const char *c = text; *c; c++) uly_text_add(out, *c == '-' || *c == '\\' ? "\\%c" : "%c", *c);
}

static void add_roff_option(uly_text *out, const uly_option_info *option) {
  uly_text text = {.arena = out->arena};
  uly_args_option_text(&text, option);
  uly_text_add(out, ".TP\n.B ");
  add_roff(out, text.ptr);
  uly_text_add(out, "\n");
  add_roff(out, option->doc);
  uly_text_add(out, "\n");
}

void uly_manual_page(uly_text *out) {
  uly_text_add(out, ".TH ULYC 1 \"\" \"ulyc %s\"\n.SH NAME\nulyc \\- compile specs of parallel attention\n.SH SYNOPSIS\n", ULY_VERSION);
  for (int c = 0; c < ULY_N_COMMANDS; c++)
    uly_text_add(out, "%s.B ulyc %s\n[option...] %s\n", c ? ".br\n" : "", uly_commands[c].name, uly_commands[c].operands);
  uly_text_add(
      out, ".SH DESCRIPTION\nA spec declares layers or a whole model on global tensors. ulyc makes a shared library of it that runs on any number of\nranks "
           "with the same results. Without a command a spec is compiled.\n");
  for (int c = 0; c < ULY_N_COMMANDS; c++) {
    uly_text_add(out, ".SH ULYC %s\n", uly_commands[c].name);
    add_roff(out, uly_commands[c].summary);
    uly_text_add(out, "\n");
    for (int i = 0; i < ULY_N_OPTIONS; i++)
      if (uly_options[i].commands != ULY_ANY_COMMAND && (uly_options[i].commands & (1u << c))) add_roff_option(out, &uly_options[i]);
  }
  uly_text_add(out, ".SH OPTIONS OF EVERY COMMAND\n");
  for (int i = 0; i < ULY_N_OPTIONS; i++)
    if (uly_options[i].commands == ULY_ANY_COMMAND) add_roff_option(out, &uly_options[i]);
  uly_text_add(out, ".SH EXIT STATUS\n0 fine, 1 the spec or model is wrong, 2 usage, 69 a part is missing, 70 internal error, 74 input or output failed.\n");
}

void uly_manual_completion(uly_text *out) {
  uly_text_add(out, "_ulyc() {\n  local word=\"${COMP_WORDS[COMP_CWORD]}\" options\n  case \"${COMP_WORDS[1]}\" in\n");
  for (int c = ULY_N_COMMANDS - 1; c >= 0; c--) {
    uly_text_add(out, "  %s) options=\"", c == ULY_COMMAND_COMPILE ? "*" : uly_commands[c].name);
    for (int i = 0; i < ULY_N_OPTIONS; i++) {
      if (!(uly_options[i].commands & (1u << c))) continue;
      if (uly_options[i].name[0])
        uly_text_add(out, "--%s ", uly_options[i].name);
      else
        uly_text_add(out, "-%c ", uly_options[i].letter);
    }
    uly_text_add(out, "\" ;;\n");
  }
  uly_text_add(out, "  esac\n  local commands=\"\"\n  [ \"$COMP_CWORD\" = 1 ] && commands=\"");
  for (int c = 0; c < ULY_N_COMMANDS; c++) uly_text_add(out, "%s ", uly_commands[c].name);
  uly_text_add(out, "\"\n  COMPREPLY=($(compgen -W \"$options $commands\" -- \"$word\") $(compgen -f -- \"$word\"))\n}\ncomplete -o filenames -F _ulyc ulyc\n");
}
