// From a file to what can run: opening a model, mapping its weights and binding it, without the packing of weights; then the packing, against a copy of as many bytes from the same
// mapping to new memory, on as many threads. Both begin with a file that no cache holds, and take turns: the best counts.
//   load_bench model=FILE [s=512] [threads=1] [pack=1] [turns=4] [folder=.]
// The weights are a sparse file in |folder|. |pack|=0: nothing is packed, and the weights need not fit in memory.
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/options.h"
#include "bench/rank_timing.h"
#include "bench/sparse_weights.h"
#include "runtime/base/dtype.h"
#include "runtime/base/pages.h"
#include "runtime/bound.h"
#include "runtime/io/weight_files.h"

enum { MAX_THREADS = 64, CHUNK = 4 << 20 };

typedef struct options {
  const char *model, *folder;
  int64_t s;
  int threads, pack, turns;
} options;

// ---- ours ---------------------------------------------------------------------------------------------------------------------------------------------

static void set_weights(uly_loaded *loaded, const uly_weight_files *files) {
  uly_error error;
  for (int64_t i = 0; i < uly_weight_files_count(files); i++) {
    const uly_safetensor *t = uly_weight_files_get(files, i);
    bench_check(uly_param_set(loaded, uly_str_of(t->name), t->array.dtype, (uint32_t)t->array.rank, t->array.dims, t->array.data, true, &error), &error);
  }
}

static double bind_seconds(uly_loaded *loaded, const options *o, const char *device) {
  const uly_tables *t = &loaded->tables;
  int64_t symbols[ULY_MAX_SYMBOLS];
  uly_error error;
  uly_bound *bound;
  for (uint32_t i = 0; i < t->n_symbols; i++) symbols[i] = uly_str_is(uly_tables_text(t, t->symbols[i].name), "S") ? o->s : 1;
  double begin = timing_now();
  bench_check(uly_bind(loaded, &(uly_bind_options){.entry = {"", 0}, .symbols = symbols, .device = device, .threads = o->threads}, &error, &bound), &error);
  double seconds = timing_now() - begin;
  uly_bound_destroy(bound);
  return seconds;
}

static int64_t packed_bytes(const uly_loaded *loaded) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < loaded->tables.n_buffers; i++)
    if (loaded->memory[i] && !(loaded->tables.buffers[i].flags & ULY_BUFFER_CONSTANT)) sum += loaded->slot_bytes[i] * loaded->tables.buffers[i].slots;
  return sum;
}

// ---- a copy -------------------------------------------------------------------------------------------------------------------------------------------

typedef struct job {
  const char *from;
  char *to;
  int64_t bytes;
  _Atomic int64_t next;
} job;

static void *copy_chunks(void *argument) {
  job *j = argument;
  for (int64_t at; (at = atomic_fetch_add(&j->next, CHUNK)) < j->bytes;)
    memcpy(j->to + at, j->from + at, (size_t)(j->bytes - at < CHUNK ? j->bytes - at : CHUNK));
  return NULL;
}

static double copy_seconds(const char *path, int64_t bytes, int threads) {
  uly_mapping file;
  uly_error error;
  pthread_t thread[MAX_THREADS];
  bench_check(uly_mapping_open(path, &file, &error), &error);
  job j = {.from = (const char *)file.bytes.ptr, .bytes = bytes < (int64_t)file.bytes.len ? bytes : (int64_t)file.bytes.len};
  double begin = timing_now();
  j.to = uly_pages_alloc((size_t)j.bytes);
  if (!j.to) bench_die("no memory for the copy");
  for (int i = 0; i < threads; i++)
    if (pthread_create(&thread[i], NULL, copy_chunks, &j)) bench_die("no threads");
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  double seconds = timing_now() - begin;
  uly_pages_free(j.to, (size_t)j.bytes);
  uly_mapping_close(&file);
  return seconds * (double)bytes / (double)j.bytes;
}

static double least(double a, double b) { return a < b ? a : b; }

static void forget(const char *path) {
  int fd = open(path, O_RDONLY);
  if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0) bench_die("the file cannot be dropped from the cache");
  close(fd);
}

int main(int argc, char **argv) {
  options o = {.folder = ".", .s = 512, .threads = 1, .pack = 1, .turns = 4};
  uly_error error;
  uly_loaded *loaded;
  uly_weight_files *files;
  char path[200];
  bench_read(argc, argv,
             (const bench_option[]){{"model", .text = &o.model},
                                    {"folder", .text = &o.folder},
                                    {"s", .size = &o.s},
                                    {"threads", .number = &o.threads},
                                    {"pack", .number = &o.pack},
                                    {"turns", .number = &o.turns},
                                    {0}});
  if (!o.model || o.threads < 1 || o.threads > MAX_THREADS) bench_die("model=FILE is missing, or threads is not 1 to 64");
  bench_check(uly_loaded_open(o.model, &error, &loaded), &error);
  snprintf(path, sizeof path, "%s/load_bench.%d.safetensors", o.folder, (int)getpid());
  int64_t bytes = sparse_weights_write(loaded, path);
  uly_loaded_destroy(loaded);
  double load = 1e9, bind = 1e9, pack = 1e9, copy = 1e9;
  int64_t packed = 0;
  for (int turn = 0; turn < (o.pack ? o.turns : 1); turn++) {
    forget(path);
    double begin = timing_now();
    bench_check(uly_loaded_open(o.model, &error, &loaded), &error);
    bench_check(uly_weight_files_open(path, &files, &error), &error);
    set_weights(loaded, files);
    load = least(load, timing_now() - begin);
    double empty = bind_seconds(loaded, &o, "null");
    bind = least(bind, empty);
    if (o.pack) pack = least(pack, bind_seconds(loaded, &o, "cpu") - empty);
    packed = packed_bytes(loaded);
    uly_weight_files_close(files);
    uly_loaded_destroy(loaded);
    forget(path);
    if (o.pack) copy = least(copy, copy_seconds(path, packed, o.threads));
  }
  printf("weights %.2f GB, load and bind %.3f s, %s %.2f GB", (double)bytes * 1e-9, load + bind, o.pack ? "packed" : "to be packed", (double)packed * 1e-9);
  if (o.pack) printf(" at %.2f GB/s, copied at %.2f GB/s, ratio %.3f", (double)packed * 1e-9 / pack, (double)packed * 1e-9 / copy, copy / pack);
  printf("\n");
  unlink(path);
  return 0;
}
