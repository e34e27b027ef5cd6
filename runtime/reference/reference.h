// The oracle: every operation of the language in float64, on whole tensors, as its definition says and in no other order than that of its formula. Used by tests only.
//
// Tensors are dense and row-major. |rows| counts everything in front of the last dim, or of the dims that a function names. Attention is in ref_attention.h.
#ifndef ULY_RUNTIME_REFERENCE_REFERENCE_H
#define ULY_RUNTIME_REFERENCE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

enum { ULY_REF_DIMS = 6 };

// out[row, n] = Σ_k x[row, k] · w[n, k] + bias[n]; |bias| may be NULL.
void uly_ref_linear(const double *x, const double *w, const double *bias, int64_t rows, int64_t k, int64_t n, double *out);

// x · rsqrt(mean(x²) + eps) · weight
void uly_ref_rmsnorm(const double *x, const double *weight, int64_t rows, int64_t n, double eps, double *out);
// (x − mean) · rsqrt(var + eps) · weight + bias; |bias| may be NULL.
void uly_ref_layernorm(const double *x, const double *weight, const double *bias, int64_t rows, int64_t n, double eps, double *out);
void uly_ref_softmax(const double *x, int64_t rows, int64_t n, double *out);

// out[i, :] = w[ids[i], :], w [limit, width]. False where an id is out of range; its row is zeros.
bool uly_ref_gather(const double *w, const double *ids, int64_t n_ids, int64_t limit, int64_t width, double *out);

// x [rows, heads, dh]; cos and sin [rows, turned / 2]. Pairs are (j, j + turned / 2), or (2 j, 2 j + 1) where |interleaved|; the features behind |turned| stay.
void uly_ref_rope(const double *x, const double *cosine, const double *sine, int64_t rows, int64_t heads, int64_t dh, int64_t turned, bool interleaved, double *out);

// x [outer, n, inner] summed over n.
void uly_ref_sum(const double *x, int64_t outer, int64_t n, int64_t inner, double *out);
// Indices [begin, end) of n.
void uly_ref_slice(const double *x, int64_t outer, int64_t n, int64_t inner, int64_t begin, int64_t end, double *out);
// Index i of the result is index i − by of n, or |fill|.
void uly_ref_shift(const double *x, int64_t outer, int64_t n, int64_t inner, int64_t by, double fill, double *out);

// out[row] = log Σ exp(logits[row, :]) − logits[row, labels[row]], 0 where the label is |ignore|. False where another label is out of range.
bool uly_ref_nll(const double *logits, const double *labels, int64_t rows, int64_t classes, double ignore, double *out);

// out[index] = element(index), for every index of |dims|.
void uly_ref_map(int32_t rank, const int64_t *dims, double (*element)(void *context, const int64_t *index), void *context, double *out);

#endif
