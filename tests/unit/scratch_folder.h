// A folder of its own for a test's files, below the current one, removed at the end. For test programs; ends the program where the system refuses.
#ifndef ULY_TESTS_UNIT_SCRATCH_FOLDER_H
#define ULY_TESTS_UNIT_SCRATCH_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/status.h"

typedef struct scratch_folder {
  char path[64], file[320];
} scratch_folder;

static inline void scratch_create(scratch_folder *folder) {
  strcpy(folder->path, "scratch_XXXXXX");
  ULY_ASSERT(mkdtemp(folder->path));
}

// The path of |name| in it, valid until the next call.
static inline const char *scratch_path(scratch_folder *folder, const char *name) {
  snprintf(folder->file, sizeof folder->file, "%s/%.200s", folder->path, name);
  return folder->file;
}

static inline const char *scratch_write(scratch_folder *folder, const char *name, const void *data, size_t bytes) {
  FILE *f = fopen(scratch_path(folder, name), "wb");
  ULY_ASSERT(f && fwrite(data, 1, bytes, f) == bytes);
  ULY_ASSERT(fclose(f) == 0);
  return folder->file;
}

// Number of files, hidden ones included; |remove| empties it and removes it.
static inline int scratch_count(scratch_folder *folder, int remove_all) {
  DIR *dir = opendir(folder->path);
  ULY_ASSERT(dir);
  int n = 0;
  for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    n++;
    if (remove_all) unlink(scratch_path(folder, e->d_name));
  }
  closedir(dir);
  if (remove_all) rmdir(folder->path);
  return n;
}

static inline void scratch_destroy(scratch_folder *folder) { scratch_count(folder, 1); }

#endif
