// Row kernels, gathers and moves on tensors whose rows lie more than 2^32 elements apart, in memory of which only the pages in use exist: an index or a product of 32 bits
// would miss. Attention and linear layers have the like in tests/numerics, exchanges in big_exchange_test.c.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/kernel_loader.h"

enum { ROWS = 3, BATCH = 2, COLS = 21, CELLS = ROWS * BATCH * COLS };
static const int64_t far = ((int64_t)1 << 32) + 8;  // elements between rows
static const int64_t near = ((int64_t)1 << 31) + 4; // between batches

static void *sparse(size_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) skip();
  return p;
}

static float *far_tensor(void) { return sparse((size_t)(ROWS * far + near) * 4); }
static void drop(void *tensor) { munmap(tensor, (size_t)(ROWS * far + near) * 4); }

static float *cell(float *x, int64_t i) { return &x[i / COLS / BATCH * far + i / COLS % BATCH * near + i % COLS]; }
static float value(int64_t i) { return (float)(i % 17) - 8.0f + 0.25f * (float)(i / 17); }

// ---- rows: operands x, y, out of [ROWS][BATCH][COLS] -----------------------------------------------------------------------------------------------------------

enum { VAL_FAR = ULY_ROWS_N_VALS, VAL_NEAR, VAL_START, VAL_SUM_FAR = ULY_ROWSUM_N_VALS, VAL_SUM_NEAR };

static uly_hook_operand far_operand(int op) { return (uly_hook_operand){.op = op, .dtype = ULY_F32, .stride = {VAL_FAR, VAL_NEAR, -1, -1, -1, -2}}; }

static void add_rows(uly_program *p, uly_rows_mode mode) {
  uly_kernel_desc desc = {.kind = ULY_KERNEL_ROWS, .u.rows = {.mode = mode, .cols = COLS, .eps = 0}};
  uly_hook *in = &desc.u.rows.in, *out = mode == ULY_ROWS_MAP ? in : &desc.u.rows.out;
  *in = (uly_hook){.present = true,
                   .expr = uly_test_expr(p->arena, mode == ULY_ROWS_MAP ? "x0 + x1 + float(i0 // 4294967296)" : "x0 + x1"),
                   .n_operands = 2,
                   .start = {VAL_START, -1, -1, -1},
                   .out = {.op = -1}};
  in->operands[0] = far_operand(0), in->operands[1] = far_operand(1);
  if (mode != ULY_ROWS_MAP) *out = (uly_hook){.present = true, .expr = uly_test_expr(p->arena, "x0"), .n_inputs = 1, .start = {-1, -1, -1, -1, -1, -1}};
  out->out = far_operand(2);
  if (mode == ULY_ROWS_SUM) out->out.stride[3] = -1;
  uly_test_add_kernel(p, &desc);
}

static void run_rows(const uly_test_model *m, uint32_t level, uint32_t kernel, float **tensor) {
  float scratch[COLS + 64] __attribute__((aligned(64)));
  uly_test_call c;
  uly_test_call_init(&c);
  c.scratch = scratch;
  for (int i = 0; i < 3; i++) c.pointers[i] = tensor[i];
  uly_test_space(&c, ROWS, BATCH, COLS);
  c.numbers[VAL_FAR] = far, c.numbers[VAL_NEAR] = near, c.numbers[VAL_START] = (int64_t)5 << 32;
  uly_test_run(m, level, kernel, &c, 0, ROWS * BATCH);
}

static void rows(void **state) {
  (void)state;
  uly_program *p = uly_test_program();
  add_rows(p, ULY_ROWS_MAP);
  add_rows(p, ULY_ROWS_SUM);
  add_rows(p, ULY_ROWS_RMSNORM);
  uly_test_model m = uly_test_load(p);
  float *tensor[3] = {far_tensor(), far_tensor(), far_tensor()};
  for (int64_t i = 0; i < CELLS; i++) *cell(tensor[0], i) = value(i), *cell(tensor[1], i) = value(i + 5);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++) {
    run_rows(&m, l, 0, tensor);
    for (int64_t i = 0; i < CELLS; i++) assert_true(*cell(tensor[2], i) == value(i) + value(i + 5) + 5.0f);
    run_rows(&m, l, 2, tensor);
    for (int64_t r = 0; r < ROWS * BATCH; r++) {
      double squares = 0, sum = 0;
      for (int64_t i = r * COLS; i < (r + 1) * COLS; i++) squares += pow((double)(value(i) + value(i + 5)), 2), sum += (double)(value(i) + value(i + 5));
      for (int64_t i = r * COLS; i < (r + 1) * COLS; i++) {
        double want = (double)(value(i) + value(i + 5)) / sqrt(squares / (double)COLS);
        assert_true(fabs((double)*cell(tensor[2], i) - want) < 1e-5);
      }
      run_rows(&m, l, 1, tensor);
      assert_true(fabs((double)*cell(tensor[2], r * COLS) - sum) < 1e-3);
      run_rows(&m, l, 2, tensor);
    }
  }
  for (int i = 0; i < 3; i++) drop(tensor[i]);
  uly_test_unload(&m);
}

static void row_sums(void **state) {
  (void)state;
  uly_program *p = uly_test_program();
  uly_kernel_desc desc = {.kind = ULY_KERNEL_ROWSUM}, round = {.kind = ULY_KERNEL_ROUND};
  desc.u.rowsum.term = (uly_hook){.present = true, .expr = uly_test_expr(p->arena, "x0"), .n_operands = 1, .start = {-1, -1, -1, -1, -1, -1}};
  desc.u.rowsum.term.operands[0] = (uly_hook_operand){.op = 1, .dtype = ULY_F32, .stride = {VAL_SUM_FAR, VAL_SUM_NEAR, -1, -1, -1, -2}};
  uly_test_add_kernel(p, &desc);
  uly_test_add_kernel(p, &round);
  uly_test_model m = uly_test_load(p);
  float *x = far_tensor(), out[BATCH * COLS];
  int64_t parts[BATCH * COLS * ULY_EXACT_LIMBS];
  for (int64_t i = 0; i < CELLS; i++) *cell(x, i) = value(i);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++) {
    uly_test_call c;
    uly_test_call_init(&c);
    c.pointers[0] = parts, c.pointers[1] = x;
    uly_test_space(&c, ROWS, BATCH, COLS);
    c.numbers[VAL_SUM_FAR] = far, c.numbers[VAL_SUM_NEAR] = near;
    uly_test_run(&m, l, 0, &c, 0, BATCH * ((COLS + 15) / 16));
    uly_test_call_init(&c);
    c.pointers[ULY_ROUND_PARTS] = parts, c.pointers[ULY_ROUND_OUT] = out, c.numbers[ULY_ROUND_COUNT] = BATCH * COLS;
    uly_test_run(&m, l, 1, &c, 0, BATCH * COLS);
    for (int64_t i = 0; i < BATCH * COLS; i++) {
      float want = 0;
      for (int64_t r = 0; r < ROWS; r++) want += value(r * BATCH * COLS + i); // quarters: exact
      assert_true(out[i] == want);
    }
  }
  drop(x);
  uly_test_unload(&m);
}

// ---- gather: ids, table rows and results far apart ---------------------------------------------------------------------------------------------------------------

static void gathers(void **state) {
  (void)state;
  enum { ROW_BYTES = 96 };
  uly_program *p = uly_test_program();
  uly_kernel_desc desc = {.kind = ULY_KERNEL_GATHER, .u.gather = {.ids = ULY_I64}};
  uly_test_add_kernel(p, &desc);
  uly_test_model m = uly_test_load(p);
  const int64_t limit = ((int64_t)1 << 32) / ROW_BYTES * 5; // a table of 20 GiB
  static const int64_t parts[] = {0, 2, 3, 5};              // quarters and so on of it
  unsigned char *table = sparse((size_t)(limit * ROW_BYTES));
  int64_t *ids = sparse((size_t)(ROWS * far) * 8);
  unsigned char *out = sparse((size_t)(ROWS * far) * 4);
  for (int64_t s = 0; s < ROWS; s++) {
    ids[s * far] = limit / 5 * parts[s + 1] - 1;
    memset(table + ids[s * far] * ROW_BYTES, (int)(s + 1), ROW_BYTES);
  }
  for (uint32_t l = 0; l < uly_test_levels(&m); l++) {
    uly_test_call c;
    uly_test_call_init(&c);
    c.pointers[ULY_GATHER_IDS] = ids, c.pointers[ULY_GATHER_W] = table, c.pointers[ULY_GATHER_OUT] = out;
    for (int d = 0; d < ULY_GATHER_DIMS; d++) c.numbers[ULY_GATHER_N0 + d] = 1;
    c.numbers[ULY_GATHER_N0] = ROWS, c.numbers[ULY_GATHER_ROW_BYTES] = c.numbers[ULY_GATHER_W_0] = ROW_BYTES, c.numbers[ULY_GATHER_LIMIT] = limit;
    c.numbers[ULY_GATHER_IDS_0] = far, c.numbers[ULY_GATHER_OUT_0] = far * 4;
    uly_test_run(&m, l, 0, &c, 0, ROWS);
    assert_int_equal(c.fault.code, ULY_FAULT_NONE);
    for (int64_t s = 0; s < ROWS; s++)
      for (int b = 0; b < ROW_BYTES; b++) assert_int_equal(out[s * far * 4 + b], s + 1);
    for (int64_t s = 0; s < ROWS; s++) memset(out + s * far * 4, 0, ROW_BYTES);
  }
  munmap(table, (size_t)(limit * ROW_BYTES)), munmap(ids, (size_t)(ROWS * far) * 8), munmap(out, (size_t)(ROWS * far) * 4);
  uly_test_unload(&m);
}

// ---- moves ---------------------------------------------------------------------------------------------------------------------------------------------------------

// From one tensor, or from two cut along the batch, to one, or to two cut along the rows; an offset beyond 2^32 bytes on either side.
static void move_case(const uly_test_model *m, uint32_t level, bool cut_from, bool cut_to, float *from, float *to) {
  const int64_t first[2][2] = {{0, 1}, {0, 2}}, count[2][2] = {{1, 1}, {2, 1}}, offset = ((int64_t)1 << 32) + 64;
  const int64_t far_bytes[2] = {far * 4, far * 4}, near_bytes[2] = {near * 4, near * 4}, offsets[2] = {offset, offset};
  char *sources[2] = {(char *)from - offset, (char *)cell(from, COLS) - offset};
  char *targets[2] = {(char *)to - offset, (char *)cell(to, 2 * BATCH * COLS) - offset};
  uly_test_call c;
  uly_test_call_init(&c);
  c.args[ULY_MOVE_SRC] = (uly_arg){(void **)sources, cut_from ? 2 : 1};
  c.args[ULY_MOVE_DST] = (uly_arg){(void **)targets, cut_to ? 2 : 1};
  for (int d = 0; d < ULY_MOVE_DIMS; d++) c.numbers[ULY_MOVE_N0 + d] = 1, c.vals[ULY_MOVE_SRC_0 + d] = c.vals[ULY_MOVE_DST_0 + d] = near_bytes;
  c.numbers[ULY_MOVE_N0] = ROWS, c.numbers[ULY_MOVE_N0 + 1] = BATCH, c.numbers[ULY_MOVE_BYTES] = COLS * 4;
  c.numbers[ULY_MOVE_SRC_EACH] = cut_from, c.numbers[ULY_MOVE_DST_EACH] = cut_to;
  c.numbers[ULY_MOVE_SRC_DIM] = cut_from ? 1 : -1, c.numbers[ULY_MOVE_DST_DIM] = cut_to ? 0 : -1;
  c.vals[ULY_MOVE_SRC_0] = c.vals[ULY_MOVE_DST_0] = far_bytes;
  c.vals[ULY_MOVE_SRC_OFFSET] = c.vals[ULY_MOVE_DST_OFFSET] = offsets;
  c.vals[ULY_MOVE_SRC_FIRST] = first[0], c.vals[ULY_MOVE_SRC_COUNT] = count[0];
  c.vals[ULY_MOVE_DST_FIRST] = first[1], c.vals[ULY_MOVE_DST_COUNT] = count[1];
  for (int64_t i = 0; i < CELLS; i++) *cell(to, i) = 0;
  uly_test_run(m, level, 0, &c, 0, ROWS);
  for (int64_t i = 0; i < CELLS; i++) assert_true(*cell(to, i) == value(i));
}

static void moves(void **state) {
  (void)state;
  uly_program *p = uly_test_program();
  uly_kernel_desc desc = {.kind = ULY_KERNEL_MOVE};
  uly_test_add_kernel(p, &desc);
  uly_test_model m = uly_test_load(p);
  float *from = far_tensor(), *to = far_tensor();
  for (int64_t i = 0; i < CELLS; i++) *cell(from, i) = value(i);
  for (uint32_t l = 0; l < uly_test_levels(&m); l++)
    for (int c = 0; c < 4; c++) move_case(&m, l, c & 1, c & 2, from, to);
  drop(from), drop(to);
  uly_test_unload(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(row_sums), cmocka_unit_test(gathers), cmocka_unit_test(moves)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
