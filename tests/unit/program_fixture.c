#include "tests/unit/program_fixture.h"

#include <math.h>
#include <stdlib.h>

fx_program *fx_create(void) {
  fx_program *f = calloc(1, sizeof *f);
  ULY_ASSERT(f);
  f->arena = uly_arena_create();
  f->p = uly_program_create(f->arena);
  return f;
}

void fx_destroy(fx_program *f) {
  if (!f) return;
  uly_arena_destroy(f->arena);
  free(f);
}

typedef struct source {
  const void *rows;
  uint32_t count, row_bytes;
} source;

static uly_blob *make_blob(fx_program *f, uint64_t *out_bytes) {
  uly_program *p = f->p;
  uly_kernel_row *kernels = ULY_NEW_ARRAY(f->arena, uly_kernel_row, f->n_kernels + 1);
  for (uint32_t k = 0; k < f->n_kernels; k++) {
    uint32_t name = fx_name(f, "kernel");
    kernels[k].name = p->names[name];
  }
  const source sources[ULY_N_TABLES] = {
#define TABLE(kind, type, name) [ULY_TABLE_##kind] = {p->name, p->n_##name, sizeof(type)},
      ULY_PROGRAM_TABLES(TABLE)
#undef TABLE
          [ULY_TABLE_KERNELS] = {kernels, f->n_kernels, sizeof *kernels}};
  uint64_t at = (sizeof(uly_blob) + 7) & ~(uint64_t)7, bytes = at;
  for (int i = 0; i < ULY_N_TABLES; i++) bytes += ((uint64_t)sources[i].count * sources[i].row_bytes + 7) & ~(uint64_t)7;
  uly_blob *blob = uly_arena_alloc(f->arena, bytes);
  *blob = (uly_blob){.magic = ULY_BLOB_MAGIC, .abi_major = ULY_ABI_MAJOR, .abi_minor = ULY_ABI_MINOR, .bytes = bytes, .n_tables = ULY_N_TABLES};
  for (int i = 0; i < ULY_N_TABLES; i++) {
    uint64_t n = (uint64_t)sources[i].count * sources[i].row_bytes;
    blob->tables[i] = (uly_table){at, sources[i].count, sources[i].row_bytes};
    if (n) memcpy((char *)blob + at, sources[i].rows, n);
    at += (n + 7) & ~(uint64_t)7;
  }
  *out_bytes = bytes;
  return blob;
}

const uly_model *fx_finish(fx_program *f) {
  uint64_t bytes;
  uly_blob *blob = make_blob(f, &bytes);
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint64_t i = sizeof *blob; i < bytes; i++) hash = (hash ^ ((const unsigned char *)blob)[i]) * 0x100000001b3u;
  memcpy(blob->program, &hash, sizeof hash);
  f->level = (uly_level){.name = "x86-64"};
  f->model = (uly_model){.struct_size = sizeof f->model,
                         .abi_major = ULY_ABI_MAJOR,
                         .abi_minor = ULY_ABI_MINOR,
                         .blob = blob,
                         .n_levels = 1,
                         .n_kernels = f->n_kernels,
                         .levels = &f->level};
  f->model.kernels[0] = f->kernels;
  return &f->model;
}

uint32_t fx_const(fx_program *f, int64_t value) { return uly_program_const(f->p, value); }

uint32_t fx_name(fx_program *f, const char *name) { return uly_program_name(f->p, uly_str_of(name)); }

static uly_span name_span(fx_program *f, const char *name) {
  uint32_t row = fx_name(f, name);
  return f->p->names[row];
}

uint32_t fx_symbol(fx_program *f, const char *name, int64_t least) {
  uint32_t row = uly_program_add_symbols(f->p, (uly_symbol){.name = name_span(f, name), .least = least});
  return uly_program_node(f->p, (uly_node){.kind = ULY_NODE_SYM, .value = row});
}

uint32_t fx_axis(fx_program *f, const char *name) { return uly_program_add_axes(f->p, (uly_axis){.name = name_span(f, name)}); }
uint32_t fx_size(fx_program *f, uint32_t axis) { return uly_program_node(f->p, (uly_node){.kind = ULY_NODE_AXIS_SIZE, .value = axis}); }
uint32_t fx_place(fx_program *f, uint32_t axis) { return uly_program_node(f->p, (uly_node){.kind = ULY_NODE_AXIS_RANK, .value = axis}); }
uint32_t fx_add(fx_program *f, uint32_t a, uint32_t b) { return uly_program_op(f->p, ULY_NODE_ADD, a, b); }
uint32_t fx_sub(fx_program *f, uint32_t a, uint32_t b) { return uly_program_op(f->p, ULY_NODE_SUB, a, b); }
uint32_t fx_mul(fx_program *f, uint32_t a, uint32_t b) { return uly_program_op(f->p, ULY_NODE_MUL, a, b); }
uint32_t fx_node3(fx_program *f, uly_node_kind kind, uint32_t a, uint32_t b, uint32_t c) {
  return uly_program_node(f->p, (uly_node){.kind = kind, .a = a, .b = b, .c = c});
}
uint32_t fx_share(fx_program *f, uint32_t n, uint32_t axis) { return fx_node3(f, ULY_NODE_SHARE, n, fx_size(f, axis), fx_place(f, axis)); }
uint32_t fx_start(fx_program *f, uint32_t n, uint32_t axis) { return fx_node3(f, ULY_NODE_START, n, fx_size(f, axis), fx_place(f, axis)); }
uint32_t fx_peers(fx_program *f, uly_node_kind kind, uint32_t a, uint32_t axis) {
  return uly_program_node(f->p, (uly_node){.kind = kind, .a = a, .value = axis});
}

uint32_t fx_tensor(fx_program *f, uly_tensor_role role, const char *name, uly_dtype dtype, uint32_t rank, const uint32_t *dims) {
  uly_tensor t = {
      .role = role, .dtype = dtype, .entry = role == ULY_PARAM ? ULY_NONE : 0, .rank = rank, .names = {fx_name(f, name), 1}, .init = NAN, .spec_line = 7};
  for (uint32_t d = 0; d < rank; d++) {
    t.dims[d] = t.local[d] = dims[d];
    t.start[d] = fx_const(f, 0);
  }
  return uly_program_add_tensors(f->p, t);
}

void fx_cut(fx_program *f, uint32_t tensor, uint32_t dim, uint32_t axis) {
  uint32_t n = f->p->tensors[tensor].dims[dim], start = fx_start(f, n, axis), share = fx_share(f, n, axis);
  f->p->tensors[tensor].start[dim] = start;
  f->p->tensors[tensor].local[dim] = share;
}

uint32_t fx_buffer(fx_program *f, const char *name, uint32_t bytes, uint32_t flags) {
  return uly_program_add_buffers(
      f->p, (uly_buffer){.phase = ULY_PHASE_FORWARD, .bytes = bytes, .slots = 1, .live_from = UINT32_MAX, .flags = flags, .name = fx_name(f, name)});
}

uint32_t fx_kernel(fx_program *f, const char *name, uly_kernel kernel) {
  (void)name;
  ULY_ASSERT(f->n_kernels < FX_MAX_KERNELS);
  uly_kernel_desc *desc = ULY_NEW(f->arena, uly_kernel_desc);
  desc->kind = ULY_KERNEL_MOVE;
  uly_program_add_kernels(f->p, desc);
  f->kernels[f->n_kernels] = kernel;
  return f->n_kernels++;
}

uint32_t fx_step(fx_program *f, uly_step_kind kind, uint32_t a, uint32_t items) {
  return uly_program_add_steps(f->p, (uly_step){.kind = kind,
                                                .a = a,
                                                .items = items,
                                                .scratch = ULY_NONE,
                                                .predicate = ULY_NONE,
                                                .operands = {f->p->n_operands, 0},
                                                .values = {f->p->n_values, 0},
                                                .name = fx_name(f, "step"),
                                                .spec_line = 20 + f->p->n_steps});
}

void fx_end(fx_program *f, uint32_t loop) {
  uint32_t end = fx_step(f, ULY_STEP_END, 0, 0);
  f->p->steps[end].b = loop;
  f->p->steps[loop].b = end;
}

uly_operand *fx_operand(fx_program *f, uly_operand_kind kind, uint32_t index, uint32_t access) {
  uint32_t row = uly_program_add_operands(f->p, (uly_operand){.kind = kind, .index = index, .offset = ULY_NONE, .access = access});
  f->p->steps[f->p->n_steps - 1].operands.count++;
  return &f->p->operands[row];
}

void fx_value(fx_program *f, uint32_t node, uint32_t axis) {
  uly_program_add_values(f->p, (uly_call_value){node, axis});
  f->p->steps[f->p->n_steps - 1].values.count++;
}

// The loop around step |i| from |first| on, the outermost; or the step itself.
static void stretch(const fx_program *f, uint32_t first, uint32_t i, uint32_t *from, uint32_t *to) {
  *from = *to = i;
  for (uint32_t k = first; k < i; k++)
    if (f->p->steps[k].kind == ULY_STEP_LOOP && f->p->steps[k].b > i) {
      *from = k;
      *to = f->p->steps[k].b;
      return;
    }
}

static void lives(fx_program *f, uint32_t first, uint32_t buffer, uint32_t step) {
  uint32_t from, to;
  uly_buffer *b = &f->p->buffers[buffer];
  stretch(f, first, step, &from, &to);
  if (b->live_from == UINT32_MAX || from < b->live_from) b->live_from = from;
  if (to > b->live_to) b->live_to = to;
}

uint32_t fx_entry(fx_program *f, const char *name, uint32_t t0, uint32_t t1, uint32_t load_first, uint32_t first) {
  uly_program *p = f->p;
  for (uint32_t i = first; i < p->n_steps; i++) {
    const uly_step *s = &p->steps[i];
    if (s->kind == ULY_STEP_POST || s->kind == ULY_STEP_SEND || s->kind == ULY_STEP_WAIT) {
      lives(f, first, p->exchanges[s->a].receive, i);
      lives(f, first, p->exchanges[s->a].send, i);
    }
    for (uint32_t k = 0; k < s->operands.count; k++) {
      const uly_operand *o = &p->operands[s->operands.first + k];
      if (o->kind == ULY_OPERAND_BUFFER && p->buffers[o->index].phase != ULY_PHASE_LOAD) lives(f, first, o->index, i);
      if (o->kind == ULY_OPERAND_SEGMENTS) lives(f, first, p->exchanges[o->index].receive, i);
      if (o->kind == ULY_OPERAND_PEERS) lives(f, first, p->exchanges[o->index].send, i);
    }
  }
  for (uint32_t i = 0; i < p->n_buffers; i++)
    if (p->buffers[i].live_from == UINT32_MAX) p->buffers[i].live_from = 0;
  uly_entry e = {.name = fx_name(f, name), .when = ULY_NONE, .tensors = {t0, t1 - t0}, .params = {p->n_indices, 0}, .symbols = UINT32_MAX};
  e.steps[ULY_PHASE_LOAD] = (uly_span){load_first, first - load_first};
  e.steps[ULY_PHASE_FORWARD] = (uly_span){first, p->n_steps - first};
  for (uint32_t i = 0; i < p->n_tensors; i++) {
    if (p->tensors[i].role == ULY_PARAM) {
      uly_program_add_indices(p, i);
      e.params.count++;
    } else if (i >= t0 && i < t1) {
      p->tensors[i].entry = p->n_entries;
    }
  }
  return uly_program_add_entries(p, e);
}
