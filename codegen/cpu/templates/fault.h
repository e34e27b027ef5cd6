// A kernel's faults: what it finds in its data that must not be.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_FAULT_H
#define ULY_CODEGEN_CPU_TEMPLATES_FAULT_H

#include <stdbool.h>

#include "codegen/cpu/templates/template.h"

// The first fault of a call stays. |place|: the first of |n| slots that say where the call's i0 … begin, followed by |n| with the dims that they are.
static __attribute__((noinline)) void report_index(const uly_call *call, int64_t index, int64_t limit, int place, int n, const int64_t *i) {
  uint32_t none = ULY_FAULT_NONE;
  uly_fault *fault = call->fault;
  if (!__atomic_compare_exchange_n(&fault->code, &none, (uint32_t)ULY_FAULT_INDEX_RANGE, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return;
  fault->a = index;
  fault->b = limit;
  for (int k = 0; k < n; k++) {
    int64_t d = val(call, place + n + k);
    if (d >= 0) fault->at[d] = val(call, place + k) + i[k], fault->n_at++;
  }
}

#endif
