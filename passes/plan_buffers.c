// plan_buffers: when each arena buffer of a program is live, so that the runtime can let buffers share addresses. Reads the steps, writes live_from and live_to.
//
// A buffer is live from its first step to its last. Where it is used both inside and outside a loop, what it holds must survive the other iterations: it is live for the
// whole loop. A buffer used only inside a loop is written anew by each iteration. A receive buffer is live from its POST, a send buffer to its WAIT.
#include "passes/program.h"

typedef struct plan {
  uly_program *program;
  uint32_t *loop_of; // by step: the innermost LOOP step around it, ULY_NONE outside
} plan;

static void find_loops(plan *p) {
  uint32_t stack[ULY_MAX_LOOPS], depth = 0;
  for (uint32_t s = 0; s < p->program->n_steps; s++) {
    const uly_step *step = &p->program->steps[s];
    if (step->kind == ULY_STEP_END) depth--;
    p->loop_of[s] = depth ? stack[depth - 1] : ULY_NONE;
    if (step->kind == ULY_STEP_LOOP) {
      ULY_ASSERT(depth < ULY_MAX_LOOPS);
      stack[depth++] = s;
    }
  }
}

// Whether step |inner| lies in the loop that starts at |loop|.
static bool in_loop(const plan *p, uint32_t inner, uint32_t loop) { return inner > loop && inner < p->program->steps[loop].b; }

// Extends [from, to] until every loop around one end is around the other too, or swallowed whole.
static void close_over_loops(const plan *p, uint32_t *from, uint32_t *to) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t loop = p->loop_of[*from]; loop != ULY_NONE && !in_loop(p, *to, loop); loop = p->loop_of[loop])
      if (*from > loop) *from = loop, changed = true;
    for (uint32_t loop = p->loop_of[*to]; loop != ULY_NONE && !in_loop(p, *from, loop); loop = p->loop_of[loop])
      if (*to < p->program->steps[loop].b) *to = p->program->steps[loop].b, changed = true;
  }
}

static void touch(uly_program *program, uint32_t buffer, uint32_t step) {
  uly_buffer *b = &program->buffers[buffer];
  if (b->live_from == ULY_NONE) b->live_from = step;
  b->live_to = step;
}

static void touch_exchange(uly_program *program, uint32_t exchange, uint32_t step) {
  const uly_exchange *x = &program->exchanges[exchange];
  touch(program, x->receive, step);
  if (x->send != ULY_NONE) touch(program, x->send, step);
}

void uly_program_plan_buffers(uly_program *program) {
  plan p = {program, ULY_NEW_ARRAY(program->arena, uint32_t, program->n_steps + 1)};
  find_loops(&p);
  for (uint32_t b = 0; b < program->n_buffers; b++) program->buffers[b].live_from = program->buffers[b].live_to = ULY_NONE;
  for (uint32_t s = 0; s < program->n_steps; s++) {
    const uly_step *step = &program->steps[s];
    if (step->kind == ULY_STEP_POST || step->kind == ULY_STEP_SEND || step->kind == ULY_STEP_WAIT) touch_exchange(program, step->a, s);
    for (uint32_t i = 0; i < step->operands.count; i++) {
      const uly_operand *o = &program->operands[step->operands.first + i];
      if (o->kind == ULY_OPERAND_BUFFER) touch(program, o->index, s);
      if (o->kind == ULY_OPERAND_PEERS) touch_exchange(program, o->index, s);
      if (o->kind == ULY_OPERAND_SEGMENTS) touch(program, program->exchanges[o->index].receive, s);
    }
  }
  for (uint32_t b = 0; b < program->n_buffers; b++)
    if (program->buffers[b].live_from != ULY_NONE) close_over_loops(&p, &program->buffers[b].live_from, &program->buffers[b].live_to);
}
