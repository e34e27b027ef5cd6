#include "runtime/base/progress.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

// A timer's handler has nowhere else to look.
static const char *volatile step;
static volatile sig_atomic_t seconds;

static size_t append(char *line, size_t at, const char *text) {
  size_t n = strlen(text);
  memcpy(line + at, text, n);
  return at + n;
}

static void show(int alarm_signal) {
  (void)alarm_signal;
  char line[96], digits[12];
  size_t n = append(line, 0, "\r"), d = sizeof digits - 1;
  int rest = (int)++seconds;
  digits[d] = 0;
  for (; rest > 0 && d > 0; rest /= 10) digits[--d] = (char)('0' + rest % 10);
  n = append(line, n, step);
  n = append(line, n, " … ");
  n = append(line, n, digits + d);
  n = append(line, n, " s");
  if (write(STDERR_FILENO, line, n) < 0) return;
}

static void set_timer(int period) {
  struct itimerval timer = {{period, 0}, {period, 0}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

void uly_progress_start(const char *what) {
  struct sigaction action = {.sa_handler = show, .sa_flags = SA_RESTART};
  if (!isatty(STDERR_FILENO) || strlen(what) > 64) return;
  step = what;
  seconds = 0;
  sigaction(SIGALRM, &action, NULL);
  set_timer(1);
}

void uly_progress_stop(void) {
  static const char wipe[] = "\r\033[K";
  if (!step) return;
  set_timer(0);
  if (seconds && write(STDERR_FILENO, wipe, sizeof wipe - 1) < 0) seconds = 0;
  step = NULL;
}
