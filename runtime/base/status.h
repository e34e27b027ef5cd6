// Status codes, for everything that is not a diagnostic about user input. The message belongs to the object that the call was made on.
#ifndef ULY_RUNTIME_BASE_STATUS_H
#define ULY_RUNTIME_BASE_STATUS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef enum uly_status {
#define STATUS(name, code, exit_code, text) ULY_##name = code,
#include "runtime/base/status.def"
} uly_status;

#define ULY_MUST_USE __attribute__((warn_unused_result))
#define ULY_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

const char *uly_status_text(uly_status status);
int uly_status_exit_code(uly_status status);
// The failure that another process speaks of; ULY_INTERNAL where |code| is none.
uly_status uly_status_failure(int64_t code);

#define ULY_TRY(expr)                                                                                                                                          \
  do {                                                                                                                                                         \
    uly_status uly_try_status_ = (expr);                                                                                                                       \
    if (uly_try_status_ != ULY_OK) return uly_try_status_;                                                                                                     \
  } while (0)

// A broken invariant of ours, never a user's mistake.
#ifndef ULY_ASSERT // code that is linked into models has its own
#define ULY_ASSERT(cond)                                                                                                                                       \
  do {                                                                                                                                                         \
    if (!(cond)) {                                                                                                                                             \
      fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #cond);                                                                             \
      abort();                                                                                                                                                 \
    }                                                                                                                                                          \
  } while (0)
#endif

#endif
