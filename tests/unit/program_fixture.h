// Programs written by hand: short spellings for rows of the tables, and a model made of them and of kernels that are C functions.
#ifndef ULY_TESTS_UNIT_PROGRAM_FIXTURE_H
#define ULY_TESTS_UNIT_PROGRAM_FIXTURE_H

#include "passes/program.h"

enum { FX_MAX_KERNELS = 16 };

typedef struct fx_program {
  uly_arena *arena;
  uly_program *p;
  uly_kernel kernels[FX_MAX_KERNELS];
  uint32_t n_kernels;
  uly_level level;
  uly_model model; // after fx_finish
} fx_program;

fx_program *fx_create(void);
void fx_destroy(fx_program *f);
// Makes the blob; the model lives as long as |f|.
const uly_model *fx_finish(fx_program *f);

uint32_t fx_const(fx_program *f, int64_t value);
uint32_t fx_symbol(fx_program *f, const char *name, int64_t least); // node
uint32_t fx_axis(fx_program *f, const char *name);                  // axis number
uint32_t fx_size(fx_program *f, uint32_t axis);                     // nodes: ranks on the axis, own place
uint32_t fx_place(fx_program *f, uint32_t axis);
uint32_t fx_add(fx_program *f, uint32_t a, uint32_t b);
uint32_t fx_sub(fx_program *f, uint32_t a, uint32_t b);
uint32_t fx_mul(fx_program *f, uint32_t a, uint32_t b);
uint32_t fx_node3(fx_program *f, uly_node_kind kind, uint32_t a, uint32_t b, uint32_t c);
uint32_t fx_share(fx_program *f, uint32_t n, uint32_t axis);
uint32_t fx_start(fx_program *f, uint32_t n, uint32_t axis);
uint32_t fx_peers(fx_program *f, uly_node_kind kind, uint32_t a, uint32_t axis);

uint32_t fx_name(fx_program *f, const char *name);
// A tensor that is whole on every rank; |dims|: nodes.
uint32_t fx_tensor(fx_program *f, uly_tensor_role role, const char *name, uly_dtype dtype, uint32_t rank, const uint32_t *dims);
void fx_cut(fx_program *f, uint32_t tensor, uint32_t dim, uint32_t axis); // splits a dim
uint32_t fx_buffer(fx_program *f, const char *name, uint32_t bytes, uint32_t flags);
uint32_t fx_kernel(fx_program *f, const char *name, uly_kernel kernel); // number; steps may share it

// Steps are added one after the other; operands and values are those of the last step.
uint32_t fx_step(fx_program *f, uly_step_kind kind, uint32_t a, uint32_t items);
void fx_end(fx_program *f, uint32_t loop);
uly_operand *fx_operand(fx_program *f, uly_operand_kind kind, uint32_t index, uint32_t access);
void fx_value(fx_program *f, uint32_t node, uint32_t axis);
// Makes all buffers live while something uses them (through loops where they are used in one), and an entry of steps [first, end) with tensors [t0, t1).
uint32_t fx_entry(fx_program *f, const char *name, uint32_t t0, uint32_t t1, uint32_t load_first, uint32_t first);

#endif
