// What the files of libulyrt_mpi.so share: a communicator of MPI, and how it waits and fails (mpi_wait.c). The only header that includes mpi.h.
#ifndef ULY_RUNTIME_TRANSPORTS_MPI_STATE_H
#define ULY_RUNTIME_TRANSPORTS_MPI_STATE_H

#include <mpi.h>

#include "runtime/transports/transport.h"

enum { ULY_MPI_TAG_HEADER = 1, ULY_MPI_TAG_DATA, ULY_MPI_TAG_FAILURE, ULY_MPI_TAG_ALIVE, ULY_MPI_TAG_BYE };

typedef struct uly_mpi_header {
  uint32_t op, exchange, dtype, pad;
  uint64_t sequence, program, channel;
  int64_t gives, takes; // bytes to the receiver of the header, and from it
} uly_mpi_header;

typedef struct uly_mpi_notice {
  int32_t status;
  char text[600];
} uly_mpi_notice;

// One call in flight.
typedef struct uly_mpi_call {
  uly_mpi_header *out, *in; // [P]
  MPI_Request *requests;    // [2P] of the headers
  MPI_Request *data;        // [n_data]
  int n_data, cap_data;
  MPI_Status *statuses; // [the larger of 2P and cap_data]
  int *indices;         // the same
  int64_t *counts;      // [4P] as MPI wants them: send bytes, send offsets, receive bytes, receive offsets
} uly_mpi_call;

typedef struct uly_mpi_channel {
  uint64_t program;
  uint32_t n_exchanges;
  uly_mpi_call *calls;
} uly_mpi_channel;

// A line has data, calls and channels of its own; letters, signs of life and failures are the world's.
typedef struct uly_mpi {
  uly_comm comm; // first
  MPI_Comm data, control;
  uint64_t sequence;
  uly_mpi_call gather;
  uly_mpi_channel **channels;
  uint32_t n_channels;
  bool crowded;         // more ranks than cores: do not spin
  unsigned char *stage; // of gathers
  size_t stage_bytes;
  int in_flight; // exchanges whose data moves
  // Of a world.
  uly_status failed;
  uly_mpi_notice notice; // what this rank told the others
  MPI_Request *letters;  // [P] that carry it
  MPI_Request *alive;    // [P]
  double *seen;          // [P] when a sign of life came
  double *left;          // [P] when the rank said that it leaves, 0: it has not
  double said;           // when this rank sent its own
} uly_mpi;

static inline uly_mpi *uly_mpi_of(uly_comm *comm) { return (uly_mpi *)(void *)comm; }
static inline uly_mpi *uly_mpi_world(uly_mpi *m) { return uly_mpi_of(uly_comm_world(&m->comm)); }
static inline double uly_mpi_now(void) { return MPI_Wtime(); }

// The world's failure, as |m|'s too; ULY_OK without one.
uly_status uly_mpi_failed(uly_mpi *m);
// Fails on all ranks.
uly_status uly_mpi_fail(uly_mpi *m, uly_status status, const char *text);
// What an MPI function returned in |what|; a failure of it is one of all ranks.
uly_status uly_mpi_check(uly_mpi *m, int error, const char *what);
void uly_mpi_abort(uly_comm *comm, const char *reason);
// Reads the letters that have come to world |m|; its failure, if there is one.
uly_status uly_mpi_read_letters(uly_mpi *m);
// Between looks for what is waited for, of which this was number |round|.
void uly_mpi_back_off(const uly_mpi *m, int round);
// Until |n| requests are done, all ranks are well and nobody is late. |c|: the call that they are of; |what|: its name in messages.
uly_status uly_mpi_wait(uly_mpi *m, int n, MPI_Request *requests, uly_mpi_call *c, const char *what);

#endif
