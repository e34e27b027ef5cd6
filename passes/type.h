// What a tensor type says in the IR: element type, *global* sizes, how each grid axis cuts the value, and how it is stored. In MLIR it is a ranked tensor
// whose encoding is one string:
//
//   tensor<?x?x32x128xbf16, "B,S sp=1 dp=0 @msg">
//
//   B,S    the dynamic dims in order: a symbol, m*symbol, and + n or - n behind it: 2*T+1
//   sp=…   one word an axis, in the grid's order; none at all before distribution:
//            *     every rank holds everything
//            D     dim D is split: start(r) = r·⌊n/P⌋ + min(r, n mod P)
//            D/g   a cover of dim D: what a rank's share of g·n query heads needs of n kv heads; shares may overlap
//            +     every rank holds a partial sum
//            D/g+  a partial sum over a cover
//            flat  the elements in row-major order are split
//   @…     storage, after fuse
// Equal types have equal text, and the other way round. The struct is the form that passes compute with; this file alone knows the text.
#ifndef ULY_PASSES_TYPE_H
#define ULY_PASSES_TYPE_H

#include <stdbool.h>

#include "frontend/graph.h"
#include "mlir-c/IR.h"
#include "runtime/abi.h"

typedef enum uly_dist_kind {
  ULY_DIST_GLOBAL, // not distributed yet
  ULY_DIST_REPLICATED,
  ULY_DIST_SPLIT,
  ULY_DIST_COVER,
  ULY_DIST_PARTIAL,
  ULY_DIST_COVER_PARTIAL,
  ULY_DIST_FLAT
} uly_dist_kind;

typedef struct uly_dist {
  uly_dist_kind kind;
  int32_t dim;   // SPLIT, COVER, COVER_PARTIAL
  int64_t group; // COVER, COVER_PARTIAL: at least 2; a cover of 1 is a split
} uly_dist;

typedef struct uly_type {
  uly_tensor_type tensor; // global
  int32_t n_axes;
  uly_dist dist[ULY_MAX_AXES]; // all GLOBAL, or none
  uly_str storage;             // without @; empty: the default
} uly_type;

// The free symbols and grid axes that types of a module name.
typedef struct uly_names {
  const uly_str *symbols;
  int32_t n_symbols;
  const uly_grid_axis *axes;
  int32_t n_axes;
} uly_names;

static inline bool uly_dist_equal(uly_dist a, uly_dist b) { return a.kind == b.kind && a.dim == b.dim && a.group == b.group; }
static inline uly_dist uly_dist_of(uly_dist_kind kind) { return (uly_dist){.kind = kind}; }
static inline uly_dist uly_dist_split(int32_t dim) { return (uly_dist){.kind = ULY_DIST_SPLIT, .dim = dim}; }
// Of what |group| query heads a kv head need; a split where that is 1.
static inline uly_dist uly_dist_cover(int32_t dim, int64_t group) {
  return group == 1 ? uly_dist_split(dim) : (uly_dist){.kind = ULY_DIST_COVER, .dim = dim, .group = group};
}
static inline bool uly_dist_is_partial(uly_dist d) { return d.kind == ULY_DIST_PARTIAL || d.kind == ULY_DIST_COVER_PARTIAL; }
static inline bool uly_dist_is_cut(uly_dist d) { return d.kind == ULY_DIST_SPLIT || d.kind == ULY_DIST_COVER; }
// Is dim |dim| cut, as a split or a cover?
static inline bool uly_dist_cuts(uly_dist d, int32_t dim) {
  return (d.kind == ULY_DIST_SPLIT || d.kind == ULY_DIST_COVER || d.kind == ULY_DIST_COVER_PARTIAL) && d.dim == dim;
}

bool uly_type_equal(const uly_type *a, const uly_type *b);
static inline bool uly_type_is_global(const uly_type *t) { return t->n_axes == 0 || t->dist[0].kind == ULY_DIST_GLOBAL; }
// The same tensor on |names|' grid, not distributed.
uly_type uly_type_global(const uly_names *names, const uly_tensor_type *tensor);
// The dim that rows count on |axis|, -1 without one.
int32_t uly_type_row_dim(const uly_names *names, const uly_tensor_type *tensor, int32_t axis);

// Text, without MLIR. The printers use |arena|. Parsing fills dims that are dynamic in |inout_type| (symbol given as ULY_DIM_UNNAMED), dist and storage; on
// failure it returns what is wrong, else an empty string.
enum { ULY_DIM_UNNAMED = -2 };
uly_str uly_encoding_print_dim(uly_arena *arena, const uly_names *names, uly_dim dim);
bool uly_encoding_parse_dim(uly_arena *arena, const uly_names *names, uly_str text, uly_dim *out_dim);
uly_str uly_dist_print(uly_arena *arena, uly_dist dist);
uly_str uly_encoding_print(uly_arena *arena, const uly_names *names, const uly_type *type);
uly_str uly_encoding_parse(uly_arena *arena, const uly_names *names, uly_str text, uly_type *inout_type);

// MLIR. |out_error|'s text lives in the module's arena.
typedef struct uly_ir uly_ir;
bool uly_type_read(const uly_ir *ir, MlirType type, uly_type *out_type, uly_str *out_error);
uly_type uly_type_of(const uly_ir *ir, MlirValue value); // of a verified module: asserts that it can be read
MlirType uly_type_build(const uly_ir *ir, const uly_type *type);

#endif
