// The encoding of tensor types: text to struct and back, and MLIR types from it. See type.h. Text is accepted only in the one form that the printer
// writes, so that equal types are the same MLIR type.
#include "passes/type.h"

#include "passes/ir.h"

bool uly_type_equal(const uly_type *a, const uly_type *b) {
  if (!uly_tensor_type_equal(&a->tensor, &b->tensor) || a->n_axes != b->n_axes || !uly_str_equal(a->storage, b->storage)) return false;
  for (int32_t x = 0; x < a->n_axes; x++)
    if (!uly_dist_equal(a->dist[x], b->dist[x])) return false;
  return true;
}

uly_type uly_type_global(const uly_names *names, const uly_tensor_type *tensor) { return (uly_type){.tensor = *tensor, .n_axes = names->n_axes}; }

int32_t uly_type_row_dim(const uly_names *names, const uly_tensor_type *tensor, int32_t axis) { return uly_axis_dim(&names->axes[axis], tensor); }

// ---- printing

static void add_dim(uly_text *text, const uly_names *names, uly_dim dim) {
  if (uly_dim_is_const(dim)) {
    uly_text_add(text, "%lld", (long long)dim.add);
    return;
  }
  ULY_ASSERT(dim.symbol < names->n_symbols);
  if (dim.mul != 1) uly_text_add(text, "%lld*", (long long)dim.mul);
  uly_text_add_str(text, names->symbols[dim.symbol]);
  if (dim.add) uly_text_add(text, "%+lld", (long long)dim.add);
}

uly_str uly_encoding_print_dim(uly_arena *arena, const uly_names *names, uly_dim dim) {
  uly_text text = {.arena = arena};
  add_dim(&text, names, dim);
  return uly_text_str(&text);
}

static void add_dist(uly_text *text, uly_dist dist) {
  switch (dist.kind) {
  case ULY_DIST_GLOBAL: break;
  case ULY_DIST_REPLICATED: uly_text_add(text, "*"); break;
  case ULY_DIST_SPLIT: uly_text_add(text, "%d", dist.dim); break;
  case ULY_DIST_COVER: uly_text_add(text, "%d/%lld", dist.dim, (long long)dist.group); break;
  case ULY_DIST_PARTIAL: uly_text_add(text, "+"); break;
  case ULY_DIST_COVER_PARTIAL: uly_text_add(text, "%d/%lld+", dist.dim, (long long)dist.group); break;
  case ULY_DIST_FLAT: uly_text_add(text, "flat"); break;
  }
}

uly_str uly_dist_print(uly_arena *arena, uly_dist dist) {
  uly_text text = {.arena = arena};
  add_dist(&text, dist);
  return uly_text_str(&text);
}

uly_str uly_encoding_print(uly_arena *arena, const uly_names *names, const uly_type *type) {
  uly_text text = {.arena = arena};
  for (int32_t d = 0; d < type->tensor.rank; d++) {
    if (uly_dim_is_const(type->tensor.dims[d])) continue;
    if (text.len) uly_text_add(&text, ",");
    add_dim(&text, names, type->tensor.dims[d]);
  }
  for (int32_t x = 0; x < type->n_axes && !uly_type_is_global(type); x++) {
    uly_text_add(&text, "%s%.*s=", text.len ? " " : "", ULY_STR_ARG(names->axes[x].name));
    add_dist(&text, type->dist[x]);
  }
  if (type->storage.len) uly_text_add(&text, "%s@%.*s", text.len ? " " : "", ULY_STR_ARG(type->storage));
  return uly_text_str(&text);
}

// ---- parsing

typedef struct reader {
  uly_arena *arena;
  const uly_names *names;
  uly_str rest;
  uly_str error;
} reader;

static bool fail(reader *r, uly_str error) {
  if (!r->error.len) r->error = error;
  return false;
}

// Takes what stands before the first |end| (or everything) and drops the |end|.
static uly_str take_until(uly_str *rest, char end) {
  const char *p = rest->len ? memchr(rest->ptr, end, rest->len) : NULL;
  uly_str word = {rest->ptr, p ? (size_t)(p - rest->ptr) : rest->len};
  size_t used = word.len + (p ? 1 : 0);
  *rest = (uly_str){used ? rest->ptr + used : rest->ptr, rest->len - used};
  return word;
}

// A whole word of digits, at most 18 of them.
static bool parse_number(uly_str word, int64_t *out_number) {
  int64_t n = 0;
  if (!word.len || word.len > 18) return false;
  for (size_t i = 0; i < word.len; i++) {
    if (word.ptr[i] < '0' || word.ptr[i] > '9') return false;
    n = 10 * n + (word.ptr[i] - '0');
  }
  *out_number = n;
  return true;
}

static bool parse_dim(reader *r, uly_str word, uly_dim *out_dim) {
  uly_str rest = word, name = word;
  uly_dim dim = {.symbol = -1, .mul = 1};
  if (memchr(word.ptr, '*', word.len) && (!parse_number(take_until(&rest, '*'), &dim.mul) || dim.mul < 1))
    return fail(r, uly_str_format(r->arena, "`%.*s`: a dim's factor is a positive number", ULY_STR_ARG(word)));
  name = rest;
  for (size_t i = 0; i < rest.len; i++) {
    if (rest.ptr[i] != '+' && rest.ptr[i] != '-') continue;
    name.len = i;
    if (!parse_number((uly_str){rest.ptr + i + 1, rest.len - i - 1}, &dim.add) || !dim.add)
      return fail(r, uly_str_format(r->arena, "`%.*s`: what is added to a dim is a number that is not 0", ULY_STR_ARG(word)));
    if (rest.ptr[i] == '-') dim.add = -dim.add;
    break;
  }
  for (int32_t s = 0; s < r->names->n_symbols && dim.symbol < 0; s++)
    if (uly_str_equal(r->names->symbols[s], name)) dim.symbol = s;
  if (dim.symbol < 0) return fail(r, uly_str_format(r->arena, "`%.*s` is no free symbol of this module (uly.symbols)", ULY_STR_ARG(name)));
  *out_dim = dim;
  return true;
}

bool uly_encoding_parse_dim(uly_arena *arena, const uly_names *names, uly_str text, uly_dim *out_dim) {
  reader r = {.arena = arena, .names = names};
  int64_t number;
  if (parse_number(text, &number)) return *out_dim = uly_dim_const(number), true;
  return text.len && parse_dim(&r, text, out_dim);
}

static bool parse_dims(reader *r, uly_str word, uly_type *type) {
  for (int32_t d = 0; d < type->tensor.rank; d++) {
    if (type->tensor.dims[d].symbol != ULY_DIM_UNNAMED) continue;
    if (!word.len) return fail(r, uly_str_format(r->arena, "dim %d is dynamic and has no name", d));
    if (!parse_dim(r, take_until(&word, ','), &type->tensor.dims[d])) return false;
  }
  if (word.len) return fail(r, uly_str_format(r->arena, "`%.*s` names a dim that the shape does not have", ULY_STR_ARG(word)));
  return true;
}

static bool parse_dist(reader *r, uly_str word, uly_dist *out_dist) {
  int64_t dim, group;
  uly_str rest = word;
  if (uly_str_is(word, "*") || uly_str_is(word, "+") || uly_str_is(word, "flat")) {
    *out_dist = uly_dist_of(word.ptr[0] == '*' ? ULY_DIST_REPLICATED : word.ptr[0] == '+' ? ULY_DIST_PARTIAL : ULY_DIST_FLAT);
    return true;
  }
  if (!parse_number(take_until(&rest, '/'), &dim) || dim >= ULY_GRAPH_MAX_DIMS)
    return fail(r, uly_str_format(r->arena, "`%.*s` is no distribution: write *, D, D/g, +, D/g+ or flat", ULY_STR_ARG(word)));
  *out_dist = uly_dist_split((int32_t)dim);
  if (!rest.len) return true;
  bool partial = rest.ptr[rest.len - 1] == '+';
  if (partial) rest.len--;
  if (!parse_number(rest, &group) || group < 1 || (group == 1 && !partial))
    return fail(r, uly_str_format(r->arena, "`%.*s`: a cover is D/g with g of at least 2", ULY_STR_ARG(word)));
  *out_dist = (uly_dist){.kind = partial ? ULY_DIST_COVER_PARTIAL : ULY_DIST_COVER, .dim = (int32_t)dim, .group = group};
  return true;
}

static bool check_dist(reader *r, const uly_type *type, int32_t axis) {
  uly_dist dist = type->dist[axis];
  uly_str name = r->names->axes[axis].name;
  if (dist.kind != ULY_DIST_SPLIT && dist.kind != ULY_DIST_COVER && dist.kind != ULY_DIST_COVER_PARTIAL) return true;
  if (dist.dim >= type->tensor.rank)
    return fail(r, uly_str_format(r->arena, "%.*s cuts dim %d, but there are %d dims", ULY_STR_ARG(name), dist.dim, type->tensor.rank));
  uly_dim dim = type->tensor.dims[dist.dim];
  if (dist.kind != ULY_DIST_SPLIT && !uly_dim_is_const(dim))
    return fail(r, uly_str_format(r->arena, "%.*s covers dim %d, which is not a constant number of heads", ULY_STR_ARG(name), dist.dim));
  if (!uly_dim_is_const(dim) && dim.add)
    return fail(r, uly_str_format(r->arena, "%.*s splits dim %d, whose size %.*s is not whole units of its symbol", ULY_STR_ARG(name), dist.dim,
                                  ULY_STR_ARG(uly_encoding_print_dim(r->arena, r->names, dim))));
  for (int32_t other = 0; other < axis; other++)
    if (uly_dist_cuts(type->dist[other], dist.dim))
      return fail(r, uly_str_format(r->arena, "%.*s and %.*s both cut dim %d", ULY_STR_ARG(r->names->axes[other].name), ULY_STR_ARG(name), dist.dim));
  return true;
}

static bool parse_axes(reader *r, uly_type *type) {
  if (type->n_axes == 0) return true;
  if (!r->rest.len || r->rest.ptr[0] == '@') return true; // not distributed yet
  for (int32_t x = 0; x < type->n_axes; x++) {
    uly_str word = r->rest.len && r->rest.ptr[0] != '@' ? take_until(&r->rest, ' ') : (uly_str){0}, dist = word, name = take_until(&dist, '=');
    if (!uly_str_equal(name, r->names->axes[x].name))
      return fail(r, uly_str_format(r->arena, "expected `%.*s=…`, found `%.*s`: each axis of the grid has its word, in order",
                                    ULY_STR_ARG(r->names->axes[x].name), ULY_STR_ARG(word)));
    if (!parse_dist(r, dist, &type->dist[x]) || !check_dist(r, type, x)) return false;
  }
  return true;
}

uly_str uly_encoding_parse(uly_arena *arena, const uly_names *names, uly_str text, uly_type *inout_type) {
  reader r = {.arena = arena, .names = names, .rest = text};
  bool dynamic = false;
  for (int32_t d = 0; d < inout_type->tensor.rank; d++) dynamic |= inout_type->tensor.dims[d].symbol == ULY_DIM_UNNAMED;
  inout_type->n_axes = names->n_axes;
  for (int32_t x = 0; x < ULY_MAX_AXES; x++) inout_type->dist[x] = uly_dist_of(ULY_DIST_GLOBAL);
  inout_type->storage = (uly_str){0};
  if (!parse_dims(&r, dynamic ? take_until(&r.rest, ' ') : (uly_str){0}, inout_type) || !parse_axes(&r, inout_type)) return r.error;
  if (r.rest.len > 1 && r.rest.ptr[0] == '@') inout_type->storage = (uly_str){r.rest.ptr + 1, r.rest.len - 1};
  uly_str canonical = uly_encoding_print(arena, names, inout_type);
  if (uly_str_equal(canonical, text)) return (uly_str){0};
  return uly_str_format(arena, "`%.*s` is not how this encoding is written: `%.*s`", ULY_STR_ARG(text), ULY_STR_ARG(canonical));
}

// ---- MLIR

bool uly_type_read(const uly_ir *ir, MlirType type, uly_type *out_type, uly_str *out_error) {
  *out_type = (uly_type){0};
  if (!mlirTypeIsARankedTensor(type)) {
    *out_error = ULY_STR("not a ranked tensor");
    return false;
  }
  int64_t rank = mlirShapedTypeGetRank(type);
  if (rank > ULY_GRAPH_MAX_DIMS) {
    *out_error = uly_str_format(ir->arena, "%lld dims; the limit is %d", (long long)rank, ULY_GRAPH_MAX_DIMS);
    return false;
  }
  if (!uly_ir_dtype(ir, mlirShapedTypeGetElementType(type), &out_type->tensor.dtype)) {
    *out_error = ULY_STR("an element type that the language does not have");
    return false;
  }
  out_type->tensor.rank = (int32_t)rank;
  for (int32_t d = 0; d < rank; d++) {
    bool dynamic = mlirShapedTypeIsDynamicDim(type, d);
    out_type->tensor.dims[d] = dynamic ? (uly_dim){.symbol = ULY_DIM_UNNAMED} : uly_dim_const(mlirShapedTypeGetDimSize(type, d));
  }
  MlirAttribute encoding = mlirRankedTensorTypeGetEncoding(type);
  if (!mlirAttributeIsNull(encoding) && !mlirAttributeIsAString(encoding)) {
    *out_error = ULY_STR("the encoding is not a string");
    return false;
  }
  uly_str text = mlirAttributeIsNull(encoding) ? (uly_str){0} : uly_attr_str(encoding);
  *out_error = uly_encoding_parse(ir->arena, &ir->names, text, out_type);
  return out_error->len == 0;
}

uly_type uly_type_of(const uly_ir *ir, MlirValue value) {
  uly_type type;
  uly_str error;
  bool ok = uly_type_read(ir, mlirValueGetType(value), &type, &error);
  ULY_ASSERT(ok);
  return type;
}

MlirType uly_type_build(const uly_ir *ir, const uly_type *type) {
  int64_t shape[ULY_GRAPH_MAX_DIMS];
  for (int32_t d = 0; d < type->tensor.rank; d++) shape[d] = uly_dim_is_const(type->tensor.dims[d]) ? type->tensor.dims[d].add : mlirShapedTypeGetDynamicSize();
  uly_str text = uly_encoding_print(ir->arena, &ir->names, type);
  MlirAttribute encoding = text.len ? uly_ir_str(ir, text) : mlirAttributeGetNull();
  return mlirRankedTensorTypeGet(type->tensor.rank, shape, ir->dtypes[type->tensor.dtype], encoding);
}
