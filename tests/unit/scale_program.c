#include "tests/unit/scale_program.h"

#include "tests/unit/scale_kernels.h"

typedef struct sizes {
  uint32_t b, s, d, axis, rows;
} sizes;

static void add_tensors(fx_program *f, const sizes *z) {
  const uint32_t dims[] = {z->b, z->s, z->d};
  fx_tensor(f, ULY_INPUT, "x", ULY_F32, 3, dims);
  fx_tensor(f, ULY_OUTPUT, "y", ULY_F32, 3, dims);
  fx_cut(f, SCALE_X, 1, z->axis);
  fx_cut(f, SCALE_Y, 1, z->axis);
  uint32_t w = fx_tensor(f, ULY_PARAM, "layers.0.weight", ULY_F32, 1, &z->d);
  fx_name(f, "layers.1.weight");
  fx_name(f, "layers.2.weight");
  f->p->tensors[w].names.count = SCALE_LAYERS;
  ULY_ASSERT(fx_name(f, "layers.2.weight") == f->p->tensors[w].names.first + 2);
}

static void add_load(fx_program *f, const sizes *z, uint32_t packed) {
  uint32_t loop = fx_step(f, ULY_STEP_LOOP, 0, fx_const(f, SCALE_LAYERS));
  fx_step(f, ULY_STEP_KERNEL, SCALE_PACK, z->d);
  fx_operand(f, ULY_OPERAND_TENSOR, SCALE_W, ULY_READ)->slot[0] = 1;
  fx_operand(f, ULY_OPERAND_BUFFER, packed, ULY_WRITE)->slot[0] = 1;
  fx_end(f, loop);
}

static void add_multiply(fx_program *f, const sizes *z, uint32_t packed, uint32_t from, uint32_t to) {
  uint32_t step = fx_step(f, ULY_STEP_KERNEL, SCALE_MULTIPLY, z->rows);
  f->p->steps[step].scratch = fx_mul(f, z->d, fx_const(f, 4));
  fx_operand(f, from == ULY_NONE ? ULY_OPERAND_TENSOR : ULY_OPERAND_BUFFER, from == ULY_NONE ? SCALE_X : from, ULY_READ);
  for (int i = 0; i < 2; i++) {
    uly_operand *o = fx_operand(f, i ? ULY_OPERAND_TENSOR : ULY_OPERAND_BUFFER, i ? SCALE_W : packed, ULY_READ);
    o->slot[0] = from == ULY_NONE ? 0 : 1; // iteration i of the loop reads layer i + 1
    o->slot_add = from == ULY_NONE ? 0 : 1;
  }
  fx_operand(f, ULY_OPERAND_BUFFER, to, ULY_WRITE);
  fx_value(f, z->d, ULY_NONE);
}

fx_program *scale_program(void) {
  fx_program *f = fx_create();
  sizes z = {.b = fx_symbol(f, "B", 1), .s = fx_symbol(f, "S", 1), .axis = fx_axis(f, "sp")};
  z.d = fx_const(f, SCALE_D);
  z.rows = fx_mul(f, z.b, fx_share(f, z.s, z.axis));
  add_tensors(f, &z);
#define KERNEL(name) fx_kernel(f, #name, scale_##name);
  SCALE_KERNELS(KERNEL)
#undef KERNEL
  uint32_t packed = fx_buffer(f, "packed", fx_mul(f, z.d, fx_const(f, 4)), 0);
  f->p->buffers[packed].phase = ULY_PHASE_LOAD;
  f->p->buffers[packed].slots = SCALE_LAYERS;
  uint32_t value = fx_buffer(f, "value", fx_mul(f, z.rows, fx_mul(f, z.d, fx_const(f, 4))), 0);
  uint32_t one = fx_const(f, 1), eight = fx_const(f, 8);
  uly_exchange x = {.axis = z.axis,
                    .unit = eight,
                    .rows = one,
                    .row_start = fx_place(f, z.axis),
                    .cols = one,
                    .col_start = fx_const(f, 0),
                    .dtype = ULY_F64,
                    .name = fx_name(f, "sums"),
                    .spec_line = 9,
                    .flags = ULY_EXCHANGE_GATHER};
  x.receive = fx_buffer(f, "sums", fx_mul(f, eight, fx_size(f, z.axis)), ULY_BUFFER_RECEIVE);
  x.send = fx_buffer(f, "sum", eight, 0);
  uint32_t sums = uly_program_add_exchanges(f->p, x);

  add_load(f, &z, packed);
  uint32_t first = f->p->n_steps;
  add_multiply(f, &z, packed, ULY_NONE, value);
  uint32_t loop = fx_step(f, ULY_STEP_LOOP, 0, fx_const(f, SCALE_LAYERS - 1));
  add_multiply(f, &z, packed, value, value);
  fx_end(f, loop);
  fx_step(f, ULY_STEP_POST, sums, 0);
  fx_step(f, ULY_STEP_KERNEL, SCALE_PARTIAL, one);
  fx_operand(f, ULY_OPERAND_BUFFER, value, ULY_READ);
  fx_operand(f, ULY_OPERAND_PEERS, sums, ULY_WRITE);
  fx_value(f, z.rows, ULY_NONE);
  fx_value(f, z.d, ULY_NONE);
  fx_step(f, ULY_STEP_SEND, sums, 0);
  fx_step(f, ULY_STEP_WAIT, sums, 0);
  fx_step(f, ULY_STEP_KERNEL, SCALE_FINISH, z.rows);
  fx_operand(f, ULY_OPERAND_BUFFER, value, ULY_READ);
  fx_operand(f, ULY_OPERAND_SEGMENTS, sums, ULY_READ);
  fx_operand(f, ULY_OPERAND_TENSOR, SCALE_Y, ULY_WRITE);
  fx_value(f, z.d, ULY_NONE);
  fx_entry(f, "scale", SCALE_X, SCALE_W, 0, first);
  fx_finish(f);
  return f;
}
