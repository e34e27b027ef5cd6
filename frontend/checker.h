// Inside of the checker: what its files share. A spec is checked by evaluating it: an expression has a static value, or stands for a tensor (a value of the graph being built),
// a place's number (a node of the expression being built) or a mask or score. Files, in the order in which a spec meets them:
//   check.c         entries, and what is done before and after them          scopes.c      names: declarations, locals, symbols; -D
//   eval.c          expressions                                              statics.c     static numbers, also those that vary with a repeat
//   select.c        if                                                       indexing.c    brackets
//   shapes.c        dims, types, unification, broadcasting                   params.c      parameters and their names
//   maps.c          elementwise tensor code                                  angles.c      cos and sin of rope, in float64
//   scalar_code.c   fn, masks, scores                                        layers.c      calls of layers, statements
//   repeats.c       repeat                                                   graph_build.c values of the graph
//   calls.c         arguments of built-in functions; their rows are in builtins.def, their checkers in ops_*.c
#ifndef ULY_FRONTEND_CHECKER_H
#define ULY_FRONTEND_CHECKER_H

#include "frontend/check.h"
#include "frontend/checker_values.h"

typedef struct uly_checker uly_checker;

// ---- graph under construction

typedef struct uly_region {
  struct uly_region *parent;
  uly_graph_value **values;
  int32_t n, cap, depth;
} uly_region;

// A repeat being expanded. VARYING values have `total` items.
typedef struct uly_loop {
  struct uly_loop *parent;
  int64_t count, total;
  int64_t period, wanted; // bodies an iteration; how many a value asked for
} uly_loop;

typedef struct uly_param_name {
  uly_str name;
  uly_graph_value *value;
  uly_loc loc;
} uly_param_name;

struct uly_checker {
  uly_arena *arena;
  uly_diags *diags;
  uly_graph *graph;
  uly_dtype dtype;
  // scopes.c
  uly_global *globals;
  int32_t n_globals, n_prelude, *global_slots, n_global_slots;
  // the entry
  uly_region *region;
  uly_loop *loop;
  uly_graph_input *inputs;
  uly_param_name *params;
  int32_t n_params, cap_params, *param_slots, n_param_slots;
  int64_t n_values, steps;
  int32_t nesting;
  bool exhausted; // a limit has been reported
  // the expression that scalar code is building, or NULL in tensor code; the MAP that it will be, or NULL in masks and scores
  uly_expr_builder *builder;
  struct uly_map_builder *map;
  int64_t heads; // query heads of the attention whose mask or score is being built
};

// ---- diagnostics: like uly_diag_add, with notes that lead from |scope| to the entry

#define ULY_CHECK_ERROR(c, scope, loc, ...) uly_check_notes(c, scope, uly_diag_add((c)->diags, loc, __VA_ARGS__))
uly_diag *uly_check_notes(uly_checker *c, const uly_scope *scope, uly_diag *diag);
static inline uly_value uly_poison(void) { return (uly_value){.kind = ULY_VALUE_POISON}; }
const char *uly_value_describe(const uly_value *value); // "an int", "a tensor"

// ---- scopes.c

void uly_scopes_declare(uly_checker *c, const uly_ast_spec *spec, bool prelude);
void uly_scopes_define(uly_checker *c, const uly_define *defines, int32_t n);
uly_global *uly_scopes_global(uly_checker *c, uly_str name);
uly_value uly_scopes_const(uly_checker *c, uly_global *global);
uly_binding *uly_scopes_find(uly_scope *scope, uly_str name);
uly_binding *uly_scopes_bind(uly_checker *c, uly_scope *scope, uly_ast_name name, uly_value value); // adds without looking
uly_symbol_binding *uly_scopes_symbol(const uly_frame *frame, uly_str name);
// The value of a name, with an error where there is none.
uly_value uly_scopes_value(uly_checker *c, uly_scope *scope, uly_str name, uly_loc loc);
// Adds the note with names that |scope| sees; |callable| those that can be called.
void uly_scopes_suggest(uly_checker *c, uly_scope *scope, uly_diag *diag, uly_str name, bool callable);

// ---- eval.c

uly_value uly_eval(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr);
uly_value uly_eval_apply(uly_checker *c, uly_scope *scope, uly_loc loc, uly_scalar op, const uly_value *args, int n);
// A number, size or node as a node of |b|; -1 for others.
int32_t uly_eval_node(uly_checker *c, uly_expr_builder *b, uly_value value);
bool uly_eval_step(uly_checker *c, uly_loc loc); // counts work; false beyond the limit

// ---- select.c, indexing.c

uly_value uly_eval_select(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr);
uly_value uly_index(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr);
uly_value uly_index_gather(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value table, uly_value ids);

// ---- statics.c

uly_value uly_static_int(int64_t value);
uly_value uly_static_float(double value);
uly_value uly_static_bool(bool value);
uly_value uly_static_string(uly_str value);
bool uly_value_is_static(const uly_value *value); // NUMBER STRING NONE DTYPE LIST MASK SCORE, or VARYING
uly_value uly_static_apply(uly_checker *c, uly_scope *scope, uly_loc loc, uly_scalar op, const uly_value *args, int n);
// Says why |op| does not take arguments of |types|.
void uly_static_report_types(uly_checker *c, uly_scope *scope, uly_loc loc, uly_scalar op, const uly_scalar_type *types, int n);
// A VARYING of what |map| makes of each iteration's items of |args|; plain where nothing varies.
typedef uly_value (*uly_static_map)(uly_checker *c, uly_scope *scope, uly_loc loc, void *context, const uly_value *args, int n);
uly_value uly_static_each(uly_checker *c, uly_scope *scope, uly_loc loc, uly_static_map map, void *context, const uly_value *args, int n);
// What a value is in the first iteration: itself where it does not vary.
static inline const uly_value *uly_static_first(const uly_value *value) { return value->kind == ULY_VALUE_VARYING ? &value->u.list.items[0] : value; }
// Item of iteration |i| of |total|.
uly_value uly_static_at(const uly_value *value, int64_t i, int64_t total);
// A value that must not vary: where it does, asks the repeat for as many bodies as there are different values, and gives the first.
uly_value uly_static_demand(uly_checker *c, uly_value value);
// Typed access for arguments: errors name |what|.
bool uly_static_get_int(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value value, const char *what, int64_t *out);
bool uly_static_get_float(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value value, const char *what, double *out);
bool uly_static_get_bool(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value value, const char *what, bool *out);

// ---- shapes.c

uly_value uly_dim_value(uly_checker *c, uly_dim dim);
bool uly_dim_linear(const uly_expr *size, uly_dim *out);
// a op b, where that is a dim again: + - * // and negation.
bool uly_dim_apply(uly_scalar op, uly_dim a, uly_dim b, uly_dim *out);
// Errors for factors and sums beyond what a tensor can have.
bool uly_dim_check_terms(uly_checker *c, uly_scope *scope, uly_loc loc, uly_dim dim);
bool uly_dim_of_value(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value value, uly_dim *out); // at least 1 where const
uly_str uly_dim_text(uly_checker *c, uly_dim dim);
uly_str uly_shape_text(uly_checker *c, const uly_tensor_type *type);
// The dtype that a type is written with.
bool uly_type_dtype(uly_checker *c, uly_scope *scope, const uly_ast_type *type, uly_dtype *out);
// Binds symbols of |frame| to the dims of |value|, whose type is declared as |type|; dims that are computed from other symbols are compared by uly_shape_check.
bool uly_shape_unify(uly_checker *c, uly_scope *scope, uly_frame *frame, const uly_ast_type *type, uly_str name, const uly_tensor_type *value, uly_loc loc);
bool uly_shape_check(uly_checker *c, uly_scope *scope, const uly_ast_type *type, uly_str name, const uly_tensor_type *value, uly_loc loc);
// Result of stretching |a| and |b| to each other; false where they do not fit.
bool uly_shape_broadcast(const uly_tensor_type *a, const uly_tensor_type *b, uly_tensor_type *out);
// The dim that counts rows: the last one of a size known only at bind, but not a batch in front of rows of constant number. |type| has dims.
int32_t uly_shape_row_dim(const uly_checker *c, const uly_tensor_type *type);
// Bytes of what is known of the size; false beyond the limit.
bool uly_shape_fits(const uly_tensor_type *type);

// ---- graph_build.c

uly_graph_value *uly_build_value(uly_checker *c, uly_op op, uly_loc loc, const uly_tensor_type *type, uly_graph_value *const *operands, int n);
uly_graph_value *uly_build_in(uly_checker *c, uly_region *region, uly_op op, uly_loc loc, const uly_tensor_type *type, uly_graph_value *const *operands, int n);
uly_value uly_build_tensor(uly_graph_value *value, bool weak);
// x[…, begin : end, …] at dim |dim|.
uly_value uly_build_slice(uly_checker *c, uly_loc loc, uly_value x, int32_t dim, uly_dim begin, uly_dim end);
uly_graph_value *uly_build_result(uly_checker *c, uly_graph_value *of, int32_t index, const uly_tensor_type *type);
uly_region *uly_build_region(uly_checker *c);
// The outermost open region that sees all of |operands|.
uly_region *uly_build_outermost(uly_checker *c, uly_graph_value *const *operands, int n);
void uly_build_finish(uly_checker *c, uly_graph_entry *entry); // numbers the values

// ---- maps.c

typedef struct uly_map_builder uly_map_builder;
struct uly_map_builder {
  uly_checker *c;
  uly_expr_builder *b;
  uly_value operands[ULY_MAX_OPERANDS];
  int32_t n;
  bool has_tensors; // it will be a tensor, not a size: numbers that vary with a repeat are tables then
  bool failed;
};

uly_map_builder uly_map_begin(uly_checker *c);
int32_t uly_map_operand(uly_map_builder *m, uly_value tensor);                  // its node
int32_t uly_map_value(uly_map_builder *m, uly_loc loc, const uly_value *value); // a number, size, node or tensor; -1 for others
// An int or float that differs between the iterations of open repeats, as a TABLE.
bool uly_map_is_table(const uly_checker *c, const uly_value *value);
uly_graph_value *uly_map_table(uly_checker *c, uly_loc loc, const uly_value *varying);
uly_value uly_map_end(uly_map_builder *m, uly_scope *scope, uly_loc loc, int32_t node);
// x as |dtype|.
uly_value uly_map_cast(uly_checker *c, uly_loc loc, uly_value x, uly_dtype dtype);
// A MAP with one operand whose elements are x's, moved: dim d of x is indexed by result dim |access[d]|.
uly_value uly_map_move(uly_checker *c, uly_loc loc, uly_value x, const uly_tensor_type *type, const int8_t *access);
// The index along |dim| of a result of |type|.
uly_value uly_map_index(uly_checker *c, uly_loc loc, const uly_tensor_type *type, int32_t dim);
uly_value uly_map_fill(uly_checker *c, uly_loc loc, const uly_tensor_type *type, double value);
uly_scalar_type uly_map_scalar_type(uly_dtype dtype);

// ---- angles.c

// cos and sin of |angle| [B, S, R/2], computed in float64 from what |angle| was computed from.
void uly_angle_cos_sin(uly_checker *c, uly_loc loc, uly_value angle, uly_graph_value **out_cos, uly_graph_value **out_sin);

// ---- scalar_code.c

uly_value uly_scalar_fn(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, uly_global *global);
uly_value uly_closure_of(uly_checker *c, uly_scope *scope, uly_loc loc, uly_global *global, const uly_ast_expr *call); // call NULL: without captures
// One or two masks or scores combined, iteration by iteration where they vary.
uly_value uly_closure_each(uly_checker *c, uly_scope *scope, uly_loc loc, uly_closure_kind kind, const uly_value *args, int n);
// The expression of a mask or score; captured tensors are added to |captures|, at most ULY_MAX_OPERANDS.
// A score's s comes in times |factor|, a TABLE or NULL; |closure| may be NONE then.
bool uly_closure_expr(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value closure, uly_graph_value *factor, uly_graph_value **captures,
                      int32_t *n_captures, uly_expr *out);

// ---- params.c

uly_value uly_param_create(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value name, const uly_tensor_type *type, double init, bool train, bool tie);
// |name|.suffix, created: what short forms of linear, embed and the norms do. Error where |name| is NONE.
uly_value uly_param_short(uly_checker *c, uly_scope *scope, uly_loc loc, const char *op, uly_value name, const char *suffix, const int64_t *dims, int32_t rank,
                          double init);
uly_value uly_param_string(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr); // a string with its holes filled
uly_value uly_param_join(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value prefix, uly_value name);
void uly_param_forget(uly_checker *c, int32_t n_kept);

// ---- layers.c, repeats.c

uly_value uly_layer_call(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, uly_global *global);
// Runs the body of |scope|'s frame, and checks what it returns, one value a result of the declaration, against the types seen from |signature|. NULL with an error.
uly_value *uly_layer_body(uly_checker *c, uly_scope *signature, uly_scope *scope);
// Statements but return; false after an error that makes the rest pointless.
void uly_layer_statement(uly_checker *c, uly_scope *scope, const uly_ast_stmt *stmt);
// An argument or result against its declared type: unifies, casts what is weak; shapes are left to uly_shape_check. |inner| sees the declaration's names.
bool uly_layer_tensor(uly_checker *c, uly_scope *scope, uly_scope *inner, uly_frame *frame, const uly_ast_type *type, uly_str name, uly_loc loc,
                      uly_value *value);
// All free symbols and those of |decl| (may be NULL), open.
uly_symbols uly_layer_symbols(uly_checker *c, const uly_ast_decl *decl);
bool uly_layer_let(uly_checker *c, uly_scope *scope, const uly_ast_stmt *stmt);
void uly_repeat(uly_checker *c, uly_scope *scope, const uly_ast_stmt *stmt);
bool uly_layer_enter(uly_checker *c, uly_scope *scope, uly_loc loc, uly_global *global, uly_frame *frame); // false: recursion, or too deep

#endif
