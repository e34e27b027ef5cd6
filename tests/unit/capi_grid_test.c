// The public interface with a grid of two axes, sp(S) and dp(B): ranks that are threads, bound by one communicator of all or by one an axis; and what a host can get wrong.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/ulyrt.h"

enum { B = 5, S = 7, D = 4, MOST = 6, RUNS = 3 };
enum { X, W, Y, ROWS, BATCH, ALL, N_TENSORS };

static float x_at(int64_t b, int64_t s, int64_t d) { return (float)(100 * b + 10 * s + d); }
static float w_at(int64_t d) { return (float)(d + 1); }

static ulyrt_model *load(void) {
  ulyrt_model *m;
  ulyrt_error e = ULYRT_ERROR_INIT;
  if (ulyrt_model_load(GRID_MODEL, &m, &e)) fail_msg("%s", e.text);
  return m;
}

static void fails(ulyrt_status status, ulyrt_status want, const ulyrt_error *e, const char *part) {
  if (status != want || e->status != (int32_t)want || !strstr(e->text, part))
    fail_msg("status %d, expected %d; \"%s\" should say \"%s\"", (int)status, (int)want, e->text, part);
}

typedef struct seat {
  ulyrt_model *model;
  ulyrt_comm *world, *axes[2]; // one or the other
  ulyrt_size grid[2];
  int32_t n_grid;
  int32_t size[2], place[2]; // expected
  int64_t s;                 // of S
  ulyrt_status status;
  ulyrt_error error;
  char wrong[160];
} seat;

static int64_t share(int64_t n, int64_t p, int64_t r) { return n / p + (r < n % p); }
static int64_t start(int64_t n, int64_t p, int64_t r) { return r * (n / p) + (r < n % p ? r : n % p); }

#define EXPECT(condition)                                                                                                                                      \
  do {                                                                                                                                                         \
    if (!(condition) && !*me->wrong) snprintf(me->wrong, sizeof me->wrong, "line %d: %s", __LINE__, #condition);                                               \
  } while (0)

// The rank is where it should be, and so is its part of x.
static void check_place(seat *me, const ulyrt_instance *i) {
  static const char *const names[] = {"sp", "dp"};
  ulyrt_error e = ULYRT_ERROR_INIT;
  ulyrt_instance_info info = ULYRT_INSTANCE_INFO_INIT;
  ulyrt_shape x = ULYRT_SHAPE_INIT;
  EXPECT(ulyrt_instance_get(i, &info, &e) == ULYRT_OK);
  EXPECT(info.n_ranks == me->size[0] * me->size[1] && info.rank == me->place[0] + me->place[1] * me->size[0]);
  for (int32_t a = 0; a < 2; a++) {
    ulyrt_axis_info axis = ULYRT_AXIS_INFO_INIT;
    EXPECT(ulyrt_instance_axis(i, a, &axis, &e) == ULYRT_OK);
    EXPECT(strcmp(axis.name, names[a]) == 0 && axis.size == me->size[a] && axis.place == me->place[a]);
    EXPECT((axis.sent_bytes > 0) == (me->size[a] > 1) && axis.receive_bytes > 0);
  }
  ulyrt_axis_info none = ULYRT_AXIS_INFO_INIT;
  EXPECT(ulyrt_instance_axis(i, 2, &none, &e) == ULYRT_INVALID_ARGUMENT && strstr(e.text, "the grid has 2 axes, asked for number 2"));
  EXPECT(ulyrt_instance_shape(i, X, &x, &e) == ULYRT_OK);
  EXPECT(x.ndim == 3 && x.dims[0] == B && x.dims[1] == S && x.dims[2] == D);
  EXPECT(x.start[0] == start(B, me->size[1], me->place[1]) && x.local[0] == share(B, me->size[1], me->place[1]));
  EXPECT(x.start[1] == start(S, me->size[0], me->place[0]) && x.local[1] == share(S, me->size[0], me->place[0]));
  EXPECT(ulyrt_instance_shape(i, N_TENSORS, &x, &e) == ULYRT_INVALID_ARGUMENT && strstr(e.text, "the entry has 6 tensors, asked for number 6"));
}

// Sums of small whole numbers, which are exact.
static void check_outputs(seat *me, const ulyrt_shape *shape, float (*data)[B * S * D]) {
  int64_t b0 = shape[X].start[0], s0 = shape[X].start[1], n_b = shape[X].local[0], n_s = shape[X].local[1];
  for (int64_t b = 0; b < n_b; b++)
    for (int64_t s = 0; s < n_s; s++)
      for (int64_t d = 0; d < D; d++) EXPECT(data[Y][(b * n_s + s) * D + d] == x_at(b0 + b, s0 + s, d) * w_at(d));
  for (int64_t b = 0; b < n_b; b++)
    for (int64_t d = 0; d < D; d++) EXPECT(data[ROWS][b * D + d] == (float)S * x_at(b0 + b, 0, d) + (float)(10 * (S * (S - 1) / 2)));
  for (int64_t s = 0; s < n_s; s++)
    for (int64_t d = 0; d < D; d++) EXPECT(data[BATCH][s * D + d] == (float)B * x_at(0, s0 + s, d) + (float)(100 * (B * (B - 1) / 2)));
  EXPECT(data[ALL][0] == (float)(S * D * 100 * (B * (B - 1) / 2) + B * D * 10 * (S * (S - 1) / 2) + B * S * (D * (D - 1) / 2)));
}

static ulyrt_status run(seat *me, ulyrt_instance *i) {
  static const int32_t ranks[N_TENSORS] = {3, 1, 3, 2, 2, 0};
  float data[N_TENSORS][B * S * D];
  ulyrt_shape shape[N_TENSORS];
  ulyrt_tensor t[N_TENSORS];
  for (int32_t k = 0; k < N_TENSORS; k++) {
    shape[k] = (ulyrt_shape)ULYRT_SHAPE_INIT;
    EXPECT(ulyrt_instance_shape(i, k, &shape[k], &me->error) == ULYRT_OK && shape[k].ndim == ranks[k]);
    t[k] = (ulyrt_tensor){.data = data[k], .device = {1, 0}, .ndim = shape[k].ndim, .dtype = ULYRT_F32, .shape = shape[k].local};
  }
  for (int64_t k = 0; k < shape[X].local[0] * shape[X].local[1] * D; k++)
    data[X][k] = x_at(shape[X].start[0] + k / D / shape[X].local[1], shape[X].start[1] + k / D % shape[X].local[1], k % D);
  for (int64_t d = 0; d < D; d++) data[W][d] = w_at(d);
  for (int k = 0; k < RUNS; k++) {
    memset(data[Y], 0xff, sizeof data - (size_t)((char *)data[Y] - (char *)data));
    ulyrt_status status = ulyrt_run(i, t, N_TENSORS, &me->error);
    if (status != ULYRT_OK) return status;
    check_outputs(me, shape, data);
  }
  return ULYRT_OK;
}

static void *rank_main(void *argument) {
  seat *me = argument;
  ulyrt_size sizes[] = {{"B", B}, {"S", me->s}};
  ulyrt_bind_options o = ULYRT_BIND_OPTIONS_INIT;
  ulyrt_instance *i = NULL;
  o.sizes = sizes, o.n_sizes = 2;
  o.comms = me->world ? &me->world : me->axes, o.n_comms = me->world ? 1 : 2;
  o.grid = me->grid, o.n_grid = me->n_grid;
  o.threads = 1;
  me->error = (ulyrt_error)ULYRT_ERROR_INIT;
  me->status = ulyrt_bind(me->model, &o, &i, &me->error);
  if (me->status == ULYRT_OK) me->status = run(me, i);
  if (me->status == ULYRT_OK) check_place(me, i);
  ulyrt_instance_destroy(i);
  return NULL;
}

static void seat_all(seat *seats, int n) {
  pthread_t threads[MOST];
  for (int r = 0; r < n; r++) assert_int_equal(pthread_create(&threads[r], NULL, rank_main, &seats[r]), 0);
  for (int r = 0; r < n; r++) pthread_join(threads[r], NULL);
}

static void in_one_world(ulyrt_model *m, seat *seats, int n) {
  ulyrt_comm *world[MOST];
  ulyrt_error e = ULYRT_ERROR_INIT;
  assert_int_equal(ulyrt_comm_create_local(n, world, &e), ULYRT_OK);
  for (int r = 0; r < n; r++) {
    seats[r].model = m, seats[r].world = world[r];
    if (!seats[r].s) seats[r].s = S;
    ulyrt_comm_set_timeout(world[r], 20);
  }
  seat_all(seats, n);
  for (int r = 0; r < n; r++) ulyrt_comm_destroy(world[r]);
}

static void all_well(const seat *seats, int n) {
  for (int r = 0; r < n; r++)
    if (seats[r].status != ULYRT_OK || *seats[r].wrong) fail_msg("rank %d of %d: %s %s", r, n, seats[r].error.text, seats[r].wrong);
}

static void one_communicator_of_all(void **state) {
  (void)state;
  static const struct {
    ulyrt_size grid[2];
    int32_t n_grid, size[2];
  } cases[] = {{{{"sp", 2}, {"dp", 3}}, 2, {2, 3}}, {{{"dp", 2}, {"sp", 3}}, 2, {3, 2}}, {{{"dp", 3}, {0}}, 1, {2, 3}}, {{{0}, {0}}, 0, {6, 1}},
               {{{"sp", 1}, {0}}, 1, {1, 6}},       {{{"sp", 2}, {"dp", 1}}, 2, {2, 1}}};
  ulyrt_model *m = load();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    seat seats[MOST] = {0};
    int n = cases[i].size[0] * cases[i].size[1];
    int32_t sizes[ULYRT_MAX_AXES];
    ulyrt_error e = ULYRT_ERROR_INIT;
    assert_int_equal(ulyrt_model_grid(m, n, cases[i].grid, cases[i].n_grid, sizes, &e), ULYRT_OK);
    assert_true(sizes[0] == cases[i].size[0] && sizes[1] == cases[i].size[1]);
    for (int r = 0; r < n; r++) {
      memcpy(seats[r].grid, cases[i].grid, sizeof seats[r].grid);
      seats[r].n_grid = cases[i].n_grid;
      memcpy(seats[r].size, sizes, sizeof seats[r].size);
      seats[r].place[0] = r % sizes[0], seats[r].place[1] = r / sizes[0];
    }
    in_one_world(m, seats, n);
    all_well(seats, n);
  }
  ulyrt_model_destroy(m);
}

static void one_communicator_an_axis(void **state) {
  (void)state;
  enum { N0 = 3, N1 = 2 };
  ulyrt_model *m = load();
  ulyrt_comm *along0[N1][N0], *along1[N0][N1];
  ulyrt_error e = ULYRT_ERROR_INIT;
  seat seats[MOST] = {0};
  for (int j = 0; j < N1; j++) assert_int_equal(ulyrt_comm_create_local(N0, along0[j], &e), ULYRT_OK);
  for (int i = 0; i < N0; i++) assert_int_equal(ulyrt_comm_create_local(N1, along1[i], &e), ULYRT_OK);
  for (int r = 0; r < N0 * N1; r++)
    seats[r] = (seat){.model = m, .axes = {along0[r / N0][r % N0], along1[r % N0][r / N0]}, .size = {N0, N1}, .place = {r % N0, r / N0}, .s = S};
  seat_all(seats, N0 * N1);
  all_well(seats, N0 * N1);
  for (int r = 0; r < N0 * N1; r++)
    for (int a = 0; a < 2; a++) ulyrt_comm_destroy(seats[r].axes[a]);
  ulyrt_model_destroy(m);
}

// What is wrong on one rank, or on all, is said on all.
static void ranks_that_do_not_agree(void **state) {
  (void)state;
  static const struct {
    ulyrt_size other; // of the last rank
    ulyrt_status status;
    const char *says, *says_last;
  } cases[] = {{{"sp", 3}, ULYRT_MISMATCH, "rank 0 has the grid sp=2,dp=3, rank 5 sp=3,dp=2", NULL},
               {{"sp", 4}, ULYRT_INVALID_ARGUMENT, "rank 5 cannot bind: the grid sp=4 has 4 ranks, which does not go with 6", "the grid sp=4 has 4 ranks"},
               {{"tp", 2}, ULYRT_CANCELLED, "no grid axis tp (there is: sp, dp)", "no grid axis tp (there is: sp, dp)"},
               {{"sp", 0}, ULYRT_CANCELLED, "grid axis sp has 0 ranks", "grid axis sp has 0 ranks"},
               {{NULL, 2}, ULYRT_CANCELLED, "size 0 of the grid has no axis", "size 0 of the grid has no axis"}};
  ulyrt_model *m = load();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    seat seats[MOST] = {0};
    for (int r = 0; r < MOST; r++) seats[r].grid[0] = r == MOST - 1 ? cases[i].other : (ulyrt_size){"sp", 2}, seats[r].n_grid = 1;
    in_one_world(m, seats, MOST);
    for (int r = 0; r < MOST; r++) {
      bool last = r == MOST - 1 && cases[i].says_last;
      fails(seats[r].status, last ? ULYRT_INVALID_ARGUMENT : cases[i].status, &seats[r].error, last ? cases[i].says_last : cases[i].says);
    }
  }
  seat seats[MOST] = {0};
  for (int r = 0; r < MOST; r++) seats[r].grid[0] = (ulyrt_size){"dp", 2}, seats[r].n_grid = 1, seats[r].s = r == 4 ? S + 1 : S;
  in_one_world(m, seats, MOST);
  for (int r = 0; r < MOST; r++) {
    char place[64];
    snprintf(place, sizeof place, "[rank %d] (sp %d, dp %d) rank 0 has S = 7, rank 4 has S = 8", r, r % 3, r / 3);
    fails(seats[r].status, ULYRT_MISMATCH, &seats[r].error, place);
  }
  ulyrt_model_destroy(m);
}

static void mistakes_of_one(void **state) {
  (void)state;
  ulyrt_model *m = load();
  ulyrt_error e = ULYRT_ERROR_INIT;
  ulyrt_instance *i;
  ulyrt_comm *two[2], *none[5] = {NULL};
  int32_t out[ULYRT_MAX_AXES];
  ulyrt_size sizes[] = {{"B", B}, {"S", S}}, grid[] = {{"sp", 2}, {"sp", 2}};
  ulyrt_bind_options o = ULYRT_BIND_OPTIONS_INIT;
  o.sizes = sizes, o.n_sizes = 2;
  assert_int_equal(ulyrt_model_axes(m), 2);
  assert_string_equal(ulyrt_model_axis_name(m, 1), "dp");
  assert_null(ulyrt_model_axis_name(m, 2));
  fails(ulyrt_model_grid(m, 0, grid, 1, out, &e), ULYRT_INVALID_ARGUMENT, &e, "0 ranks");
  fails(ulyrt_model_grid(m, 4, grid, 2, out, &e), ULYRT_INVALID_ARGUMENT, &e, "grid axis sp is given twice");
  fails(ulyrt_model_grid(m, 3, grid, 1, out, &e), ULYRT_INVALID_ARGUMENT, &e, "the grid sp=2 has 2 ranks, which does not go with 3");
  grid[1] = (ulyrt_size){"dp", INT64_MAX};
  fails(ulyrt_model_grid(m, 4, grid, 2, out, &e), ULYRT_INVALID_ARGUMENT, &e, "grid axis dp has 9223372036854775807 ranks");
  o.grid = grid, o.n_grid = 1;
  fails(ulyrt_bind(m, &o, &i, &e), ULYRT_INVALID_ARGUMENT, &e, "the grid sp=2 has 2 ranks, which does not go with 1");
  o.comms = none, o.n_comms = 2;
  fails(ulyrt_bind(m, &o, &i, &e), ULYRT_INVALID_ARGUMENT, &e, "sizes of the grid go with one communicator of all ranks; 2 communicators");
  o.n_comms = 5, o.n_grid = 0;
  fails(ulyrt_bind(m, &o, &i, &e), ULYRT_INVALID_ARGUMENT, &e, "5 communicators, at most 4");
  assert_int_equal(ulyrt_comm_create_local(2, two, &e), ULYRT_OK);
  none[2] = two[0], o.n_comms = 3;
  fails(ulyrt_bind(m, &o, &i, &e), ULYRT_INVALID_ARGUMENT, &e, "the model's grid has 2 axes, it cannot use 2 ranks on axis 2");
  for (int r = 0; r < 2; r++) ulyrt_comm_destroy(two[r]);
  ulyrt_model_destroy(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_communicator_of_all), cmocka_unit_test(one_communicator_an_axis),
                                     cmocka_unit_test(ranks_that_do_not_agree), cmocka_unit_test(mistakes_of_one)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
