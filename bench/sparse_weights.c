#include "bench/sparse_weights.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/dtype.h"

static void die(const char *what) {
  perror(what);
  exit(1);
}

int64_t sparse_weights_write(const uly_loaded *loaded, const char *path) {
  char *header = NULL;
  size_t length = 0;
  uly_error error;
  int64_t at = 0;
  FILE *text = open_memstream(&header, &length);
  if (!text) die("sparse weights");
  fputc('{', text);
  for (uint32_t i = 0; i < loaded->n_params; i++) {
    uly_param_info p;
    if (uly_param_get(loaded, i, &error, &p) != ULY_OK) {
      fprintf(stderr, "sparse weights: %s\n", error.text);
      exit(1);
    }
    fprintf(text, "%s\"%.*s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "", ULY_STR_ARG(p.name), uly_dtype_get((uly_dtype)p.dtype)->safetensors);
    for (uint32_t d = 0; d < p.rank; d++) fprintf(text, "%s%" PRId64, d ? "," : "", p.dims[d]);
    fprintf(text, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", at, at + p.bytes);
    at += p.bytes;
  }
  fputc('}', text);
  if (fclose(text) != 0) die("sparse weights");
  uint64_t padded = (length + 7) / 8 * 8;
  uint8_t head[8];
  for (int i = 0; i < 8; i++) head[i] = (uint8_t)(padded >> (8 * i));
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || write(fd, head, 8) != 8 || write(fd, header, length) != (ssize_t)length) die(path);
  for (uint64_t i = length; i < padded; i++)
    if (write(fd, " ", 1) != 1) die(path);
  if (ftruncate(fd, 8 + (off_t)padded + at) != 0 || close(fd) != 0) die(path);
  free(header);
  return at;
}
