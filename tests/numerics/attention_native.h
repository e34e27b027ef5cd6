// The attention template compiled natively, at one CPU level each, with the hooks of attention_rules.h. Its constants are variables here, except in the
// special entries, where they are fixed when those are compiled, as in a model.
#ifndef ULY_TESTS_NUMERICS_ATTENTION_NATIVE_H
#define ULY_TESTS_NUMERICS_ATTENTION_NATIVE_H

#include "runtime/abi.h"

typedef struct attention_constants {
  int64_t dh, dv, group, dtype;
  double scale;
  int32_t has_score, has_mask, has_sink, has_lse;
} attention_constants;

// Sets the constants of the native entries. Not while one runs.
void attention_native_set(const attention_constants *constants);

void attention_native_v3(const uly_call *call);
void attention_native_v4(const uly_call *call);
void attention_native_amx(const uly_call *call); // bf16 alone

// With a mask and LSE, without score and sink; of f32, with tiles of bf16.
enum { ATTENTION_SPECIAL_DH = 40, ATTENTION_SPECIAL_DV = 24, ATTENTION_SPECIAL_GROUP = 2 };
#define ATTENTION_SPECIAL_SCALE 0.15811388300841897
void attention_special_v3(const uly_call *call);
void attention_special_v4(const uly_call *call);
void attention_special_amx(const uly_call *call);

#endif
