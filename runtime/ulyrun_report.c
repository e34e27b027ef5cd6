#include "runtime/ulyrun_report.h"

#include <math.h>
#include <sodium.h>

#include "runtime/base/escape.h"

static int64_t count(const uly_ndarray *array) { return array->bytes / uly_dtype_bytes(array->dtype); }

void uly_report_line(FILE *out, const char *name, const uly_ndarray *array) {
  int64_t n = count(array), strange = 0;
  double least = INFINITY, most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) {
    double v = uly_dtype_load(array->dtype, array->data, i);
    if (!isfinite(v)) strange++;
    if (v < least) least = v;
    if (v > most) most = v;
    sum += v;
  }
  double mean = isnan(sum) ? (double)NAN : sum / (double)n; // without the sign that a NaN may have
  if (least > most) least = most = (double)NAN;             // nothing but NaN
  uint8_t hash[16];
  crypto_generichash(hash, sizeof hash, array->data, (unsigned long long)array->bytes, NULL, 0);
  char shape[128];
  uly_print_escaped(out, "", uly_str_of(name), "");
  fprintf(out, " %s %s", uly_dtype_name(array->dtype), uly_ndarray_shape_text(array->rank, array->dims, shape, sizeof shape));
  if (n) fprintf(out, " min %.6g mean %.6g max %.6g", least, mean, most);
  if (strange) fprintf(out, " not finite %lld", (long long)strange);
  fputs(" hash ", out);
  for (int i = 0; i < 8; i++) fprintf(out, "%02x", hash[i]);
  fputc('\n', out);
}

// "[1, 0, 7]" for element |i|.
static const char *index_text(const uly_ndarray *array, int64_t i, char *buffer, size_t bytes) {
  int64_t index[ULY_NDARRAY_DIMS];
  for (int d = array->rank; d-- > 0; i /= array->dims[d]) index[d] = i % array->dims[d];
  return uly_ndarray_shape_text(array->rank, index, buffer, bytes);
}

uly_status uly_report_compare(FILE *out, const char *name, const uly_ndarray *got, const uly_ndarray *want, double rtol, double atol, uly_error *error) {
  char a[128], b[128];
  bool same = got->rank == want->rank;
  for (int d = 0; same && d < got->rank; d++) same = got->dims[d] == want->dims[d];
  if (!same)
    return uly_fail(error, ULY_MISMATCH, "%s has shape %s, expected is %s", name, uly_ndarray_shape_text(got->rank, got->dims, a, sizeof a),
                    uly_ndarray_shape_text(want->rank, want->dims, b, sizeof b));
  int64_t n = count(got), worst = 0, n_bad = 0;
  double worst_excess = -INFINITY, largest = 0, scale = 0;
  for (int64_t i = 0; i < n; i++) {
    double x = uly_dtype_load(got->dtype, got->data, i), y = uly_dtype_load(want->dtype, want->data, i);
    double difference = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y), excess = difference - (atol + rtol * fabs(y));
    if (isnan(difference) || (isinf(y) && difference > 0)) difference = excess = INFINITY;
    if (excess > 0) n_bad++;
    if (excess > worst_excess) worst_excess = excess, worst = i;
    if (difference > largest) largest = difference;
    if (isfinite(y) && fabs(y) > scale) scale = fabs(y);
  }
  if (n_bad)
    return uly_fail(error, ULY_MISMATCH, "%s: %lld of %lld values differ by more than atol %g + rtol %g; worst at %s: got %.9g, expected %.9g", name,
                    (long long)n_bad, (long long)n, atol, rtol, index_text(got, worst, a, sizeof a), uly_dtype_load(got->dtype, got->data, worst),
                    uly_dtype_load(want->dtype, want->data, worst));
  uly_print_escaped(out, "", uly_str_of(name), "");
  fprintf(out, " as expected: largest difference %.3g, of the largest value %.3g\n", largest, scale > 0 ? largest / scale : largest);
  return ULY_OK;
}
