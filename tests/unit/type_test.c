// The encoding of tensor types: every form round-trips as text and as an MLIR type, equal types are the same MLIR type, and what is not written as the printer
// writes it is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "passes/ir.h"

typedef struct fixture {
  uly_arena *arena;
  uly_diags diags;
  uly_ir *ir;
  uly_str symbols[3];
  uly_grid_axis axes[2];
} fixture;

static int set_up(void **state) {
  uly_arena *arena = uly_arena_create();
  fixture *f = ULY_NEW(arena, fixture);
  f->arena = arena;
  uly_diags_init(&f->diags, arena);
  f->ir = uly_ir_create(arena, &f->diags);
  f->symbols[0] = ULY_STR("B");
  f->symbols[1] = ULY_STR("S");
  f->symbols[2] = ULY_STR("T");
  f->axes[0] = (uly_grid_axis){.name = ULY_STR("sp"), .symbols = {1, 2}, .n_symbols = 2};
  f->axes[1] = (uly_grid_axis){.name = ULY_STR("dp"), .symbols = {0}, .n_symbols = 1};
  f->ir->names = (uly_names){.symbols = f->symbols, .n_symbols = 3, .axes = f->axes, .n_axes = 2};
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  uly_ir_destroy(f->ir);
  uly_arena_destroy(f->arena);
  return 0;
}

// [B, 2·T + 1, S − 1, 3·S, 8, 16]
static uly_tensor_type tensor(void) {
  return (uly_tensor_type){.dtype = ULY_BF16, .rank = 6, .dims = {{0, 1, 0}, {2, 2, 1}, {1, 1, -1}, {1, 3, 0}, {-1, 0, 8}, {-1, 0, 16}}};
}

static void round_trip(fixture *f, uly_type type, const char *text) {
  uly_str printed = uly_encoding_print(f->arena, &f->ir->names, &type), error;
  uly_type read;
  assert_true(uly_str_is(printed, text));
  MlirType mlir = uly_type_build(f->ir, &type);
  assert_true(uly_type_read(f->ir, mlir, &read, &error));
  assert_true(uly_type_equal(&type, &read));
  assert_true(mlirTypeEqual(mlir, uly_type_build(f->ir, &read)));
}

static void every_form_round_trips(void **state) {
  fixture *f = *state;
  uly_tensor_type t = tensor();
  uly_type type = uly_type_global(&f->ir->names, &t);
  round_trip(f, type, "B,2*T+1,S-1,3*S");
  type.storage = ULY_STR("panel(heads, rope)");
  round_trip(f, type, "B,2*T+1,S-1,3*S @panel(heads, rope)");
  type.storage = (uly_str){0};
  static const struct {
    uly_dist dist;
    const char *text;
  } forms[] = {
      {{.kind = ULY_DIST_REPLICATED}, "B,2*T+1,S-1,3*S sp=* dp=0"},
      {{.kind = ULY_DIST_SPLIT, .dim = 3}, "B,2*T+1,S-1,3*S sp=3 dp=0"},
      {{.kind = ULY_DIST_COVER, .dim = 4, .group = 4}, "B,2*T+1,S-1,3*S sp=4/4 dp=0"},
      {{.kind = ULY_DIST_PARTIAL}, "B,2*T+1,S-1,3*S sp=+ dp=0"},
      {{.kind = ULY_DIST_COVER_PARTIAL, .dim = 4, .group = 4}, "B,2*T+1,S-1,3*S sp=4/4+ dp=0"},
      {{.kind = ULY_DIST_COVER_PARTIAL, .dim = 4, .group = 1}, "B,2*T+1,S-1,3*S sp=4/1+ dp=0"},
      {{.kind = ULY_DIST_FLAT}, "B,2*T+1,S-1,3*S sp=flat dp=0"},
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    type.dist[0] = forms[i].dist;
    type.dist[1] = uly_dist_split(0);
    round_trip(f, type, forms[i].text);
  }
}

static void constant_shapes_have_the_shortest_text(void **state) {
  fixture *f = *state;
  uly_tensor_type t = {.dtype = ULY_U8, .rank = 2, .dims = {{-1, 0, 3}, {-1, 0, 4}}};
  uly_type type = uly_type_global(&f->ir->names, &t);
  round_trip(f, type, "");
  assert_true(mlirAttributeIsNull(mlirRankedTensorTypeGetEncoding(uly_type_build(f->ir, &type))));
  type.dist[0] = type.dist[1] = uly_dist_of(ULY_DIST_REPLICATED);
  round_trip(f, type, "sp=* dp=*");
  t.rank = 0;
  type = uly_type_global(&f->ir->names, &t);
  round_trip(f, type, "");
}

static void a_cover_of_one_is_a_split(void **state) {
  (void)state;
  assert_true(uly_dist_equal(uly_dist_cover(2, 1), uly_dist_split(2)));
  assert_int_equal(uly_dist_cover(2, 4).kind, ULY_DIST_COVER);
}

static void rows_are_the_first_whole_dim_of_the_axis(void **state) {
  fixture *f = *state;
  uly_tensor_type t = tensor();
  assert_int_equal(uly_type_row_dim(&f->ir->names, &t, 0), 3); // 2·T + 1 and S − 1 are not cut
  assert_int_equal(uly_type_row_dim(&f->ir->names, &t, 1), 0);
  t.rank = 1;
  assert_int_equal(uly_type_row_dim(&f->ir->names, &t, 0), -1);
}

static void other_text_is_refused(void **state) {
  fixture *f = *state;
  static const char *const texts[] = {"",
                                      "B",
                                      "B,S,T,T,T",
                                      "B,S,T,R",
                                      "B,S,T,0*T",
                                      "B,S,T,1*T",
                                      "B,S,T,02*T",
                                      "B,S,T,T+0",
                                      "B,S,T,T+01",
                                      "B,S,T,T ",
                                      " B,S,T,T",
                                      "B,S,T,",
                                      "B,S,T,T sp=*",
                                      "B,S,T,T dp=0 sp=*",
                                      "B,S,T,T sp=* dp=* x=1",
                                      "B,S,T,T sp=6 dp=*",
                                      "B,S,T,T sp=0 dp=0",
                                      "B,S,T,T sp=1/2 dp=*",
                                      "B,S,T,T sp=4/1 dp=*",
                                      "B,S,T,T sp=4/0+ dp=*",
                                      "B,S,T,T sp=4/ dp=*",
                                      "B,S,T,T sp=-1 dp=*",
                                      "B,S,T,T sp=** dp=*",
                                      "B,S,T,T sp=99999999999999999999 dp=*",
                                      "B,S,T,T @",
                                      "B,S,T,T sp=1  dp=*",
                                      "B,99999999999999999999*S,T,T"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    uly_type type = {.tensor = tensor()};
    for (int d = 0; d < 4; d++) type.tensor.dims[d] = (uly_dim){.symbol = ULY_DIM_UNNAMED};
    uly_str error = uly_encoding_parse(f->arena, &f->ir->names, uly_str_of(texts[i]), &type);
    if (!error.len) fail_msg("accepted: %s", texts[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_form_round_trips),    cmocka_unit_test(constant_shapes_have_the_shortest_text),
      cmocka_unit_test(a_cover_of_one_is_a_split), cmocka_unit_test(rows_are_the_first_whole_dim_of_the_axis),
      cmocka_unit_test(other_text_is_refused),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
