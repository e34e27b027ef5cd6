#include "passes/pipeline.h"

bool uly_pass_fold_collectives(uly_ir *ir, MlirOperation module) {
  (void)ir, (void)module;
  return true;
}
