// A kernel's faults: what it finds in its data that must not be.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_FAULT_H
#define ULY_CODEGEN_CPU_TEMPLATES_FAULT_H

#include <stdbool.h>

#include "codegen/cpu/templates/template.h"

// The first fault of a call stays.
static __attribute__((noinline)) void report_index(uly_fault *fault, int64_t index, int64_t limit, int64_t row) {
  uint32_t none = ULY_FAULT_NONE;
  if (!__atomic_compare_exchange_n(&fault->code, &none, (uint32_t)ULY_FAULT_INDEX_RANGE, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return;
  fault->a = index;
  fault->b = limit;
  fault->c = row;
}

#endif
