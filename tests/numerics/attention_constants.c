// The constants of the attention template as variables: compiled apart from it, since there they are const.
#include "tests/numerics/attention_native.h"

extern int64_t uly_attention_dh, uly_attention_dv, uly_attention_group, uly_attention_dtype;
extern double uly_attention_scale;
extern int32_t uly_attention_has_score, uly_attention_has_mask, uly_attention_has_sink, uly_attention_has_lse;
int64_t uly_attention_dh, uly_attention_dv, uly_attention_group, uly_attention_dtype;
double uly_attention_scale;
int32_t uly_attention_has_score, uly_attention_has_mask, uly_attention_has_sink, uly_attention_has_lse;

void attention_native_set(const attention_constants *c) {
  uly_attention_dh = c->dh;
  uly_attention_dv = c->dv;
  uly_attention_group = c->group;
  uly_attention_scale = c->scale;
  uly_attention_dtype = c->dtype;
  uly_attention_has_score = c->has_score;
  uly_attention_has_mask = c->has_mask;
  uly_attention_has_sink = c->has_sink;
  uly_attention_has_lse = c->has_lse;
}
