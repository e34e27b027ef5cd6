#include "codegen/cpu/object.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "codegen/cpu/embedded.h"
#include "codegen/cpu/hooks.h"
#include "codegen/cpu/target_machine.h"

// The templates come optimised; what is left is to fold the constants, which ends most branches, and then the hooks into them. The usual -O2 costs twice as much.
static const char *const usual_passes =
    "function(sccp,simplifycfg),always-inline,function(sroa<modify-cfg>,early-cse<memssa>,sccp,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),gvn,"
    "instcombine<no-verify-fixpoint>,dse,simplifycfg,adce),globaldce";

const uly_cpu_level uly_cpu_levels[] = {
#define LEVEL(id, name, lanes, features, base) {name, lanes, features, base},
#include "codegen/cpu/levels.def"
};
enum {
#define LEVEL(id, name, lanes, features, base) LEVEL_##id,
#include "codegen/cpu/levels.def"
};
const int uly_n_cpu_levels = (int)(sizeof uly_cpu_levels / sizeof *uly_cpu_levels);

static const char *const template_names[ULY_N_KERNEL_KINDS] = {
#define KERNEL(kind, name, bits) [ULY_KERNEL_##kind] = #name,
#include "codegen/kernels.def"
};
static const char *const support_names[] = {
#define SUPPORT(name) #name,
#include "codegen/kernels.def"
};

const uly_cpu_level *uly_object_base(const uly_cpu_level *level) {
  for (int l = 0; l < uly_n_cpu_levels; l++)
    if (strcmp(uly_cpu_levels[l].name, level->base) == 0) return &uly_cpu_levels[l];
  return level;
}

const uly_cpu_level *uly_object_level(const uly_kernel_desc *desc, const uly_cpu_level *level) {
#define GAIN(id, kind_, when)                                                                                                                                  \
  if (level == &uly_cpu_levels[LEVEL_##id] && desc->kind == ULY_KERNEL_##kind_ && (when)) return level;
#include "codegen/kernels.def"
  return uly_object_base(level);
}

static bool find_embedded(const char *name, const char *level, uly_code_bytes *out) {
  for (const uly_embedded *e = uly_embedded_files; e->name; e++) {
    if (strcmp(e->name, name) != 0 || strcmp(e->level, level) != 0) continue;
    *out = (uly_code_bytes){e->begin, (size_t)(e->end - e->begin)};
    return true;
  }
  return false;
}

int uly_object_support(const uly_cpu_level *level, uly_code_bytes *out_objects, int most) {
  int n = 0;
  for (size_t i = 0; n < most && i < sizeof support_names / sizeof *support_names; i++) n += find_embedded(support_names[i], level->name, &out_objects[n]);
  return n;
}

// ---- constants -------------------------------------------------------------------------------------------------------------------------------

static LLVMValueRef constant_value(LLVMTypeRef type, const uly_kernel_constant *c, int part) {
  LLVMTypeKind kind = LLVMGetTypeKind(type);
  ULY_ASSERT((kind != LLVMIntegerTypeKind) == c->is_float);
  return c->is_float ? LLVMConstReal(type, c->f) : LLVMConstInt(type, (unsigned long long)c->i[part], true);
}

// Gives every number that the module declares its value. False: names the one that the description does not have.
static bool define_constants(LLVMModuleRef module, const uly_kernel_desc *desc, const char **out_missing) {
  const uly_kernel_constants constants = uly_kernel_constants_of(desc);
  for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
    if (!LLVMIsDeclaration(g)) continue;
    size_t length;
    const char *name = LLVMGetValueName2(g, &length);
    const uly_kernel_constant *c = NULL;
    for (int i = 0; i < constants.n; i++)
      if (strcmp(constants.at[i].name, name) == 0) c = &constants.at[i];
    if (!c) return *out_missing = name, false;
    LLVMTypeRef type = LLVMGlobalGetValueType(g);
    if (LLVMGetTypeKind(type) == LLVMArrayTypeKind) {
      LLVMValueRef parts[ULY_GEMM_MAX_PARTS];
      if ((int)LLVMGetArrayLength2(type) != c->n) return *out_missing = name, false;
      for (int p = 0; p < c->n; p++) parts[p] = constant_value(LLVMGetElementType(type), c, p);
      LLVMSetInitializer(g, LLVMConstArray2(LLVMGetElementType(type), parts, (uint64_t)c->n));
    } else {
      LLVMSetInitializer(g, constant_value(type, c, 0));
    }
    LLVMSetLinkage(g, LLVMInternalLinkage);
    LLVMSetGlobalConstant(g, true);
  }
  return true;
}

// ---- compilation -----------------------------------------------------------------------------------------------------------------------------

typedef struct build {
  uly_arena *arena;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTargetMachineRef machine;
  char *error;
  size_t error_size;
} build;

static uly_status fail(build *b, const char *what, const char *why) {
  snprintf(b->error, b->error_size, "%s: %s", what, why ? why : "");
  return ULY_INTERNAL;
}

static uly_status parse_template(build *b, const uly_kernel_desc *desc, const uly_cpu_level *level) {
  uly_code_bytes bitcode;
  const char *name = template_names[desc->kind];
  if (!find_embedded(name, level->name, &bitcode)) return fail(b, "no template", name);
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRange(bitcode.ptr, bitcode.n, name, false);
  bool failed = LLVMParseBitcodeInContext2(b->context, buffer, &b->module);
  LLVMDisposeMemoryBuffer(buffer);
  return failed ? fail(b, "the template's bitcode is broken", name) : ULY_OK;
}

// The entry is the one function that a template defines for others.
static uly_status name_entry(build *b, const char *symbol) {
  LLVMValueRef entry = NULL;
  for (LLVMValueRef f = LLVMGetFirstFunction(b->module); f; f = LLVMGetNextFunction(f)) {
    if (LLVMIsDeclaration(f) || LLVMGetLinkage(f) != LLVMExternalLinkage) continue;
    if (entry) return fail(b, "the template defines two entries", symbol);
    entry = f;
  }
  if (!entry) return fail(b, "the template defines no entry", symbol);
  LLVMSetValueName2(entry, symbol, strlen(symbol));
  LLVMSetVisibility(entry, LLVMHiddenVisibility);
  LLVMSetSourceFileName(b->module, "ulyc", 4);
  return ULY_OK;
}

static uly_status run_passes(build *b, const char *passes) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(b->module, passes, b->machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (!error) return ULY_OK;
  char *message = LLVMGetErrorMessage(error);
  uly_status status = fail(b, "optimising a kernel", message);
  LLVMDisposeErrorMessage(message);
  return status;
}

static uly_status verify(build *b) {
  char *message = NULL;
  uly_status status = LLVMVerifyModule(b->module, LLVMReturnStatusAction, &message) ? fail(b, "a kernel's code is broken", message) : ULY_OK;
  LLVMDisposeMessage(message);
  return status;
}

static uly_status print(build *b, uly_code_bytes *out) {
  char *text = LLVMPrintModuleToString(b->module);
  out->n = strlen(text);
  out->ptr = uly_arena_copy(b->arena, text, out->n + 1);
  LLVMDisposeMessage(text);
  return ULY_OK;
}

// Takes the entry's body away, so that only hooks are left to compile.
static void stub_entry(build *b, const char *symbol) {
  LLVMValueRef entry = LLVMGetNamedFunction(b->module, symbol);
  LLVMSetValueName2(entry, "", 0);
  LLVMSetLinkage(entry, LLVMInternalLinkage);
  LLVMValueRef stub = LLVMAddFunction(b->module, symbol, LLVMGlobalGetValueType(entry));
  LLVMSetVisibility(stub, LLVMHiddenVisibility);
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(b->context);
  LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(b->context, stub, ""));
  LLVMBuildRetVoid(builder);
  LLVMDisposeBuilder(builder);
}

static void export_hooks(LLVMModuleRef module) {
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    size_t length;
    if (strncmp(LLVMGetValueName2(f, &length), "uly_hook_", 9) != 0 || LLVMIsDeclaration(f)) continue;
    LLVMSetLinkage(f, LLVMExternalLinkage);
    LLVMSetVisibility(f, LLVMDefaultVisibility);
  }
}

static uly_status compile(build *b, const uly_kernel_desc *desc, const char *symbol, const uly_cpu_level *level, const uly_object_options *options,
                          uly_code_bytes *out) {
  const char *missing;
  ULY_TRY(parse_template(b, desc, level));
  b->machine = uly_target_machine_create(level->name, b->error, b->error_size);
  if (!b->machine) return ULY_INTERNAL;
  ULY_TRY(name_entry(b, symbol));
  if (!define_constants(b->module, desc, &missing)) return fail(b, "a template asks for a constant that its kind does not have", missing);
  uly_llvm ir;
  uly_llvm_init(&ir, b->arena, b->module, level->lanes);
  uly_hooks_define(&ir, desc);
  uly_llvm_finish(&ir);
  if (options->export_hooks) stub_entry(b, symbol), export_hooks(b->module);
  if (options->verify) ULY_TRY(verify(b));
  ULY_TRY(run_passes(b, options->passes ? options->passes : usual_passes));
  if (options->verify) ULY_TRY(verify(b));
  return options->text ? print(b, out) : uly_target_machine_emit(b->machine, b->module, b->arena, out, b->error, b->error_size);
}

uly_status uly_object_compile(uly_arena *arena, const uly_kernel_desc *desc, const char *symbol, const uly_cpu_level *level, const uly_object_options *options,
                              uly_code_bytes *out_object, char *error, size_t error_size) {
  static const uly_object_options usual = {0};
  build b = {.arena = arena, .error = error, .error_size = error_size};
  b.context = LLVMContextCreate();
  uly_status status = compile(&b, desc, symbol, level, options ? options : &usual, out_object);
  if (b.module) LLVMDisposeModule(b.module);
  if (b.machine) LLVMDisposeTargetMachine(b.machine);
  LLVMContextDispose(b.context);
  return status;
}
