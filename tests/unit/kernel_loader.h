// Kernels for tests: descriptions compiled to a model, loaded, and called with arrays. Fails the running cmocka test where something goes wrong.
#ifndef ULY_TESTS_UNIT_KERNEL_LOADER_H
#define ULY_TESTS_UNIT_KERNEL_LOADER_H

#include "codegen/codegen.h"

typedef struct uly_test_model {
  void *library;
  const uly_model *model;
  uly_arena *arena;
} uly_test_model;

uly_test_model uly_test_load(uly_program *program); // its arena goes with it
uly_test_model uly_test_load_with(uly_program *program, const uly_codegen_options *options);
void uly_test_unload(uly_test_model *m);

// Levels of the model that this CPU has: their number, best last.
uint32_t uly_test_levels(const uly_test_model *m);

enum { ULY_TEST_OPS = 16, ULY_TEST_VALS = 64 };

// A call: op(k) has one pointer, val(k) one number, unless set otherwise.
typedef struct uly_test_call {
  uly_call call;
  uly_arg args[ULY_TEST_OPS];
  void *pointers[ULY_TEST_OPS];
  const int64_t *vals[ULY_TEST_VALS];
  int64_t numbers[ULY_TEST_VALS];
  uly_fault fault;
  void *scratch;
} uly_test_call;

void uly_test_call_init(uly_test_call *c);
// Sizes of a ROWS or ROWSUM call: i0, i1 and the last dim; the others are 1.
void uly_test_space(uly_test_call *c, int64_t n0, int64_t n1, int64_t cols);
void uly_test_run(const uly_test_model *m, uint32_t level, uint32_t kernel, uly_test_call *c, int64_t lo, int64_t hi);

// |bytes| with unreadable pages before and behind; the end touches the page behind.
void *uly_test_guarded(size_t bytes);

// A program with nothing but kernels.
uly_program *uly_test_program(void);
uint32_t uly_test_add_kernel(uly_program *p, const uly_kernel_desc *desc);

// |text| as uly_expr_parse has it, with symbols S, T.
uly_expr uly_test_expr(uly_arena *arena, const char *text);

#endif
