// Parses spec, prelude and -D values, and has them checked: see spec.h.
#include "frontend/spec.h"

#include "frontend/check.h"
#include "frontend/parse.h"

static const char prelude[] = {
#include "frontend/prelude.inc" // the bytes of prelude.spec, made by CMakeLists.txt
};

uly_str uly_spec_prelude(void) { return (uly_str){prelude, sizeof prelude}; }

uly_graph *uly_spec_read(uly_arena *arena, uly_diags *diags, uly_str name, uly_str text, const uly_str *defines, int32_t n_defines) {
  int32_t source = uly_diags_add_source(diags, name, text);
  const uly_ast_spec *spec = uly_parse_spec(arena, diags, source);
  int32_t prelude_source = uly_diags_add_source(diags, ULY_STR("<prelude>"), uly_spec_prelude());
  uly_define *values = ULY_NEW_ARRAY(arena, uly_define, n_defines);
  for (int32_t i = 0; i < n_defines; i++) {
    uly_ast_name define = {0};
    values[i].value = uly_parse_define(arena, diags, uly_diags_add_source(diags, ULY_STR("<-D>"), defines[i]), &define);
    values[i].name = define.text;
    values[i].loc = define.loc;
  }
  uly_graph *graph = NULL;
  const uly_ast_spec *base = diags->n_errors ? NULL : uly_parse_spec(arena, diags, prelude_source);
  if (diags->n_errors || uly_check(arena, diags, spec, base, values, n_defines, &graph) != ULY_OK) return NULL;
  return graph;
}
