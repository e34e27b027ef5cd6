#include "codegen/cpu/target_machine.h"

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <pthread.h>

static const char *const triple = "x86_64-unknown-linux-gnu";

// Registering a target twice at once breaks LLVM's list of them.
static pthread_once_t registered = PTHREAD_ONCE_INIT;
static void register_target(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

LLVMTargetMachineRef uly_target_machine_create(const char *cpu, char *error, size_t error_size) {
  char *message = NULL;
  LLVMTargetRef target;
  pthread_once(&registered, register_target);
  if (LLVMGetTargetFromTriple(triple, &target, &message)) {
    snprintf(error, error_size, "LLVM has no x86-64 target: %s", message);
    LLVMDisposeMessage(message);
    return NULL;
  }
  LLVMTargetMachineRef machine = LLVMCreateTargetMachine(target, triple, cpu, "", LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
  if (!machine) snprintf(error, error_size, "LLVM cannot target %s", cpu);
  return machine;
}

uly_status uly_target_machine_emit(LLVMTargetMachineRef machine, LLVMModuleRef module, uly_arena *arena, uly_code_bytes *out_object, char *error,
                                   size_t error_size) {
  char *message = NULL;
  LLVMMemoryBufferRef buffer;
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
  LLVMSetTarget(module, triple);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &buffer)) {
    snprintf(error, error_size, "LLVM cannot emit an object: %s", message);
    LLVMDisposeMessage(message);
    return ULY_INTERNAL;
  }
  out_object->n = LLVMGetBufferSize(buffer);
  out_object->ptr = uly_arena_copy(arena, LLVMGetBufferStart(buffer), out_object->n);
  LLVMDisposeMemoryBuffer(buffer);
  return ULY_OK;
}
