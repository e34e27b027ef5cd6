#include "passes/pipeline.h"

#include <unistd.h>

static const struct {
  const char *name;
  uly_pass *run;
} passes[] = {
#define PASS(name, doc) {#name, uly_pass_##name},
#include "passes/passes.def"
};
enum { N_PASSES = sizeof passes / sizeof *passes };

// Takes the next of names with commas between them. False at the end.
static bool next_name(uly_str *rest, uly_str *out_name) {
  if (!rest->len) return false;
  const char *comma = memchr(rest->ptr, ',', rest->len);
  *out_name = (uly_str){rest->ptr, comma ? (size_t)(comma - rest->ptr) : rest->len};
  size_t used = out_name->len + (comma != NULL);
  *rest = (uly_str){rest->ptr + used, rest->len - used};
  return true;
}

static bool contains(uly_str names, const char *name) {
  for (uly_str each; next_name(&names, &each);)
    if (uly_str_is(each, name)) return true;
  return false;
}

static bool check_names(uly_ir *ir, uly_str names, bool all_allowed) {
  uly_str known[N_PASSES];
  for (int i = 0; i < N_PASSES; i++) known[i] = uly_str_of(passes[i].name);
  for (uly_str name; next_name(&names, &name);) {
    bool found = all_allowed && uly_str_is(name, "all");
    for (int i = 0; i < N_PASSES; i++) found |= uly_str_equal(name, known[i]);
    if (found) continue;
    uly_diag *diag = uly_diag_add(ir->diags, (uly_loc){0}, ULY_D(UNKNOWN_PASS), ULY_STR_ARG(name));
    uly_diag_suggest(ir->diags, diag, name, known, N_PASSES);
    return false;
  }
  return true;
}

static bool run_one(uly_ir *ir, MlirOperation module, int i, const uly_pipeline_options *options) {
  bool ok = passes[i].run(ir, module) && uly_ir_verify(module);
  if (ok && options->verify_each && passes[i].run != uly_pass_verify_distribution) ok = uly_pass_verify_distribution(ir, module);
  ULY_ASSERT(ok || ir->diags->n_errors > 0);
  if (options->print_to && (contains(options->print_after, passes[i].name) || contains(options->print_after, "all"))) {
    if (options->print_last) {
      rewind(options->print_to);
      if (ftruncate(fileno(options->print_to), 0) != 0) return false;
    }
    fprintf(options->print_to, "// after %s\n", passes[i].name);
    uly_ir_print(module, options->print_to);
    fflush(options->print_to); // the next pass may be the last
  }
  return ok;
}

uly_status uly_pipeline_run(uly_ir *ir, MlirModule module, const uly_pipeline_options *options) {
  ir->unfused = options->unfused;
  if (!check_names(ir, options->passes, false) || !check_names(ir, options->stop_after, false) || !check_names(ir, options->print_after, true))
    return ULY_INVALID_ARGUMENT;
  MlirOperation op = mlirModuleGetOperation(module);
  if (options->verify_each && !ir->graph && !uly_pass_verify_distribution(ir, op)) return ULY_INVALID_INPUT; // IR text: passes rely on its shapes
  if (options->passes.len) {                                                                                 // in the order given, also several times
    uly_str rest = options->passes;
    for (uly_str name; next_name(&rest, &name);)
      for (int i = 0; i < N_PASSES; i++)
        if (uly_str_is(name, passes[i].name) && !run_one(ir, op, i, options)) return ULY_INVALID_INPUT;
    return ULY_OK;
  }
  for (int i = 0; i < N_PASSES; i++) {
    if (!run_one(ir, op, i, options)) return ULY_INVALID_INPUT;
    if (uly_str_is(options->stop_after, passes[i].name)) break;
  }
  return ULY_OK;
}

uly_program *uly_pipeline_emit(uly_ir *ir, MlirModule module) {
  uly_program *program = NULL;
#define EMIT(name, doc) program = uly_##name(ir, mlirModuleGetOperation(module));
#define PROGRAM(name, doc)                                                                                                                                     \
  if (program) uly_program_##name(program);
#include "passes/passes.def"
  return program;
}
