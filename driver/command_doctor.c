// `ulyc doctor`: a block to paste into a report, and what to do about what is missing. Exit 69 where a spec cannot be compiled and run here.
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "driver/commands.h"
#include "driver/doctor.h"
#include "runtime/abi.h"
#include "runtime/base/env.h"
#include "runtime/base/features.h"
#include "runtime/base/full_io.h"
#include "runtime/loaded.h"
#include "runtime/transports/plugin.h"

enum { MAX_FILE = 4095 };

static void advise(uly_driver *d, const char *what) { uly_text_add(&d->out, "  to mend it: %s\n", what); }

// The first line of |path| that begins with |key|, what stands behind it, without quotes.
static const char *find_line(uly_driver *d, const char *path, const char *key) {
  char *text = uly_arena_alloc(d->arena, MAX_FILE + 1);
  int fd = uly_full_open(path, O_RDONLY | O_CLOEXEC, 0);
  ssize_t n = fd >= 0 ? read(fd, text, MAX_FILE) : -1;
  if (fd >= 0) close(fd);
  for (char *line = n > 0 ? text : NULL; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, key, strlen(key)) != 0) continue;
    line += strlen(key) + strspn(line + strlen(key), " \t:=\"");
    line[strcspn(line, "\"\n")] = 0;
    return line;
  }
  return "unknown";
}

static const char *library_of(const void *address) {
  Dl_info info;
  return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "this program";
}

// ---- parts

static void add_system(uly_driver *d) {
  struct utsname system;
  if (uname(&system) == 0)
    uly_text_add(&d->out, "system      %s %s %s, %s, glibc %s\n", system.sysname, system.release, system.machine,
                 find_line(d, "/etc/os-release", "PRETTY_NAME"), gnu_get_libc_version());
}

static bool add_processor(uly_driver *d) {
  static const uly_level levels[] = {
#define LEVEL(id, name, lanes, features, base) {name, features, 0},
#include "codegen/cpu/levels.def"
  };
  char features[160];
  uly_error error;
  uint32_t level;
  uly_cpu_describe(uly_cpu_features(UINT32_MAX), features, sizeof features);
  uly_text_add(&d->out, "processor   %s: %s\n", find_line(d, "/proc/cpuinfo", "model name"), features);
  bool ok = uly_level_choose(levels, sizeof levels / sizeof *levels, uly_cpu_features(UINT32_MAX), uly_env_text(ULY_ENV_CPU_LEVEL), &error, &level) == ULY_OK;
  uly_text_add(&d->out, "            %d of %ld cores; models run at %s\n", uly_cpu_cores(), sysconf(_SC_NPROCESSORS_ONLN),
               ok ? levels[level].name : "no level");
  if (!ok) {
    uly_text_add(&d->out, "  missing: %s\n", error.text);
    advise(d, "models need a processor of 2013 or later (Haswell, Zen); compiling works on any");
  }
  return ok;
}

static void add_memory(uly_driver *d) {
  struct statvfs shm;
  struct rlimit files;
  uly_text_add(&d->out, "memory      %s, available %s, huge pages: %s\n", find_line(d, "/proc/meminfo", "MemTotal"),
               find_line(d, "/proc/meminfo", "MemAvailable"), find_line(d, "/sys/kernel/mm/transparent_hugepage/enabled", ""));
  if (statvfs("/dev/shm", &shm) == 0)
    uly_text_add(&d->out, "            /dev/shm %llu MB, free %llu MB (ulyrun does not need it, MPI may)\n",
                 (unsigned long long)shm.f_blocks * shm.f_frsize >> 20, (unsigned long long)shm.f_bavail * shm.f_frsize >> 20);
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    uly_text_add(&d->out, "            open files: %llu\n", (unsigned long long)files.rlim_cur);
    if (files.rlim_cur < 1024) advise(d, "`ulimit -n 1024`: --procs needs a few descriptors for each pair of ranks");
  }
}

static void add_transports(uly_driver *d) {
  const uly_mpi_plugin *plugin;
  uly_error error;
  int memory = memfd_create("doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING), process = (int)syscall(SYS_pidfd_open, getpid(), 0);
  bool shm = memory >= 0 && process >= 0;
  if (memory >= 0) close(memory);
  if (process >= 0) close(process);
  uly_text_add(&d->out, "transports  self, local%s", shm ? ", shm" : "");
  uly_status status = uly_mpi_load(uly_env_text(ULY_ENV_MPI), &error, &plugin);
  if (status == ULY_OK) uly_text_add(&d->out, ", mpi (%s, %s)", plugin->library, library_of((const void *)plugin));
  uly_text_add(&d->out, "\n");
  if (!shm) {
    uly_text_add(&d->out, "  missing: shm (ulyrun --procs): %s\n", memory < 0 ? "the kernel makes no memory files" : "the kernel has no pidfd_open");
    advise(d, "Linux 5.3 or newer; in a container, a seccomp profile that allows memfd_create and pidfd_open");
  }
  if (status != ULY_OK) uly_text_add(&d->out, "  missing: mpi, which only runs under mpirun need: %s\n", error.text);
}

static void add_environment(uly_driver *d) {
  bool any = false;
  for (int i = 0; i < ULY_N_ENV; i++) {
    const uly_env_info *e = uly_env_get((uly_env)i);
    if (strcmp(uly_env_text((uly_env)i), e->value) == 0) continue;
    uly_text_add(&d->out, "%s %s=%s\n", any ? "           " : "environment", e->name, uly_env_text((uly_env)i));
    any = true;
  }
  if (!any) uly_text_add(&d->out, "environment none of ulyc env is set\n");
}

static bool add_compiler(uly_driver *d) {
  void *versions;
  uly_status status = uly_driver_lower(d, "uly_lower_versions", &versions);
  if (status == ULY_OK) {
    uly_text_add(&d->out, "compiler    %s, in %s\n", ((uly_lower_versions_fn *)(uintptr_t)versions)(), library_of(versions));
    return true;
  }
  uly_text_add(&d->out, "compiler    missing: %.*s\n", ULY_STR_ARG(uly_text_str(&d->error)));
  d->error.len = 0;
  advise(d, "install the packages of scripts/packages.txt and build; " ULY_LOWER_LIBRARY " belongs into ../lib beside ulyc's folder");
  return false;
}

static bool add_self_test(uly_driver *d) {
  uly_error error = {0};
  double seconds;
  uly_status status = uly_doctor_self_test(d, &error, &seconds);
  if (status == ULY_OK) {
    uly_text_add(&d->out, "self-test   compiled a spec of attention and ran it on 2 ranks, in %.2f s\n", seconds);
    return true;
  }
  uly_text_add(&d->out, "self-test   FAILED: %s (%s)\n", error.text, uly_status_text(status));
  if (status == ULY_IO) advise(d, "TMPDIR must name a folder that can be written, on a file system from which code may be loaded (not mounted noexec)");
  return false;
}

uly_status uly_command_doctor(uly_driver *d) {
  uly_text_add(&d->out, "ulyc        %s, model.so %d.%d, spec language 1\n", ULY_VERSION, ULY_ABI_MAJOR, ULY_ABI_MINOR);
  bool compiles = add_compiler(d);
  add_system(d);
  bool runs = add_processor(d);
  add_memory(d);
  add_transports(d);
  add_environment(d);
  bool works = compiles && runs && add_self_test(d);
  if (works) return ULY_OK;
  uly_text_add(&d->error, "specs cannot be %s here", compiles ? "run" : "compiled");
  return ULY_UNAVAILABLE;
}
