// libulyc_lower.so: the functions of lower.h, from passes and codegen.
#include <llvm-c/Core.h>
#include <llvm-c/ErrorHandling.h>

#include "codegen/codegen.h"
#include "codegen/program_table.h"
#include "codegen/targets.h"
#include "driver/lower.h"
#include "frontend/graph_print.h"
#include "passes/opt.h"
#include "passes/pipeline.h"

// LLVM passes of -O0 and -O1: constants go in and hooks are inlined, without which kernels are several times as large; nothing else.
static const char few_passes[] = "function(sccp,simplifycfg),always-inline,function(sroa,sccp,simplifycfg),globaldce";

static uly_str text_of(const char *z) { return z ? uly_str_of(z) : (uly_str){0}; }

static uly_pipeline_options pipeline_options(const uly_lower_options *o) {
  return (uly_pipeline_options){
      .passes = text_of(o->passes),
      .stop_after = text_of(o->stop_after),
      .print_after = text_of(o->print_after),
      .print_to = o->print_to,
      .print_last = o->print_last,
      .verify_each = o->verify_each,
      .unfused = o->level == 0,
  };
}

// The program that the passes make; NULL, with the IR printed, where no code is wanted.
static uly_status run_passes(uly_arena *arena, const uly_graph *graph, const uly_lower_options *options, bool wants_program, uly_diags *diags,
                             uly_program **out_program) {
  uly_pipeline_options passes = pipeline_options(options);
  uly_ir *ir = uly_ir_create(arena, diags);
  ir->graph = graph;
  ir->file = options->source_name;
  MlirModule module = uly_ir_module_create(ir);
  uly_status status = uly_pipeline_run(ir, module, &passes);
  if (status == ULY_OK && wants_program)
    *out_program = uly_pipeline_emit(ir, module);
  else if (status == ULY_OK)
    uly_ir_print(mlirModuleGetOperation(module), options->print_to);
  mlirModuleDestroy(module);
  uly_ir_destroy(ir);
  return status;
}

// LLVM gives up: with exit code 1, which means something else here, unless told.
static void give_up(const char *reason) {
  fprintf(stderr, "LLVM: %s\n", reason);
  abort();
}

static uly_status refuse_options(const uly_target *target, const uly_lower_options *options, uly_text *error) {
  const char *given = options->march         ? "--march"
                      : options->passes      ? "--passes"
                      : options->print_after ? "--print-after"
                      : options->stop_after  ? "--stop-after"
                                             : NULL;
  if (!given) return ULY_OK;
  uly_text_add(error, "--target=%s takes no %s: no pass runs", target->name, given);
  return ULY_INVALID_ARGUMENT;
}

uly_status uly_lower_compile(uly_arena *arena, const uly_graph *graph, const uly_lower_options *options, uly_diags *diags, uly_text *error) {
  const uly_target *target = uly_target_find(options->target, error);
  LLVMInstallFatalErrorHandler(give_up);
  if (!target) return ULY_INVALID_ARGUMENT;
  if (target->program) ULY_TRY(refuse_options(target, options, error));
  uly_program *program = NULL;
  if (target->program)
    program = target->program(arena, graph, diags);
  else
    ULY_TRY(run_passes(arena, graph, options, options->output, diags, &program));
  if (diags->n_errors) return ULY_INVALID_INPUT;
  if (!program) return ULY_OK;
  uly_text printed = {.arena = arena};
  uly_graph_print(&printed, graph);
  uly_program_set_source(program, options->source_name, target->program ? options->source : (uly_str){"", 0}, uly_text_str(&printed));
  uly_codegen_options codegen = {.march = options->march, .object.passes = options->level < 2 ? few_passes : NULL};
  return target->write(program, &codegen, options->output, error);
}

uly_status uly_lower_tables(uly_arena *arena, const uly_graph *graph, const uly_lower_options *options, uly_diags *diags, const uly_blob **out_blob) {
  uly_program *program = NULL;
  LLVMInstallFatalErrorHandler(give_up);
  ULY_TRY(run_passes(arena, graph, options, true, diags, &program));
  if (diags->n_errors || !program) return ULY_INVALID_INPUT;
  *out_blob = uly_program_blob(program, NULL, 0);
  return ULY_OK;
}

int uly_lower_opt(const char *path, const uly_lower_options *options) {
  uly_pipeline_options passes = pipeline_options(options);
  LLVMInstallFatalErrorHandler(give_up);
  return uly_opt(path, &passes, options->stop_after || options->print_after, options->print_to, stderr);
}

int uly_lower_abi(void) { return ULY_LOWER_ABI; }

const char *uly_lower_versions(void) {
  static char text[256];
  unsigned major, minor, patch;
  LLVMGetVersion(&major, &minor, &patch);
  snprintf(text, sizeof text, "LLVM and MLIR %u.%u.%u, linker %s", major, minor, patch, uly_linker);
  return text;
}
