// Ranks that the host connects with two functions of its own. Memory is not mapped. Sizes and order of calls are compared before every transfer, with an all_gather of small records.
#ifndef ULY_RUNTIME_TRANSPORTS_CALLBACKS_H
#define ULY_RUNTIME_TRANSPORTS_CALLBACKS_H

#include "runtime/transports/transport.h"

// As ulyrt_callbacks in runtime/ulyrt.h says.
typedef struct uly_callbacks {
  void *context;
  int rank, n_ranks;
  int (*all_gather)(void *context, const void *mine, size_t bytes, void *out_all);
  int (*all_to_all)(void *context, const void *send, const int64_t *send_bytes, const int64_t *send_offset, void *receive, const int64_t *receive_bytes,
                    const int64_t *receive_offset);
  void (*abort)(void *context, const char *reason);
} uly_callbacks;

ULY_MUST_USE uly_status uly_comm_callbacks_create(const uly_callbacks *callbacks, uly_comm **out_comm);

#endif
