// `ulyc model.spec`: frontend, then the library with passes and codegen, then the file in one piece.
#include "driver/commands.h"
#include "driver/files.h"
#include "driver/lower.h"

// model.spec → model.so, in the current directory as compilers do.
static const char *default_output(uly_arena *arena, const char *spec) {
  const char *slash = strrchr(spec, '/');
  uly_str base = uly_str_of(slash ? slash + 1 : spec);
  if (base.len > 5 && strcmp(base.ptr + base.len - 5, ".spec") == 0) base.len -= 5;
  uly_text name = {.arena = arena};
  uly_text_add(&name, "%.*s.so", ULY_STR_ARG(base));
  return name.ptr;
}

static uly_status parse_level(uly_driver *d, int *out_level) {
  const char *level = d->args.value[ULY_OPTION_LEVEL];
  *out_level = 2;
  if (!level) return ULY_OK;
  if (strlen(level) == 1 && level[0] >= '0' && level[0] <= '3') {
    *out_level = level[0] - '0';
    return ULY_OK;
  }
  uly_text_add(&d->error, "`-O%s`: levels are 0 to 3", level);
  return ULY_INVALID_ARGUMENT;
}

uly_status uly_command_compile(uly_driver *d) {
  uly_lower_options options = {
      .source_name = uly_str_of(d->args.operand),
      .march = d->args.value[ULY_OPTION_MARCH],
      .passes = d->args.value[ULY_OPTION_PASSES],
      .print_after = d->args.value[ULY_OPTION_PRINT_AFTER],
      .stop_after = d->args.value[ULY_OPTION_STOP_AFTER],
      .print_to = stdout,
  };
  const char *path = d->args.value[ULY_OPTION_OUTPUT];
  uly_output output = {0};
  uly_graph *graph;
  void *compile;
  ULY_TRY(parse_level(d, &options.level));
  ULY_TRY(uly_driver_read_spec(d, &graph));
  ULY_TRY(uly_driver_lower(d, "uly_lower_compile", &compile));
  options.source = d->diags.sources[0].text;
  if (!options.stop_after) {
    ULY_TRY(uly_output_begin(d->arena, path ? path : default_output(d->arena, d->args.operand), &output, &d->error));
    options.output = output.temporary;
  }
  uly_status status = ((uly_lower_compile_fn *)(uintptr_t)compile)(d->arena, graph, &options, &d->diags, &d->error);
  if (status == ULY_OK && output.temporary) status = uly_output_commit(&output, &d->error);
  uly_output_drop(&output);
  return status;
}
