// Peak memory of a run against what has to be there: the packed weights, the caller's tensors, and the largest set of buffers that live at one time. The set is counted from the life
// times in model.so, step by step, whatever the runtime does about them; each rank has its own.
//   memory_bench model=FILE [s=512] [b=1] [ranks=1] [procs=0] [threads=1] [folder=.]
// The run is ulyrun's, with weights that it maps from a sparse file in |folder|. What it and its processes have in memory is looked at all the time: anonymous and shared pages, those
// that several processes share counted once; not the mapped file.
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/options.h"
#include "bench/sparse_weights.h"
#include "runtime/base/dtype.h"

enum { MAX_ARGUMENTS = 40, MAX_RANKS = 64 };

typedef struct options {
  const char *model, *folder;
  int64_t s, b;
  int ranks, procs, threads;
} options;

typedef struct need {
  int64_t weights, tensors, live; // of all ranks
} need;

// ---- what has to be there -------------------------------------------------------------------------------------------------------------------------------

// Is buffer |b| named by an operand of one of the steps? Send buffers, where kernels write straight into receivers, are not.
static bool is_used(const uly_tables *t, uly_span steps, uint32_t b) {
  for (uint32_t i = steps.first; i < steps.first + steps.count; i++) {
    const uly_step *s = &t->steps[i];
    bool exchange = s->kind == ULY_STEP_POST || s->kind == ULY_STEP_SEND || s->kind == ULY_STEP_WAIT;
    if (exchange && t->exchanges[s->a].receive == b) return true;
    for (uint32_t k = s->operands.first; k < s->operands.first + s->operands.count; k++)
      if (t->operands[k].kind == ULY_OPERAND_BUFFER && t->operands[k].index == b) return true;
  }
  return false;
}

static int64_t bytes_of(const uly_nodes *nodes, const uly_buffer *b, int64_t rank) {
  uly_error error;
  int64_t bytes;
  bench_check(uly_nodes_size(nodes, b->bytes, rank, &error, &bytes), &error);
  return bytes * b->slots;
}

static int64_t tensor_bytes(const uly_tables *t, const uly_nodes *nodes, uly_span own) {
  int64_t sum = 0;
  uly_error error;
  for (uint32_t i = own.first; i < own.first + own.count; i++) {
    int64_t bytes = uly_dtype_bytes((uly_dtype)t->tensors[i].dtype), size;
    for (uint32_t d = 0; d < t->tensors[i].rank; d++) {
      bench_check(uly_nodes_size(nodes, t->tensors[i].dims[d], 0, &error, &size), &error);
      bytes *= size;
    }
    sum += bytes;
  }
  return sum;
}

static int64_t live_bytes(const uly_tables *t, const uly_nodes *nodes, uly_span steps, const bool *used, int64_t rank) {
  int64_t most = 0;
  for (uint32_t s = steps.first; s < steps.first + steps.count; s++) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < t->n_buffers; i++)
      if (used[i] && t->buffers[i].phase == ULY_PHASE_FORWARD && t->buffers[i].live_from <= s && s <= t->buffers[i].live_to)
        sum += bytes_of(nodes, &t->buffers[i], rank);
    most = sum > most ? sum : most;
  }
  return most;
}

static need count_need(const uly_loaded *loaded, const options *o, int64_t n_ranks) {
  const uly_tables *t = &loaded->tables;
  int64_t symbols[ULY_MAX_SYMBOLS], when = 0;
  uly_error error;
  need sum = {0};
  for (uint32_t i = 0; i < t->n_symbols; i++) symbols[i] = uly_str_is(uly_tables_text(t, t->symbols[i].name), "S") ? o->s : o->b;
  uly_nodes nodes = {.nodes = t->nodes, .n_nodes = t->n_nodes, .n_symbols = t->n_symbols, .symbols = symbols, .n_ranks = n_ranks};
  nodes.grid.n_axes = t->n_axes;
  for (uint32_t a = 0; a < t->n_axes; a++) nodes.grid.size[a] = a ? 1 : (int32_t)n_ranks;
  nodes.values = malloc(sizeof *nodes.values * (size_t)n_ranks * (t->n_nodes + (size_t)1));
  bool *used = calloc(t->n_buffers + (size_t)1, sizeof *used);
  if (!nodes.values || !used) bench_die("no memory");
  uly_nodes_eval(&nodes);
  uint32_t e = 0;
  for (; e < t->n_entries && t->entries[e].when != ULY_NONE; e++)
    if (uly_nodes_get(&nodes, t->entries[e].when, 0, &error, &when) == ULY_OK && when > 0) break;
  if (e == t->n_entries) bench_die("no entry runs at these sizes");
  uly_span steps = t->entries[e].steps[ULY_PHASE_FORWARD];
  for (uint32_t i = 0; i < t->n_buffers; i++) {
    used[i] = is_used(t, steps, i);
    if (used[i] && t->buffers[i].phase == ULY_PHASE_LOAD && !(t->buffers[i].flags & ULY_BUFFER_CONSTANT)) sum.weights += bytes_of(&nodes, &t->buffers[i], 0);
  }
  sum.tensors = tensor_bytes(t, &nodes, t->entries[e].tensors);
  for (int64_t r = 0; r < n_ranks; r++) sum.live += live_bytes(t, &nodes, steps, used, r);
  free(nodes.values);
  free(used);
  return sum;
}

// ---- what is there --------------------------------------------------------------------------------------------------------------------------------------

// Anonymous and shared bytes of a process: its part of those that it shares.
static int64_t process_bytes(pid_t pid) {
  char path[64], line[128];
  int64_t sum = 0, kib;
  snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "Pss_Anon: %" SCNd64, &kib) == 1 || sscanf(line, "Pss_Shmem: %" SCNd64, &kib) == 1) sum += kib * 1024;
  if (file) fclose(file);
  return sum;
}

static int64_t all_bytes(pid_t pid) {
  char path[64], children[1024] = "";
  int64_t sum = process_bytes(pid);
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
  FILE *file = fopen(path, "re");
  if (file && fgets(children, sizeof children, file))
    for (char *at = strtok(children, " "); at; at = strtok(NULL, " ")) sum += process_bytes((pid_t)atoi(at));
  if (file) fclose(file);
  return sum;
}

// Runs |command| and returns the most that it has in memory.
static int64_t watch(char **command) {
  int64_t most = 0;
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) dup2(null, 1), dup2(null, 2);
    execv(command[0], command);
    _exit(127);
  }
  if (pid < 0) bench_die("no process");
  while (waitpid(pid, &status, WNOHANG) == 0) {
    int64_t now = all_bytes(pid);
    most = now > most ? now : most;
    nanosleep(&(struct timespec){0, 1000000}, NULL);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status)) bench_die("ulyrun failed");
  return most;
}

static int64_t measure(const uly_loaded *loaded, const options *o, const char *weights) {
  const uly_tables *t = &loaded->tables;
  static char text[MAX_ARGUMENTS][256];
  char *command[MAX_ARGUMENTS + 1] = {0};
  int n = 0;
#define ADD(...) snprintf(command[n] = text[n], sizeof text[n], __VA_ARGS__), n++
  ADD("%s", ULY_BENCH_ULYRUN);
  ADD("%s", o->model);
  ADD("--weights");
  ADD("%s", weights);
  ADD("--threads");
  ADD("%d", o->threads);
  ADD("--repeat");
  ADD("3");
  if (o->procs || o->ranks > 1) {
    ADD(o->procs ? "--procs" : "--ranks");
    ADD("%d", o->procs ? o->procs : o->ranks);
  }
  for (uint32_t i = 0; i < t->n_symbols; i++) {
    uly_str name = uly_tables_text(t, t->symbols[i].name);
    ADD("--at");
    ADD("%.*s=%" PRId64, ULY_STR_ARG(name), uly_str_is(name, "S") ? o->s : o->b);
  }
  for (uint32_t i = t->entries[0].tensors.first; i < t->entries[0].tensors.first + t->entries[0].tensors.count; i++) {
    if (t->tensors[i].role != ULY_INPUT) continue;
    ADD("--input");
    ADD("%.*s=rand:seed=1", ULY_STR_ARG(uly_tables_name(t, t->tensors[i].names.first)));
  }
#undef ADD
  return watch(command);
}

int main(int argc, char **argv) {
  options o = {.folder = ".", .s = 512, .b = 1, .ranks = 1, .threads = 1};
  uly_error error;
  uly_loaded *loaded;
  char weights[200];
  bench_read(argc, argv,
             (const bench_option[]){{"model", .text = &o.model},
                                    {"folder", .text = &o.folder},
                                    {"s", .size = &o.s},
                                    {"b", .size = &o.b},
                                    {"ranks", .number = &o.ranks},
                                    {"procs", .number = &o.procs},
                                    {"threads", .number = &o.threads},
                                    {0}});
  if (!o.model) bench_die("model=FILE is missing");
  bench_check(uly_loaded_open(o.model, &error, &loaded), &error);
  snprintf(weights, sizeof weights, "%s/memory_bench.%d.safetensors", o.folder, (int)getpid());
  sparse_weights_write(loaded, weights);
  int n = o.procs ? o.procs : o.ranks;
  need all = count_need(loaded, &o, n);
  int64_t ours = measure(loaded, &o, weights), least = all.weights + all.tensors + all.live;
  unlink(weights);
  const double mib = 1 << 20;
  printf("S=%" PRId64 " B=%" PRId64 " %d %s: peak %.1f MiB, needed %.1f (weights %.1f, tensors %.1f, live %.1f), ratio %.3f\n", o.s, o.b, n,
         o.procs ? "processes" : "ranks", (double)ours / mib, (double)least / mib, (double)all.weights / mib, (double)all.tensors / mib, (double)all.live / mib,
         (double)ours / (double)least);
  uly_loaded_destroy(loaded);
  return 0;
}
