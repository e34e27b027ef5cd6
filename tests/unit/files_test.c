// Output that replaces a file as a whole: intact after a full disk, a refusal or a kill, and nothing left beside it.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "runtime/io/files.h"
#include "tests/unit/scratch_folder.h"

static scratch_folder folder;
static uly_error error;

static size_t read_file(const char *path, char *out, size_t cap) {
  FILE *f = fopen(path, "rb");
  if (!f) return 0;
  size_t n = fread(out, 1, cap, f);
  fclose(f);
  return n;
}

static uly_status replace(const char *path, const void *data, size_t bytes) {
  uly_output output;
  ULY_TRY(uly_output_open(path, &output, &error));
  uly_status status = uly_output_write(&output, data, bytes, &error);
  if (status == ULY_OK) return uly_output_commit(&output, &error);
  uly_output_discard(&output);
  return status;
}

static void replaces(void **state) {
  (void)state;
  char text[16] = "";
  scratch_write(&folder, "out", "old", 3);
  assert_int_equal(replace(scratch_path(&folder, "out"), "new", 3), ULY_OK);
  assert_int_equal(read_file(folder.file, text, 16), 3);
  assert_string_equal(text, "new");
  assert_int_equal(scratch_count(&folder, 0), 1);
  uly_output output;
  assert_int_equal(uly_output_open(folder.file, &output, &error), ULY_OK);
  assert_int_equal(uly_output_write(&output, "x", 1, &error), ULY_OK);
  uly_output_discard(&output);
  uly_output_discard(&output);
  assert_int_equal(read_file(folder.file, text, 16), 3);
  assert_int_equal(scratch_count(&folder, 0), 1);
}

static void follows_links(void **state) {
  (void)state;
  char text[16] = "", link[400];
  struct stat st;
  scratch_write(&folder, "target", "old", 3);
  snprintf(link, sizeof link, "%s/link", folder.path);
  assert_int_equal(symlink("target", link), 0);
  assert_int_equal(replace(link, "new", 3), ULY_OK);
  assert_int_equal(lstat(link, &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  read_file(scratch_path(&folder, "target"), text, 16);
  assert_string_equal(text, "new");
}

static void refusals(void **state) {
  (void)state;
  struct stat st;
  assert_int_equal(replace("/dev/full", "x", 1), ULY_IO);
  assert_non_null(strstr(error.text, "No space left"));
  assert_int_equal(replace("/dev/null", "x", 1), ULY_OK);
  assert_int_equal(stat("/dev/null", &st), 0);
  assert_true(S_ISCHR(st.st_mode));
  assert_int_equal(replace(folder.path, "x", 1), ULY_IO);
  assert_int_equal(replace(scratch_path(&folder, "no/such/folder"), "x", 1), ULY_IO);
  assert_int_equal(replace("", "x", 1), ULY_IO);
}

// A write that stops in the middle (here: at a limit on the file's size) leaves the old file, and nothing beside it.
static void full_disk(void **state) {
  (void)state;
  char text[16] = "";
  scratch_write(&folder, "out", "old", 3);
  int before = scratch_count(&folder, 0);
  struct rlimit limit, old;
  char *data = calloc(1, 1 << 20);
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &old);
  limit = (struct rlimit){1 << 16, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  uly_status status = replace(scratch_path(&folder, "out"), data, 1 << 20);
  setrlimit(RLIMIT_FSIZE, &old);
  free(data);
  assert_int_equal(status, ULY_IO);
  read_file(folder.file, text, 16);
  assert_string_equal(text, "old");
  assert_int_equal(scratch_count(&folder, 0), before);
}

// What a kill left behind between two system calls is taken over by the next output of the same file, and a new file needs no name but its own.
static void leftovers(void **state) {
  (void)state;
  char name[64], text[16] = "";
  scratch_write(&folder, "fresh", "old", 3);
  snprintf(name, sizeof name, ".uly-%016llx.tmp", (unsigned long long)uly_str_hash(ULY_STR("fresh")));
  scratch_write(&folder, name, "half", 4);
  int before = scratch_count(&folder, 0);
  assert_int_equal(replace(scratch_path(&folder, "fresh"), "new", 3), ULY_OK);
  read_file(folder.file, text, sizeof text);
  assert_string_equal(text, "new");
  assert_int_equal(scratch_count(&folder, 0), before - 1);
  unlink(folder.file);
  scratch_write(&folder, name, "half", 4);
  assert_int_equal(replace(scratch_path(&folder, "fresh"), "new", 3), ULY_OK);
  assert_int_equal(scratch_count(&folder, 0), before);
}

// Several processes write the same file at the same time: each succeeds, and the last one's content is whole.
static void writers(void **state) {
  (void)state;
  enum { WRITERS = 4, TIMES = 40, BYTES = 10000 };
  static char buffer[BYTES + 1];
  pid_t children[WRITERS];
  scratch_write(&folder, "shared", "old", 3);
  int before = scratch_count(&folder, 0);
  for (int w = 0; w < WRITERS; w++) {
    children[w] = fork();
    if (children[w]) continue;
    memset(buffer, 'a' + w, BYTES);
    for (int i = 0; i < TIMES; i++)
      if (replace(scratch_path(&folder, "shared"), buffer, BYTES) != ULY_OK) _exit((fprintf(stderr, "%s\n", error.text), 1));
    _exit(0);
  }
  for (int w = 0; w < WRITERS; w++) {
    int status;
    waitpid(children[w], &status, 0);
    assert_int_equal(status, 0);
  }
  assert_int_equal(read_file(scratch_path(&folder, "shared"), buffer, sizeof buffer), BYTES);
  for (size_t i = 1; i < BYTES; i++) assert_int_equal(buffer[i], buffer[0]);
  assert_int_equal(scratch_count(&folder, 0), before);
}

// Killed at any moment: the file is the old or a new one, whole.
static void kills(void **state) {
  (void)state;
  enum { TRIALS = 60, BYTES = 200000 };
  static char buffer[BYTES + 1];
  scratch_write(&folder, "out", "old", 3);
  for (int trial = 0; trial < TRIALS; trial++) {
    pid_t child = fork();
    if (child == 0) {
      memset(buffer, 'a' + trial % 26, BYTES);
      for (;;)
        if (replace(scratch_path(&folder, "out"), buffer, BYTES) != ULY_OK) _exit(1);
    }
    struct timespec pause = {0, 1000000L * (trial % 7) + 137000L * trial % 1000000};
    nanosleep(&pause, NULL);
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    size_t n = read_file(scratch_path(&folder, "out"), buffer, sizeof buffer);
    assert_true(n == BYTES || n == 3);
    for (size_t i = 1; n == BYTES && i < n; i++) assert_int_equal(buffer[i], buffer[0]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(replaces),  cmocka_unit_test(follows_links), cmocka_unit_test(refusals), cmocka_unit_test(full_disk),
                                     cmocka_unit_test(leftovers), cmocka_unit_test(writers),       cmocka_unit_test(kills)};
  scratch_create(&folder);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  scratch_destroy(&folder);
  return failed;
}
