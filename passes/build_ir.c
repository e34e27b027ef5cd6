#include "passes/pipeline.h"

bool uly_pass_build_ir(uly_ir *ir, MlirOperation module) {
  (void)ir, (void)module;
  return true;
}
