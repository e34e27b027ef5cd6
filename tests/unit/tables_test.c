// Tables out of a blob: good ones, other minor versions, and a corruption of every kind, none of which may crash anything.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/bound.h"
#include "tests/unit/scale_program.h"
#include "tests/unit/tag_program.h"

static uly_blob *copy_of(const fx_program *f) {
  uly_blob *blob = malloc(f->model.blob->bytes);
  return memcpy(blob, f->model.blob, f->model.blob->bytes);
}

static void *row(uly_blob *blob, uly_table_kind kind, uint32_t i) {
  return (char *)blob + blob->tables[kind].offset + (size_t)i * blob->tables[kind].row_bytes;
}

static void reads(void **state) {
  (void)state;
  fx_program *f = tag_program((tag_shape){4, 2, 3});
  uly_tables t;
  uly_error error;
  if (uly_tables_read(f->model.blob, f->model.blob->bytes, &error, &t) != ULY_OK) fail_msg("%s", error.text);
  assert_int_equal(t.n_tensors, TAG_N_TENSORS);
  assert_true(uly_str_is(uly_tables_name(&t, t.tensors[TAG_K].names.first), "k"));
  assert_int_equal(uly_tables_find_entry(&t, ULY_STR("attention")), 0);
  assert_int_equal(uly_tables_find_entry(&t, ULY_STR("")), 0);
  assert_int_equal(uly_tables_find_entry(&t, ULY_STR("attentio")), ULY_NONE);
  assert_int_equal(uly_tables_name(&t, ULY_NONE).len, 0);
  uly_tables_free(&t);
  fx_destroy(f);
}

// Rows of a later minor version are longer: what we know of them is read, the rest left alone.
static void longer_rows(void **state) {
  (void)state;
  fx_program *f = tag_program((tag_shape){4, 2, 3});
  const uly_blob *old = f->model.blob;
  uint64_t extra = 16, bytes = old->bytes + extra * old->tables[ULY_TABLE_STEPS].count;
  uly_blob *blob = calloc(1, bytes);
  memcpy(blob, old, old->bytes);
  blob->bytes = bytes;
  blob->abi_minor = ULY_ABI_MINOR + 1;
  blob->tables[ULY_TABLE_STEPS] = (uly_table){old->bytes, old->tables[ULY_TABLE_STEPS].count, (uint32_t)(sizeof(uly_step) + extra)};
  blob->bytes = bytes = old->bytes + (sizeof(uly_step) + extra) * old->tables[ULY_TABLE_STEPS].count;
  blob = realloc(blob, bytes);
  for (uint32_t i = 0; i < old->tables[ULY_TABLE_STEPS].count; i++) {
    memset(row(blob, ULY_TABLE_STEPS, i), 0xab, sizeof(uly_step) + extra);
    memcpy(row(blob, ULY_TABLE_STEPS, i), (const char *)old + old->tables[ULY_TABLE_STEPS].offset + i * sizeof(uly_step), sizeof(uly_step));
  }
  uly_tables t, u;
  uly_error error;
  if (uly_tables_read(blob, bytes, &error, &t) != ULY_OK) fail_msg("%s", error.text);
  assert_int_equal(uly_tables_read(old, old->bytes, &error, &u), ULY_OK);
  assert_memory_equal(t.steps, u.steps, t.n_steps * sizeof *t.steps);
  uly_tables_free(&t);
  uly_tables_free(&u);
  free(blob);
  fx_destroy(f);
}

static void refuses(const uly_blob *blob, uint64_t bytes, const char *part) {
  uly_tables t;
  uly_error error = {0};
  uly_status status = uly_tables_read(blob, bytes, &error, &t);
  if ((status != ULY_INVALID_INPUT && status != ULY_UNSUPPORTED) || !strstr(error.text, part))
    fail_msg("status %d; \"%s\" should say \"%s\"", (int)status, error.text, part);
}

#define CORRUPT(type, kind, index, assignment, part)                                                                                                           \
  do {                                                                                                                                                         \
    uly_blob *blob = copy_of(f);                                                                                                                               \
    type *x = row(blob, ULY_TABLE_##kind, index);                                                                                                              \
    assignment;                                                                                                                                                \
    refuses(blob, blob->bytes, part);                                                                                                                          \
    free(blob);                                                                                                                                                \
  } while (0)

static void corruptions_by_name(void **state) {
  (void)state;
  fx_program *f = tag_program((tag_shape){4, 2, 3});
  uint32_t n_nodes = f->p->n_nodes, n_steps = f->p->n_steps, loop = 1;
  CORRUPT(uly_node, NODES, n_nodes - 1, x->a = n_nodes - 1; x->kind = ULY_NODE_ADD, "uses a later one");
  CORRUPT(uly_node, NODES, 0, x->kind = 99, "unknown kind 99");
  CORRUPT(uly_node, NODES, 0, x->kind = ULY_NODE_SYM; x->value = 12, "symbol or axis 12 of 4");
  CORRUPT(uly_node, NODES, 0, x->kind = ULY_NODE_AXIS_RANK; x->value = -1, "symbol or axis -1 of 1");
  CORRUPT(uly_span, NAMES, 0, x->count = 1u << 30, "name 0 is out of range");
  CORRUPT(uly_tensor, TENSORS, 2, x->rank = 7, "tensor 2 has role 0, dtype 4, rank 7");
  CORRUPT(uly_tensor, TENSORS, 2, x->dims[1] = n_nodes, "no size in dim 1");
  CORRUPT(uly_buffer, BUFFERS, 1, x->slots = 0, "buffer 1 is malformed");
  CORRUPT(uly_buffer, BUFFERS, 1, x->flags = 0, "not marked");
  CORRUPT(uly_exchange, EXCHANGES, 0, x->axis = 1, "exchange 0 is malformed");
  CORRUPT(uly_operand, OPERANDS, 3, x->kind = 17, "operand 3 (kind 17)");
  CORRUPT(uly_operand, OPERANDS, 3, x->index = 4000, "names row 4000 of");
  CORRUPT(uly_call_value, VALUES, 0, x->axis = 3, "value 0 is malformed");
  CORRUPT(uly_step, STEPS, 0, x->kind = 77, "unknown kind 77");
  CORRUPT(uly_step, STEPS, 0, x->a = 40, "kernel 40 of");
  CORRUPT(uly_step, STEPS, 0, x->kind = ULY_STEP_ALL_GATHER, "reserved");
  CORRUPT(uly_step, STEPS, loop, x->b = loop, "has no end");
  CORRUPT(uly_step, STEPS, n_steps - 1, x->b = 0, "has no loop");
  CORRUPT(uly_step, STEPS, n_steps - 1, x->kind = ULY_STEP_SEND; x->a = 0, "has no end");
  CORRUPT(uly_buffer, BUFFERS, 1, x->live_to = x->live_from, "which lives in steps");
  CORRUPT(uly_entry, ENTRIES, 0, x->steps[ULY_PHASE_FORWARD].count = 1000, "has no steps");
  CORRUPT(uly_entry, ENTRIES, 0, x->steps[ULY_PHASE_LOAD] = x->steps[ULY_PHASE_FORWARD], "load phase");
  uly_blob *blob = copy_of(f);
  refuses(blob, blob->bytes - 1, "truncated");
  refuses(blob, 10, "truncated");
  refuses(NULL, 0, "truncated");
  blob->abi_major = 2;
  refuses(blob, blob->bytes, "has ABI 2.1, this runtime reads 1.1");
  blob->abi_major = 1;
  blob->tables[ULY_TABLE_STEPS].offset = blob->bytes - 8;
  refuses(blob, blob->bytes, "does not lie within");
  blob->tables[ULY_TABLE_STEPS].offset = UINT64_MAX - 7;
  refuses(blob, blob->bytes, "does not lie within");
  free(blob);
  fx_destroy(f);
}

// Found by tests/fuzz/tables_fuzz.c.
static void found_by_fuzzing(void **state) {
  (void)state;
  fx_program *f = tag_program((tag_shape){4, 2, 3});
  CORRUPT(uly_exchange, EXCHANGES, 0, x->send = x->receive, "sends from buffer");
  fx_destroy(f);
  f = scale_program();
  CORRUPT(uly_buffer, BUFFERS, 0, x->flags = ULY_BUFFER_CONSTANT; x->words = 1, "buffer 0 is no constant");
  CORRUPT(uly_buffer, BUFFERS, 0, x->flags = ULY_BUFFER_CONSTANT; x->words = UINT32_MAX - 1, "buffer 0 is no constant");
  CORRUPT(uly_buffer, BUFFERS, 0, x->flags = ULY_BUFFER_CONSTANT; x->slots = UINT32_MAX, "buffer 0 is no constant");
  CORRUPT(uly_operand, OPERANDS, 0, x->index = SCALE_X, "before the forward phase");
  CORRUPT(uly_operand, OPERANDS, 0, x->kind = ULY_OPERAND_PEERS; x->index = 0, "before the forward phase");
  fx_destroy(f);
}

// Tensors that share all names: each would be a parameter a tensor.
static void too_many_parameters(void **state) {
  (void)state;
  enum { N = 10000 };
  fx_program *f = scale_program();
  const uly_blob *old = f->model.blob;
  uint64_t names = old->bytes, tensors = names + N * sizeof(uly_span), bytes = tensors + N * sizeof(uly_tensor);
  uly_blob *blob = calloc(1, bytes);
  memcpy(blob, old, old->bytes);
  blob->bytes = bytes;
  blob->tables[ULY_TABLE_NAMES] = (uly_table){names, N, sizeof(uly_span)};
  blob->tables[ULY_TABLE_TENSORS] = (uly_table){tensors, N, sizeof(uly_tensor)};
  for (uint32_t i = 0; i < N; i++) *(uly_tensor *)row(blob, ULY_TABLE_TENSORS, i) = (uly_tensor){.role = ULY_PARAM, .entry = ULY_NONE, .names = {0, N}};
  refuses(blob, bytes, "100000000 parameters");
  free(blob);
  fx_destroy(f);
}

static void endless_loop(void **state) {
  (void)state;
  fx_program *f = scale_program();
  for (uint32_t i = 0; i < f->p->n_nodes; i++)
    if (f->p->nodes[i].kind == ULY_NODE_CONST && f->p->nodes[i].value == SCALE_LAYERS - 1) f->p->nodes[i].value = ULY_MAX_TURNS + 1;
  fx_finish(f);
  uly_loaded *loaded;
  uly_bound *bound;
  uly_error error;
  int64_t symbols[] = {1, 9};
  uly_bind_options options = {.symbols = symbols, .threads = 1, .device = "null"};
  assert_int_equal(uly_loaded_create(&f->model, &error, &loaded), ULY_OK);
  assert_int_equal(uly_param_seed(loaded, 1, &error), ULY_OK);
  assert_int_equal(uly_bind(loaded, &options, &error, &bound), ULY_OVERFLOW);
  assert_non_null(strstr(error.text, "a loop of 1000001 iterations"));
  uly_loaded_destroy(loaded);
  fx_destroy(f);
}

// Random damage. Where it still passes the checks, bind and the program's own sizes must stand it too (kernels are not run: they trust their values).
static void random_damage(void **state) {
  (void)state;
  fx_program *f = tag_program((tag_shape){4, 2, 3});
  uint64_t random = 99;
  int passed = 0;
  for (int i = 0; i < 20000; i++) {
    uly_blob *blob = copy_of(f);
    int changes = 1 + i % 3;
    for (int k = 0; k < changes; k++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      size_t at = sizeof(uly_blob) + (size_t)(random >> 33) % (size_t)(blob->bytes - sizeof(uly_blob));
      ((unsigned char *)blob)[at] = (unsigned char)(random >> 20 & (i % 2 ? 0xff : 0x3));
    }
    uly_model model = f->model;
    uly_loaded *loaded;
    uly_bound *bound;
    uly_error error;
    model.blob = blob;
    if (uly_loaded_create(&model, &error, &loaded) == ULY_OK) {
      int64_t symbols[32] = {2, 5, 1, 0};
      uly_bind_options options = {.symbols = symbols, .threads = 1, .device = "null"};
      if (uly_bind(loaded, &options, &error, &bound) == ULY_OK) {
        passed++;
        uly_bound_destroy(bound);
      }
      uly_loaded_destroy(loaded);
    }
    free(blob);
  }
  assert_true(passed > 100);
  fx_destroy(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reads),
                                     cmocka_unit_test(longer_rows),
                                     cmocka_unit_test(corruptions_by_name),
                                     cmocka_unit_test(found_by_fuzzing),
                                     cmocka_unit_test(too_many_parameters),
                                     cmocka_unit_test(endless_loop),
                                     cmocka_unit_test(random_damage)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
