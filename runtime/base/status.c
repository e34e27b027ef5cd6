#include "runtime/base/status.h"

static const struct {
  uly_status status;
  int exit_code;
  const char *text;
} rows[] = {
#define STATUS(name, code, exit_code, text) {ULY_##name, exit_code, text},
#include "runtime/base/status.def"
};

const char *uly_status_text(uly_status status) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].status == status) return rows[i].text;
  return "unknown status";
}

int uly_status_exit_code(uly_status status) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].status == status) return rows[i].exit_code;
  return 70;
}

uly_status uly_status_failure(int64_t code) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if ((int64_t)rows[i].status == code && code != ULY_OK) return rows[i].status;
  return ULY_INTERNAL;
}
