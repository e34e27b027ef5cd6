// emit: the load phase. What load computes stands in LOAD buffers with one slot an iteration of the loops that its parameters' names follow. Its steps are gathered while an
// entry is emitted, and stand behind the forward steps, those of a loop together in one loop: what only they use needs a single slot.
#include "passes/emit.h"

int uly_emit_slots(const uly_emitter *e, int n_loops, int32_t *out_slot) {
  int64_t stride = 1;
  for (int d = n_loops - 1; d >= 0; d--) out_slot[d] = (int32_t)stride, stride *= e->loops[d].count;
  return (int)stride;
}

int uly_emit_loops_of(const uly_operand *operand) {
  int n = ULY_MAX_LOOPS;
  while (n > 0 && !operand->slot[n - 1]) n--;
  return n;
}

bool uly_emit_at_load(const uly_emitter *e, const uly_place *place) {
  uint32_t row = place->operand.index;
  if (place->operand.kind == ULY_OPERAND_TENSOR) return e->program->tensors[row].role == ULY_PARAM;
  return place->operand.kind == ULY_OPERAND_BUFFER && e->program->buffers[row].phase == ULY_PHASE_LOAD;
}

void uly_emit_enter_phase(uly_emitter *e, MlirOperation op) {
  e->load_loops = -1;
  if (!uly_op_has(op, "uly.load")) return;
  e->load_loops = 0;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
    uly_place place = uly_emit_place(e, mlirOperationGetOperand(op, i));
    int n = uly_emit_loops_of(&place.operand);
    if (n > e->load_loops) e->load_loops = n;
  }
}

bool uly_emit_table(uly_emitter *e, MlirOperation op) {
  MlirAttribute numbers = uly_op_attr(op, "numbers");
  int64_t n = uly_op_n_items(op);
  uint64_t *slots = ULY_NEW_ARRAY(e->arena, uint64_t, n);
  for (int64_t i = 0; i < n; i++) {
    double number = mlirAttributeIsADenseF64Array(numbers) ? mlirDenseF64ArrayGetElement(numbers, i) : 0;
    memcpy(&slots[i], &number, sizeof number);
    if (!mlirAttributeIsADenseF64Array(numbers)) slots[i] = (uint64_t)mlirDenseI64ArrayGetElement(numbers, i);
  }
  uint32_t buffer = uly_program_add_constants(e->program, slots, (uint32_t)n, ULY_STR("table"));
  uly_place place = {.operand = {.kind = ULY_OPERAND_BUFFER, .index = buffer, .offset = ULY_NONE}};
  if (n != 1) uly_emit_slots(e, e->n_loops, place.operand.slot);
  uly_emit_set_place(e, uly_op_result(op, 0), place);
  return true;
}

void uly_emit_step(uly_emitter *e, uly_step step) {
  if (e->load_loops < 0) {
    uly_program_add_steps(e->program, step);
    return;
  }
  ULY_MAKE_ROOM(e->arena, e->load_steps, e->n_load_steps, e->cap_load_steps, 32);
  uly_load_step *s = &e->load_steps[e->n_load_steps];
  *s = (uly_load_step){.step = step, .order = e->n_load_steps++};
  for (int d = 0; d < e->load_loops; d++) s->loops[d] = e->loops[d];
}

// ---- the phase's steps

// By the loops around them, outer ones first, then in the order of the program: an outer step uses nothing of an inner one.
static int compare_steps(const void *a, const void *b) {
  const uly_load_step *x = a, *y = b;
  for (int d = 0; d < ULY_MAX_LOOPS; d++)
    if (x->loops[d].id != y->loops[d].id) return x->loops[d].id < y->loops[d].id ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

typedef struct open_loops {
  uint32_t id[ULY_MAX_LOOPS], step[ULY_MAX_LOOPS];
  int n;
} open_loops;

static void close_loop(uly_program *p, open_loops *open) {
  uint32_t loop = open->step[--open->n];
  uly_step end = p->steps[loop];
  end.kind = ULY_STEP_END, end.b = loop;
  uint32_t row = uly_program_add_steps(p, end); // the table may move
  p->steps[loop].b = row;
}

static void open_loop(uly_program *p, open_loops *open, const uly_emit_loop *loop, const uly_step *first) {
  uly_step step = {.kind = ULY_STEP_LOOP,
                   .items = uly_program_const(p, loop->count),
                   .scratch = ULY_NONE,
                   .predicate = ULY_NONE,
                   .name = uly_program_name(p, ULY_STR("repeat")),
                   .spec_line = first->spec_line};
  open->id[open->n] = loop->id;
  open->step[open->n++] = uly_program_add_steps(p, step);
}

uly_span uly_emit_load_steps(uly_emitter *e) {
  uly_program *p = e->program;
  uint32_t first = p->n_steps;
  open_loops open = {.n = 0};
  if (e->n_load_steps) qsort(e->load_steps, e->n_load_steps, sizeof *e->load_steps, compare_steps);
  for (uint32_t i = 0; i < e->n_load_steps; i++) {
    const uly_load_step *s = &e->load_steps[i];
    int same = 0;
    while (same < open.n && s->loops[same].id == open.id[same]) same++;
    while (open.n > same) close_loop(p, &open);
    while (open.n < ULY_MAX_LOOPS && s->loops[open.n].id) open_loop(p, &open, &s->loops[open.n], &s->step);
    uint32_t row = uly_program_add_steps(p, s->step);
    for (uint32_t k = 0; k < e->n_load_probes; k++)
      if (e->load_probes[k].order == s->order) p->probes[e->load_probes[k].row].step = row;
  }
  while (open.n) close_loop(p, &open);
  e->n_load_steps = e->n_load_probes = 0;
  return (uly_span){first, p->n_steps - first};
}
