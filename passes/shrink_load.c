// Load's buffers have a slot an iteration of the loops that their parameters' names follow. Where only load's own steps use one, as the result of a map that is packed next, a single
// slot is enough: each iteration of load's loop writes it anew.
#include "passes/program.h"

void uly_program_shrink_load(uly_program *p) {
  bool *kept = ULY_NEW_ARRAY(p->arena, bool, p->n_buffers + 1);
  for (uint32_t i = 0; i < p->n_entries; i++)
    for (int phase = ULY_PHASE_LOAD + 1; phase < ULY_N_PHASES; phase++)
      for (uint32_t s = 0; s < p->entries[i].steps[phase].count; s++) {
        uly_span operands = p->steps[p->entries[i].steps[phase].first + s].operands;
        for (uint32_t k = operands.first; k < operands.first + operands.count; k++)
          if (p->operands[k].kind == ULY_OPERAND_BUFFER) kept[p->operands[k].index] = true;
      }
  for (uint32_t b = 0; b < p->n_buffers; b++)
    if (p->buffers[b].phase == ULY_PHASE_LOAD && !kept[b] && !(p->buffers[b].flags & ULY_BUFFER_CONSTANT)) p->buffers[b].slots = 1;
}
