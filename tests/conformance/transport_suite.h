// One suite for all transports. A transport's test program says how ranks come about and which tests it leaves out, each with the reason; the suite is the rest.
#ifndef ULY_TESTS_CONFORMANCE_TRANSPORT_SUITE_H
#define ULY_TESTS_CONFORMANCE_TRANSPORT_SUITE_H

#include "runtime/transports/transport.h"

// What one rank found. Plain memory, so that it can be in a shared mapping.
typedef struct suite_report {
  int failed;
  char text[400];
} suite_report;

// A test, as rank |comm->rank| of it. Ranks may be threads or processes: nothing but |comm| connects them.
typedef void (*suite_body)(uly_comm *comm, suite_report *report);

typedef struct suite_test {
  const char *name;
  suite_body body;
  int least_ranks;
  double timeout; // the communicator's
} suite_test;
extern const suite_test suite_tests[];
extern const int suite_n_tests;

typedef struct suite_skip {
  const char *test, *reason;
} suite_skip;

typedef struct suite_transport {
  const char *name;
  const int *ranks;        // numbers of ranks to test with, 0 at the end
  const suite_skip *skips; // NULL name at the end
  // Runs |test| on |n| new ranks, each of which destroys its communicator as soon as its body returns. |reports|: one a rank.
  void (*run)(const suite_test *test, int n, suite_report *reports);
} suite_transport;

// Runs the suite, prints a line a test, and returns how many failed.
int suite_run(const suite_transport *transport);

#endif
