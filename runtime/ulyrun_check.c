#include "runtime/ulyrun_check.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/base/env.h"
#include "runtime/base/random.h"

enum { NOISE_RUNS = 3 };
static const double noise_factor = 32, rounding_factor = 4;

typedef union cell {
  double f;
  int64_t i;
} cell;

// A value of the reference in one iteration, kept.
typedef struct record {
  int64_t order;       // in its run
  int32_t value, next; // next: the record of another iteration, −1
  ulyrt_value shown;
  int64_t count, offset; // cells, in the store
  double largest, noise;
} record;

typedef struct wanted {
  bool is;
  double tolerance; // of the dtype that the model keeps it in
  int32_t first;    // its records
} wanted;

struct uly_check {
  uly_job *job, ref;
  uly_run_options ref_options;
  wanted *wanted; // by value number
  int32_t n_wanted;
  record *records;
  int32_t n, cap;
  _Atomic unsigned char *seen; // [n], by any rank
  cell *store;                 // shared with forked ranks
  int64_t store_cells, used;
  int64_t from, order, until; // of the pass: values [from, until) of the reference's order; order: of the one that comes
  int noise_run;              // 0: values are kept
  int32_t at;                 // noise: the next record
  bool full;
  uly_status status; // of what a callback could not do
  uly_error error;
  int passes;
  int64_t n_values;      // compared so far
  bool *operations;      // by value number: compared
  double worst, closest; // errors over their value's largest element, and over their bound: the largest
  record worst_record;   // whose
  uly_check_finding found;
  record found_record;
  int found_rank;
};

// ---- elements of a value

typedef struct cursor {
  const ulyrt_value *v;
  int64_t index[ULYRT_MAX_DIMS], at, flat; // of the piece; elements from data; row-major among all elements
  bool done;
} cursor;

static void place(cursor *c) {
  c->at = c->flat = 0;
  for (int d = 0; d < c->v->ndim; d++) {
    c->at += c->index[d] * c->v->strides[d];
    c->flat = c->flat * c->v->dims[d] + c->v->start[d] + c->index[d];
  }
}

static cursor start(const ulyrt_value *v) {
  cursor c = {.v = v};
  for (int d = 0; d < v->ndim; d++) c.done = c.done || v->local[d] == 0;
  place(&c);
  return c;
}

static void step(cursor *c) {
  int d = c->v->ndim - 1;
  if (d >= 0 && ++c->index[d] < c->v->local[d]) { // the usual case, fast
    c->at += c->v->strides[d];
    c->flat++;
    return;
  }
  while (d >= 0 && c->index[d] == c->v->local[d]) {
    c->index[d--] = 0;
    if (d >= 0) c->index[d]++;
  }
  c->done = d < 0;
  place(c);
}

static uly_dtype dtype_of(ulyrt_dtype from) {
  uly_dtype dtype = ULY_F32;
  return uly_job_dtype(from, &dtype) ? dtype : ULY_F32;
}

static cell load(uly_dtype dtype, const void *data, int64_t i) {
  switch (dtype) {
  case ULY_I64: return (cell){.i = ((const int64_t *)data)[i]};
  case ULY_I32:
  case ULY_U8:
  case ULY_BOOL: return (cell){.i = (int64_t)uly_dtype_load(dtype, data, i)};
  default: return (cell){.f = uly_dtype_load(dtype, data, i)};
  }
}

// How far |got| is from |want|; a number that |dtype| cannot hold is infinite there.
static double distance(uly_dtype dtype, cell got, cell want) {
  static const double most_f16 = 65504, most_f32 = 0x1.fffffep127;
  if (!uly_dtype_get(dtype)->is_float) return fabs((double)(got.i - want.i));
  double most = dtype == ULY_F16 ? most_f16 : dtype == ULY_F64 ? (double)INFINITY : most_f32;
  if (got.f == want.f || (isnan(got.f) && isnan(want.f))) return 0;
  if (isinf(got.f) && fabs(want.f) > most && (got.f > 0) == (want.f > 0)) return 0;
  double difference = fabs(got.f - want.f);
  return isfinite(difference) ? difference : (double)INFINITY;
}

// ---- the reference's run

static record *find(const uly_check *c, const ulyrt_value *v) {
  if (v->number < 0 || v->number >= c->n_wanted) return NULL;
  for (int32_t i = c->wanted[v->number].first; i >= 0; i = c->records[i].next) {
    bool same = true; // what was moved out of a loop is the same in all its iterations
    for (int d = 0; d < c->records[i].shown.depth; d++) same = same && c->records[i].shown.iteration[d] == (d < v->depth ? v->iteration[d] : 0);
    if (same) return &c->records[i];
  }
  return NULL;
}

static void fail(uly_check *c, uly_status status, const char *what) {
  if (c->status != ULY_OK) return;
  c->status = status;
  uly_fail(&c->error, status, "%s", what);
}

// Room for |cells| in the store. False where it waits for another pass.
static bool reserve(uly_check *c, int64_t cells) {
  if (c->full || (c->used > 0 && c->used + cells > c->store_cells)) {
    c->full = true;
    return false;
  }
  if (cells > c->store_cells) { // one value that is larger than all that values should need
    munmap(c->store, (size_t)c->store_cells * sizeof *c->store);
    c->store_cells = cells;
    c->store = mmap(NULL, (size_t)cells * sizeof *c->store, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (c->store == MAP_FAILED) c->store = NULL, c->store_cells = 0;
  }
  if (!c->store) fail(c, ULY_EXHAUSTED, "no memory for a value of the reference");
  return c->store;
}

static void keep(uly_check *c, const ulyrt_value *v) {
  int64_t count = 1;
  for (int d = 0; d < v->ndim; d++) count *= v->dims[d];
  if (c->order < c->from || v->number >= c->n_wanted || !c->wanted[v->number].is || find(c, v) || !reserve(c, count)) return;
  if (c->n == c->cap) {
    int32_t cap = c->cap ? 2 * c->cap : 256;
    record *records = realloc(c->records, sizeof *records * (size_t)cap);
    if (!records) {
      fail(c, ULY_EXHAUSTED, "no memory for the reference's values");
      return;
    }
    c->records = records, c->cap = cap;
  }
  record *r = &c->records[c->n];
  *r = (record){.order = c->order, .value = v->number, .next = c->wanted[v->number].first, .shown = *v, .count = count, .offset = c->used};
  c->wanted[v->number].first = c->n++;
  c->used += count;
  uly_dtype dtype = dtype_of(v->dtype);
  bool is_float = uly_dtype_get(dtype)->is_float;
  for (cursor e = start(v); !e.done; step(&e)) {
    cell x = load(dtype, v->data, e.at);
    double size = is_float ? fabs(x.f) : fabs((double)x.i);
    c->store[r->offset + e.flat] = x;
    if (isfinite(size) && size > r->largest) r->largest = size;
  }
}

// Measures what the noise so far has done to the value, then adds its own.
static void disturb(uly_check *c, const ulyrt_value *v) {
  uly_dtype dtype = dtype_of(v->dtype);
  record *r = c->at < c->n && c->records[c->at].order == c->order ? &c->records[c->at++] : NULL;
  for (cursor e = start(v); r && !e.done; step(&e)) {
    double d = distance(dtype, load(dtype, v->data, e.at), c->store[r->offset + e.flat]);
    if (d > r->noise) r->noise = d;
  }
  if (!uly_dtype_get(dtype)->is_float) return;
  bool known = v->number < c->n_wanted && c->wanted[v->number].is;
  double tolerance = known ? c->wanted[v->number].tolerance : uly_dtype_get(dtype_of(v->spec_dtype))->tolerance;
  uint64_t key = (uint64_t)c->noise_run * 0x9e3779b97f4a7c15u ^ (uint64_t)c->order * 0xbf58476d1ce4e5b9u;
  for (cursor e = start(v); !e.done; step(&e)) {
    double x = uly_dtype_load(dtype, v->data, e.at);
    uly_dtype_store(dtype, v->data, e.at, uly_random_uniform(key, (uint64_t)e.flat) < 0 ? x - tolerance * x : x + tolerance * x);
  }
}

static void see_reference(void *context, uly_rank_result *result, const ulyrt_value *v) {
  uly_check *c = context;
  (void)result;
  if (c->noise_run)
    disturb(c, v);
  else
    keep(c, v);
  c->order++;
  if (!c->noise_run && !c->full) c->until = c->order;
}

static uly_status run_reference(uly_check *c, uly_error *error) {
  uly_rank_result result = {0};
  c->order = 0, c->at = 0;
  uly_job_run(&c->ref, NULL, false, &result);
  if (result.status != ULY_OK) return uly_fail(error, (uly_status)result.status, "%s: %s", c->ref.options->model, result.error);
  if (c->status != ULY_OK) *error = c->error;
  return c->status;
}

uly_status uly_check_pass(uly_check *c, uly_error *error) {
  if (c->seen) munmap((void *)(uintptr_t)c->seen, (size_t)c->n + 1);
  c->seen = NULL;
  c->from = c->until, c->n = 0, c->used = 0, c->full = false;
  for (int32_t i = 0; i < c->n_wanted; i++) c->wanted[i].first = -1;
  for (c->noise_run = 0; c->noise_run <= NOISE_RUNS; c->noise_run++) ULY_TRY(run_reference(c, error));
  void *seen = mmap(NULL, (size_t)c->n + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (seen == MAP_FAILED) return uly_fail(error, ULY_EXHAUSTED, "no memory for %d values", c->n);
  c->seen = seen;
  c->passes++;
  return ULY_OK;
}

bool uly_check_more(const uly_check *c) { return c->full; }

// ---- the model's run

static void see_model(void *context, uly_rank_result *result, const ulyrt_value *v) {
  uly_check *c = context;
  uly_check_finding *f = &result->finding;
  const record *r = find(c, v);
  if (!r) return; // of another pass
  uly_dtype dtype = dtype_of(v->dtype);
  const uly_dtype_info *info = uly_dtype_get(dtype);
  double bound = noise_factor * r->noise + rounding_factor * info->tolerance * r->largest + (info->is_float ? 0x1p-120 : 0), worst = 0;
  int32_t number = (int32_t)(r - c->records);
  atomic_store_explicit(&c->seen[number], 1, memory_order_relaxed);
  for (cursor e = start(v); !e.done; step(&e)) {
    cell got = load(dtype, v->data, e.at), want = c->store[r->offset + e.flat];
    double d = distance(dtype, got, want), excess = d / bound;
    if (d > worst) worst = d;
    if (d <= bound || (f->found && (f->record < number || (f->record == number && f->excess >= excess)))) continue;
    *f = (uly_check_finding){
        .found = true, .record = number, .bound = bound, .excess = excess, .worst = f->worst, .worst_record = f->worst_record, .closest = f->closest};
    f->got = info->is_float ? got.f : (double)got.i;
    f->want = info->is_float ? want.f : (double)want.i;
    for (int k = 0; k < v->ndim; k++) f->index[k] = v->start[k] + e.index[k];
    snprintf(f->step, sizeof f->step, "%s", v->step);
  }
  if (worst / bound > f->closest) f->closest = worst / bound;
  double relative = r->largest > 0 ? worst / r->largest : worst;
  if (relative > f->worst && isfinite(relative)) f->worst = relative, f->worst_record = number;
}

static const char *place_text(const uly_check *c, const record *r, char *buffer, size_t bytes) {
  ulyrt_source source = ULYRT_SOURCE_INIT;
  char iteration[64] = "";
  size_t n = 0;
  if (ulyrt_model_source(c->ref.model, &source, NULL) != ULYRT_OK) source.name = "";
  for (int d = 0; d < r->shown.depth && n < sizeof iteration; d++)
    n += (size_t)snprintf(iteration + n, sizeof iteration - n, "%s%lld", d ? "." : ", iteration ", (long long)r->shown.iteration[d]);
  snprintf(buffer, bytes, "%s at %s:%d:%d (value %d%s)", r->shown.operation, source.name, r->shown.spec_line, r->shown.spec_column, r->value, iteration);
  return buffer;
}

uly_status uly_check_finish(uly_check *c, const uly_rank_result *results, int n, uly_error *error) {
  for (int i = 0; i < n; i++) {
    const uly_check_finding *f = &results[i].finding;
    if (f->closest > c->closest) c->closest = f->closest;
    if (f->worst > c->worst) c->worst = f->worst, c->worst_record = c->records[f->worst_record];
    bool first = f->found && (!c->found.found || f->record < c->found.record || (f->record == c->found.record && f->excess > c->found.excess));
    if (first) c->found = *f, c->found_record = c->records[f->record], c->found_rank = i;
  }
  for (int32_t i = 0; i < c->n; i++)
    if (c->seen[i]) c->n_values++, c->operations[c->records[i].value] = true;
  if (!c->found.found) return ULY_OK;
  char where[256], rank[32] = "", index[160] = "[";
  size_t at = 1;
  const uly_check_finding *f = &c->found;
  for (int d = 0; d < c->found_record.shown.ndim; d++) at += (size_t)snprintf(index + at, sizeof index - at, d ? ", %lld" : "%lld", (long long)f->index[d]);
  snprintf(index + at, sizeof index - at, "]");
  if (n > 1) snprintf(rank, sizeof rank, " on rank %d", c->found_rank);
  bool moved = strcmp(f->step, c->found_record.shown.operation) != 0;
  return uly_fail(error, ULY_MISMATCH, "%s differs first in %s: %s is %.9g%s%s%s, in %s %.9g, bound %.3g", c->job->options->model,
                  place_text(c, &c->found_record, where, sizeof where), index, f->got, rank, moved ? " after " : "", moved ? f->step : "",
                  c->ref.options->model, f->want, f->bound);
}

void uly_check_report(const uly_check *c, FILE *out) {
  char where[256];
  int64_t operations = 0;
  for (int32_t i = 0; i < c->n_wanted; i++) operations += c->operations[i];
  fprintf(out, "check: %lld operations, %lld values as in %s", (long long)operations, (long long)c->n_values, c->ref.options->model);
  if (c->worst > 0) fprintf(out, ", largest error %.3g of a value's largest element: %s", c->worst, place_text(c, &c->worst_record, where, sizeof where));
  fprintf(out, ", at most %.2g of its bound", c->closest);
  if (c->passes > 1) fprintf(out, "; in %d passes", c->passes);
  fputc('\n', out);
}

void uly_check_show_place(const uly_check *c, FILE *out) {
  ulyrt_source source = ULYRT_SOURCE_INIT;
  if (!c->found.found || ulyrt_model_source(c->ref.model, &source, NULL) != ULYRT_OK) return;
  const char *line = source.text;
  for (int i = 1; i < c->found_record.shown.spec_line && *line; line++) i += *line == '\n';
  size_t length = strcspn(line, "\n"), column = (size_t)(c->found_record.shown.spec_column > 0 ? c->found_record.shown.spec_column - 1 : 0);
  if (!length || column > length) return;
  fprintf(out, "  %.*s\n  ", (int)length, line);
  for (size_t i = 0; i < column; i++) // as wide as the text above
    if ((line[i] & 0xc0) != 0x80) fputc(line[i] == '\t' ? '\t' : ' ', out);
  fputs("^\n", out);
}

// ---- are the two of one spec?

static bool same_programs(const uly_check *c) {
  ulyrt_source a = ULYRT_SOURCE_INIT, b = ULYRT_SOURCE_INIT;
  if (ulyrt_model_source(c->job->model, &a, NULL) != ULYRT_OK || ulyrt_model_source(c->ref.model, &b, NULL) != ULYRT_OK) return true;
  return memcmp(a.program, b.program, sizeof a.program) == 0;
}

static uly_status differs(const uly_check *c, uly_error *error, const char *format, ...) ULY_PRINTF(3, 4);
static uly_status differs(const uly_check *c, uly_error *error, const char *format, ...) {
  char what[400];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return uly_fail(error, ULY_INVALID_INPUT, "%s is not the reference of %s%s: %s", c->ref.options->model, c->job->options->model,
                  same_programs(c) ? "" : ", which is of another spec or other -D values", what);
}

// Two shapes, with the names of symbols.
static bool same_shape(const uly_check *c, const ulyrt_tensor_info *a, const ulyrt_tensor_info *b) {
  bool same = a->ndim == b->ndim;
  for (int d = 0; same && d < a->ndim; d++) {
    same = a->dims[d] == b->dims[d] && (a->symbol[d] < 0) == (b->symbol[d] < 0);
    if (same && a->symbol[d] >= 0)
      same = strcmp(ulyrt_model_symbol_name(c->job->model, a->symbol[d]), ulyrt_model_symbol_name(c->ref.model, b->symbol[d])) == 0;
  }
  return same;
}

static uly_status compare_tensors(const uly_check *c, uly_error *error) {
  if (strcmp(c->job->info.name, c->ref.info.name) != 0) return differs(c, error, "its entry is %s, not %s", c->ref.info.name, c->job->info.name);
  if (c->job->n_tensors != c->ref.n_tensors)
    return differs(c, error, "entry %s has %d inputs and outputs there, %d here", c->job->info.name, c->ref.n_tensors, c->job->n_tensors);
  for (int32_t i = 0; i < c->job->n_tensors; i++) {
    ulyrt_tensor_info a = ULYRT_TENSOR_INFO_INIT, b = ULYRT_TENSOR_INFO_INIT;
    if (ulyrt_model_tensor(c->job->model, c->job->entry, i, &a, NULL) != ULYRT_OK || ulyrt_model_tensor(c->ref.model, c->ref.entry, i, &b, NULL) != ULYRT_OK)
      return differs(c, error, "tensor %d cannot be read", i);
    if (strcmp(a.name, b.name) != 0 || a.role != b.role) return differs(c, error, "its tensor %d is %s, here %s", i, b.name, a.name);
    if (!same_shape(c, &a, &b)) return differs(c, error, "%s has another shape there", a.name);
    if (a.role == ULYRT_INPUT && memcmp(&a.dtype, &b.dtype, sizeof a.dtype) != 0) return differs(c, error, "%s has another dtype there", a.name);
  }
  return ULY_OK;
}

static uly_status compare_params(const uly_check *c, uly_error *error) {
  for (int32_t i = 0; i < ulyrt_model_params(c->job->model); i++) {
    ulyrt_tensor_info a = ULYRT_TENSOR_INFO_INIT, b = ULYRT_TENSOR_INFO_INIT;
    if (ulyrt_model_param(c->job->model, i, &a, NULL) != ULYRT_OK) continue;
    bool found = false;
    for (int32_t j = 0; !found && j < ulyrt_model_params(c->ref.model); j++)
      found = ulyrt_model_param(c->ref.model, j, &b, NULL) == ULYRT_OK && strcmp(a.name, b.name) == 0;
    if (!found) return differs(c, error, "it has no parameter %s", a.name);
    if (!same_shape(c, &a, &b)) return differs(c, error, "parameter %s has another shape there", a.name);
  }
  return ULY_OK;
}

static int32_t count_numbers(const uly_job *job) {
  int32_t most = 0;
  for (int32_t i = 0; i < ulyrt_model_values(job->model, job->entry); i++) {
    ulyrt_value v = ULYRT_VALUE_INIT;
    if (ulyrt_model_value(job->model, job->entry, i, &v, NULL) == ULYRT_OK && v.number >= most) most = v.number + 1;
  }
  return most;
}

// What the model shows the reference shows too, as the same operation.
static uly_status compare_values(uly_check *c, uly_error *error) {
  int32_t n = count_numbers(&c->ref);
  ulyrt_value *shown = calloc((size_t)n + 1, sizeof *shown);
  if (!shown) return uly_fail(error, ULY_EXHAUSTED, "no memory to compare");
  for (int32_t i = 0; i < ulyrt_model_values(c->ref.model, c->ref.entry); i++) {
    ulyrt_value v = ULYRT_VALUE_INIT;
    if (ulyrt_model_value(c->ref.model, c->ref.entry, i, &v, NULL) == ULYRT_OK) shown[v.number] = v;
  }
  uly_status status = ULY_OK;
  for (int32_t i = 0; status == ULY_OK && i < ulyrt_model_values(c->job->model, c->job->entry); i++) {
    ulyrt_value v = ULYRT_VALUE_INIT;
    if (ulyrt_model_value(c->job->model, c->job->entry, i, &v, NULL) != ULYRT_OK) continue;
    const ulyrt_value *r = v.number < n ? &shown[v.number] : NULL;
    if (!r || !r->operation)
      status = differs(c, error, "it does not show value %d, a %s of line %d; compile it with --target=reference", v.number, v.operation, v.spec_line);
    else if (strcmp(r->operation, v.operation) != 0 || r->ndim != v.ndim)
      status = differs(c, error, "value %d is a %s of line %d with %d dims there, a %s of line %d with %d dims here", v.number, r->operation, r->spec_line,
                       r->ndim, v.operation, v.spec_line, v.ndim);
    else
      c->wanted[v.number] = (wanted){.is = true, .tolerance = uly_dtype_get(dtype_of(v.dtype))->tolerance, .first = -1};
  }
  free(shown);
  return status;
}

static void note_texts(uly_check *c) {
  if (same_programs(c)) return;
  uly_text_add(&c->job->notes, "note: %s and %s were compiled from specs, or with -D values, that differ\n", c->job->options->model, c->ref.options->model);
}

static uly_status prepare(uly_check *c, uly_error *error) {
  double bytes = 0;
  ULY_TRY(uly_env_number(ULY_ENV_CHECK_BYTES, error, &bytes));
  uly_status status = uly_job_prepare(&c->ref, error);
  if (status != ULY_OK) {
    uly_error_prefix(error, "%s: ", c->ref.options->model);
    return status;
  }
  ULY_TRY(compare_tensors(c, error));
  ULY_TRY(compare_params(c, error));
  c->n_wanted = count_numbers(c->job);
  c->wanted = calloc((size_t)c->n_wanted + 1, sizeof *c->wanted);
  c->operations = calloc((size_t)c->n_wanted + 1, sizeof *c->operations);
  if (!c->wanted || !c->operations) return uly_fail(error, ULY_EXHAUSTED, "no memory to compare");
  ULY_TRY(compare_values(c, error));
  note_texts(c);
  c->store_cells = (int64_t)(bytes / sizeof *c->store) + 1;
  c->store = mmap(NULL, (size_t)c->store_cells * sizeof *c->store, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (c->store == MAP_FAILED) c->store = NULL;
  return c->store ? ULY_OK : uly_fail(error, ULY_EXHAUSTED, "no memory for %.0f bytes of the reference's values: ULYRT_CHECK_BYTES", bytes);
}

uly_status uly_check_create(uly_job *job, uly_check **out_check, uly_error *error) {
  uly_check *c = calloc(1, sizeof *c);
  if (!c) return uly_fail(error, ULY_EXHAUSTED, "no memory to compare");
  const uly_run_options *o = job->options;
  c->job = job;
  c->ref_options = (uly_run_options){.model = o->check, .entry = o->entry, .at = o->at, .input = o->input, .weights = o->weights, .repeat = 1};
  c->ref.arena = job->arena;
  c->ref.options = &c->ref_options;
  c->ref.n_ranks = 1;
  c->ref.see = see_reference, c->ref.see_context = c;
  job->see = see_model, job->see_context = c;
  *out_check = c;
  return prepare(c, error);
}

void uly_check_destroy(uly_check *c) {
  if (!c) return;
  if (c->seen) munmap((void *)(uintptr_t)c->seen, (size_t)c->n + 1);
  if (c->store) munmap(c->store, (size_t)c->store_cells * sizeof *c->store);
  uly_job_destroy(&c->ref);
  free(c->records);
  free(c->wanted);
  free(c->operations);
  free(c);
}
