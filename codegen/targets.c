#include "codegen/targets.h"

#include "codegen/reference/ref_program.h"

static const uly_target targets[] = {
#define TARGET(name, program, write, doc) {#name, doc, program, write},
#include "codegen/targets.def"
};
enum { N_TARGETS = sizeof targets / sizeof *targets };

const uly_target *uly_target_find(const char *name, uly_text *error) {
  uly_str names[N_TARGETS];
  if (!name) return &targets[0];
  for (int i = 0; i < N_TARGETS; i++) {
    names[i] = uly_str_of(targets[i].name);
    if (uly_str_is(names[i], name)) return &targets[i];
  }
  uly_str nearest = uly_str_nearest(uly_str_of(name), names, N_TARGETS);
  uly_text_add(error, "`%s` is not a target", name);
  if (nearest.len) uly_text_add(error, "; did you mean `%.*s`?", ULY_STR_ARG(nearest));
  uly_text_add(error, " (there is:");
  for (int i = 0; i < N_TARGETS; i++) uly_text_add(error, "%s %s", i ? "," : "", targets[i].name);
  uly_text_add(error, ")");
  return NULL;
}
