// The parser's trees: precedence, places, and every form of the grammar. What it refuses is tested in tests/frontend.
#include "frontend/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *const op_text[] = {
#define SCALAR(id, text, n_args, class, doc) text,
#include "frontend/scalar.def"
};

static void show(uly_text *out, const uly_ast_expr *e);

static void show_list(uly_text *out, const char *head, uly_ast_expr *const *items, int32_t n) {
  uly_text_add(out, "(%s", head);
  for (int32_t i = 0; i < n; i++) {
    uly_text_add(out, " ");
    show(out, items[i]);
  }
  uly_text_add(out, ")");
}

static void show_type(uly_text *out, const uly_ast_type *t) {
  uly_text_add(out, "%.*s", ULY_STR_ARG(t->name.text));
  if (!t->has_dims) return;
  uly_text_add(out, "<");
  for (int32_t i = 0; i < t->n_dims; i++) {
    if (i) uly_text_add(out, " ");
    if (t->dims[i].size)
      show(out, t->dims[i].size);
    else
      uly_text_add(out, "...");
  }
  uly_text_add(out, ">");
}

static void show_compare(uly_text *out, const uly_ast_expr *e) {
  uly_text_add(out, "(");
  for (int32_t i = 0; i < e->u.compare.n; i++) {
    if (i) uly_text_add(out, " %s ", op_text[e->u.compare.ops[i - 1]]);
    show(out, e->u.compare.args[i]);
  }
  uly_text_add(out, ")");
}

static void show_call(uly_text *out, const uly_ast_expr *e) {
  uly_text_add(out, "(call ");
  show(out, e->u.call.callee);
  for (int32_t i = 0; i < e->u.call.n; i++) {
    const uly_ast_arg *a = &e->u.call.args[i];
    uly_text_add(out, a->name.text.len ? " %.*s=" : " %.*s", ULY_STR_ARG(a->name.text));
    show(out, a->value);
  }
  uly_text_add(out, ")");
}

static void show_index(uly_text *out, const uly_ast_expr *e) {
  uly_text_add(out, "(index ");
  show(out, e->u.index.base);
  for (int32_t i = 0; i < e->u.index.n; i++) {
    const uly_ast_index *x = &e->u.index.items[i];
    uly_text_add(out, " ");
    if (x->kind == ULY_AST_ELLIPSIS) uly_text_add(out, "...");
    if (x->kind == ULY_AST_NEW_DIM) uly_text_add(out, "_");
    if (x->begin) show(out, x->begin);
    if (x->kind == ULY_AST_SLICE) uly_text_add(out, ":");
    if (x->end) show(out, x->end);
  }
  uly_text_add(out, ")");
}

static void show_string(uly_text *out, const uly_ast_expr *e) {
  uly_text_add(out, "'");
  for (int32_t i = 0; i < e->u.string.n; i++) {
    uly_text_add(out, "%.*s", ULY_STR_ARG(e->u.string.pieces[i].text));
    if (e->u.string.pieces[i].hole) show(out, e->u.string.pieces[i].hole);
  }
  uly_text_add(out, "'");
}

static void show(uly_text *out, const uly_ast_expr *e) {
  switch ((uly_ast_expr_kind)e->kind) {
  case ULY_AST_INT: uly_text_add(out, "%lld", (long long)e->u.i); return;
  case ULY_AST_FLOAT: uly_text_add(out, "%g", e->u.f); return;
  case ULY_AST_BOOL: uly_text_add(out, e->u.b ? "true" : "false"); return;
  case ULY_AST_NONE: uly_text_add(out, "none"); return;
  case ULY_AST_STRING: show_string(out, e); return;
  case ULY_AST_NAME: uly_text_add(out, "%.*s", ULY_STR_ARG(e->u.name)); return;
  case ULY_AST_LIST: show_list(out, "list", e->u.list.items, e->u.list.n); return;
  case ULY_AST_TYPE: show_type(out, e->u.type); return;
  case ULY_AST_UNARY: show_list(out, op_text[e->op], e->u.args, 1); return;
  case ULY_AST_BINARY: show_list(out, op_text[e->op], e->u.args, 2); return;
  case ULY_AST_COMPARE: show_compare(out, e); return;
  case ULY_AST_IF: show_list(out, "if", e->u.args, 3); return;
  case ULY_AST_THEN: show_list(out, "then", e->u.args, 2); return;
  case ULY_AST_CALL: show_call(out, e); return;
  case ULY_AST_INDEX: show_index(out, e); return;
  }
}

static void test_precedence(void **state) {
  static const char *const rows[][2] = {
      {"1 + 2 * 3", "(+ 1 (* 2 3))"},
      {"1 - 2 - 3", "(- (- 1 2) 3)"},
      {"a / b // c % d * e", "(* (% (// (/ a b) c) d) e)"},
      {"-x ** 2", "(- (** x 2))"},
      {"2 ** -x", "(** 2 (- x))"},
      {"2 ** 3 ** 4", "(** 2 (** 3 4))"},
      {"-2 * -3", "(* (- 2) (- 3))"},
      {"--x", "(- (- x))"},
      {"a + b < c - d", "((+ a b) < (- c d))"},
      {"0 <= q - k < W", "(0 <= (- q k) < W)"},
      {"(a < b) < c", "((a < b) < c)"},
      {"not a < b and c or d and not not e", "(or (and (not (a < b)) c) (and d (not (not e))))"},
      {"a or if b then c else d", NULL},
      {"if a or b then c else d or e", "(if (or a b) c (or d e))"},
      {"if a then b else if c then d else e", "(if a b (if c d e))"},
      {"if if a then b else c then d else e", "(if (if a b c) d e)"},
      {"a then b then c", "(then (then a b) c)"},
      {"if a then b then c else d then e", "(if a (then b c) (then d e))"},
      {"if if a then b else c then d then e else f", "(if (if a b c) (then d e) f)"},
      {"f(x)(y)[1][2]", "(index (index (call (call f x) y) 1) 2)"},
      {"-f(x)[0] ** y[1]", "(- (** (index (call f x) 0) (index y 1)))"},
      {"a == b != c >= d > e", "(a == b != c >= d > e)"},
      {"1 + (2 + 3)", "(+ 1 (+ 2 3))"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uly_arena *arena = uly_arena_create();
    uly_diags diags;
    uly_ast_name name;
    uly_text text = {.arena = arena}, out = {.arena = arena};
    uly_text_add(&text, "a=%s", rows[i][0]);
    uly_diags_init(&diags, arena);
    const uly_ast_expr *e = uly_parse_define(arena, &diags, uly_diags_add_source(&diags, ULY_STR("row"), uly_text_str(&text)), &name);
    if (rows[i][1]) {
      assert_non_null(e);
      show(&out, e);
      assert_string_equal(out.ptr, rows[i][1]);
    } else {
      assert_null(e);
      assert_int_equal(diags.n_errors, 1);
    }
    uly_arena_destroy(arena);
  }
}

static void test_primaries(void **state) {
  static const char *const rows[][2] = {
      {"x[..., _]", "(index x ... _)"},
      {"x[:, 0 : n, 1:, :2, i + 1]", "(index x : 0:n 1: :2 (+ i 1))"},
      {"linear(x, 3 * D, bias = true, name = \"q\",)", "(call linear x (* 3 D) bias=true name='q')"},
      {"param(\"experts.{i % 2}.w{i}\", bf16[V, 2 * D])", "(call param 'experts.(% i 2).wi' bf16<V (* 2 D)>)"},
      {"\"\"", "''"},
      {"[]", "(list)"},
      {"[1, 2.5, [x],]", "(list 1 2.5 (list x))"},
      {"f32[]", "f32<>"},
      {"f32", "f32"},
      {"1e3 + 1.5e-2", "(+ 1000 0.015)"},
      {"f(\n  a\n  ,\n  b\n)", "(call f a b)"},
      {"1 +\n  2", "(+ 1 2)"},
      {"none", "none"},
      {"9223372036854775807", "9223372036854775807"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uly_arena *arena = uly_arena_create();
    uly_diags diags;
    uly_ast_name name;
    uly_text text = {.arena = arena}, out = {.arena = arena};
    uly_text_add(&text, "a=%s", rows[i][0]);
    uly_diags_init(&diags, arena);
    const uly_ast_expr *e = uly_parse_define(arena, &diags, uly_diags_add_source(&diags, ULY_STR("row"), uly_text_str(&text)), &name);
    assert_non_null(e);
    show(&out, e);
    assert_string_equal(out.ptr, rows[i][1]);
    uly_arena_destroy(arena);
  }
}

static const char spec_text[] = "\xEF\xBB\xBF# a comment may precede the version\r\n"
                                "ulyc 1\r\n"
                                "const D = 4,\n"
                                "      E = 2 * D   # and follow\n"
                                "free B, S\n"
                                "grid sp(S, T), dp(B)\n"
                                "dtype bf16\n"
                                "mask keep(b, k; m: bool[B, S], n: i32[B] = 0) { t = m[b, k]\n return t }\n"
                                "layer a[N, M](x: [..., N], s: int = 3, mask: mask) -> (y: [..., N], z: f32[B]) {\n"
                                "  u, _, w = split(x, [1, 2])\n"
                                "  repeat s + 1 as i { u = u + i }\n"
                                "\n"
                                "  repeat 2 { w = w\n }\n"
                                "  return u, w\n"
                                "}\n"
                                "model b(x: [B]) -> [B] = x";

static void test_declarations(void **state) {
  uly_arena *arena = uly_arena_create();
  uly_diags diags;
  (void)state;
  uly_diags_init(&diags, arena);
  uly_ast_spec *spec = uly_parse_spec(arena, &diags, uly_diags_add_source(&diags, ULY_STR("spec"), (uly_str){spec_text, sizeof spec_text - 1}));
  uly_diags_print(&diags, stderr);
  assert_non_null(spec);
  static const uly_ast_decl_kind kinds[] = {ULY_AST_CONST, ULY_AST_CONST, ULY_AST_FREE, ULY_AST_FREE,  ULY_AST_GRID,
                                            ULY_AST_GRID,  ULY_AST_DTYPE, ULY_AST_MASK, ULY_AST_LAYER, ULY_AST_MODEL};
  assert_int_equal(spec->n_decls, 10);
  for (int i = 0; i < 10; i++) assert_int_equal(spec->decls[i].kind, kinds[i]);
  assert_int_equal(spec->decls[4].u.grid.n_dims, 2);
  const uly_ast_decl *mask = &spec->decls[7], *layer = &spec->decls[8], *model = &spec->decls[9];
  assert_int_equal(mask->u.body.n_params, 2);
  assert_int_equal(mask->u.body.n_captures, 2);
  assert_int_equal(mask->u.body.body.n, 2);
  assert_non_null(mask->u.body.captures[1].value);
  assert_int_equal(layer->u.body.n_symbols, 2);
  assert_int_equal(layer->u.body.n_results, 2);
  assert_null(layer->u.body.params[0].type->dims[0].size);
  assert_false(layer->u.body.params[2].type->has_dims);
  const uly_ast_block *body = &layer->u.body.body;
  assert_int_equal(body->n, 4);
  assert_int_equal(body->stmts[0].u.let.n_names, 3);
  assert_true(uly_str_is(body->stmts[1].u.repeat.counter.text, "i"));
  assert_int_equal(body->stmts[2].u.repeat.counter.text.len, 0);
  assert_int_equal(body->stmts[3].u.ret.n, 2);
  assert_int_equal(model->u.body.body.n, 1);
  assert_int_equal(model->u.body.body.stmts[0].kind, ULY_AST_RETURN);
  assert_int_equal(model->u.body.results[0].name.text.len, 0);
  uly_arena_destroy(arena);
}

// Columns count characters, offsets bytes, and offsets of a second source begin behind the first.
static void test_places(void **state) {
  uly_arena *arena = uly_arena_create();
  uly_diags diags;
  uly_ast_name name;
  (void)state;
  uly_diags_init(&diags, arena);
  uly_diags_add_source(&diags, ULY_STR("first"), ULY_STR("12345"));
  const uly_ast_expr *e = uly_parse_define(arena, &diags, uly_diags_add_source(&diags, ULY_STR("second"), ULY_STR("a = \"漢{\xC3\xA4}\" + 1")), &name);
  assert_null(e); // ä is no name
  assert_int_equal(diags.n_errors, 2);
  assert_int_equal(diags.first->loc.column, 8);
  assert_int_equal(diags.first->loc.begin, 6 + 9);
  e = uly_parse_define(arena, &diags, uly_diags_add_source(&diags, ULY_STR("third"), ULY_STR("a = (b +\n  c) * 2")), &name);
  assert_non_null(e);
  assert_int_equal(diags.n_errors, 2); // those from before
  assert_int_equal(e->loc.begin - diags.sources[2].base, 4);
  assert_int_equal(e->loc.end - diags.sources[2].base, 17);
  assert_int_equal(e->u.args[1]->loc.line, 2);
  assert_int_equal(e->u.args[1]->loc.column, 8);
  uly_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_precedence),
      cmocka_unit_test(test_primaries),
      cmocka_unit_test(test_declarations),
      cmocka_unit_test(test_places),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
