// Messages larger than an `int` counts, cut for an MPI without large counts.
#ifndef ULY_RUNTIME_TRANSPORTS_MPI_CHUNKS_H
#define ULY_RUNTIME_TRANSPORTS_MPI_CHUNKS_H

#include <stdint.h>

#ifndef ULY_MPI_CHUNK
#define ULY_MPI_CHUNK (INT64_C(1) << 30)
#endif

static inline int64_t uly_chunk_count(int64_t bytes) { return bytes / ULY_MPI_CHUNK + (bytes % ULY_MPI_CHUNK != 0); }
// Size of chunk |i| of a message: all but the last are full.
static inline int uly_chunk_bytes(int64_t bytes, int64_t i) {
  int64_t left = bytes - i * ULY_MPI_CHUNK;
  return (int)(left < ULY_MPI_CHUNK ? left : ULY_MPI_CHUNK);
}

#endif
