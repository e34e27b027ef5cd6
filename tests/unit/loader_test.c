// Model files: a good one runs, and everything else is refused with a reason before it is mapped.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/bound.h"
#include "tests/unit/scale_program.h"

static unsigned char *good;
static size_t good_bytes;
static char folder[] = "/tmp/uly_loader_XXXXXX", scratch[64];

static int set_up(void **state) {
  (void)state;
  FILE *f = fopen(MODEL_FILE, "rb");
  if (!f || !mkdtemp(folder)) return -1;
  good = malloc(4 << 20);
  good_bytes = fread(good, 1, 4 << 20, f);
  fclose(f);
  snprintf(scratch, sizeof scratch, "%s/m.so", folder);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  unlink(scratch);
  free(good);
  return rmdir(folder);
}

static void write_file(const void *data, size_t bytes) {
  unlink(scratch);
  FILE *f = fopen(scratch, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, bytes, f), bytes);
  fclose(f);
}

static void refused(const char *path, uly_status want, const char *part) {
  uly_loaded *loaded;
  uly_error error = {0};
  uly_status status = uly_loaded_open(path, &error, &loaded);
  if (status != want || !strstr(error.text, part)) fail_msg("status %d, expected %d; \"%s\" should say \"%s\"", (int)status, (int)want, error.text, part);
}

// The good file with |new| at the first place that holds |old|.
static void patched(const void *old, const void *new, size_t bytes) {
  unsigned char *copy = malloc(good_bytes);
  memcpy(copy, good, good_bytes);
  unsigned char *at = memmem(copy, good_bytes, old, bytes);
  assert_non_null(at);
  memcpy(at, new, bytes);
  write_file(copy, good_bytes);
  free(copy);
}

static void runs(void **state) {
  (void)state;
  uly_loaded *loaded;
  uly_error error;
  uly_bound *bound;
  if (uly_loaded_open(MODEL_FILE, &error, &loaded) != ULY_OK) fail_msg("%s", error.text);
  assert_int_equal(uly_param_seed(loaded, 1, &error), ULY_OK);
  int64_t symbols[SCALE_N_SYMBOLS] = {1, 2};
  uly_bind_options options = {.symbols = symbols};
  if (uly_bind(loaded, &options, &error, &bound) != ULY_OK) fail_msg("%s", error.text);
  float x[2 * SCALE_D], y[2 * SCALE_D];
  for (int i = 0; i < 2 * SCALE_D; i++) x[i] = 1;
  void *tensors[] = {x, y};
  assert_int_equal(uly_run(bound, tensors, &error), ULY_OK);
  assert_true(isfinite(y[0]) && y[0] == y[SCALE_D]);
  uly_bound_destroy(bound);
  uly_loaded_destroy(loaded);
}

// A file of format 1.0: what later versions appended is not there, and reads as nothing.
static void first_version(void **state) {
  (void)state;
  uly_note note;
  uly_tables old, now;
  uly_error error;
  if (uly_model_inspect(FIRST_FILE, &error, &note, &old) != ULY_OK || uly_model_inspect(MODEL_FILE, &error, &note, &now) != ULY_OK) fail_msg("%s", error.text);
  assert_true(old.n_probes == 0 && old.n_sources == 0 && old.n_entries == 1 && old.entries[0].probes.count == 0 && old.buffers[0].words == 0);
  assert_true(old.n_steps == now.n_steps && old.n_kernels == now.n_kernels && old.n_buffers == now.n_buffers);
  assert_memory_equal(old.steps, now.steps, old.n_steps * sizeof *old.steps);
  assert_memory_equal(old.buffers, now.buffers, old.n_buffers * sizeof *old.buffers);
  uly_tables_free(&old);
  uly_tables_free(&now);
}

static void truncated_anywhere(void **state) {
  (void)state;
  for (size_t n = 0; n < good_bytes; n += n < 2000 ? 13 : good_bytes / 60 + 1) {
    uly_loaded *loaded;
    uly_error error;
    write_file(good, n);
    if (uly_loaded_open(scratch, &error, &loaded) == ULY_OK) fail_msg("a file cut to %zu of %zu bytes was loaded", n, good_bytes);
  }
  write_file(good, good_bytes - 1);
  refused(scratch, ULY_INVALID_INPUT, "truncated");
  write_file(good, good_bytes / 2);
  refused(scratch, ULY_INVALID_INPUT, "truncated");
}

static void not_ours(void **state) {
  (void)state;
  refused("/nonexistent/m.so", ULY_IO, "cannot open /nonexistent/m.so");
  refused("/tmp", ULY_INVALID_INPUT, "not a regular file");
  unlink(scratch);
  assert_int_equal(mkfifo(scratch, 0600), 0);
  refused(scratch, ULY_INVALID_INPUT, "not a regular file");
  unlink(scratch);
  write_file("ulyc 1\nlayer", 12);
  refused(scratch, ULY_INVALID_INPUT, "not an ELF file");
  write_file("", 0);
  refused(scratch, ULY_INVALID_INPUT, "not an ELF file");
  refused("/proc/self/exe", ULY_INVALID_INPUT, "not a model");
  refused(FOREIGN_FILE, ULY_INVALID_INPUT, "no note of ulyc");
}

static void runs_code_on_load(void **state) {
  (void)state;
  refused(HOSTILE_FILE, ULY_INVALID_INPUT, "would run code");
}

static void other_abi(void **state) {
  (void)state;
  struct {
    char name[8];
    uint32_t struct_size;
    uint16_t abi_major, abi_minor;
  } note = {"ulyc", sizeof(uly_note), ULY_ABI_MAJOR, ULY_ABI_MINOR}, other = note;
  other.abi_major = 7;
  patched(&note, &other, sizeof note);
  refused(scratch, ULY_INVALID_INPUT, "has ABI 7.1, this runtime reads 1.1");
}

static void cpu_features(void **state) {
  (void)state;
  uly_level level = {"x86-64", 0, 0}, hard = {"x86-64", 1u << 30, 0}, v3 = {"x86-64-v3", ULY_CPU_AVX2 | ULY_CPU_FMA, 0};
  uint32_t choice;
  uly_error error;
  uly_level levels[] = {level, v3, {"x86-64-v4", ULY_CPU_AVX2 | ULY_CPU_FMA | ULY_CPU_AVX512, 0}};
  assert_int_equal(uly_level_choose(levels, 3, UINT32_MAX, "", &error, &choice), ULY_OK);
  assert_int_equal(choice, 2);
  assert_int_equal(uly_level_choose(levels, 3, ULY_CPU_AVX2 | ULY_CPU_FMA, NULL, &error, &choice), ULY_OK);
  assert_int_equal(choice, 1);
  assert_int_equal(uly_level_choose(levels, 3, UINT32_MAX, "x86-64-v3", &error, &choice), ULY_OK);
  assert_int_equal(choice, 1);
  assert_int_equal(uly_level_choose(levels, 3, UINT32_MAX, "sparc", &error, &choice), ULY_UNAVAILABLE);
  assert_non_null(strstr(error.text, "x86-64-v4"));
  assert_int_equal(uly_level_choose(levels + 1, 2, ULY_CPU_AVX2, "", &error, &choice), ULY_UNAVAILABLE);
  assert_string_equal(error.text, "this processor lacks FMA; the model has code for x86-64-v3, x86-64-v4");
  // In a file: the note says that no level can run here, and the code is never mapped.
  unsigned char *copy = malloc(good_bytes);
  memcpy(copy, good, good_bytes);
  for (unsigned char *at = copy; (at = memmem(at, good_bytes - (size_t)(at - copy), &v3, sizeof v3)); at++)
    ((uly_level *)(void *)memcpy(at, &v3, sizeof v3))->features = 1u << 30;
  for (unsigned char *at = copy; (at = memmem(at, good_bytes - (size_t)(at - copy), &level, sizeof level)); at++) memcpy(at, &hard, sizeof hard);
  write_file(copy, good_bytes);
  free(copy);
  refused(scratch, ULY_UNAVAILABLE, "processor lacks features that this version does not know (0x40000000)");
}

// A library that is loaded along could run code, or be another one than it seems.
static void needs_only_what_is_there(void **state) {
  (void)state;
  refused(NEEDY_FILE, ULY_INVALID_INPUT, "it needs the library libelf.so.1");
  refused(SEARCHING_FILE, ULY_INVALID_INPUT, "it says where to look for libraries");
}

// Tables can be looked at on any processor, from bytes alone.
static void inspects(void **state) {
  (void)state;
  uly_note note;
  uly_tables tables;
  uly_error error = {0};
  uly_level level = {"x86-64", 0, 0}, hard = {"x86-64", 1u << 30, 0};
  patched(&level, &hard, sizeof level);
  if (uly_model_inspect(scratch, &error, &note, &tables) != ULY_OK) fail_msg("%s", error.text);
  assert_memory_equal(note.program, tables.program, sizeof note.program);
  assert_int_equal(tables.n_entries, 1);
  assert_int_equal(note.n_kernels, tables.n_kernels);
  uly_tables_free(&tables);
  for (size_t n = 0; n < good_bytes; n += good_bytes / 60 + 1) {
    write_file(good, n);
    if (uly_model_inspect(scratch, &error, &note, &tables) == ULY_OK) fail_msg("a file cut to %zu of %zu bytes was read", n, good_bytes);
  }
  uint32_t magic = ULY_BLOB_MAGIC, other = 0x12345678;
  patched(&magic, &other, sizeof magic);
  assert_int_equal(uly_model_inspect(scratch, &error, &note, &tables), ULY_INVALID_INPUT);
  assert_non_null(strstr(error.text, "has no tables"));
}

static void corrupt_tables(void **state) {
  (void)state;
  uint32_t magic = ULY_BLOB_MAGIC, other = 0x12345678;
  patched(&magic, &other, sizeof magic);
  refused(scratch, ULY_INVALID_INPUT, "ulyc's mark");
}

static void changed_under_us(void **state) {
  (void)state;
  uly_loaded *loaded;
  uly_error error;
  write_file(good, good_bytes);
  assert_int_equal(uly_loaded_open(scratch, &error, &loaded), ULY_OK);
  unsigned char *copy = malloc(good_bytes);
  memcpy(copy, good, good_bytes);
  for (unsigned char *at = copy; (at = memmem(at, good_bytes - (size_t)(at - copy), loaded->tables.program, 32)); at++) at[0] ^= 1;
  write_file(copy, good_bytes);
  free(copy);
  refused(scratch, ULY_INVALID_INPUT, "has changed since it was loaded");
  uly_loaded_destroy(loaded);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs),         cmocka_unit_test(first_version),           cmocka_unit_test(truncated_anywhere),
                                     cmocka_unit_test(not_ours),     cmocka_unit_test(runs_code_on_load),       cmocka_unit_test(other_abi),
                                     cmocka_unit_test(cpu_features), cmocka_unit_test(corrupt_tables),          cmocka_unit_test(changed_under_us),
                                     cmocka_unit_test(inspects),     cmocka_unit_test(needs_only_what_is_there)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
