// The attention template compiled natively, at one CPU level each, with the hooks of attention_rules.h. Its constants are variables here, except in the
// entries named by a width, which are specialised as a compiled model is.
#ifndef ULY_TESTS_NUMERICS_ATTENTION_NATIVE_H
#define ULY_TESTS_NUMERICS_ATTENTION_NATIVE_H

#include "runtime/abi.h"

typedef struct attention_constants {
  int64_t dh, dv, group;
  double scale;
  int32_t has_score, has_mask, has_sink, has_lse;
} attention_constants;

// Sets the constants of all entries below that have none of their own. Not while one runs.
void attention_native_set(const attention_constants *constants);

void attention_native_v3(const uly_call *call);
void attention_native_v4(const uly_call *call);

#endif
