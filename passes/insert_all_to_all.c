#include "passes/pipeline.h"

bool uly_pass_insert_all_to_all(uly_ir *ir, MlirOperation module) {
  (void)ir, (void)module;
  return true;
}
