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
#define LEVEL(id, name, lanes, features) {name, lanes, features},
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

static bool find_embedded(const char *name, const char *level, uly_code_bytes *out) {
  for (const uly_embedded *e = uly_embedded_files; e->name; e++) {
    if (strcmp(e->name, name) != 0 || strcmp(e->level, level) != 0) continue;
    *out = (uly_code_bytes){e->begin, (size_t)(e->end - e->begin)};
    return true;
  }
  return false;
}

bool uly_object_support(const uly_cpu_level *level, int i, uly_code_bytes *out_object) {
  return i < (int)(sizeof support_names / sizeof *support_names) && find_embedded(support_names[i], level->name, out_object);
}

// ---- constants -------------------------------------------------------------------------------------------------------------------------------

enum { MAX_CONSTANTS = 16 };

// A number that a template declares with ULY_CONST, or one for each part of a GEMM.
typedef struct constant {
  const char *name;
  int n;
  int64_t i[ULY_GEMM_MAX_PARTS];
  double f; // used where the template asks for a float
} constant;

static void add(constant *table, int *n, const char *name, int64_t i, double f) {
  ULY_ASSERT(*n < MAX_CONSTANTS);
  table[(*n)++] = (constant){.name = name, .n = 1, .i = {i}, .f = f};
}
static void add_int(constant *table, int *n, const char *name, int64_t i) { add(table, n, name, i, (double)i); }

static void add_gemm(constant *table, int *n, const uly_gemm_desc *d) {
  add_int(table, n, "uly_gemm_k", d->k);
  add_int(table, n, "uly_gemm_n_parts", d->n_parts);
  add_int(table, n, "uly_gemm_message", d->message);
  add_int(table, n, "uly_gemm_labels", d->labels);
  add_int(table, n, "uly_gemm_x_dtype", d->x);
  add_int(table, n, "uly_gemm_w_dtype", d->w);
  constant mode = {.name = "uly_gemm_part_mode", .n = ULY_GEMM_MAX_PARTS}, n_groups = {.name = "uly_gemm_part_n_groups", .n = ULY_GEMM_MAX_PARTS};
  constant group = {.name = "uly_gemm_part_group", .n = ULY_GEMM_MAX_PARTS}, rope = {.name = "uly_gemm_part_rope", .n = ULY_GEMM_MAX_PARTS};
  constant epilogue = {.name = "uly_gemm_part_has_epilogue", .n = ULY_GEMM_MAX_PARTS}, out = {.name = "uly_gemm_part_dtype", .n = ULY_GEMM_MAX_PARTS};
  for (int p = 0; p < ULY_GEMM_MAX_PARTS; p++) {
    const uly_gemm_part *part = &d->parts[p];
    bool used = p < d->n_parts;
    mode.i[p] = used ? (int64_t)part->mode : 0;
    n_groups.i[p] = used ? part->n_groups : 0;
    group.i[p] = used ? part->group : 0;
    rope.i[p] = used ? part->rope : 0;
    epilogue.i[p] = used && part->epilogue.present;
    out.i[p] = used ? (int64_t)part->out : ULY_F32;
  }
  const constant *all[] = {&mode, &n_groups, &group, &rope, &epilogue, &out};
  for (int i = 0; i < 6; i++) table[(*n)++] = *all[i];
}

static bool has_mask(const uly_attention_desc *d) {
  const uly_expr *m = &d->mask;
  return m->n_nodes > 0 && !(m->nodes[m->n_nodes - 1].op == ULY_SC_CONST && m->nodes[m->n_nodes - 1].value.i != 0);
}

static int constants_of(const uly_kernel_desc *desc, constant *table) {
  int n = 0;
  const uly_attention_desc *a = &desc->u.attention;
  switch (desc->kind) {
  case ULY_KERNEL_GEMM: add_gemm(table, &n, &desc->u.gemm); break;
  case ULY_KERNEL_PACK:
    add_int(table, &n, "uly_pack_k", desc->u.pack.k);
    add_int(table, &n, "uly_pack_mode", desc->u.pack.mode);
    add_int(table, &n, "uly_pack_group", desc->u.pack.group);
    add_int(table, &n, "uly_pack_rope", desc->u.pack.rope);
    add_int(table, &n, "uly_pack_dtype", desc->u.pack.dtype);
    break;
  case ULY_KERNEL_ATTENTION:
    add_int(table, &n, "uly_attention_dh", a->dh);
    add_int(table, &n, "uly_attention_dv", a->dv);
    add_int(table, &n, "uly_attention_group", a->group);
    add(table, &n, "uly_attention_scale", 0, a->scale);
    add_int(table, &n, "uly_attention_dtype", a->dtype);
    add_int(table, &n, "uly_attention_has_score", a->has_score);
    add_int(table, &n, "uly_attention_has_mask", has_mask(a));
    add_int(table, &n, "uly_attention_has_sink", a->has_sink);
    add_int(table, &n, "uly_attention_has_lse", a->has_lse);
    break;
  case ULY_KERNEL_ROWS:
    add_int(table, &n, "uly_rows_form", desc->u.rows.mode);
    add_int(table, &n, "uly_rows_cols", desc->u.rows.cols);
    add(table, &n, "uly_rows_eps", 0, desc->u.rows.eps);
    break;
  case ULY_KERNEL_GATHER: add_int(table, &n, "uly_gather_wide", desc->u.gather.ids == ULY_I64); break;
  case ULY_KERNEL_NLL:
    add_int(table, &n, "uly_nll_wide", desc->u.nll.labels == ULY_I64);
    add_int(table, &n, "uly_nll_ignore", desc->u.nll.ignore);
    add_int(table, &n, "uly_nll_stats", desc->u.nll.stats);
    break;
  case ULY_KERNEL_ROWSUM: add_int(table, &n, "uly_rowsum_ints", desc->u.rowsum.ints); break;
  case ULY_KERNEL_ROUND:
    add_int(table, &n, "uly_round_ints", desc->u.round.dtype == ULY_I64);
    add_int(table, &n, "uly_round_dtype", desc->u.round.dtype);
    break;
  case ULY_KERNEL_MOVE:
  case ULY_KERNEL_REFERENCE:
  case ULY_N_KERNEL_KINDS: break;
  }
  return n;
}

static LLVMValueRef constant_value(LLVMTypeRef type, const constant *c, int part) {
  LLVMTypeKind kind = LLVMGetTypeKind(type);
  return kind == LLVMIntegerTypeKind ? LLVMConstInt(type, (unsigned long long)c->i[part], true) : LLVMConstReal(type, c->f);
}

// Gives every number that the module declares its value. False: names the one that the description does not have.
static bool define_constants(LLVMModuleRef module, const uly_kernel_desc *desc, const char **out_missing) {
  constant table[MAX_CONSTANTS];
  int n = constants_of(desc, table);
  for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
    if (!LLVMIsDeclaration(g)) continue;
    size_t length;
    const char *name = LLVMGetValueName2(g, &length);
    const constant *c = NULL;
    for (int i = 0; i < n; i++)
      if (strcmp(table[i].name, name) == 0) c = &table[i];
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
