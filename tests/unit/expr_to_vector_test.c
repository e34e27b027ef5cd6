// Expressions in kernels against uly_expr_eval in float64: accuracy of every function (printed), all operations, all dtypes and strides, every number of valid lanes, with
// unreadable memory on both sides; equal bits for equal arguments in any lane.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <xmmintrin.h>

#include "tests/unit/kernel_loader.h"

enum { S_SIZE = 11, T_SIZE = 5, I0_START = 1000, COLUMN_START = 70, N_OPERANDS = 4 };
// Values of the kernels here: strides of operand j and of the output over i0 and c, starts, sizes.
enum { VAL_STRIDE = ULY_ROWS_N_VALS, VAL_START = VAL_STRIDE + 2 * (N_OPERANDS + 1), VAL_SIZE = VAL_START + 2 };

typedef struct layout {
  uly_dtype dtype;
  int32_t c; // stride over c: -1 broadcast, -2 contiguous, else a number of elements
} layout;

static uint32_t add_map(uly_program *p, const char *text, const layout *operands, int n, layout out) {
  uly_kernel_desc desc = {.kind = ULY_KERNEL_ROWS};
  uly_hook *h = &desc.u.rows.in;
  h->present = true;
  h->expr = uly_test_expr(p->arena, text);
  h->n_operands = n;
  for (int j = 0; j <= n; j++) {
    layout l = j < n ? operands[j] : out;
    uly_hook_operand o = {.op = j, .dtype = l.dtype, .stride = {VAL_STRIDE + 2 * j, -1, -1, -1, -1, l.c > 0 ? VAL_STRIDE + 2 * j + 1 : l.c}};
    if (j < n)
      h->operands[j] = o;
    else
      h->out = o;
  }
  for (int i = 0; i < ULY_HOOK_INDICES; i++) h->start[i] = -1;
  h->start[0] = VAL_START, h->start[ULY_HOOK_INDICES - 1] = VAL_START + 1;
  h->size[0] = VAL_SIZE, h->size[1] = VAL_SIZE + 1;
  return uly_test_add_kernel(p, &desc);
}

static void set_sizes(uly_test_call *c, int64_t rows, int64_t cols) {
  uly_test_space(c, rows, 1, cols);
  c->numbers[VAL_START] = I0_START, c->numbers[VAL_START + 1] = COLUMN_START;
  c->numbers[VAL_SIZE] = S_SIZE, c->numbers[VAL_SIZE + 1] = T_SIZE;
}

static uint64_t seed = 88172645463325252u;
static uint64_t random_bits(void) {
  seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
  return seed;
}
static double uniform(double lo, double hi) { return lo + (hi - lo) * (double)(random_bits() >> 11) * 0x1p-53; }

// ---- accuracy --------------------------------------------------------------------------------------------------------------------------------

typedef struct function {
  const char *text;
  double (*exact)(double x);
  double lo, hi;
  double ulps, wide; // allowed: f32 in ulps; wide in 1e-16, relative, of 1 where the result is smaller and `absolute`
  bool absolute;
} function;

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
static double rsqrt(double x) { return 1.0 / sqrt(x); }
static double power(double x) { return pow(x, 0.75); }
static double falling(double x) { return pow(x, -1.625); }

static const function functions[] = {
    {"exp(x0)", exp, -87, 88, 2, 10, false},      {"exp(x0)", exp, -1, 1, 2, 10, false},
    {"exp2(x0)", exp2, -125, 127, 2, 10, false},  {"log(x0)", log, 1e-30, 10, 2, 10, false},
    {"log(x0)", log, 0.7, 1.4, 2, 10, false},     {"log(x0)", log, 1, 3e38, 2, 10, false},
    {"log2(x0)", log2, 1e-30, 10, 2, 10, false},  {"log2(x0)", log2, 0.7, 1.4, 2, 10, false},
    {"sin(x0)", sin, -4, 4, 1, 10, true},         {"cos(x0)", cos, -4, 4, 1, 10, true},
    {"sin(x0)", sin, -1e8, 1e8, 1, 10, true},     {"cos(x0)", cos, -1e8, 1e8, 1, 10, true},
    {"cos(x0)", cos, -1e15, 1e15, 1, 10, true},   {"tanh(x0)", tanh, -1, 1, 2.5, 10, false},
    {"tanh(x0)", tanh, -12, 12, 2.5, 10, false},  {"sigmoid(x0)", sigmoid, -80, 20, 2.5, 10, false},
    {"erf(x0)", erf, -1, 1, 2, 10, false},        {"erf(x0)", erf, -7, 7, 2, 10, false},
    {"sqrt(x0)", sqrt, 0, 1e9, 0.501, 10, false}, {"rsqrt(x0)", rsqrt, 1e-9, 1e9, 1.5, 10, false},
    {"x0 ** 0.75", power, 0, 1e9, 1, 200, false}, {"x0 ** -1.625", falling, 1e-6, 1e6, 1, 200, false},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions, SAMPLES = 20000 };

static double ulp_of(double y) {
  int e;
  frexp(y, &e);
  return ldexp(1.0, (e < -125 ? -125 : e) - 24);
}

static void accuracy_of(const uly_test_model *m, uint32_t level, uint32_t kernel, const function *f, bool wide) {
  static float x[SAMPLES], y[SAMPLES];
  static double xw[SAMPLES], yw[SAMPLES];
  double worst = 0, at = 0;
  for (int i = 0; i < SAMPLES; i++) {
    double v = uniform(f->lo, f->hi);
    if (i % 4 == 0) v *= exp2(-(double)(i % 40)), v = v < f->lo && f->lo >= 0 ? f->lo : v;
    x[i] = (float)v, xw[i] = v;
  }
  uly_test_call c;
  uly_test_call_init(&c);
  set_sizes(&c, 1, SAMPLES);
  c.pointers[0] = wide ? (void *)xw : x, c.pointers[1] = wide ? (void *)yw : y;
  uly_test_run(m, level, kernel, &c, 0, 1);
  for (int i = 0; i < SAMPLES; i++) {
    double exact = f->exact(wide ? xw[i] : (double)x[i]), error = fabs((wide ? yw[i] : (double)y[i]) - exact), scale = fabs(exact);
    if (f->absolute && scale < 1) scale = 1;
    if (!wide && scale < 0x1p-126) continue; // denormals are zero
    error = wide ? error / scale / 1e-16 : error / ulp_of(scale);
    if (exact == 0 && !f->absolute) error = (wide ? yw[i] : (double)y[i]) == 0 ? 0 : 1e9;
    if (!(error <= worst)) worst = error, at = wide ? xw[i] : (double)x[i];
  }
  print_message("%-26s %-10s [%9.3g, %9.3g]  %8.3f %s at %.9g\n", f->text, m->model->levels[level].name, f->lo, f->hi, worst, wide ? "e-16" : "ulp ", at);
  assert_true(worst <= (wide ? f->wide : f->ulps));
}

static void accuracy(void **state) {
  (void)state;
  uly_program *p = uly_test_program();
  for (int i = 0; i < N_FUNCTIONS; i++) {
    char text[64];
    snprintf(text, sizeof text, "wide %s", functions[i].text);
    add_map(p, functions[i].text, &(layout){ULY_F32, -2}, 1, (layout){ULY_F32, -2});
    add_map(p, text, &(layout){ULY_F64, -2}, 1, (layout){ULY_F64, -2});
  }
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t i = 0; i < 2 * N_FUNCTIONS; i++) accuracy_of(&m, l, i, &functions[i / 2], i & 1);
  uly_test_unload(&m);
}

// The same bits where an expression is so long that it calls functions: `f(x0)` against one that selects it from 30 others.
static void long_expressions(void **state) {
  (void)state;
  enum { OTHERS = 30, CASES = 1000, STEP = 3 };
  uly_program *p = uly_test_program();
  for (int i = 0; i < N_FUNCTIONS; i += STEP) {
    const char *f = functions[i].text, *wide = i & 1 ? "wide " : "";
    uly_dtype dtype = i & 1 ? ULY_F64 : ULY_F32;
    uly_text text = {.arena = p->arena};
    uly_text_add(&text, "%sif size(S) > 0 then %s else 0.0", wide, f);
    for (int k = 0; k < OTHERS; k++) uly_text_add(&text, " + sin(x0 * %d.0)", k + 2);
    add_map(p, uly_str_format(p->arena, "%s%s", wide, f).ptr, &(layout){dtype, -2}, 1, (layout){dtype, -2});
    add_map(p, uly_text_str(&text).ptr, &(layout){dtype, -2}, 1, (layout){dtype, -2});
  }
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t i = 0; i < N_FUNCTIONS; i += STEP) {
      static double x[CASES], y[2][CASES];
      for (int k = 0; k < CASES; k++) uly_dtype_store(i & 1 ? ULY_F64 : ULY_F32, x, k, uniform(functions[i].lo, functions[i].hi));
      for (uint32_t k = 0; k < 2; k++) {
        uly_test_call c;
        uly_test_call_init(&c);
        set_sizes(&c, 1, CASES);
        c.pointers[0] = x, c.pointers[1] = y[k];
        uly_test_run(&m, l, 2 * (i / STEP) + k, &c, 0, 1);
      }
      assert_memory_equal(y[0], y[1], CASES * (i & 1 ? sizeof(double) : sizeof(float)));
    }
  uly_test_unload(&m);
}

typedef struct edge {
  const char *text;
  double x, y;
} edge;

static const edge edges[] = {
    {"exp(x0)", INFINITY, INFINITY},
    {"exp(x0)", -INFINITY, 0},
    {"exp(x0)", NAN, NAN},
    {"exp(x0)", 0, 1},
    {"exp(x0)", 1000, INFINITY},
    {"exp2(x0)", 3, 8},
    {"exp2(x0)", 200, INFINITY},
    {"log(x0)", 0, -INFINITY},
    {"log(x0)", -1, NAN},
    {"log(x0)", 1, 0},
    {"log(x0)", INFINITY, INFINITY},
    {"log(x0)", NAN, NAN},
    {"log2(x0)", 8, 3},
    {"log2(x0)", 0, -INFINITY},
    {"sin(x0)", INFINITY, NAN},
    {"sin(x0)", 0, 0},
    {"cos(x0)", 0, 1},
    {"tanh(x0)", INFINITY, 1},
    {"tanh(x0)", -INFINITY, -1},
    {"tanh(x0)", NAN, NAN},
    {"sigmoid(x0)", -INFINITY, 0},
    {"sigmoid(x0)", INFINITY, 1},
    {"erf(x0)", INFINITY, 1},
    {"erf(x0)", -100, -1},
    {"erf(x0)", NAN, NAN},
    {"min(x0, 1.0)", NAN, NAN},
    {"max(1.0, x0)", NAN, NAN},
    {"x0 ** 0.5", 0, 0},
    {"x0 ** -0.5", 0, INFINITY},
    {"x0 ** 0.5", -1, NAN},
    {"floor(x0)", -1.5, -2},
    {"ceil(x0)", -1.5, -1},
    {"int(x0)", -1.5, -1},
    {"x0 % 2.5", -1, 1.5},
    {"x0 // 2.0", -3, -2},
    {"abs(x0)", -2, 2},
    {"(-2.0) ** x0", 3, -8},
    {"(-2.0) ** x0", 0.5, NAN},
};
enum { N_EDGES = sizeof edges / sizeof *edges };

static void edge_values(void **state) {
  (void)state;
  uly_program *p = uly_test_program();
  for (int i = 0; i < N_EDGES; i++)
    for (int wide = 0; wide < 2; wide++) {
      char text[64];
      snprintf(text, sizeof text, "%s%s", wide ? "wide " : "", edges[i].text);
      bool whole = strncmp(edges[i].text, "floor", 5) == 0 || strncmp(edges[i].text, "ceil", 4) == 0 || strncmp(edges[i].text, "int", 3) == 0;
      add_map(p, text, &(layout){ULY_F32, -2}, 1, (layout){whole ? ULY_I32 : ULY_F32, -2});
    }
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t k = 0; k < 2 * N_EDGES; k++) {
      const edge *e = &edges[k / 2];
      float x = (float)e->x;
      uint32_t y = 0;
      uly_test_call c;
      uly_test_call_init(&c);
      set_sizes(&c, 1, 1);
      c.pointers[0] = &x, c.pointers[1] = &y;
      uly_test_run(&m, l, k, &c, 0, 1);
      const uly_hook *h = &p->kernels[k]->u.rows.in;
      double got = uly_dtype_load(h->out.dtype, &y, 0);
      if (!(isnan(e->y) ? isnan(got) : got == e->y)) fail_msg("%s at %g: %g, not %g", e->text, e->x, got, e->y);
    }
  uly_test_unload(&m);
}

// ---- all operations ---------------------------------------------------------------------------------------------------------------------------

// Random expressions of a type. Conditions are of ints and bools alone, so that rounding cannot turn them.
static void random_float(uly_text *t, int depth);
static void random_bool(uly_text *t, int depth);
static void random_int(uly_text *t, int depth) {
  static const char *const leaves[] = {"x1i", "i0", "i5", "3", "-7", "size(S)", "16", "x1i"};
  if (depth == 0) {
    uly_text_add(t, "%s", leaves[random_bits() % 8]);
    return;
  }
  static const char *const forms[] = {"(I + I)",   "(I - I)", "(I * I)",  "(I // I)",   "(I % I)", "min(I, I)",
                                      "max(I, I)", "abs(I)",  "(-I)",     "hash(I, I)", "int(B)",  "(if B then I else I)",
                                      "(I // 8)",  "(I % 7)", "(I // 12)"};
  for (const char *f = forms[random_bits() % 15]; *f; f++) {
    if (*f == 'I')
      random_int(t, depth - 1);
    else if (*f == 'B')
      random_bool(t, depth - 1);
    else
      uly_text_add(t, "%c", *f);
  }
}
static void random_bool(uly_text *t, int depth) {
  if (depth == 0) {
    uly_text_add(t, "x2b");
    return;
  }
  static const char *const forms[] = {
      "(I < I)", "(I <= I)", "(I > I)", "(I >= I)", "(I == I)", "(I != I)", "(B and B)", "(B or B)", "(not B)", "(B == B)", "(if B then B else B)"};
  for (const char *f = forms[random_bits() % 11]; *f; f++) {
    if (*f == 'I')
      random_int(t, depth - 1);
    else if (*f == 'B')
      random_bool(t, depth - 1);
    else
      uly_text_add(t, "%c", *f);
  }
}
static void random_float(uly_text *t, int depth) {
  static const char *const leaves[] = {"x0", "x3", "0.25", "x0"};
  if (depth == 0) {
    uly_text_add(t, "%s", leaves[random_bits() % 4]);
    return;
  }
  static const char *const forms[] = {"(F + F)",
                                      "(F - F)",
                                      "(F * F)",
                                      "(F / (abs(F) + 1.0))",
                                      "min(F, F)",
                                      "max(F, F)",
                                      "tanh(F)",
                                      "exp(-abs(F))",
                                      "log(1.5 + abs(F))",
                                      "sqrt(abs(F))",
                                      "sin(F)",
                                      "cos(F)",
                                      "sigmoid(F)",
                                      "erf(F)",
                                      "rsqrt(1.0 + F * F)",
                                      "float(min(I, 9))",
                                      "(if B then F else F)",
                                      "exp2(-abs(F))",
                                      "log2(1.25 + abs(F))"};
  for (const char *f = forms[random_bits() % 19]; *f; f++) {
    if (*f == 'F')
      random_float(t, depth - 1);
    else if (*f == 'I')
      random_int(t, 0);
    else if (*f == 'B')
      random_bool(t, depth - 1);
    else
      uly_text_add(t, "%c", *f);
  }
}

typedef struct element {
  const layout *operands;
  void *const *data;
  const int64_t *strides;
  int64_t i0, c;
} element;

static int64_t at(const layout *l, const int64_t *strides, int j, int64_t i0, int64_t c) {
  return strides[2 * j] * i0 + (l->c == -1 ? 0 : l->c == -2 ? c : strides[2 * j + 1] * c);
}

static uly_number element_operand(void *context, int32_t j) {
  const element *e = context;
  return uly_number_of(uly_dtype_load(e->operands[j].dtype, e->data[j], at(&e->operands[j], e->strides, j, e->i0, e->c)));
}

static void fill(uly_dtype dtype, void *data, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    double v = uniform(-3, 3);
    if (dtype == ULY_I32 || dtype == ULY_I64) v = floor(v * 20);
    if (dtype == ULY_U8) v = floor(fabs(v) * 80);
    if (dtype == ULY_BOOL) v = v > 0;
    uly_dtype_store(dtype, data, i, v);
  }
}

typedef struct map_case {
  layout operands[N_OPERANDS], out;
  const char *text;
  double tolerance; // relative to 1 and the result
} map_case;

// Every element of 3 rows of |cols| against the evaluator. Returns how many could be compared.
static int compare_case(const uly_test_model *m, uint32_t level, uint32_t kernel, const map_case *t, const uly_expr *expr, int64_t cols) {
  enum { ROWS = 3 };
  uly_test_call c;
  int64_t strides[2 * (N_OPERANDS + 1)], coords[ULY_COORD_MAX] = {0}, sizes[] = {S_SIZE, T_SIZE};
  int compared = 0;
  uly_test_call_init(&c);
  set_sizes(&c, ROWS, cols);
  for (int j = 0; j <= N_OPERANDS; j++) {
    const layout *l = j < N_OPERANDS ? &t->operands[j] : &t->out;
    int64_t step = l->c == -2 ? 1 : l->c == -1 ? 0 : l->c, row = step * (cols - 1) + 1 + (j < N_OPERANDS ? 0 : 2);
    strides[2 * j] = row, strides[2 * j + 1] = step;
    int64_t n = (ROWS - 1) * row + step * (cols - 1) + 1; // the last element touches the guard
    c.pointers[j] = uly_test_guarded((size_t)n * (size_t)uly_dtype_bytes(l->dtype));
    fill(l->dtype, c.pointers[j], n);
  }
  memcpy(&c.numbers[VAL_STRIDE], strides, sizeof strides);
  uly_test_run(m, level, kernel, &c, 0, ROWS);
  for (int64_t i = 0; i < ROWS * cols; i++) {
    element e = {t->operands, c.pointers, strides, i / cols, i % cols};
    uly_expr_env env = {.context = &e, .coords = coords, .sizes = sizes, .operand = element_operand};
    uly_number want;
    coords[ULY_COORD_I0] = I0_START + e.i0, coords[ULY_COORD_I0 + ULY_HOOK_INDICES - 1] = COLUMN_START + e.c;
    if (uly_expr_eval(expr, &env, &want) != ULY_OK) continue;
    double v = want.type == ULY_SCALAR_FLOAT ? want.f : (double)want.i,
           got = uly_dtype_load(t->out.dtype, c.pointers[N_OPERANDS], at(&t->out, strides, N_OPERANDS, e.i0, e.c));
    if (t->out.dtype == ULY_I32) v = (double)(int32_t)(int64_t)v;
    if (t->out.dtype == ULY_U8) v = (double)(uint8_t)(int64_t)v;
    if (fabs(v) > 0x1p53) continue;
    compared++;
    if (isnan(got) && isnan(v)) continue;
    if (!(fabs(got - v) <= t->tolerance * fmax(1, fabs(v)))) fail_msg("%s, %d columns, column %d: %.17g, not %.17g", t->text, (int)cols, (int)e.c, got, v);
  }
  return compared;
}

static void random_expressions(void **state) {
  (void)state;
  enum { CASES = 60 };
  static map_case cases[CASES];
  uly_program *p = uly_test_program();
  for (int i = 0; i < CASES; i++) {
    uly_text text = {.arena = p->arena};
    int kind = i % 3;
    map_case *t = &cases[i];
    *t = (map_case){.operands = {{ULY_F32, -2}, {ULY_I32, -2}, {ULY_BOOL, -2}, {ULY_F32, -1}},
                    .out = {kind == 0   ? ULY_F64
                            : kind == 1 ? ULY_I64
                                        : ULY_BOOL,
                            -2},
                    .tolerance = kind ? 0 : 1e-11};
    uly_expr parsed;
    do { // again where constants fold to a division by zero
      text.len = 0;
      if (kind == 0) uly_text_add(&text, "wide "), random_float(&text, 4);
      if (kind == 1) random_int(&text, 4);
      if (kind == 2) random_bool(&text, 4);
    } while (uly_expr_parse(p->arena, uly_text_str(&text), &(uly_str){"S", 1}, 1, &parsed) != ULY_OK);
    t->text = text.ptr;
    add_map(p, text.ptr, t->operands, N_OPERANDS, t->out);
  }
  uly_test_model m = uly_test_load(p);
  int compared = 0;
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t i = 0; i < CASES; i++)
      for (int64_t cols = 1; cols <= 37; cols += 6) compared += compare_case(&m, l, i, &cases[i], &p->kernels[i]->u.rows.in.expr, cols);
  print_message("%d elements compared\n", compared);
  assert_true(compared > 10000);
  uly_test_unload(&m);
}

// Every dtype read and written, contiguous, broadcast and a stride apart, for each number of valid lanes.
static void dtypes_and_strides(void **state) {
  (void)state;
  static const uly_dtype dtypes[] = {ULY_F32, ULY_BF16, ULY_F16, ULY_I32, ULY_I64, ULY_U8, ULY_BOOL, ULY_F64};
  static const int32_t steps[] = {-2, -1, 3};
  static map_case cases[24];
  uly_program *p = uly_test_program();
  int n = 0;
  for (int d = 0; d < 8; d++)
    for (int s = 0; s < 3; s++) {
      bool real = uly_dtype_get(dtypes[d])->is_float;
      layout other = {ULY_F32, -2}, l = {dtypes[d], steps[s]};
      cases[n] = (map_case){.operands = {l, other, other, other},
                            .out = {dtypes[d], s == 2 ? 2 : -2},
                            .text = dtypes[d] == ULY_F64    ? "wide x0"
                                    : real                  ? "x0"
                                    : dtypes[d] == ULY_BOOL ? "not x0b"
                                                            : "x0i + 1",
                            .tolerance = 0};
      add_map(p, cases[n].text, cases[n].operands, N_OPERANDS, cases[n].out);
      n++;
    }
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t i = 0; i < (uint32_t)n; i++)
      for (int64_t cols = 1; cols <= 33; cols++) assert_true(compare_case(&m, l, i, &cases[i], &p->kernels[i]->u.rows.in.expr, cols) > 0);
  uly_test_unload(&m);
}

// To nearest, ties to even, as uly_dtype_store has it.
static void rounds_once(void **state) {
  (void)state;
  enum { N = 20000 };
  static float x[N];
  static uint16_t y[N];
  static const uly_dtype dtypes[] = {ULY_BF16, ULY_F16};
  uly_program *p = uly_test_program();
  for (int d = 0; d < 2; d++) add_map(p, "x0", &(layout){ULY_F32, -2}, 1, (layout){dtypes[d], -2});
  for (int i = 0; i < N; i++) {
    uint32_t bits = (uint32_t)random_bits();
    if (i % 3 == 0) bits &= 0xffff8000u;                       // ties of bf16
    if (i % 3 == 1) bits = (bits & 0x83fff000u) | 0x38000000u; // ties and range of f16
    memcpy(&x[i], &bits, 4);
    if (fabsf(x[i]) < 0x1p-126f) x[i] = 0;
  }
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t k = 0; k < 2; k++) {
      uly_test_call c;
      uly_test_call_init(&c);
      set_sizes(&c, 1, N);
      c.pointers[0] = x, c.pointers[1] = y;
      uly_test_run(&m, l, k, &c, 0, 1);
      for (int i = 0; i < N; i++) {
        uint16_t want;
        uly_dtype_store(dtypes[k], &want, 0, (double)x[i]);
        if (isnan(x[i]))
          assert_true(isnan(uly_dtype_load(dtypes[k], y, i)));
        else if (y[i] != want)
          fail_msg("%s of %a: %04x, not %04x", uly_dtype_name(dtypes[k]), (double)x[i], y[i], want);
      }
    }
  uly_test_unload(&m);
}

// Every bf16 and f16 there is, read as f32 and stored again, also through a rounding that fusion left; with denormals as zero, as kernels run: those of f16 count.
static void every_half(void **state) {
  (void)state;
  enum { ALL = 1 << 16 };
  static uint16_t x[ALL], y[ALL];
  static float wide[ALL], again[ALL];
  static const uly_dtype dtypes[] = {ULY_BF16, ULY_F16};
  static const char *const texts[] = {"bf16(x0)", "f16(x0)"};
  uly_program *p = uly_test_program();
  for (int d = 0; d < 2; d++) {
    add_map(p, "x0", &(layout){dtypes[d], -2}, 1, (layout){ULY_F32, -2});
    add_map(p, "x0", &(layout){ULY_F32, -2}, 1, (layout){dtypes[d], -2});
    add_map(p, texts[d], &(layout){ULY_F32, -2}, 1, (layout){ULY_F32, -2});
  }
  for (int i = 0; i < ALL; i++) x[i] = (uint16_t)i;
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t d = 0; d < 2; d++) {
      void *const from[] = {x, wide, wide}, *const to[] = {wide, y, again};
      unsigned mode = _mm_getcsr();
      _mm_setcsr(mode | 0x8040);
      for (uint32_t k = 0; k < 3; k++) {
        uly_test_call c;
        uly_test_call_init(&c);
        set_sizes(&c, 1, ALL);
        c.pointers[0] = from[k], c.pointers[1] = to[k];
        uly_test_run(&m, l, 3 * d + k, &c, 0, 1);
      }
      _mm_setcsr(mode);
      for (int i = 0; i < ALL; i++) {
        double want = uly_dtype_load(dtypes[d], x, i);
        bool tiny = dtypes[d] == ULY_BF16 && fabs(want) < 0x1p-126; // f32's too: may have become 0
        if (isnan(want))
          assert_true(isnan(wide[i]) && isnan(again[i]) && isnan(uly_dtype_load(dtypes[d], y, i)));
        else if (!tiny && ((double)wide[i] != want || (double)again[i] != want || y[i] != x[i]))
          fail_msg("%s %04x: %a, %a, %04x", uly_dtype_name(dtypes[d]), x[i], (double)wide[i], (double)again[i], y[i]);
      }
    }
  uly_test_unload(&m);
}

// A lane's bits come from its argument alone, whatever stands in the others and however many are valid; a value that all lanes share is the same again.
static void same_bits_in_every_lane(void **state) {
  (void)state;
  static const char *const texts[] = {"exp(x0)", "log(x0)", "sin(x0)", "tanh(x0)", "sigmoid(x0)", "erf(x0)", "x0 ** 0.3", "exp2(x0) / log2(x0)"};
  uly_program *p = uly_test_program();
  for (int i = 0; i < 8; i++) {
    add_map(p, texts[i], &(layout){ULY_F32, -2}, 1, (layout){ULY_F32, -2});
    add_map(p, texts[i], &(layout){ULY_F32, -1}, 1, (layout){ULY_F32, -2});
  }
  uly_test_model m = uly_test_load(p);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (uint32_t k = 0; k < 8; k++)
      for (int trial = 0; trial < 20; trial++) {
        float x[40], y[40], shared[40], value = (float)uniform(0.01, 6);
        int64_t n = 1 + (int64_t)(random_bits() % 40), place = (int64_t)(random_bits() % (uint64_t)n);
        uly_test_call c;
        for (int i = 0; i < 40; i++) x[i] = (float)uniform(-5, 5);
        x[place] = value;
        for (uint32_t other = 0; other < 2; other++) {
          uly_test_call_init(&c);
          set_sizes(&c, 1, n);
          c.pointers[0] = other ? &value : x, c.pointers[1] = other ? shared : y;
          uly_test_run(&m, l, 2 * k + other, &c, 0, 1);
        }
        for (int64_t i = 0; i < n; i++) assert_memory_equal(&shared[i], &y[place], 4);
      }
  uly_test_unload(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(accuracy),           cmocka_unit_test(long_expressions),       cmocka_unit_test(edge_values),
                                     cmocka_unit_test(random_expressions), cmocka_unit_test(dtypes_and_strides),     cmocka_unit_test(rounds_once),
                                     cmocka_unit_test(every_half),         cmocka_unit_test(same_bits_in_every_lane)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
