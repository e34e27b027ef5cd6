// One attention problem of the tests: sizes, layout, mask and score, its tensors between guard pages, the kernel's call, the float64 oracle and a naive f32
// version for the error bound.
#ifndef ULY_TESTS_NUMERICS_ATTENTION_CASE_H
#define ULY_TESTS_NUMERICS_ATTENTION_CASE_H

#include "runtime/base/dtype.h"
#include "tests/numerics/attention_native.h"
#include "tests/numerics/attention_rules.h"
#include "tests/numerics/bits_harness.h"
#include "tests/numerics/guarded_memory.h"

// DENSE [b][row][head][feature]; MESSAGE [row][b][q heads | k heads | v heads], one tensor (needs S = T); GAPS: row and batch strides with NaN between.
typedef enum attention_layout { LAYOUT_DENSE, LAYOUT_MESSAGE, LAYOUT_GAPS, N_LAYOUTS } attention_layout;
enum { PLANT_NAN = 1 /* in keys that nobody sees */, PLANT_SEEN_NAN = 2 /* also in a key that some see */, MAX_OUTPUTS = 5 };

typedef struct attention_spec {
  int64_t s, t, b, h, h0, group, dh, dv;
  attention_layout layout;
  attention_mask mask;
  attention_score score;
  attention_ranges ranges;
  int64_t mask_a, mask_b;
  bool sink, lse, per_batch_offset, at_end;
  int64_t offset;
  int n_outputs;
  unsigned plant;
  double spread;   // of q: large makes sharp scores
  uly_dtype dtype; // of q, k, v and o
  uint64_t seed;
} attention_spec;

typedef struct attention_tensor {
  float *data; // values that the dtype holds; the kernel sees them in it
  int64_t row, batch, head;
} attention_tensor;

typedef struct attention_case {
  attention_spec spec;
  int64_t n_kv, k0;
  double scale;
  attention_tensor q, k, v;
  int64_t n_q, n_k, n_v; // elements of the memories below; a message has all in the first
  uly_guarded q_memory, k_memory, v_memory, sink_memory, offset_memory, documents_memory, table_memory;
  double *oracle, *oracle_lse; // [b][h][s][dv], [b][h][s]
  float *naive;                // as oracle
} attention_case;

attention_case attention_case_create(const attention_spec *spec);
void attention_case_destroy(attention_case *c);

// Results of the rows and heads of |variant| to out[head][row][b][dv + 1], the last number being LSE (0 where not asked for). Output memory is guarded and
// starts as NaN. The whole problem for variant NULL.
void attention_case_run(attention_case *c, uly_kernel kernel, const uly_bits_variant *variant, float *out);

typedef struct attention_error {
  double worst, naive_worst; // largest difference from the oracle
  double largest;            // number of the oracle
  double squares, naive_squares;
  double lse_worst;       // relative to max(1, |lse|)
  int64_t n, n_nan_wrong; // numbers compared; NaN or infinite where the oracle is not, or the reverse
} attention_error;

void attention_case_solve(attention_case *c); // fills oracle, oracle_lse, naive
attention_error attention_case_compare(const attention_case *c, const float *out);

#endif
