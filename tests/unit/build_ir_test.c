// A graph made by hand becomes IR: operations with their attributes, loops with what they carry, names, places in the spec, and the roundings of bf16 chains. The
// result goes through the passes up to verify_distribution.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "passes/pipeline.h"

enum { B = 0, S = 1, L = 3 };

typedef struct fixture {
  uly_arena *arena;
  uly_diags diags;
  uly_ir *ir;
  uly_graph graph;
  uly_graph_entry entry;
  uly_graph_region *region; // where values go
  MlirModule module;
} fixture;

static const char spec[] = "ulyc 1\nlayer one\nlayer two\nlayer three\n";

static int set_up(void **state) {
  uly_arena *arena = uly_arena_create();
  fixture *f = ULY_NEW(arena, fixture);
  f->arena = arena;
  uly_diags_init(&f->diags, arena);
  uly_diags_add_source(&f->diags, ULY_STR("test.spec"), uly_str_of(spec));
  f->ir = uly_ir_create(arena, &f->diags);
  f->ir->file = ULY_STR("test.spec");
  f->ir->graph = &f->graph;
  f->graph = (uly_graph){
      .symbols = ULY_NEW_ARRAY(arena, uly_str, 2), .n_symbols = 2, .axes = ULY_NEW(arena, uly_grid_axis), .n_axes = 1, .entries = &f->entry, .n_entries = 1};
  f->graph.symbols[B] = ULY_STR("B");
  f->graph.symbols[S] = ULY_STR("S");
  f->graph.axes[0] = (uly_grid_axis){.name = ULY_STR("sp"), .symbols = {S}, .n_symbols = 1};
  f->entry = (uly_graph_entry){.name = ULY_STR("f"), .is_model = true};
  f->entry.inputs = ULY_NEW_ARRAY(arena, uly_graph_input, 4);
  f->entry.results = ULY_NEW_ARRAY(arena, uly_graph_result, 4);
  f->region = &f->entry.body;
  f->module = uly_ir_module_create(f->ir);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  mlirModuleDestroy(f->module);
  uly_ir_destroy(f->ir);
  uly_arena_destroy(f->arena);
  return 0;
}

// ---- a graph by hand

// [B, S, rest…], or without B and S where |rows| is false.
static uly_tensor_type shape(uly_dtype dtype, bool rows, int n, int64_t a, int64_t b) {
  uly_tensor_type t = {.dtype = dtype};
  if (rows) {
    t.dims[t.rank++] = (uly_dim){B, 1, 0};
    t.dims[t.rank++] = (uly_dim){S, 1, 0};
  }
  if (n > 0) t.dims[t.rank++] = (uly_dim){-1, 0, a};
  if (n > 1) t.dims[t.rank++] = (uly_dim){-1, 0, b};
  return t;
}

static uly_graph_value *add(fixture *f, uly_op op, uly_tensor_type type, int n, uly_graph_value *a, uly_graph_value *b, uly_graph_value *c) {
  uly_graph_value *v = ULY_NEW(f->arena, uly_graph_value);
  v->op = op;
  v->id = f->entry.n_values++;
  v->loc = (uly_loc){.begin = 7, .end = 12, .line = 2, .column = 1};
  v->type = type;
  v->n_operands = n;
  v->operands[0] = a;
  v->operands[1] = b;
  v->operands[2] = c;
  uly_graph_region *r = f->region;
  r->values = uly_arena_grow(f->arena, r->values, sizeof(void *) * (size_t)r->n_values, sizeof(void *) * (size_t)(r->n_values + 1));
  r->values[r->n_values++] = v;
  return v;
}

static uly_graph_value *input(fixture *f, const char *name, uly_tensor_type type) {
  int32_t i = f->entry.n_inputs++;
  f->entry.inputs[i] = (uly_graph_input){.name = uly_str_of(name), .type = type, .loc = {.begin = 7, .end = 12, .line = 2, .column = 1}};
  uly_graph_value *v = add(f, ULY_OP_INPUT, type, 0, NULL, NULL, NULL);
  v->u.arg.index = i;
  return v;
}

static uly_graph_value *param(fixture *f, int n_names, int64_t a, int64_t b) {
  uly_graph_value *v = add(f, ULY_OP_PARAM, shape(ULY_F32, false, b ? 2 : 1, a, b), 0, NULL, NULL, NULL);
  v->u.param.n_names = n_names;
  v->u.param.names = ULY_NEW_ARRAY(f->arena, uly_str, n_names);
  for (int i = 0; i < n_names; i++) v->u.param.names[i] = uly_str_format(f->arena, "layer.%d.p%d", i, v->id);
  v->u.param.init = NAN;
  v->u.param.train = true;
  return v;
}

// Elementwise over operands of the result's own shape.
static uly_graph_value *map(fixture *f, uly_dtype dtype, const char *expr, uly_graph_value *a, uly_graph_value *b) {
  uly_tensor_type type = a->type;
  type.dtype = dtype;
  uly_graph_value *v = add(f, ULY_OP_MAP, type, b ? 2 : 1, a, b, NULL);
  for (int i = 0; i < v->n_operands; i++)
    for (int d = 0; d < ULY_GRAPH_MAX_DIMS; d++) v->u.map.access[i].dim[d] = (int8_t)d;
  assert_int_equal(uly_expr_parse(f->arena, uly_str_of(expr), f->graph.symbols, 2, &v->u.map.expr), ULY_OK);
  return v;
}

static void result(fixture *f, const char *name, uly_graph_value *v) {
  f->entry.results[f->entry.n_results++] = (uly_graph_result){.name = uly_str_of(name), .value = v, .loc = {.begin = 17, .end = 22, .line = 3, .column = 1}};
}

static uly_str run(fixture *f, const char *stop_after) {
  uly_pipeline_options options = {.stop_after = uly_str_of(stop_after), .verify_each = true};
  uly_status status = uly_pipeline_run(f->ir, f->module, &options);
  if (status != ULY_OK) uly_diags_print(&f->diags, stderr);
  assert_int_equal(status, ULY_OK);
  return uly_ir_print_text(f->ir, mlirModuleGetOperation(f->module));
}

static void has(uly_str text, const char *part) {
  if (!memmem(text.ptr, text.len, part, strlen(part))) fail_msg("no `%s` in\n%.*s", part, ULY_STR_ARG(text));
}

static void has_not(uly_str text, const char *part) {
  if (memmem(text.ptr, text.len, part, strlen(part))) fail_msg("`%s` in\n%.*s", part, ULY_STR_ARG(text));
}

// One attention layer, L times, over x.
static void build_layers(fixture *f) {
  uly_tensor_type x_type = shape(ULY_F32, true, 1, 64, 0), q_type = shape(ULY_F32, true, 2, 4, 16);
  uly_graph_value *x0 = input(f, "x", x_type), *doc = input(f, "doc", shape(ULY_I32, true, 0, 0, 0));
  f->entry.inputs[1].id_limit = 100;
  uly_graph_region body = {0};
  f->region = &body;
  uly_graph_value *x = add(f, ULY_OP_BODY_ARG, x_type, 0, NULL, NULL, NULL);
  uly_graph_value *n = add(f, ULY_OP_RMSNORM, x_type, 2, x, param(f, L, 64, 0), NULL);
  n->u.norm.eps = 1e-5;
  uly_graph_value *qkv[3];
  for (int i = 0; i < 3; i++) qkv[i] = add(f, ULY_OP_HEADS, q_type, 1, add(f, ULY_OP_LINEAR, x_type, 2, n, param(f, L, 64, 64), NULL), NULL, NULL);
  uly_graph_value *o = add(f, ULY_OP_ATTENTION, q_type, 4, qkv[0], qkv[1], qkv[2]);
  o->operands[3] = doc;
  o->u.attention = ULY_NEW(f->arena, uly_attention_attrs);
  *o->u.attention = (uly_attention_attrs){.scale = 0.25, .sink = -1, .q_offset = -1, .captures = 3};
  assert_int_equal(uly_expr_parse(f->arena, ULY_STR("k <= q and c0i[b, q] == c0i[b, k]"), f->graph.symbols, 2, &o->u.attention->mask), ULY_OK);
  uly_graph_value *lse = add(f, ULY_OP_RESULT, shape(ULY_F32, true, 1, 4, 0), 1, o, NULL, NULL);
  lse->u.arg.index = 1;
  uly_graph_value *y = map(f, ULY_F32, "x0 + x1", x, add(f, ULY_OP_MERGE, x_type, 1, o, NULL, NULL));
  body.n_yields = 1;
  body.yields = uly_arena_copy(f->arena, &y, sizeof y);
  f->region = &f->entry.body;
  uly_graph_value *loop = add(f, ULY_OP_REPEAT, x_type, 1, x0, NULL, NULL);
  loop->u.repeat.count = L;
  loop->u.repeat.body = uly_arena_copy(f->arena, &body, sizeof body);
  result(f, "out", loop);
}

static void layers_become_a_loop(void **state) {
  fixture *f = *state;
  build_layers(f);
  uly_str text = run(f, "build_ir");
  has(text, "uly.grid = [[\"sp\", \"S\"]], uly.symbols = [\"B\", \"S\"]");
  has(text,
      "func.func @f(%arg0: tensor<?x?x64xf32, \"B,S\"> {uly.name = \"x\"}, %arg1: tensor<?x?xi32, \"B,S\"> {uly.id_limit = 100 : i64, uly.name = \"doc\"})");
  has(text, "-> (tensor<?x?x64xf32, \"B,S\"> {uly.name = \"out\"}) attributes {uly.entry, uly.model}");
  has(text, "scf.for %arg2 = %c0 to %c3 step %c1 iter_args(%arg3 = %arg0) -> (tensor<?x?x64xf32, \"B,S\">)");
  has(text, "\"uly.param\"() {names = [\"layer.0.p3\", \"layer.1.p3\", \"layer.2.p3\"], train} : () -> tensor<64xf32>");
  has(text, "\"uly.rmsnorm\"(%arg3, %1) {eps = 1.000000e-05 : f64}");
  has(text, "captures = 3 : i64, mask = \"k <= q and c0i[b, q] == c0i[b, k]\"");
  has(text, "expr = \"x0 + x1\"");
}

static void the_passes_distribute_it(void **state) {
  fixture *f = *state;
  build_layers(f);
  uly_str text = run(f, "verify_distribution");
  has(text, "\"uly.all_gather\"(%arg1) {axis = \"sp\"}");
  has(text, ":3 = \"uly.exchange\"(");
  has_not(text, "uly.reshard");
}

static void output_is_the_same_every_time(void **state) {
  fixture *f = *state;
  build_layers(f);
  uly_str first = run(f, "verify_distribution");
  for (int i = 0; i < 3; i++) {
    void *again;
    set_up(&again);
    fixture *g = again;
    build_layers(g);
    uly_str text = run(g, "verify_distribution");
    assert_true(uly_str_equal(first, text));
    tear_down(&again);
  }
}

static void errors_point_into_the_spec(void **state) {
  fixture *f = *state;
  build_layers(f);
  run(f, "verify_distribution");
  uly_ops ops = uly_ir_collect(f->ir, mlirModuleGetOperation(f->module));
  int n = 0;
  for (int i = 1; i < ops.n; i++) { // the module itself has no line
    uly_loc loc = uly_op_loc(f->ir, ops.at[i]);
    assert_true(loc.line == 2 || loc.line == 3);
    assert_true(loc.begin == 7 || loc.begin == 17);
    n++;
  }
  assert_true(n > 10);
  uly_op_error(f->ir, ops.at[2], "planted");
  has(uly_diags_text(&f->diags), "test.spec:2:1: error: planted\n");
}

static void chains_of_bf16_keep_f32_between_maps(void **state) {
  fixture *f = *state;
  uly_graph_value *x = input(f, "x", shape(ULY_BF16, true, 1, 8, 0)), *z = input(f, "z", shape(ULY_F32, true, 1, 8, 0));
  uly_graph_value *a = map(f, ULY_BF16, "exp(x0)", x, NULL); // only a map reads it: f32
  uly_graph_value *b = map(f, ULY_BF16, "x0 * x1", a, x);    // a result: rounds
  uly_graph_value *c = map(f, ULY_BF16, "x0", z, NULL);      // a cast: rounds
  uly_graph_value *d = map(f, ULY_BF16, "tanh(x0)", c, NULL);
  uly_graph_value *e = map(f, ULY_BF16, "sin(x0)", d, NULL);
  result(f, "b", b);
  result(f, "e", e);
#define ONE ", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : "
  uly_str text = run(f, "build_ir");
  has(text, "expr = \"exp(x0)\"" ONE "(tensor<?x?x8xbf16, \"B,S\">) -> tensor<?x?x8xf32, \"B,S\">");
  has(text, "(tensor<?x?x8xf32, \"B,S\">, tensor<?x?x8xbf16, \"B,S\">) -> tensor<?x?x8xbf16, \"B,S\">");
  has(text, "expr = \"x0\"" ONE "(tensor<?x?x8xf32, \"B,S\">) -> tensor<?x?x8xbf16, \"B,S\">");
  has(text, "expr = \"tanh(x0)\"" ONE "(tensor<?x?x8xbf16, \"B,S\">) -> tensor<?x?x8xf32, \"B,S\">");
  has(text, "expr = \"sin(x0)\"" ONE "(tensor<?x?x8xf32, \"B,S\">) -> tensor<?x?x8xbf16, \"B,S\">");
#undef ONE
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(layers_become_a_loop), TEST(the_passes_distribute_it), TEST(output_is_the_same_every_time),
                                     TEST(errors_point_into_the_spec), TEST(chains_of_bf16_keep_f32_between_maps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
