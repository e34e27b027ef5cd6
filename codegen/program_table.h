// A program's tables as the bytes that the runtime reads: uly_blob of runtime/abi.h.
#ifndef ULY_CODEGEN_PROGRAM_TABLE_H
#define ULY_CODEGEN_PROGRAM_TABLE_H

#include "codegen/cpu/object.h"
#include "passes/program.h"

// In the program's arena; equal programs give equal bytes. |objects|: the kernels' code, [kernel][level], a digest of which goes into the table of kernels, so that the
// program's hash covers it.
uly_blob *uly_program_blob(const uly_program *program, const uly_code_bytes *objects, uint32_t n_levels);

// Says which spec the program is of: its file's name without folders; its text, or an empty one; |printed|, the checked program, of which a hash is kept.
void uly_program_set_source(uly_program *program, uly_str name, uly_str text, uly_str printed);

#endif
