// ulyrun model.so: runs a compiled model from the command line, on ranks that are threads, processes that share memory, or processes of mpirun.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/escape.h"
#include "runtime/base/progress.h"
#include "runtime/ulyrun_check.h"

enum { MAX_RANKS = ULY_JOB_MAX_RANKS };
static const double grace = 0.3; // seconds

typedef struct run {
  uly_run_options options;
  uly_job job;
  uly_check *check; // NULL without --check
  int n;
  uly_rank_result *results; // [n], seen by all processes
  ulyrt_comm *comms[MAX_RANKS];
} run;

// Whether a launcher of MPI started this process, and as which rank.
static bool launched_by_mpi(bool *out_first) {
  const uly_env sizes[] = {ULY_ENV_PMI_SIZE, ULY_ENV_OMPI_SIZE}, ranks[] = {ULY_ENV_PMI_RANK, ULY_ENV_OMPI_RANK};
  for (int i = 0; i < 2; i++) {
    if (!*uly_env_text(sizes[i])) continue;
    const char *rank = uly_env_text(ranks[i]);
    *out_first = !*rank || strcmp(rank, "0") == 0;
    return true;
  }
  *out_first = true;
  return false;
}

// ---- ranks that are threads ----

typedef struct seat {
  run *r;
  int rank;
} seat;

static void *run_thread(void *arg) {
  const seat *s = arg;
  uly_job_run(&s->r->job, s->r->comms[s->rank], false, &s->r->results[s->rank]);
  return NULL;
}

static uly_status run_threads(run *r, uly_error *error) {
  ulyrt_error e = ULYRT_ERROR_INIT;
  pthread_t threads[MAX_RANKS];
  seat seats[MAX_RANKS];
  int started = 0;
  if (r->n == 1) {
    uly_job_run(&r->job, NULL, false, &r->results[0]);
    return ULY_OK;
  }
  ulyrt_status status = ulyrt_comm_create_local(r->n, r->comms, &e);
  if (status != ULYRT_OK) return uly_fail(error, (uly_status)status, "%s", e.text);
  for (; started < r->n; started++) {
    seats[started] = (seat){r, started};
    if (pthread_create(&threads[started], NULL, run_thread, &seats[started]) != 0) break;
  }
  if (started < r->n) ulyrt_comm_abort(r->comms[started], "a thread for a rank cannot be started");
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < r->n; i++) ulyrt_comm_destroy(r->comms[i]);
  return started == r->n ? ULY_OK : uly_fail(error, ULY_EXHAUSTED, "only %d of %d threads can be started", started, r->n);
}

// ---- ranks that are processes ----

static void run_child(run *r, ulyrt_group *group, int rank, pid_t parent) {
  ulyrt_comm *comm = NULL;
  ulyrt_error e = ULYRT_ERROR_INIT;
  uly_rank_result *out = &r->results[rank];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  ulyrt_status status = ulyrt_group_join(group, rank, &comm, &e);
  if (status == ULYRT_OK) {
    uly_job_run(&r->job, comm, false, out);
    ulyrt_comm_destroy(comm);
  } else {
    out->status = (int32_t)status;
    snprintf(out->error, sizeof out->error, "%s", e.text);
    out->done = true;
  }
  _exit(uly_status_exit_code((uly_status)out->status));
}

// One child ended: records how, where it could not itself.
static void note_end(run *r, ulyrt_group *group, int rank, int status) {
  uly_rank_result *out = &r->results[rank];
  char reason[128];
  if (out->done) return;
  if (WIFSIGNALED(status))
    snprintf(reason, sizeof reason, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(reason, sizeof reason, "ended with exit code %d", WEXITSTATUS(status));
  out->status = ULY_PEER_LOST;
  char name[100];
  snprintf(out->error, sizeof out->error, "rank %s %s", uly_job_rank_name(&r->job, rank, name, sizeof name), reason);
  ulyrt_group_report(group, rank, reason);
}

// Waits for all children. After the first failure the others have a moment (grace) to end by themselves.
static void wait_children(run *r, ulyrt_group *group, pid_t *pids, int started) {
  int left = started;
  bool killed = false;
  double kill_at = started < r->n ? uly_now() + grace : 0;
  while (left > 0) {
    int status = 0;
    pid_t pid = waitpid(-1, &status, kill_at > 0 ? WNOHANG : 0);
    if (pid < 0 && errno != EINTR) return;
    if (pid <= 0) {
      nanosleep(&(struct timespec){0, 2000000}, NULL);
      if (killed || kill_at == 0 || uly_now() < kill_at) continue;
      killed = true;
      for (int i = 0; i < started; i++)
        if (pids[i]) kill(pids[i], SIGKILL);
      continue;
    }
    for (int i = 0; i < started; i++) {
      if (pids[i] != pid) continue;
      pids[i] = 0;
      left--;
      if (!killed) note_end(r, group, i, status);
      if (status != 0 && kill_at == 0) kill_at = uly_now() + grace;
    }
  }
}

static uly_status run_processes(run *r, uly_error *error) {
  ulyrt_error e = ULYRT_ERROR_INIT;
  ulyrt_group *group;
  pid_t pids[MAX_RANKS] = {0}, parent = getpid();
  int started = 0;
  // Packed once, before they are forked: they share it.
  ulyrt_status status = ulyrt_model_pack(r->job.model, r->job.entry, (int32_t)r->options.threads, &e);
  if (status == ULYRT_OK) status = ulyrt_group_create(r->n, &group, &e);
  if (status != ULYRT_OK) return uly_fail(error, (uly_status)status, "%s", e.text);
  fflush(NULL);
  for (; started < r->n; started++) {
    pids[started] = fork();
    if (pids[started] == 0) run_child(r, group, started, parent);
    if (pids[started] < 0) break;
  }
  int why = errno;
  if (started < r->n) ulyrt_group_report(group, started, "cannot be started");
  wait_children(r, group, pids, started);
  ulyrt_group_destroy(group);
  return started == r->n ? ULY_OK : uly_fail(error, ULY_EXHAUSTED, "only %d of %d processes can be started: %s", started, r->n, strerror(why));
}

// ---- results ----

// The failure to report: a rank's that ended without a word, or else the first that did not just hear of another's.
static const uly_rank_result *find_failure(const run *r) {
  const uly_rank_result *found = NULL;
  for (int i = 0; i < r->n; i++)
    if (r->results[i].status != ULY_OK && !r->results[i].done) return &r->results[i];
  for (int i = 0; i < r->n; i++) {
    const uly_rank_result *one = &r->results[i];
    if (one->status == ULY_OK) continue;
    bool heard = one->status == ULY_CANCELLED || one->status == ULY_PEER_LOST;
    if (!found) found = one;
    if (!heard) return one;
  }
  return found;
}

static void print_stats(const run *r) {
  int32_t n_axes = ulyrt_model_axes(r->job.model);
  char name[100];
  for (int i = 0; i < r->n; i++) {
    const uly_rank_result *one = &r->results[i];
    printf("rank %s sent %llu bytes", uly_job_rank_name(&r->job, i, name, sizeof name), (unsigned long long)one->sent_bytes);
    for (int32_t a = 0; n_axes > 1 && a < n_axes; a++)
      printf("%s%s %llu%s", a ? ", " : " (", ulyrt_model_axis_name(r->job.model, a), (unsigned long long)one->axis_bytes[a], a + 1 == n_axes ? ")" : "");
    printf(" arena %lld received %lld weights %lld bytes threads %d bind %.3f s run %.6f s\n", (long long)one->arena_bytes, (long long)one->receive_bytes,
           (long long)one->weight_bytes, one->threads, one->bind_seconds, one->run_seconds);
  }
}

static int complain(bool speaks, uly_status status, const char *text) {
  if (speaks) uly_print_escaped(stderr, "ulyrun: ", uly_str_of(text), "\n");
  return uly_status_exit_code(status);
}

static int report(run *r, uly_status status, uly_error *error) {
  const uly_rank_result *failure = status == ULY_OK ? find_failure(r) : NULL;
  // The command line was in order: what a rank finds wrong then is in the data.
  if (failure) return complain(true, failure->status == ULY_INVALID_ARGUMENT ? ULY_INVALID_INPUT : (uly_status)failure->status, failure->error);
  if (status != ULY_OK) {
    int code = complain(true, status, error->text);
    if (r->check) uly_check_show_place(r->check, stderr);
    return code;
  }
  status = uly_job_report(&r->job, error);
  if (r->check) uly_check_report(r->check, stdout);
  if (r->options.stats) print_stats(r);
  return status == ULY_OK ? 0 : complain(true, status, error->text);
}

static uly_status prepare(run *r, uly_error *error) {
  ULY_TRY(uly_job_prepare(&r->job, error));
  return r->options.check ? uly_check_create(&r->job, &r->check, error) : ULY_OK;
}

// ---- one process of mpirun ----

static uly_status run_mpi_rank(run *r, ulyrt_comm *comm, uly_rank_result *mine, uly_error *error) {
  r->job.n_ranks = r->n;
  uly_status status = prepare(r, error);
  do {
    if (status == ULY_OK && r->check) status = uly_check_pass(r->check, error);
    if (status != ULY_OK) {
      ulyrt_comm_abort(comm, error->text);
      return status;
    }
    *mine = (uly_rank_result){0};
    uly_job_run(&r->job, comm, true, mine);
    if (mine->status != ULY_OK) return uly_fail(error, (uly_status)mine->status, "%s", mine->error);
    ulyrt_error e = ULYRT_ERROR_INIT;
    ulyrt_status gathered = ulyrt_comm_all_gather(comm, mine, sizeof *mine, r->results, &e);
    if (gathered != ULYRT_OK) return uly_fail(error, (uly_status)gathered, "%s", e.text);
    if (r->check) ULY_TRY(uly_check_finish(r->check, r->results, r->n, error));
  } while (r->check && uly_check_more(r->check));
  return ULY_OK;
}

static int run_mpi(run *r, bool speaks) {
  ulyrt_comm *comm;
  ulyrt_error e = ULYRT_ERROR_INIT;
  uly_error error = {0};
  uly_rank_result mine = {0};
  ulyrt_status created = ulyrt_comm_create_mpi(NULL, &comm, &e);
  if (created != ULYRT_OK) return complain(speaks, (uly_status)created, e.text);
  r->n = ulyrt_comm_size(comm);
  r->results = calloc((size_t)r->n, sizeof *r->results);
  if (speaks) uly_progress_start("running");
  uly_status status = r->results ? run_mpi_rank(r, comm, &mine, &error) : uly_fail(&error, ULY_EXHAUSTED, "no memory for %d ranks", r->n);
  uly_progress_stop();
  int code = uly_status_exit_code(status);
  if (speaks && r->job.notes.len) uly_print_escaped(stderr, "", uly_text_str(&r->job.notes), "");
  if (speaks) code = report(r, status, &error);
  fflush(NULL);
  ulyrt_comm_destroy(comm);
  free(r->results);
  return code;
}

// ---- command line ----

static int check_usage(const run *r, bool mpi, uly_text *why) {
  const uly_run_options *o = &r->options;
  if (!o->model)
    uly_text_add(why, "no model is named");
  else if (o->ranks && o->procs)
    uly_text_add(why, "--ranks and --procs exclude each other");
  else if (mpi && (o->ranks || o->procs))
    uly_text_add(why, "mpirun sets the ranks: no --ranks and no --procs");
  return why->len == 0;
}

// Ranks are processes where --procs or the environment says so.
static uly_status choose_transport(const run *r, bool *out_processes, uly_error *error) {
  const char *name = uly_env_text(ULY_ENV_TRANSPORT);
  *out_processes = r->options.procs || strcmp(name, "shm") == 0;
  if (!*name || *out_processes || strcmp(name, "local") == 0 || (strcmp(name, "self") == 0 && r->n == 1)) return ULY_OK;
  return uly_fail(error, ULY_INVALID_ARGUMENT, "ULYRT_TRANSPORT is %s: expected local or shm, self for one rank, or mpirun for mpi", name);
}

// All ranks, once; or once for each part of the reference's values.
static uly_status run_ranks(run *r, bool processes, uly_error *error) {
  do {
    memset(r->results, 0, sizeof *r->results * (size_t)r->n);
    if (r->check) ULY_TRY(uly_check_pass(r->check, error));
    ULY_TRY(processes ? run_processes(r, error) : run_threads(r, error));
    if (!r->check || find_failure(r)) return ULY_OK;
    ULY_TRY(uly_check_finish(r->check, r->results, r->n, error));
  } while (uly_check_more(r->check));
  return ULY_OK;
}

static int run_here(run *r) {
  uly_error error = {0};
  bool processes;
  r->job.n_ranks = (int32_t)(r->options.procs ? r->options.procs : r->options.ranks);
  uly_status status = prepare(r, &error);
  r->n = r->job.n_ranks;
  if (status == ULY_OK) status = choose_transport(r, &processes, &error);
  if (status != ULY_OK) return complain(true, status, error.text);
  size_t bytes = sizeof *r->results * (size_t)r->n;
  r->results = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (r->results == MAP_FAILED) return complain(true, ULY_EXHAUSTED, "no memory for the results");
  if (r->job.notes.len) uly_print_escaped(stderr, "", uly_text_str(&r->job.notes), "");
  uly_progress_start("running");
  status = run_ranks(r, processes, &error);
  uly_progress_stop();
  int code = report(r, status, &error);
  munmap(r->results, bytes);
  return code;
}

int main(int argc, char **argv) {
  uly_files_reserve_standard();
  static run r;
  bool speaks, mpi = launched_by_mpi(&speaks);
  uly_arena *arena = uly_arena_create();
  uly_text why = {.arena = arena};
  uly_error error;
  int code;
  r.options = (uly_run_options){.rtol = 1e-5, .atol = 1e-6, .repeat = 1};
  r.job.arena = arena;
  r.job.options = &r.options;
  bool parsed = uly_options_parse(arena, argc, argv, &r.options, &why);
  if (parsed && r.options.help) {
    if (speaks) uly_options_help(stdout);
    code = 0;
  } else if (parsed && r.options.version) {
    if (speaks) printf("ulyrun %s\n", ulyrt_version());
    code = 0;
  } else if (parsed && (r.options.man || r.options.completion)) {
    if (speaks) (r.options.man ? uly_options_man : uly_options_completion)(stdout);
    code = 0;
  } else if (argc == 1) {
    if (speaks) uly_options_help(stderr);
    code = 2;
  } else if (!parsed || !check_usage(&r, mpi, &why)) {
    if (speaks) uly_print_escaped(stderr, "ulyrun: ", uly_text_str(&why), "\ntry: ulyrun --help\n");
    code = 2;
  } else if (uly_env_check(&error) != ULY_OK) {
    code = complain(speaks, ULY_INVALID_ARGUMENT, error.text);
  } else {
    code = mpi ? run_mpi(&r, speaks) : run_here(&r);
  }
  uly_check_destroy(r.check);
  uly_job_destroy(&r.job);
  uly_arena_destroy(arena);
  return code;
}
