#include "passes/opt.h"

static uly_status read_all(uly_arena *arena, FILE *in, uly_str *out_text) {
  uly_text text = {.arena = arena};
  char buffer[65536];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, in)) > 0;) uly_text_add_str(&text, (uly_str){buffer, n});
  *out_text = uly_text_str(&text);
  return ferror(in) ? ULY_IO : ULY_OK;
}

static uly_status opt(uly_ir *ir, uly_str name, uly_str text, const uly_pipeline_options *options, bool whole, FILE *out) {
  ir->file = name;
  MlirModule module = uly_ir_parse(ir, name, text);
  if (mlirModuleIsNull(module)) return ULY_INVALID_INPUT;
  MlirOperation op = mlirModuleGetOperation(module);
  uly_status status = uly_ir_read_names(ir, op) ? ULY_OK : ULY_INVALID_INPUT;
  if (status == ULY_OK && (whole || options->passes.len)) status = uly_pipeline_run(ir, module, options);
  if (status == ULY_OK) uly_ir_print(op, out);
  mlirModuleDestroy(module);
  return status;
}

int uly_opt(const char *path, const uly_pipeline_options *options, bool whole, FILE *out, FILE *err) {
  uly_arena *arena = uly_arena_create();
  uly_diags diags;
  uly_diags_init(&diags, arena);
  uly_str text, name = uly_str_of(path);
  FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
  uly_status status = in ? read_all(arena, in, &text) : ULY_IO;
  if (in && in != stdin) fclose(in);
  if (status == ULY_OK) {
    uly_diags_add_source(&diags, name, text);
    uly_ir *ir = uly_ir_create(arena, &diags);
    status = opt(ir, name, text, options, whole, out);
    uly_ir_destroy(ir);
    uly_diags_print(&diags, err);
  } else {
    fprintf(err, "ulyc: error: cannot read %s\n", path);
  }
  uly_arena_destroy(arena);
  return uly_status_exit_code(status);
}
