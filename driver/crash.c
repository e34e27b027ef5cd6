// See crash.h. What runs in the handler calls only what may be called there: system calls, and backtrace, which is loaded beforehand.
#include "driver/crash.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/env.h"

enum { MAX_INPUTS = 8, MAX_FRAMES = 100, STACK_BYTES = 256 * 1024, MAX_PATH = 512, EXIT_CODE = 70, REPLAY_SECONDS = 20, NAME = 32 };
static const uint64_t max_copy = 256u << 20;

static const struct {
  int number;
  const char *name;
} signals[] = {{SIGABRT, "SIGABRT"}, {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"},
               {SIGFPE, "SIGFPE"},   {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"}};

typedef struct input {
  const char *operand;
  uly_str text;
  char name[NAME]; // in the folder
} input;

// A handler has nowhere else to look.
static struct {
  int argc;
  char **argv;
  const char *versions;
  input inputs[MAX_INPUTS];
  int n_inputs;
  bool leaves_nothing;
  char prefix[MAX_PATH]; // of the folder's path
  atomic_flag busy;
  pid_t thread; // whose crash it is
} state = {.busy = ATOMIC_FLAG_INIT};

// ---- writing without stdio

static void put_bytes(int fd, const char *bytes, size_t n) {
  while (n) {
    ssize_t did = write(fd, bytes, n);
    if (did < 0 && errno == EINTR) continue;
    if (did <= 0) return;
    bytes += did, n -= (size_t)did;
  }
}

static void put(int fd, const char *text) { put_bytes(fd, text, strlen(text)); }

// As a shell reads it.
static void put_quoted(int fd, const char *text) {
  put(fd, "'");
  for (const char *quote; (quote = strchr(text, '\'')); text = quote + 1) {
    put_bytes(fd, text, (size_t)(quote - text));
    put(fd, "'\\''");
  }
  put(fd, text);
  put(fd, "'");
}

// |a||b||c| into |out|.
static const char *join(char *out, const char *a, const char *b, const char *c) {
  size_t at = 0;
  const char *parts[] = {a, b, c};
  for (int i = 0; i < 3; i++)
    for (const char *p = parts[i]; *p && at + 1 < MAX_PATH; p++) out[at++] = *p;
  out[at] = 0;
  return out;
}

static const char *digits(char out[12], unsigned n) {
  int at = 11;
  out[at] = 0;
  do {
    out[--at] = (char)('0' + n % 10);
  } while ((n /= 10) && at > 0);
  return out + at;
}

static int create(const char *folder, const char *name) {
  char path[MAX_PATH];
  return open(join(path, folder, "/", name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

// ---- the folder

static bool make_folder(char out[MAX_PATH]) {
  char number[12];
  for (unsigned i = 0; i < 100; i++) {
    join(out, state.prefix, i ? "-" : "", i ? digits(number, i) : "");
    if (mkdir(out, 0700) == 0) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

static void copy_file(const char *from, int to) {
  static char buffer[65536];
  struct stat st;
  uint64_t total = 0;
  int fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
    for (ssize_t n; total < max_copy && (n = read(fd, buffer, sizeof buffer)) > 0; total += (uint64_t)n) put_bytes(to, buffer, (size_t)n);
  if (fd >= 0) close(fd);
}

static void write_inputs(const char *folder) {
  for (int i = 0; i < state.n_inputs; i++) {
    const input *in = &state.inputs[i];
    int fd = create(folder, in->name);
    if (fd < 0) continue;
    if (in->text.ptr)
      put_bytes(fd, in->text.ptr, in->text.len);
    else
      copy_file(in->operand, fd);
    close(fd);
  }
}

static const char *name_of(const char *argument) {
  for (int i = 0; i < state.n_inputs; i++)
    if (state.inputs[i].operand == argument) return state.inputs[i].name;
  return argument;
}

static void write_arguments(const char *folder) {
  int fd = create(folder, ULY_CRASH_ARGUMENTS);
  if (fd < 0) return;
  for (int i = 1; i < state.argc; i++) put_bytes(fd, name_of(state.argv[i]), strlen(name_of(state.argv[i])) + 1);
  close(fd);
}

static void write_report(const char *folder, const char *signal_name) {
  void *frames[MAX_FRAMES];
  struct utsname system;
  int fd = create(folder, "report.txt");
  if (fd < 0) return;
  put(fd, "ulyc " ULY_VERSION " ended with ");
  put(fd, signal_name);
  put(fd, "\n");
  if (state.versions) put(fd, state.versions), put(fd, "\n");
  if (uname(&system) == 0) {
    put(fd, system.sysname), put(fd, " "), put(fd, system.release), put(fd, " "), put(fd, system.machine), put(fd, "\n");
  }
  put(fd, "command:");
  for (int i = 0; i < state.argc; i++) put(fd, " "), put_quoted(fd, state.argv[i]);
  put(fd, "\nbacktrace:\n");
  backtrace_symbols_fd(frames, backtrace(frames, MAX_FRAMES), fd);
  close(fd);
}

// The same again, in a process of its own that writes the IR as it goes. It may crash, hang or eat memory as this one did.
static void replay(char *folder) {
  char *args[] = {"ulyc", "opt", "--run-reproducer", folder, NULL};
  pid_t pid = _Fork();
  if (pid == 0) {
    sigset_t none;
    struct rlimit no_core = {0, 0}, time = {REPLAY_SECONDS, REPLAY_SECONDS};
    close(create(folder, ULY_CRASH_LAST_IR)); // with its mode
    int nothing = open("/dev/null", O_RDWR), said = create(folder, "again.txt");
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_CPU, &time);
    dup2(nothing, STDIN_FILENO), dup2(nothing, STDOUT_FILENO), dup2(said >= 0 ? said : nothing, STDERR_FILENO);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i].number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve("/proc/self/exe", args, environ);
    _exit(EXIT_CODE);
  }
  for (int i = 0; pid > 0 && i < REPLAY_SECONDS * 50; i++) {
    int status;
    if (waitpid(pid, &status, WNOHANG) != 0) return;
    nanosleep(&(struct timespec){0, 20000000}, NULL);
  }
  if (pid > 0) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
  }
}

static const char *signal_name(int number) {
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (signals[i].number == number) return signals[i].name;
  return "a signal";
}

static void handle(int number) {
  static char folder[MAX_PATH];
  if (atomic_flag_test_and_set(&state.busy)) {
    if (gettid() == state.thread) _exit(EXIT_CODE); // a crash in here
    for (;;) pause();
  }
  state.thread = gettid();
  put(STDERR_FILENO, "ulyc: internal error (");
  put(STDERR_FILENO, signal_name(number));
  if (state.leaves_nothing) {
    put(STDERR_FILENO, ")\n");
    _exit(EXIT_CODE);
  }
  put(STDERR_FILENO, "). This is a mistake in ulyc; please report it");
  if (!make_folder(folder)) {
    put(STDERR_FILENO, ".\nulyc: no folder can be made for what led to it: "), put(STDERR_FILENO, state.prefix), put(STDERR_FILENO, "\n");
    _exit(EXIT_CODE);
  }
  put(STDERR_FILENO, " with the folder "), put(STDERR_FILENO, folder);
  put(STDERR_FILENO, ",\nwhich holds a copy of the input. To see it again: ulyc opt --run-reproducer "), put(STDERR_FILENO, folder), put(STDERR_FILENO, "\n");
  write_inputs(folder);
  write_arguments(folder);
  write_report(folder, signal_name(number));
  replay(folder);
  _exit(EXIT_CODE);
}

// ---- before

void uly_crash_watch(int argc, char **argv) {
  static char stack[STACK_BYTES];
  char number[12];
  const char *top = uly_env_text(ULY_ENV_TMPDIR);
  state.argc = argc;
  state.argv = argv;
  join(state.prefix, *top == '/' && strlen(top) < MAX_PATH - 64 ? top : "/tmp", "/ulyc-crash-", digits(number, (unsigned)getpid()));
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_NODEFER}, old;
    if (sigaction(signals[i].number, NULL, &old) == 0 && old.sa_handler == SIG_DFL) sigaction(signals[i].number, &action, NULL); // a sanitizer's stays
  }
}

// "input0.spec": the ending tells what it is.
static void name_input(input *in, int number) {
  const char *dot = strrchr(in->operand, '.'), *end = dot ? dot + 1 : "txt";
  size_t n = strlen(end);
  bool plain = n > 0 && n <= 8;
  for (size_t i = 0; i < n && plain; i++) plain = (end[i] >= 'a' && end[i] <= 'z') || (end[i] >= '0' && end[i] <= '9');
  snprintf(in->name, sizeof in->name, "input%d.%s", number, plain ? end : "txt");
}

void uly_crash_add_input(const char *operand, uly_str text) {
  int i = 0;
  while (i < state.n_inputs && state.inputs[i].operand != operand) i++;
  if (i == MAX_INPUTS) return;
  state.inputs[i].operand = operand;
  state.inputs[i].text = text;
  name_input(&state.inputs[i], i);
  if (i == state.n_inputs) state.n_inputs++;
}

void uly_crash_add_versions(const char *versions) {
  void *frame;
  state.versions = versions;
  (void)backtrace(&frame, 1); // loads what it needs
}

void uly_crash_leave_nothing(void) { state.leaves_nothing = true; }
