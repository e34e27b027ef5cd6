// Writes turn_model.c: the tables of a small model made by hand, and its note, as C. `make_turn_model out.c`
#include <stdio.h>
#include <stdlib.h>

#include "tests/multirank/turn_kernels.h"
#include "tests/unit/program_fixture.h"

void turn_spread(const uly_call *c) { (void)c; } // the real ones are in turn_kernels.c; here only their numbers count
void turn_around(const uly_call *c) { (void)c; }

static void add_values(fx_program *f, const uint32_t *values, uint32_t rows, uint32_t start, uint32_t axis) {
  for (int i = 0; i < TURN_PEER_START; i++) fx_value(f, values[i], ULY_NONE);
  fx_value(f, start, axis);
  fx_value(f, rows, axis);
}

static void add_steps(fx_program *f, uint32_t x, const uint32_t *values, uint32_t rows, uint32_t start, uint32_t axis, uint32_t table) {
  fx_step(f, ULY_STEP_POST, x, 0);
  fx_operand(f, ULY_OPERAND_BUFFER, f->p->exchanges[x].receive, ULY_WRITE);
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "spread", turn_spread), rows);
  fx_operand(f, ULY_OPERAND_TENSOR, 0, ULY_READ);
  fx_operand(f, ULY_OPERAND_TENSOR, 1, ULY_READ);
  fx_operand(f, ULY_OPERAND_TENSOR, table, ULY_READ);
  fx_operand(f, ULY_OPERAND_PEERS, x, ULY_WRITE);
  add_values(f, values, rows, start, axis);
  fx_step(f, ULY_STEP_SEND, x, 0);
  fx_operand(f, ULY_OPERAND_BUFFER, f->p->exchanges[x].receive, ULY_WRITE);
  fx_step(f, ULY_STEP_WAIT, x, 0);
  fx_operand(f, ULY_OPERAND_BUFFER, f->p->exchanges[x].receive, ULY_READ);
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "around", turn_around), rows);
  fx_operand(f, ULY_OPERAND_SEGMENTS, x, ULY_READ);
  fx_operand(f, ULY_OPERAND_TENSOR, 1, ULY_READ);
  fx_operand(f, ULY_OPERAND_TENSOR, 2, ULY_WRITE);
  fx_operand(f, ULY_OPERAND_TENSOR, 3, ULY_WRITE);
  add_values(f, values, rows, start, axis);
}

static const uly_model *make_model(fx_program *f) {
  uint32_t b = fx_symbol(f, "B", 1), s = fx_symbol(f, "S", 1), axis = fx_axis(f, "sp"), d = fx_const(f, TURN_D);
  uint32_t rows = fx_share(f, s, axis), start = fx_start(f, s, axis), one = fx_const(f, 1), zero = fx_const(f, 0);
  const uint32_t wide[] = {b, s, d}, flat[] = {b, s}, weights[] = {fx_const(f, TURN_IDS), d};
  fx_tensor(f, ULY_INPUT, "x", ULY_F32, 3, wide);
  fx_tensor(f, ULY_INPUT, "ids", ULY_I32, 2, flat);
  fx_tensor(f, ULY_OUTPUT, "y", ULY_F32, 3, wide);
  fx_tensor(f, ULY_OUTPUT, "next", ULY_I32, 2, flat);
  for (uint32_t t = 0; t < 4; t++) fx_cut(f, t, 1, axis);
  f->p->tensors[1].id_limit = TURN_IDS;
  uint32_t table = fx_tensor(f, ULY_PARAM, "table.weight", ULY_F32, 2, weights);
  uint32_t unit = fx_mul(f, fx_mul(f, b, d), fx_const(f, 4));
  uly_exchange x = {.axis = axis,
                    .unit = unit,
                    .rows = rows,
                    .row_start = start,
                    .cols = one,
                    .col_start = zero,
                    .dtype = ULY_F32,
                    .spec_line = 3,
                    .flags = ULY_EXCHANGE_GATHER};
  x.name = fx_name(f, "z");
  x.receive = fx_buffer(f, "receive", fx_mul(f, unit, s), ULY_BUFFER_RECEIVE);
  x.send = fx_buffer(f, "send", fx_mul(f, unit, rows), 0);
  uint32_t exchange = uly_program_add_exchanges(f->p, x);
  const uint32_t values[] = {b, rows, s, start};
  add_steps(f, exchange, values, rows, start, axis, table);
  fx_entry(f, "turn", 0, 4, 0, 0);
  return fx_finish(f);
}

static void write_source(FILE *out, const uly_model *model) {
  const unsigned char *bytes = (const unsigned char *)model->blob;
  fputs("#include \"tests/multirank/turn_kernels.h\"\n\nstatic const _Alignas(64) unsigned char blob[] = {", out);
  for (uint64_t i = 0; i < model->blob->bytes; i++) fprintf(out, "%s%u,", i % 24 ? "" : "\n", bytes[i]);
  fputs("};\nstatic const uly_kernel kernels[] = {turn_spread, turn_around};\n", out);
  fputs("#define LEVELS {{.name = \"x86-64\"}}\nstatic const uly_level levels[] = LEVELS;\n", out);
  fputs("static const uly_model model = {sizeof model, ULY_ABI_MAJOR, ULY_ABI_MINOR, (const uly_blob *)(const void *)blob, 1, 2, {kernels}, levels};\n", out);
  fputs("const uly_model *ulyc_model(void);\nconst uly_model *ulyc_model(void) { return &model; }\n", out);
  fputs("__attribute__((section(ULY_NOTE_SECTION), used, aligned(4))) static const struct __attribute__((packed)) {\n  uint32_t name_bytes, bytes, type;\n  "
        "char name[8];\n  uly_note note;\n} "
        "note = {\n",
        out);
  fprintf(out, "    5, sizeof(uly_note), ULY_NOTE_TYPE, \"ulyc\", {sizeof(uly_note), ULY_ABI_MAJOR, ULY_ABI_MINOR, %llu, 1, 2, LEVELS, {",
          (unsigned long long)model->blob->bytes);
  for (int i = 0; i < 32; i++) fprintf(out, "%u,", model->blob->program[i]);
  fputs("}}};\n", out);
}

int main(int argc, char **argv) {
  FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
  if (!out) return 1;
  fx_program *f = fx_create();
  write_source(out, make_model(f));
  fx_destroy(f);
  return fclose(out) ? 1 : 0;
}
