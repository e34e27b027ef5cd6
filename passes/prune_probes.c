// A value can be looked at after a step while its buffer lives: behind that another value has its memory. plan_buffers has said from when to when that is.
#include "passes/program.h"

static bool lives(const uly_program *p, const uly_probe *probe) {
  const uly_operand *o = &p->operands[probe->operand];
  uint32_t buffer = o->kind == ULY_OPERAND_BUFFER ? o->index : o->kind == ULY_OPERAND_SEGMENTS ? p->exchanges[o->index].receive : ULY_NONE;
  if (buffer == ULY_NONE || p->buffers[buffer].phase == ULY_PHASE_LOAD) return true;
  return probe->step >= p->buffers[buffer].live_from && probe->step <= p->buffers[buffer].live_to;
}

void uly_program_prune_probes(uly_program *p) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_entries; i++) {
    uly_span old = p->entries[i].probes;
    p->entries[i].probes.first = n;
    for (uint32_t k = old.first; k < old.first + old.count; k++)
      if (lives(p, &p->probes[k])) p->probes[n++] = p->probes[k];
    p->entries[i].probes.count = n - p->entries[i].probes.first;
  }
  p->n_probes = n;
}
