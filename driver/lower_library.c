// libulyc_lower.so: what driver/lower.h declares. The whole compilation, in order: graph, passes, program, code.
#include "codegen/codegen.h"
#include "driver/lower.h"
#include "passes/emit.h"
#include "passes/opt.h"
#include "passes/pipeline.h"

int uly_lower_abi(void) { return ULY_LOWER_ABI; }

int uly_lower_opt(int argc, char **argv) { return uly_opt_main(argc, argv); }

static uly_str text_or_empty(const char *z) { return z ? uly_str_of(z) : (uly_str){0}; }

static uly_status lower(uly_ir *ir, const uly_lower_options *options, uly_program **out_program) {
  MlirModule module = uly_ir_module_create(ir);
  uly_pipeline_options passes = {.passes = text_or_empty(options->passes), .print_after = text_or_empty(options->print_after),
                                 .stop_after = text_or_empty(options->stop_after), .print_to = options->print_to};
  uly_status status = uly_pipeline_run(ir, module, &passes);
  *out_program = status == ULY_OK && !options->stop_after && !options->passes ? uly_emit(ir, mlirModuleGetOperation(module)) : NULL;
  if (status == ULY_OK && ir->diags->n_errors) status = ULY_INVALID_INPUT;
  mlirModuleDestroy(module);
  return status;
}

uly_status uly_lower_compile(uly_arena *arena, const uly_graph *graph, const uly_lower_options *options, uly_diags *diags, uly_text *error) {
  uly_ir *ir = uly_ir_create(arena, diags);
  ir->graph = graph;
  ir->file = options->source_name;
  uly_program *program;
  uly_status status = lower(ir, options, &program);
  uly_ir_destroy(ir);
  if (status != ULY_OK || !options->output || !program) return status;
  return uly_codegen_write(program, &(uly_codegen_options){.march = options->march}, options->output, error);
}
