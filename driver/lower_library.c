// libulyc_lower.so: the functions of lower.h, from passes and codegen.
#include "codegen/codegen.h"
#include "driver/lower.h"
#include "passes/emit.h"
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
      .verify_each = o->verify_each,
      .unfused = o->level == 0,
  };
}

static uly_status lower(uly_ir *ir, MlirModule module, const uly_lower_options *options, uly_program **out_program) {
  uly_pipeline_options passes = pipeline_options(options);
  MlirOperation op = mlirModuleGetOperation(module);
  ULY_TRY(uly_pipeline_run(ir, module, &passes));
  if (options->output)
    *out_program = uly_emit(ir, op);
  else
    uly_ir_print(op, options->print_to);
  return ir->diags->n_errors ? ULY_INVALID_INPUT : ULY_OK;
}

uly_status uly_lower_compile(uly_arena *arena, const uly_graph *graph, const uly_lower_options *options, uly_diags *diags, uly_text *error) {
  for (int32_t i = 0; i < graph->n_unsupported; i++)
    uly_diag_add(diags, graph->unsupported[i].loc, ULY_D(NOT_COMPILED), uly_str_copy(arena, graph->unsupported[i].what).ptr);
  if (graph->n_unsupported) return ULY_INVALID_INPUT;
  uly_program *program = NULL;
  uly_ir *ir = uly_ir_create(arena, diags);
  ir->graph = graph;
  ir->file = options->source_name;
  MlirModule module = uly_ir_module_create(ir);
  uly_status status = lower(ir, module, options, &program);
  mlirModuleDestroy(module);
  uly_ir_destroy(ir);
  if (status != ULY_OK || !program) return status;
  uly_codegen_options codegen = {.march = options->march, .object.passes = options->level < 2 ? few_passes : NULL};
  return uly_codegen_write(program, &codegen, options->output, error);
}

int uly_lower_opt(const char *path, const uly_lower_options *options) {
  uly_pipeline_options passes = pipeline_options(options);
  return uly_opt(path, &passes, options->stop_after || options->print_after, options->print_to, stderr);
}

int uly_lower_abi(void) { return ULY_LOWER_ABI; }
