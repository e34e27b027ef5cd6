#include "codegen/codegen.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "codegen/program_table.h"
#include "runtime/base/full_io.h"

enum { MAX_THREADS = 16, ERROR_BYTES = 512 };

// Kernels × levels, taken one by one by the threads.
typedef struct work {
  const uly_program *program;
  const uly_object_options *object;
  uly_code *code;
  atomic_uint next;
} work;

typedef struct worker {
  pthread_t thread;
  work *work;
  uly_arena *arena; // of the objects it makes
  uly_status status;
  char error[ERROR_BYTES];
} worker;

// A stack that overflows can be reported only on another one, which each thread must bring.
static bool add_signal_stack(uly_arena *arena) {
  stack_t old, own = {.ss_size = 128 * 1024};
  if (sigaltstack(NULL, &old) != 0 || !(old.ss_flags & SS_DISABLE)) return false;
  own.ss_sp = uly_arena_alloc(arena, own.ss_size);
  return sigaltstack(&own, NULL) == 0;
}

static void *run_worker(void *argument) {
  worker *w = argument;
  bool added = add_signal_stack(w->arena);
  const uly_code *code = w->work->code;
  uint32_t n = code->n_kernels * code->n_levels;
  for (uint32_t i; w->status == ULY_OK && (i = atomic_fetch_add(&w->work->next, 1)) < n;) {
    uint32_t kernel = i / code->n_levels, level = i % code->n_levels;
    if (level && code->symbols[kernel][level] == code->symbols[kernel][level - 1]) continue;
    const uly_kernel_desc *desc = w->work->program->kernels[kernel];
    w->status = uly_object_compile(w->arena, desc, code->symbols[kernel][level], uly_object_level(desc, code->levels[level]), w->work->object,
                                   &code->objects[i], w->error, sizeof w->error);
  }
  if (added) sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
  return NULL;
}

static int count_threads(int wanted, uint32_t jobs) {
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  int n = wanted > 0 ? wanted : cpus > 0 ? (int)cpus : 1;
  if (n > MAX_THREADS) n = MAX_THREADS;
  return (uint32_t)n < jobs ? n : jobs ? (int)jobs : 1;
}

static uly_status compile_kernels(work *w, worker *workers, int n_threads, uly_text *error) {
  int started = 1;
  for (int t = 0; t < n_threads; t++) workers[t] = (worker){.work = w, .arena = uly_arena_create()};
  while (started < n_threads && pthread_create(&workers[started].thread, NULL, run_worker, &workers[started]) == 0) started++;
  run_worker(&workers[0]);
  for (int t = 1; t < started; t++) pthread_join(workers[t].thread, NULL);
  for (int t = 0; t < started; t++) {
    if (workers[t].status == ULY_OK) continue;
    uly_text_add(error, "%s", workers[t].error);
    return workers[t].status;
  }
  return ULY_OK;
}

static bool any_gains(const uly_program *p, const uly_cpu_level *level) {
  for (uint32_t k = 0; k < p->n_kernels; k++)
    if (uly_object_level(p->kernels[k], level) == level) return true;
  return false;
}

static uly_status choose_levels(const char *march, const uly_program *p, uly_code *code, uly_text *error) {
  bool taken[ULY_MAX_LEVELS] = {false};
  uly_str names[ULY_MAX_LEVELS];
  for (int l = 0; l < uly_n_cpu_levels; l++) names[l] = uly_str_of(uly_cpu_levels[l].name);
  for (const char *at = march; at && *at;) {
    size_t n = strcspn(at, ",");
    int found = -1;
    for (int l = 0; l < uly_n_cpu_levels; l++)
      if (uly_str_equal(names[l], (uly_str){at, n})) found = l;
    if (found < 0) {
      uly_str nearest = uly_str_nearest((uly_str){at, n}, names, (size_t)uly_n_cpu_levels);
      uly_text_add(error, "`%.*s` is not a CPU level", (int)n, at);
      if (nearest.len) uly_text_add(error, "; did you mean `%.*s`?", ULY_STR_ARG(nearest));
      return ULY_INVALID_ARGUMENT;
    }
    taken[found] = true;
    at += n + (at[n] == ',');
  }
  for (int l = 0; l < uly_n_cpu_levels; l++)
    if (march && *march ? taken[l] : any_gains(p, &uly_cpu_levels[l])) code->levels[code->n_levels++] = &uly_cpu_levels[l];
  return ULY_OK;
}

static void name_kernels(uly_arena *arena, const uly_program *p, uly_code *code) {
  code->n_kernels = p->n_kernels;
  code->objects = ULY_NEW_ARRAY(arena, uly_code_bytes, p->n_kernels * code->n_levels + 1);
  code->symbols = uly_arena_alloc(arena, sizeof *code->symbols * (p->n_kernels + 1));
  for (uint32_t k = 0; k < p->n_kernels; k++)
    for (uint32_t l = 0; l < code->n_levels; l++) {
      const uly_cpu_level *own = uly_object_level(p->kernels[k], code->levels[l]);
      bool shared = l > 0 && own == code->levels[l - 1];
      code->symbols[k][l] = shared ? code->symbols[k][l - 1] : uly_str_format(arena, "k%u_%s.%s", k, uly_kernel_kind_name(p->kernels[k]->kind), own->name).ptr;
    }
}

// What kernels of the levels call, of their own and of their bases.
static void add_support(uly_arena *arena, uly_code *code) {
  enum { MOST = 16 };
  uly_code_bytes *support = ULY_NEW_ARRAY(arena, uly_code_bytes, 2 * MOST * code->n_levels);
  for (uint32_t l = 0; l < code->n_levels; l++) {
    const uly_cpu_level *base = uly_object_base(code->levels[l]);
    bool there = base == code->levels[l] || (l > 0 && base == code->levels[l - 1]);
    code->n_more += uly_object_support(code->levels[l], &support[code->n_more], MOST);
    if (!there) code->n_more += uly_object_support(base, &support[code->n_more], MOST);
  }
  code->more = support;
}

static uly_status link_model(uly_arena *arena, const uly_code *code, const uly_blob *blob, uly_code_bytes *out, uly_text *error) {
  uint32_t n = 0, n_kernels = code->n_kernels * code->n_levels;
  uly_code_bytes *objects = ULY_NEW_ARRAY(arena, uly_code_bytes, n_kernels + (uint32_t)code->n_more + 1);
  ULY_TRY(uly_artifact_object(arena, blob, code, &objects[n++], error));
  for (uint32_t i = 0; i < n_kernels; i++)
    if (code->objects[i].n) objects[n++] = code->objects[i];
  for (int i = 0; i < code->n_more; i++) objects[n++] = code->more[i];
  ULY_TRY(uly_link_shared(arena, objects, (int)n, out, error));
  return uly_artifact_seal(*out, error);
}

static uly_status write_file(const char *path, uly_code_bytes bytes, uly_text *error) {
  int fd = uly_full_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0777);
  bool ok = fd >= 0 && uly_full_write(fd, bytes.ptr, bytes.n);
  int cause = errno;
  if (fd >= 0 && close(fd) != 0 && ok) ok = false, cause = errno;
  if (ok) return ULY_OK;
  uly_text_add(error, "cannot write %s: %s", path, strerror(cause));
  return ULY_IO;
}

uly_status uly_codegen_link(const uly_program *program, const uly_code *code, const char *path, uly_text *error) {
  uly_code_bytes library;
  uly_blob *blob = uly_program_blob(program, code->objects, code->n_levels);
  ULY_TRY(link_model(program->arena, code, blob, &library, error));
  return write_file(path, library, error);
}

uly_status uly_codegen_write(const uly_program *program, const uly_codegen_options *options, const char *path, uly_text *error) {
  static const uly_codegen_options usual = {0};
  if (!options) options = &usual;
  worker workers[MAX_THREADS];
  uly_code code = {0};
  ULY_TRY(choose_levels(options->march, program, &code, error));
  name_kernels(program->arena, program, &code);
  add_support(program->arena, &code);
  work w = {.program = program, .object = &options->object, .code = &code};
  int n_threads = count_threads(options->n_threads, code.n_kernels * code.n_levels);
  uly_status status = compile_kernels(&w, workers, n_threads, error);
  if (status == ULY_OK) status = uly_codegen_link(program, &code, path, error);
  for (int t = 0; t < n_threads; t++) uly_arena_destroy(workers[t].arena);
  return status;
}
