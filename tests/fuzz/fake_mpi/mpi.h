// As much of MPI as runtime/transports/mpi.c and mpi_wait.c call, for peers_mpi.c, which implements it: peers are the fuzzer's input.
#ifndef ULY_TESTS_FUZZ_FAKE_MPI_H
#define ULY_TESTS_FUZZ_FAKE_MPI_H

#include <stddef.h>
#include <stdint.h>

#define MPI_VERSION 4
typedef int MPI_Comm;
typedef int MPI_Request;
typedef int MPI_Datatype;
typedef int MPI_Info;
typedef int MPI_Errhandler;
typedef int64_t MPI_Count;
typedef int64_t MPI_Aint;
typedef struct MPI_Status {
  int MPI_SOURCE, MPI_TAG;
} MPI_Status;
enum { MPI_SUCCESS, MPI_ANY_SOURCE = -1, MPI_ANY_TAG = -2, MPI_UNDEFINED = -3, MPI_REQUEST_NULL = -4, MPI_COMM_NULL = -5, MPI_COMM_WORLD = 1, MPI_BYTE = 1 };
enum { MPI_INFO_NULL, MPI_ERRORS_RETURN, MPI_COMM_TYPE_SHARED, MPI_THREAD_MULTIPLE, MPI_MAX_ERROR_STRING = 64 };
#define MPI_STATUS_IGNORE ((MPI_Status *)0)

double MPI_Wtime(void);
int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Irecv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Recv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status);
int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *there, MPI_Status *status);
int MPI_Test(MPI_Request *request, int *done, MPI_Status *status);
int MPI_Testsome(int n, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses);
int MPI_Iallgather(const void *mine, int n, MPI_Datatype type, void *all, int m, MPI_Datatype other, MPI_Comm comm, MPI_Request *request);
int MPI_Ialltoallv_c(const void *send, const MPI_Count *counts, const MPI_Aint *offsets, MPI_Datatype type, void *receive, const MPI_Count *takes,
                     const MPI_Aint *to, MPI_Datatype other, MPI_Comm comm, MPI_Request *request);
int MPI_Error_string(int error, char *text, int *n);
int MPI_Abort(MPI_Comm comm, int code);
int MPI_Request_free(MPI_Request *request);
int MPI_Init_thread(int *argc, char ***argv, int wanted, int *level);
int MPI_Initialized(int *yes);
int MPI_Finalized(int *yes);
int MPI_Finalize(void);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *out);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Comm_rank(MPI_Comm comm, int *out);
int MPI_Comm_size(MPI_Comm comm, int *out);
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out);
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out);

#endif
