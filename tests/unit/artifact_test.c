// A model made by hand: written, read back, called; equal bytes for equal programs; an ELF file without anything to relocate in code or to run at load.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/program_table.h"
#include "runtime/loaded.h"
#include "tests/unit/kernel_loader.h"

// out[i, c] = 2 · x[i, c] + 1
static uly_program *small_program(void) {
  uly_program *p = uly_test_program();
  uly_kernel_desc desc = {.kind = ULY_KERNEL_ROWS, .n_ops = 2, .n_vals = ULY_ROWS_N_VALS, .loc = {.line = 7}};
  uly_hook *map = &desc.u.rows.in;
  map->present = true;
  map->expr = uly_test_expr(p->arena, "2.0 * x0 + 1.0");
  map->n_operands = 1;
  map->operands[0] = (uly_hook_operand){.op = 0, .dtype = ULY_F32, .stride = {ULY_ROWS_COLS, -1, -1, -1, -1, -2}};
  map->out = (uly_hook_operand){.op = 1, .dtype = ULY_F32, .stride = {ULY_ROWS_COLS, -1, -1, -1, -1, -2}};
  for (int d = 0; d < ULY_HOOK_INDICES; d++) map->start[d] = -1;
  uly_test_add_kernel(p, &desc);
  uly_program_name(p, ULY_STR("alpha"));
  uly_program_name(p, ULY_STR("beta"));
  uly_program_add_symbols(p, (uly_symbol){.name = p->names[0], .least = 1});
  uint32_t s = uly_program_node(p, (uly_node){.kind = ULY_NODE_SYM, .value = 0});
  uly_program_op(p, ULY_NODE_MUL, s, uly_program_const(p, 4));
  return p;
}

static void calls_kernel(void **state) {
  (void)state;
  uly_test_model m = uly_test_load(small_program());
  assert_int_equal(m.model->struct_size, sizeof(uly_model));
  assert_int_equal(m.model->n_kernels, 1);
  assert_true(uly_test_levels(&m) >= 1);
  enum { ROWS = 3, COLS = 37 };
  float x[ROWS * COLS], y[ROWS * COLS];
  for (uint32_t l = 0; l < uly_test_levels(&m); l++) {
    uly_test_call c;
    uly_test_call_init(&c);
    for (int i = 0; i < ROWS * COLS; i++) x[i] = (float)i, y[i] = -1;
    c.pointers[0] = x, c.pointers[1] = y;
    uly_test_space(&c, ROWS, 1, COLS);
    uly_test_run(&m, l, 0, &c, 1, 3);
    for (int i = 0; i < ROWS * COLS; i++) assert_true(y[i] == (i < COLS ? -1.0f : 2.0f * (float)i + 1.0f));
  }
  uly_test_unload(&m);
}

static void tables_read_back(void **state) {
  (void)state;
  uly_program *p = small_program();
  uly_test_model m = uly_test_load(p);
  const uly_blob *blob = m.model->blob;
  assert_int_equal(blob->magic, ULY_BLOB_MAGIC);
  assert_int_equal(blob->n_tables, ULY_N_TABLES);
  const uly_table *nodes = &blob->tables[ULY_TABLE_NODES];
  assert_int_equal(nodes->count, 3);
  assert_int_equal(nodes->offset % 8, 0);
  assert_memory_equal((const char *)blob + nodes->offset, p->nodes, sizeof(uly_node) * 3);
  const uly_table *kernels = &blob->tables[ULY_TABLE_KERNELS];
  assert_int_equal(kernels->count, 1);
  const uly_span *name = (const void *)((const char *)blob + kernels->offset);
  assert_memory_equal((const char *)blob + blob->tables[ULY_TABLE_CHARS].offset + name->first, "k0_ROWS", name->count);
  uly_test_unload(&m);
}

static char *read_all(const char *path, size_t *out_n) {
  struct stat st;
  int fd = open(path, O_RDONLY);
  assert_true(fd >= 0 && fstat(fd, &st) == 0);
  char *bytes = malloc((size_t)st.st_size);
  assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
  close(fd);
  *out_n = (size_t)st.st_size;
  return bytes;
}

static char *write_model(uly_program *p, const uly_codegen_options *options, size_t *out_n) {
  const char *path = "artifact_test.so";
  uly_text error = {.arena = p->arena};
  if (uly_codegen_write(p, options, path, &error) != ULY_OK) fail_msg("%.*s", ULY_STR_ARG(uly_text_str(&error)));
  char *bytes = read_all(path, out_n);
  unlink(path);
  return bytes;
}

static void same_bytes(void **state) {
  (void)state;
  uly_program *p = small_program(), *q = small_program();
  size_t n, m;
  char *a = write_model(p, &(uly_codegen_options){.n_threads = 1}, &n), *b = write_model(q, &(uly_codegen_options){.n_threads = 2}, &m);
  assert_int_equal(n, m);
  assert_memory_equal(a, b, n);
  free(a), free(b);
  uly_arena_destroy(p->arena), uly_arena_destroy(q->arena);
}

// What a loader relies on, seen in the file.
static void file_is_plain(void **state) {
  (void)state;
  uly_program *p = small_program();
  size_t n;
  char *bytes = write_model(p, NULL, &n);
  const Elf64_Ehdr *e = (const void *)bytes;
  assert_memory_equal(e->e_ident, ELFMAG, SELFMAG);
  const Elf64_Phdr *segments = (const void *)(bytes + e->e_phoff);
  bool note = false;
  for (int i = 0; i < e->e_phnum; i++) {
    const Elf64_Phdr *s = &segments[i];
    if (s->p_type == PT_GNU_STACK) assert_int_equal(s->p_flags & PF_X, 0);
    if (s->p_type == PT_LOAD) assert_false((s->p_flags & PF_X) && (s->p_flags & PF_W));
    if (s->p_type == PT_NOTE) {
      const Elf64_Nhdr *h = (const void *)(bytes + s->p_offset);
      uly_note descriptor;
      assert_int_equal(h->n_namesz, 5);
      assert_int_equal(h->n_descsz, sizeof(uly_note));
      assert_int_equal(h->n_type, ULY_NOTE_TYPE);
      assert_string_equal((const char *)(h + 1), "ulyc");
      memcpy(&descriptor, (const char *)(h + 1) + 8, sizeof descriptor);
      assert_int_equal(descriptor.struct_size, sizeof(uly_note));
      assert_string_equal(descriptor.levels[0].name, "x86-64-v3");
      note = true;
    }
    if (s->p_type != PT_DYNAMIC) continue;
    for (const Elf64_Dyn *d = (const void *)(bytes + s->p_offset); d->d_tag != DT_NULL; d++) {
      const int64_t banned[] = {DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_TEXTREL, DT_INIT, DT_INIT_ARRAY, DT_FINI_ARRAY};
      for (size_t k = 0; k < sizeof banned / sizeof *banned; k++) assert_true(d->d_tag != banned[k]);
    }
  }
  assert_true(note);
  free(bytes);
  uly_arena_destroy(p->arena);
}

// A byte that is mapped and is not what was written: the file is refused, whatever the byte is.
static void damage_is_found(void **state) {
  (void)state;
  uly_program *p = small_program();
  size_t n, end = 0;
  char *bytes = write_model(p, NULL, &n);
  const char *path = "artifact_test.damaged.so";
  const Elf64_Ehdr *e = (const void *)bytes;
  const Elf64_Phdr *s = (const void *)(bytes + e->e_phoff);
  for (int i = 0; i < e->e_phnum; i++)
    if (s[i].p_type == PT_LOAD && s[i].p_offset + s[i].p_filesz > end) end = s[i].p_offset + s[i].p_filesz;
  for (size_t at = sizeof *e; at <= end; at += at == end ? 1 : at + 97 < end ? 97 : end - at) {
    uly_error error = {0};
    uly_note note;
    uly_tables tables;
    bool mapped = false;
    for (int i = 0; i < e->e_phnum; i++) mapped |= s[i].p_type == PT_LOAD && at >= s[i].p_offset && at - s[i].p_offset < s[i].p_filesz;
    bytes[at] ^= 4;
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    bytes[at] ^= 4;
    uly_status status = uly_model_inspect(path, &error, &note, &tables);
    bool read = status != ULY_OK && strstr(error.text, "it has no entry"); // what is wrong with the program, seen in its tables
    if (status == ULY_OK || read == mapped) fail_msg("byte %zu of %zu: status %d, %s", at, end, status, error.text);
  }
  unlink(path);
  free(bytes);
  uly_arena_destroy(p->arena);
}

static void errors(void **state) {
  (void)state;
  uly_program *p = small_program();
  uly_text error = {.arena = p->arena};
  assert_int_equal(uly_codegen_write(p, &(uly_codegen_options){.march = "x86-64-v5"}, "artifact_test.so", &error), ULY_INVALID_ARGUMENT);
  assert_non_null(strstr(error.ptr, "did you mean"));
  assert_int_equal(uly_codegen_write(p, NULL, "no/such/folder/model.so", &error), ULY_IO);
  assert_int_equal(uly_codegen_write(p, NULL, "/dev/full", &error), ULY_IO);
  uly_arena_destroy(p->arena);
}

static void nodes_fold(void **state) {
  (void)state;
  uly_program *p = uly_test_program();
  uint32_t s = uly_program_node(p, (uly_node){.kind = ULY_NODE_SYM}), one = uly_program_const(p, 1), zero = uly_program_const(p, 0);
  assert_int_equal(uly_program_op(p, ULY_NODE_MUL, s, one), s);
  assert_int_equal(uly_program_op(p, ULY_NODE_ADD, zero, s), s);
  assert_int_equal(uly_program_op(p, ULY_NODE_SUB, s, s), zero);
  assert_int_equal(uly_program_op(p, ULY_NODE_ADD, s, one), uly_program_op(p, ULY_NODE_ADD, one, s));
  assert_int_equal(p->nodes[uly_program_op(p, ULY_NODE_FDIV, uly_program_const(p, -7), uly_program_const(p, 2))].value, -4);
  assert_int_equal(p->nodes[uly_program_op(p, ULY_NODE_CDIV, uly_program_const(p, 7), uly_program_const(p, 2))].value, 4);
  assert_int_equal(p->nodes[uly_program_op(p, ULY_NODE_MOD, uly_program_const(p, -7), uly_program_const(p, 4))].value, 1);
  uint32_t big = uly_program_const(p, INT64_MAX);
  assert_int_equal(p->nodes[uly_program_op(p, ULY_NODE_ADD, big, one)].kind, ULY_NODE_ADD); // left for the runtime to refuse
  assert_int_equal(uly_program_op(p, ULY_NODE_FDIV, s, zero), uly_program_op(p, ULY_NODE_FDIV, s, zero));
  uint32_t start =
      uly_program_node(p, (uly_node){.kind = ULY_NODE_START, .a = uly_program_const(p, 10), .b = uly_program_const(p, 4), .c = uly_program_const(p, 3)});
  assert_int_equal(p->nodes[start].value, 8);
  assert_int_equal(uly_program_name(p, ULY_STR("x")), uly_program_name(p, ULY_STR("x")));
  for (int i = 0; i < 1000; i++) uly_program_const(p, i);
  for (int i = 0; i < 1000; i++) assert_int_equal(p->nodes[uly_program_const(p, i)].value, i);
  uly_arena_destroy(p->arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nodes_fold), cmocka_unit_test(calls_kernel),  cmocka_unit_test(tables_read_back),
                                     cmocka_unit_test(same_bytes), cmocka_unit_test(file_is_plain), cmocka_unit_test(damage_is_found),
                                     cmocka_unit_test(errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
