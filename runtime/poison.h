// ULYRT_POISON: memory holds NaN until the program writes it, so that tests find kernels that read what nobody wrote, and buffers that share addresses too early.
#ifndef ULY_RUNTIME_POISON_H
#define ULY_RUNTIME_POISON_H

#include "runtime/machine.h"

ULY_MUST_USE uly_status uly_poison_wanted(uly_error *error, bool *out_wanted);
// Bytes that are NaN in every float type, −1 in ints.
void uly_poison(void *memory, int64_t bytes);
// Before |step| runs: the buffers that live from there on, and every thread's scratch.
void uly_poison_step(const uly_machine *machine, uint32_t step);
// Before a run: the outputs of |entry|, as large as this rank's parts.
void uly_poison_outputs(const uly_machine *machine, const uly_entry *entry);

#endif
