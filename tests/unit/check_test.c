// The checker: the published models with the parameters of their files, and what each part of the language becomes in the graph.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frontend/graph_print.h"
#include "frontend/spec.h"
#include "tests/support/graph_reference.h"
#include "tests/support/model_files.h"

static uly_arena *arena;
static int set_up(void **state) { return (void)state, arena = uly_arena_create(), 0; }
static int tear_down(void **state) { return (void)state, uly_arena_destroy(arena), 0; }

#define HEAD "ulyc 1\nfree B, S, T\ngrid sp(S)\n"

static uly_graph *read_spec(const char *text, uly_str *out_diags) {
  uly_diags diags;
  uly_diags_init(&diags, arena);
  uly_graph *graph = uly_spec_read(arena, &diags, ULY_STR("t.spec"), uly_str_of(text), NULL, 0);
  *out_diags = uly_diags_text(&diags);
  return graph;
}

static uly_graph *graph_of(const char *text) {
  uly_str diags;
  uly_graph *graph = read_spec(text, &diags);
  if (!graph) fail_msg("%.*s", ULY_STR_ARG(diags));
  return graph;
}

// The printed graph has all of |lines|, in this order.
static void assert_lines(const char *spec, const char *const *lines, size_t n) {
  uly_text text = {.arena = arena};
  uly_graph_print(&text, graph_of(spec));
  const char *at = text.ptr;
  for (size_t i = 0; i < n; i++) {
    const char *found = strstr(at, lines[i]);
    if (!found) fail_msg("no `%s` behind line %zu of\n%s", lines[i], i, text.ptr);
    at = found + strlen(lines[i]);
  }
}
#define ASSERT_LINES(spec, ...)                                                                                                                                \
  do {                                                                                                                                                         \
    static const char *const lines_[] = {__VA_ARGS__};                                                                                                         \
    assert_lines(spec, lines_, sizeof lines_ / sizeof *lines_);                                                                                                \
  } while (0)

static int count_op(const uly_graph_region *region, uly_op op) {
  int n = 0;
  for (int32_t i = 0; i < region->n_values; i++) {
    n += region->values[i]->op == op;
    if (region->values[i]->op == ULY_OP_REPEAT) n += count_op(region->values[i]->u.repeat.body, op);
  }
  return n;
}

// ---- models ---------------------------------------------------------------------------------------------------------------------------------------------------

static int compare_lines(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void list_parameters(const uly_graph_region *region, char **lines, int32_t *n) {
  for (int32_t i = 0; i < region->n_values; i++) {
    const uly_graph_value *value = region->values[i];
    if (value->op == ULY_OP_REPEAT) list_parameters(value->u.repeat.body, lines, n);
    if (value->op != ULY_OP_PARAM) continue;
    for (int32_t j = 0; j < value->u.param.n_names; j++) {
      uly_text line = {.arena = arena};
      uly_text_add(&line, "%.*s", ULY_STR_ARG(value->u.param.names[j]));
      for (int32_t d = 0; d < value->type.rank; d++) uly_text_add(&line, " %ld", (long)value->type.dims[d].add);
      lines[(*n)++] = line.ptr;
    }
  }
}

static void assert_parameters(const char *name) {
  char folder[1024], *lines[1000];
  uly_model_files files;
  int32_t n = 0;
  snprintf(folder, sizeof folder, ULY_TEST_MODELS "/%s", name);
  uly_model_files_open(&files, folder);
  if (!files.graph) fail_msg("%.*s", ULY_STR_ARG(uly_diags_text(&files.diags)));
  list_parameters(&files.graph->entries[0].body, lines, &n);
  qsort(lines, (size_t)n, sizeof *lines, compare_lines);
  uly_text text = {.arena = arena};
  for (int32_t i = 0; i < n; i++) uly_text_add(&text, "%s\n", lines[i]);
  uly_str want = uly_model_files_text(arena, folder, "parameters");
  if (!uly_str_equal(uly_text_str(&text), want)) fail_msg("%s has\n%.*snot\n%.*s", name, (int)text.len, text.ptr, ULY_STR_ARG(want));
  uly_model_files_close(&files);
}

static void models_have_the_parameters_of_their_files(void **state) {
  (void)state;
  static const char *const names[] = {"bert", "bloom", "gemma2", "gpt2", "llama3_1", "qwen3"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_parameters(names[i]);
}

static void mixture_of_experts_is_a_later_version(void **state) {
  (void)state;
  uly_model_files files;
  uly_model_files_open(&files, ULY_TEST_MODELS "/mixtral");
  assert_null(files.graph);
  uly_str text = uly_diags_text(&files.diags);
  assert_non_null(strstr(text.ptr, "model.spec:13:10: error: `top_k` comes with a later version of the language"));
  uly_model_files_close(&files);
}

// ---- static values --------------------------------------------------------------------------------------------------------------------------------------------

static void defines_replace_consts(void **state) {
  (void)state;
  uly_diags diags;
  uly_str defines[] = {ULY_STR("D=2 * E"), ULY_STR("on=false")};
  uly_diags_init(&diags, arena);
  uly_graph *graph = uly_spec_read(
      arena, &diags, ULY_STR("t.spec"),
      ULY_STR(HEAD "const on = true, E = 3, D = 4, F = if on then D else D + 1\nlayer f(x: [S, F]) -> [S, 7] = reshape(x, [S, F])\n"), defines, 2);
  if (!graph) fail_msg("%.*s", ULY_STR_ARG(uly_diags_text(&diags)));
  assert_int_equal(graph->entries[0].inputs[0].type.dims[1].add, 7);
}

static void scalar_functions_are_inlined(void **state) {
  (void)state;
  ASSERT_LINES(HEAD "const cap = 2 ** 3, c = 1.0 / 4\nfn squash(x, a = cap) { t = x / a\n return a * tanh(t) }\n"
                    "layer f(x: [S, 4], i: i32[S]) -> [S, 4] = squash(x) + squash(i, 2.0)[..., _] * c + squash(3.0)\n",
               "%2: f32[S, 4] = map {8.0 * tanh(x0 / 8.0)} %0", "f32[S] = map {2.0 * tanh(float(x0i) / 2.0)} %1");
}

static void static_ifs_take_one_arm(void **state) {
  (void)state;
  uly_graph *graph = graph_of(HEAD "layer norm(x: [S, 4], rms: bool) -> [S, 4] = if rms then rmsnorm(x, name = \"r\") else layernorm(x, name = \"l\")\n"
                                   "layer f(x: [S, 4]) -> [S, 4] = norm(x, true)\n");
  assert_int_equal(graph->n_entries, 1);
  assert_int_equal(count_op(&graph->entries[0].body, ULY_OP_RMSNORM), 1);
  assert_int_equal(count_op(&graph->entries[0].body, ULY_OP_PARAM), 1);
}

static void strings_compare(void **state) {
  (void)state;
  uly_graph *graph =
      graph_of(HEAD "layer norm(x: [S, 4], kind: str) -> [S, 4] = if kind == \"rms\" then rmsnorm(x, name = kind) else if kind != \"l\" then x + 1 else x\n"
                    "model f(x: [S, 4]) -> [S, 4] = norm(norm(norm(x, \"rms\"), \"l\"), \"other\")\n");
  assert_int_equal(count_op(&graph->entries[0].body, ULY_OP_RMSNORM), 1);
  assert_int_equal(count_op(&graph->entries[0].body, ULY_OP_MAP), 1);
}

static void dtypes_follow_the_rules(void **state) {
  (void)state;
  ASSERT_LINES(
      HEAD
      "layer f(x: [S, 4], i: i32[S, 4], j: i64[S, 4], v: bool[S, 4], h: bf16[S, 4]) -> (a: [S, 4], b: i32[S, 4], c: i64[S, 4], d: bool[S, 4], e: [S, 4], f: "
      "bf16[S, 4], g: i64[S, 4], n: bf16[S, 4]) {\n"
      "  w = if v then 1.0 else 0.0\n  p = param(\"p\", [4])\n"
      "  return x * 2, i + 1, i * j, x < i, if v then x else i, h * p + h * w, floor(x), cast(x, bf16)\n}\n",
      "f32[S, 4] = map {x0 * 2.0}", "i32[S, 4] = map {x0i + 1}", "i64[S, 4] = map {x0i * x1i}", "bool[S, 4] = map {x0 < float(x1i)}",
      "f32[S, 4] = map {if x0b then x1 else float(x2i)}", "bf16[S, 4] = map {x0 * x1}", "i64[S, 4] = map {floor(x0)}", "bf16[S, 4] = map {x0}");
}

// ---- names ----------------------------------------------------------------------------------------------------------------------------------------------------

static void names_are_scoped(void **state) {
  (void)state;
  ASSERT_LINES(HEAD "layer two(x: [S, 4], n: str) -> [S, 4] = linear(x, 4, bias = true, name = \"{n}.a\") + linear(x, 4, name = \"b{1 + 1}\")\n"
                    "model m(x: [S, 4]) -> [S, 4] { y = x\n repeat 2 as i { repeat 3 as j { y = two(y, \"p{j}\", name = \"l.{i}.{j}\") } }\n"
                    "  return two(y, \"q\") }\n",
               "param \"l.0.0.p0.a.weight\" … \"l.1.2.p2.a.weight\" (6)", "\"l.0.0.p0.a.bias\"", "param \"l.0.0.b2.weight\" … \"l.1.2.b2.weight\" (6)",
               "param \"q.a.weight\"  #", "param \"b2.weight\"");
}

static void iterations_have_their_names_in_order(void **state) {
  (void)state;
  uly_graph *graph =
      graph_of(HEAD "model m(x: [S, 4]) -> [S, 4] { y = x\n repeat 2 as i { repeat 2 as j { y = linear(y, 4, name = \"{i}{j}\") } }\n return y }\n");
  const uly_graph_value *outer = graph->entries[0].results[0].value, *inner = outer->u.repeat.body->yields[0];
  const uly_graph_value *weight = inner->u.repeat.body->yields[0]->operands[1];
  static const char *const names[] = {"00.weight", "01.weight", "10.weight", "11.weight"};
  assert_int_equal(weight->u.param.n_names, 4);
  for (int i = 0; i < 4; i++) assert_true(uly_str_is(weight->u.param.names[i], names[i]));
}

static void tied_parameters_are_one(void **state) {
  (void)state;
  uly_graph *graph = graph_of(HEAD "layer f(x: [S, 4]) -> [S, 4] { w = param(\"w\", [4, 4])\n y = linear(x, weight = w)\n"
                                   "  repeat 3 { y = linear(y, weight = param(\"w\", [4, 4], tie = true)) }\n return y }\n");
  assert_int_equal(count_op(&graph->entries[0].body, ULY_OP_PARAM), 1);
}

// ---- repeats --------------------------------------------------------------------------------------------------------------------------------------------------

static void repeats_carry_values(void **state) {
  (void)state;
  ASSERT_LINES(HEAD "layer f(x: [S, 4], y: [S, 4]) -> (a: [S, 4], b: [S, 4]) { a = x\n b = y\n repeat 5 { c = a\n a = b + c\n b = c }\n return a, b }\n",
               "%5: f32[S, 4] = repeat 5 %0, %1", "%2: f32[S, 4] = body_arg 0", "%3: f32[S, 4] = body_arg 1", "%4: f32[S, 4] = map {x0 + x1} %3, %2",
               "yield %4, %2", "result 1", "a = %5", "b = %6");
}

// What differs between iterations makes as many bodies as it has to; the rest stands behind the loop.
static void bodies_are_copied_where_they_differ(void **state) {
  (void)state;
  static const struct {
    const char *count, *condition;
    int loops, attentions;
  } rows[] = {
      {"6", "i % 2 == 0", 1, 2}, {"7", "i % 3 == 0", 1, 4}, {"4", "i < 2", 0, 4},  {"5", "true", 1, 1},
      {"5", "i >= 0", 1, 1},     {"1", "i == 0", 0, 1},     {"0", "i == 0", 0, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uly_str spec = uly_str_format(arena,
                                  HEAD "model m(x: [B, S, 2, 4]) -> [B, S, 2, 4] { y = x\n repeat %s as i { y = attention(y, y, linear(y, 4, name = \"v{i}\"), "
                                       "mask = if %s then causal else full) }\n return y }\n",
                                  rows[i].count, rows[i].condition);
    char *text = (char *)uly_str_copy(arena, spec).ptr;
    uly_graph *graph = graph_of(text);
    assert_int_equal(count_op(&graph->entries[0].body, ULY_OP_REPEAT), rows[i].loops);
    assert_int_equal(count_op(&graph->entries[0].body, ULY_OP_ATTENTION), rows[i].attentions);
    char *lines[100];
    int32_t n = 0;
    list_parameters(&graph->entries[0].body, lines, &n);
    assert_int_equal(n, atoi(rows[i].count));
  }
}

static void nested_loops_copy_the_one_that_differs(void **state) {
  (void)state;
  const char *spec = HEAD "model m(x: [S, 4]) -> [S, 4] { y = x\n repeat 3 as i { repeat 4 as j { y = %s } }\n return y }\n";
  uly_graph *inner = graph_of(uly_str_format(arena, spec, "if j % 2 == 0 then exp(y) else sin(y)").ptr);
  uly_graph *outer = graph_of(uly_str_format(arena, spec, "if i == 0 then exp(y) else if i == 1 then sin(y) else cos(y)").ptr);
  assert_int_equal(count_op(&inner->entries[0].body, ULY_OP_REPEAT), 2);
  assert_int_equal(count_op(&inner->entries[0].body, ULY_OP_MAP), 2);
  assert_int_equal(count_op(&outer->entries[0].body, ULY_OP_REPEAT), 3);
  assert_int_equal(count_op(&outer->entries[0].body, ULY_OP_MAP), 3);
}

// ---- shapes ---------------------------------------------------------------------------------------------------------------------------------------------------

static void symbols_unify_at_calls(void **state) {
  (void)state;
  ASSERT_LINES(
      HEAD "mask same(b, q, k; doc: i32[B, S]) = doc[b, q] == doc[b, k] and q < S\n"
           "layer attn[N](x: [B, S, N], doc: i32[B, S]) -> [B, S, N] { h = heads(x, 2)\n return merge(attention(h, h, h, mask = same(doc))) * float(N) / S }\n"
           "layer half[N](x: [2 * N, 4]) -> [2 * N, 4] = x + iota(N)[0]\n"
           "model m(x: [B, T, 8], doc: i32[B, T], y: [2 * S, 4]) -> (a: [B, T, 8], b: [2 * S, 4]) { return attn(x, doc), half(y) }\n",
      "q < size(T)", "x0 / float(size(T))");
}

static void indexing_slices_and_inserts(void **state) {
  (void)state;
  ASSERT_LINES(HEAD
               "layer f(x: [B, S, 6], ids: i32[B, S]) -> (a: [B, 6], b: [B, S, 2], c: [B, 1, S, 6, 1], d: [B, S, 4], e: [B, S, 1], f: [S, 6], g: [B, 6, S]) {\n"
               "  w = param(\"w\", [9, 4])\n  return x[:, 0], x[..., 2 : 4], x[:, _, :, :, _], w[ids], x[..., -1 : 6], x[0, :, :], transpose(x)\n}\n",
               "f32[B, 6] = slice dim=1 [0 : 1] drop", "f32[B, S, 2] = slice dim=2 [2 : 4] %0", "f32[B, 1, S, 6, 1] = map {x0} x0[i0, i2, i3]",
               "f32[B, S, 4] = gather", "f32[B, S, 1] = slice dim=2 [5 : 6]", "f32[S, 6] = slice dim=0 [0 : 1] drop", "f32[B, 6, S] = map {x0} x0[i0, i2, i1]");
}

static void means_divide_by_sizes(void **state) {
  (void)state;
  ASSERT_LINES(HEAD "layer f(x: [B, S, 6]) -> (a: [B, 6], b: [B, S, 1]) { return mean(x, dim = 1), mean(x, dim = -1, keep = true) }\n",
               "f32[B, 6] = sum dim=1 %0", "map {x0 / float(size(S))}", "f32[B, S, 1] = sum dim=2 keep", "map {x0 / 6.0}");
}

static void rows_are_found(void **state) {
  (void)state;
  ASSERT_LINES(
      HEAD
      "layer la(x: [B, S, 6]) -> i32[B, S] = position(x)\nlayer lb(x: [S, 6]) -> i32[S] = position(x)\nlayer lc(x: [B, 16, 6]) -> i32[B, 16] = position(x)\n"
      "layer ld(x: i32[B, S]) -> i32[B, S] = position(x)\nlayer le(x: [16]) -> i32[16] = position(x)\nlayer lf(x: [2 * S, 6, 3]) -> i32[2 * S] = position(x)\n",
      "i32[B, S] = map {i1}", "i32[S] = map {i0}", "i32[B, 16] = map {i1}", "i32[B, S] = map {i1}", "i32[16] = map {i0}", "i32[2*S] = map {i0}");
}

static void ids_have_limits(void **state) {
  (void)state;
  uly_graph *graph =
      graph_of(HEAD "layer pick(w: [9, 4], i: i32[S]) -> [S, 4] = w[i]\n"
                    "model m(i: i32[S], j: i64[S]) -> [S, 4] = pick(param(\"w\", [9, 4]), i) + embed(i, 7, 4, name = \"e\") + embed(j, 20, 4, name = \"f\")\n");
  assert_int_equal(graph->entries[0].inputs[0].id_limit, 7);
  assert_int_equal(graph->entries[0].inputs[1].id_limit, 20);
}

// ---- attention ------------------------------------------------------------------------------------------------------------------------------------------------

static void masks_and_scores_share_captures(void **state) {
  (void)state;
  ASSERT_LINES(HEAD "const slopes = [0.5, 0.25]\nmask seg(b, q, k; doc: i32[B, S]) = doc[b, q] == doc[b, k]\nmask near(q, k) = 0 <= q - k < 3\n"
                    "score bias(s, b, h, q, k; w: [2], doc: i32[B, S]) = s + w[h] * doc[b, q]\nscore cap(s) { t = s / 30.0\n return 30.0 * tanh(t) }\n"
                    "score alibi(s, h, q, k) = s - slopes[h] * (q - k)\n"
                    "layer f(x: [B, S, 2, 4], doc: i32[B, S], off: i32[B]) -> [B, S, 2, 4] {\n  w = param(\"w\", [2])\n"
                    "  return attention(x, x, x, mask = seg(doc) and (causal or not near), score = bias(doc = doc, w = w) then alibi then cap, sink = w, "
                    "q_offset = off)\n}\n",
               "mask={t0 = q - k; c0i[b, q] == c0i[b, k] and (k <= q or not (0 <= t0 and t0 < 3))}",
               "score={30.0 * tanh((s + c1[h] * float(c0i[b, q]) - (if h == 0 then 0.5 else 0.25) * float(q - k)) / 30.0)}",
               "sink=#3 q_offset=#4 %0, %0, %0, %3, %2, %1, %3");
}

static void rope_forms_angles_in_float64(void **state) {
  (void)state;
  uly_graph *graph = graph_of(HEAD "layer f(x: [B, S, 2, 8], p: i32[B, S]) -> [B, S, 2, 8] { y = x\n repeat 3 {\n y = rope(y, theta = 10000)\n"
                                   "  y = rope(y, theta = 10000, dim = 4, at = p, pairs = \"interleaved\") }\n return rope(y, theta = 10000) }\n");
  uly_text text = {.arena = arena};
  uly_graph_print(&text, graph);
  // Two pairs of cos and sin, made once and outside of the repeat, though rope stands three times.
  assert_int_equal(count_op(&graph->entries[0].body, ULY_OP_MAP), 4);
  assert_non_null(strstr(text.ptr, "\n  %3: f32[B, S, 4] = map {wide sin(float(i1) * 10000.0 ** (-0.25 * float(i2)))}"));
  assert_non_null(strstr(text.ptr, "\n  %4: f32[B, S, 2] = map {wide cos(float(x0i) * 10000.0 ** (-0.5 * float(i2)))} x0[i0, i1] %1"));
}

static void what_moves_is_slices_and_reshapes(void **state) {
  (void)state;
  ASSERT_LINES(
      HEAD "layer f(x: [B, S, 8], i: i32[B, S]) -> (a: [B, S, 8], b: [B, S - 1, 8], c: [B], d: [B, 8 * S], e: i64[B]) { a, b, _ = split(x, [3, 4, 1])\n"
           "return concat(a, b, x[..., 7 :]), x[:, 1 :], x[:, -1, S - S], reshape(x, [B, 8 * S]), sum(shift(i, 2, fill = 7), dim = 1) }\n",
      "%2: f32[B, S, 3] = slice dim=2 [0 : 3] %0", "%3: f32[B, S, 4] = slice dim=2 [3 : 7] %0", "f32[B, S, 8] = concat %2, %3, %4", "slice dim=1 [1 : S] %0",
      "f32[B, 8] = slice dim=1 [S - 1 : S] drop %0", "f32[B, 8*S] = reshape %0", "i32[B, S] = shift n=2 fill=7 dim=1 %1", "i64[B] = sum dim=1 %10");
}

// In more loops than a program has: copies.
static void deep_repeats_are_copies(void **state) {
  (void)state;
  uly_graph *graph = graph_of("ulyc 1\nfree B, S\ngrid sp(S)\nlayer f(x: [B, S, 4]) -> [B, S, 4] { y = x\n"
                              "repeat 2 { repeat 2 { repeat 2 { repeat 2 { repeat 3 { y = y * 2.0 } } } } }\n return y }\n");
  assert_int_equal(count_op(&graph->entries[0].body, ULY_OP_REPEAT), 4);
  assert_int_equal(count_op(&graph->entries[0].body, ULY_OP_MAP), 3);
}

static void losses_shift_labels(void **state) {
  (void)state;
  ASSERT_LINES(HEAD "model m(x: [B, S, 9], t: i32[B, S], doc: i32[B, S]) -> (a: f32[], b: f32[]) { return next_token_loss(x, t, doc = doc), cross_entropy(x, "
                    "t, ignore = 3) }\n",
               "shift n=-1 fill=-100 dim=1 %1", "shift n=-1 fill=0 dim=1 %2", "map {x0i == x1i} %2, %4", "map {if x0b then x1i else -100} %5, %3",
               "map {x0i != -100} %6", "f32[B, S] = nll ignore=-100 %0, %6", "f32[B] = sum dim=1", "f32[] = sum dim=0", "i64[B] = sum dim=1",
               "i64[] = sum dim=0", "map {float(x0i)}", "map {x0 / x1}", "map {x0i != 3} %1", "f32[B, S] = nll ignore=3 %0, %1");
}

// Expansion is bounded, however it is written.
static void expansion_is_bounded(void **state) {
  (void)state;
  uly_text text = {.arena = arena};
  uly_str diags;
  uly_text_add(&text, HEAD "layer l0(x: [S, 4]) -> [S, 4] = x + 1\n");
  for (int i = 1; i < 60; i++) uly_text_add(&text, "layer l%d(x: [S, 4]) -> [S, 4] = l%d(l%d(x))\n", i, i - 1, i - 1);
  uly_text_add(&text, "model m(x: [S, 4]) -> [S, 4] = l59(x)\n");
  assert_null(read_spec(text.ptr, &diags));
  assert_non_null(strstr(diags.ptr, "error: this spec expands to more than 100000 values"));
  text.len = 0;
  uly_text_add(&text, HEAD "fn g0(x) = x + 1\n");
  for (int i = 1; i < 60; i++) uly_text_add(&text, "fn g%d(x) = g%d(g%d(x))\n", i, i - 1, i - 1);
  uly_text_add(&text, "const c = g59(1)\nlayer m(x: [S, 4]) -> [S, 4] = x\n");
  assert_null(read_spec(text.ptr, &diags));
  assert_non_null(strstr(diags.ptr, "error: checking this spec takes more than 3000000 steps"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(models_have_the_parameters_of_their_files),
      cmocka_unit_test(mixture_of_experts_is_a_later_version),
      cmocka_unit_test(defines_replace_consts),
      cmocka_unit_test(scalar_functions_are_inlined),
      cmocka_unit_test(static_ifs_take_one_arm),
      cmocka_unit_test(strings_compare),
      cmocka_unit_test(dtypes_follow_the_rules),
      cmocka_unit_test(names_are_scoped),
      cmocka_unit_test(iterations_have_their_names_in_order),
      cmocka_unit_test(tied_parameters_are_one),
      cmocka_unit_test(repeats_carry_values),
      cmocka_unit_test(bodies_are_copied_where_they_differ),
      cmocka_unit_test(nested_loops_copy_the_one_that_differs),
      cmocka_unit_test(symbols_unify_at_calls),
      cmocka_unit_test(indexing_slices_and_inserts),
      cmocka_unit_test(means_divide_by_sizes),
      cmocka_unit_test(rows_are_found),
      cmocka_unit_test(ids_have_limits),
      cmocka_unit_test(masks_and_scores_share_captures),
      cmocka_unit_test(rope_forms_angles_in_float64),
      cmocka_unit_test(what_moves_is_slices_and_reshapes),
      cmocka_unit_test(deep_repeats_are_copies),
      cmocka_unit_test(losses_shift_labels),
      cmocka_unit_test(expansion_is_bounded),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
