#include "tests/unit/kernel_loader.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <cmocka.h>

uly_program *uly_test_program(void) { return uly_program_create(uly_arena_create()); }

uint32_t uly_test_add_kernel(uly_program *p, const uly_kernel_desc *desc) { return uly_program_add_kernels(p, uly_arena_copy(p->arena, desc, sizeof *desc)); }

uly_test_model uly_test_load(uly_program *program) { return uly_test_load_with(program, &(uly_codegen_options){.object = {.verify = true}}); }

uly_test_model uly_test_load_with(uly_program *program, const uly_codegen_options *options) {
  char path[] = "/tmp/ulyc_test_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  uly_text error = {.arena = program->arena};
  uly_status status = uly_codegen_write(program, options, path, &error);
  if (status != ULY_OK) {
    unlink(path);
    fail_msg("%.*s", ULY_STR_ARG(uly_text_str(&error)));
  }
  uly_test_model m = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL), .arena = program->arena};
  unlink(path);
  if (!m.library) fail_msg("%s", dlerror());
  uly_query query = (uly_query)(uintptr_t)dlsym(m.library, ULY_QUERY_SYMBOL);
  assert_non_null(query);
  m.model = query();
  return m;
}

void uly_test_unload(uly_test_model *m) {
  dlclose(m->library);
  uly_arena_destroy(m->arena);
}

uint32_t uly_test_levels(const uly_test_model *m) {
  uint32_t have = 0, n = 0;
  if (__builtin_cpu_supports("avx2")) have |= ULY_CPU_AVX2;
  if (__builtin_cpu_supports("fma")) have |= ULY_CPU_FMA;
  if (__builtin_cpu_supports("f16c")) have |= ULY_CPU_F16C;
  if (__builtin_cpu_supports("bmi2")) have |= ULY_CPU_BMI2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    have |= ULY_CPU_AVX512;
  while (n < m->model->n_levels && (m->model->levels[n].features & ~have) == 0) n++;
  return n;
}

void uly_test_call_init(uly_test_call *c) {
  *c = (uly_test_call){.scratch = NULL};
  for (int i = 0; i < ULY_TEST_OPS; i++) c->args[i] = (uly_arg){&c->pointers[i], 1};
  for (int i = 0; i < ULY_TEST_VALS; i++) c->vals[i] = &c->numbers[i];
}

// As the runtime's threads do: denormals are zero.
void uly_test_space(uly_test_call *c, int64_t n0, int64_t n1, int64_t cols) {
  _Static_assert((int)ULY_ROWS_COLS == (int)ULY_ROWSUM_COLS && (int)ULY_ROWS_N0 == (int)ULY_ROWSUM_N0, "the same slots");
  for (int i = ULY_ROWS_N0; i < ULY_ROWS_COLS; i++) c->numbers[i] = 1;
  c->numbers[ULY_ROWS_N0] = n0, c->numbers[ULY_ROWS_N1] = n1, c->numbers[ULY_ROWS_COLS] = cols;
}

void uly_test_run(const uly_test_model *m, uint32_t level, uint32_t kernel, uly_test_call *c, int64_t lo, int64_t hi) {
  unsigned mode = _mm_getcsr();
  c->call = (uly_call){.op = c->args, .val = c->vals, .n_peers = 1, .lo = lo, .hi = hi, .scratch = c->scratch, .fault = &c->fault};
  _mm_setcsr(mode | 0x8040);
  m->model->kernels[level][kernel](&c->call);
  _mm_setcsr(mode);
}

void *uly_test_guarded(size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (bytes + page - 1) / page * page;
  char *p = mmap(NULL, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(p != MAP_FAILED);
  assert_int_equal(mprotect(p + page, inside, PROT_READ | PROT_WRITE), 0);
  return p + page + inside - bytes;
}

uly_expr uly_test_expr(uly_arena *arena, const char *text) {
  const uly_str symbols[] = {ULY_STR("S"), ULY_STR("T")};
  uly_expr e;
  if (uly_expr_parse(arena, uly_str_of(text), symbols, 2, &e) != ULY_OK) fail_msg("cannot parse %s", text);
  return e;
}
