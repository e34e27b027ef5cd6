// Runs a compiled model from C: four ranks of one process share a sequence.
//   cc embed.c $(pkg-config --cflags --libs ulyrt) -pthread && ./a.out model.so B=1 S=64
// Each rank binds the model to its communicator, passes its rows of the inputs and gets its rows of the outputs.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulyrt.h>

enum { RANKS = 4, MAX_SIZES = 8, MAX_TENSORS = 16 };

typedef struct rank {
  ulyrt_model *model;
  ulyrt_comm *comm;
  const ulyrt_bind_options *options;
  pthread_t thread;
  int failed;
} rank;

// This rank's part of a tensor. Inputs are small numbers that depend on the global position alone.
static void fill(ulyrt_tensor *t, const ulyrt_shape *shape, const ulyrt_tensor_info *info, int64_t *local) {
  int64_t n = 1, bytes = info->dtype.bits / 8;
  for (int d = 0; d < shape->ndim; d++) n *= local[d] = shape->local[d];
  *t = (ulyrt_tensor){.data = calloc((size_t)n + 1, (size_t)bytes), .device = {1, 0}, .ndim = shape->ndim, .dtype = info->dtype, .shape = local};
  for (int64_t i = 0; info->role == ULYRT_INPUT && i < n; i++) {
    int64_t global = 0, step = n;
    for (int d = 0; d < shape->ndim; d++) {
      step /= local[d];
      global = global * shape->dims[d] + shape->start[d] + i / step % local[d];
    }
    int64_t id = global % (info->id_limit ? info->id_limit : 100);
    if (info->dtype.code == 2 && bytes == 4)
      ((float *)t->data)[i] = (float)(global % 7) - 3.0f;
    else
      memcpy((char *)t->data + i * bytes, &id, (size_t)bytes);
  }
}

static int run(rank *r, ulyrt_error *error) {
  ulyrt_instance *instance;
  ulyrt_instance_info info = ULYRT_INSTANCE_INFO_INIT;
  ulyrt_entry_info entry = ULYRT_ENTRY_INFO_INIT;
  ulyrt_tensor tensors[MAX_TENSORS];
  int64_t local[MAX_TENSORS][ULYRT_MAX_DIMS];
  if (ulyrt_bind(r->model, r->options, &instance, error) || ulyrt_model_entry(r->model, 0, &entry, error) || ulyrt_instance_get(instance, &info, error))
    return 1;
  for (int i = 0; i < entry.tensors && i < MAX_TENSORS; i++) {
    ulyrt_shape shape = ULYRT_SHAPE_INIT;
    ulyrt_tensor_info tensor = ULYRT_TENSOR_INFO_INIT;
    if (ulyrt_instance_shape(instance, i, &shape, error) || ulyrt_model_tensor(r->model, 0, i, &tensor, error)) return 1;
    fill(&tensors[i], &shape, &tensor, local[i]);
  }
  int status = ulyrt_run(instance, tensors, entry.tensors, error);
  const float *out = tensors[entry.tensors - 1].data;
  if (!status)
    printf("rank %d of %d: first number %g, arena %lld bytes, sent %llu bytes\n", info.rank, info.n_ranks, (double)out[0], (long long)info.arena_bytes,
           (unsigned long long)ulyrt_comm_sent_bytes(r->comm));
  for (int i = 0; i < entry.tensors; i++) free(tensors[i].data);
  ulyrt_instance_destroy(instance);
  return status;
}

static void *rank_main(void *argument) {
  rank *r = argument;
  ulyrt_bind_options options = *r->options;
  ulyrt_error error = ULYRT_ERROR_INIT;
  options.comms = &r->comm;
  options.n_comms = 1;
  r->options = &options;
  r->failed = run(r, &error);
  if (r->failed) fprintf(stderr, "%s\n", error.text);
  return NULL;
}

int main(int argc, char **argv) {
  ulyrt_error error = ULYRT_ERROR_INIT;
  ulyrt_size sizes[MAX_SIZES];
  ulyrt_bind_options options = ULYRT_BIND_OPTIONS_INIT;
  ulyrt_model *model;
  ulyrt_comm *comms[RANKS];
  rank ranks[RANKS];
  options.sizes = sizes;
  for (int i = 2; i < argc && options.n_sizes < MAX_SIZES; i++) {
    char *value = strchr(argv[i], '=');
    if (!value) return fprintf(stderr, "usage: embed model.so [SYMBOL=SIZE ...]\n"), 2;
    *value++ = 0;
    sizes[options.n_sizes++] = (ulyrt_size){argv[i], atoll(value)};
  }
  if (argc < 2 || ulyrt_model_load(argv[1], &model, &error) || ulyrt_model_seed_params(model, 1, &error) || ulyrt_comm_create_local(RANKS, comms, &error))
    return fprintf(stderr, "%s\n", argc < 2 ? "usage: embed model.so [SYMBOL=SIZE ...]" : error.text), 1;
  for (int i = 0; i < RANKS; i++) {
    ranks[i] = (rank){.model = model, .comm = comms[i], .options = &options};
    pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]);
  }
  for (int i = 0; i < RANKS; i++) pthread_join(ranks[i].thread, NULL);
  for (int i = 0; i < RANKS; i++) ulyrt_comm_destroy(comms[i]);
  ulyrt_model_destroy(model);
  return ranks[0].failed;
}
