#include "tests/unit/rank_threads.h"

#include <pthread.h>

typedef struct rank_call {
  uly_comm *comm;
  void (*body)(uly_comm *comm, void *context);
  void *context;
} rank_call;

static void *rank_main(void *argument) {
  rank_call *call = argument;
  call->body(call->comm, call->context);
  return NULL;
}

void run_on(int n, uly_comm **comms, void (*body)(uly_comm *comm, void *context), void *context) {
  pthread_t threads[MAX_RANKS];
  rank_call calls[MAX_RANKS];
  ULY_ASSERT(n <= MAX_RANKS);
  for (int r = 0; r < n; r++) {
    calls[r] = (rank_call){comms[r], body, context};
    ULY_ASSERT(pthread_create(&threads[r], NULL, rank_main, &calls[r]) == 0);
  }
  for (int r = 0; r < n; r++) pthread_join(threads[r], NULL);
}

void run_ranks(int n, double timeout, void (*body)(uly_comm *comm, void *context), void *context) {
  uly_comm *comms[MAX_RANKS];
  ULY_ASSERT(n <= MAX_RANKS && uly_comm_local_create(n, comms) == ULY_OK);
  for (int r = 0; r < n; r++) comms[r]->timeout = timeout;
  run_on(n, comms, body, context);
  for (int r = 0; r < n; r++) comms[r]->ops->destroy(comms[r]);
}
