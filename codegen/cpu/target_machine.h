// LLVM's x86-64 target: shared by kernels (object.c) and tables (artifact.c). Thread-safe.
#ifndef ULY_CODEGEN_CPU_TARGET_MACHINE_H
#define ULY_CODEGEN_CPU_TARGET_MACHINE_H

#include <llvm-c/TargetMachine.h>

#include "codegen/cpu/object.h"

// Position-independent code for |cpu| ("x86-64-v3"). NULL, and |error| says why.
LLVMTargetMachineRef uly_target_machine_create(const char *cpu, char *error, size_t error_size);
// An object file in |arena|.
ULY_MUST_USE uly_status uly_target_machine_emit(LLVMTargetMachineRef machine, LLVMModuleRef module, uly_arena *arena, uly_code_bytes *out_object, char *error,
                                                size_t error_size);

#endif
