// The object that makes a shared library a model: tables in .rodata, the note that loaders read before they map the file, the kernels' addresses, and the
// query function, which is all that the library exports.
#include <elf.h>
#include <llvm-c/Core.h>

#include "codegen/codegen.h"
#include "codegen/cpu/target_machine.h"
#include "runtime/base/contents.h"

enum { NOTE_HEAD_BYTES = 20 }; // sizes, type and name of a note, before its descriptor

typedef struct artifact {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMTypeRef i8, i16, i32, ptr;
} artifact;

static LLVMValueRef u32(const artifact *a, uint32_t v) { return LLVMConstInt(a->i32, v, false); }

static LLVMValueRef text_constant(const artifact *a, const void *bytes, size_t n) { return LLVMConstStringInContext2(a->context, bytes, n, true); }

static LLVMValueRef add_constant(const artifact *a, const char *name, LLVMValueRef value, unsigned align) {
  LLVMValueRef g = LLVMAddGlobal(a->module, LLVMTypeOf(value), name);
  LLVMSetInitializer(g, value);
  LLVMSetGlobalConstant(g, true);
  LLVMSetLinkage(g, LLVMInternalLinkage);
  LLVMSetAlignment(g, align);
  return g;
}

static uly_level level_row(const uly_cpu_level *level) {
  uly_level row = {.features = level->features};
  snprintf(row.name, sizeof row.name, "%s", level->name);
  return row;
}

// An ELF note: sizes and type, "ulyc", the descriptor.
static void add_note(const artifact *a, const uly_blob *blob, const uly_code *code) {
  struct {
    uint32_t name_bytes, descriptor_bytes, type;
    char name[8];
    uly_note note;
  } note = {.name_bytes = 5, .descriptor_bytes = sizeof(uly_note), .type = ULY_NOTE_TYPE, .name = "ulyc"};
  _Static_assert(offsetof(uly_note, levels) % 4 == 0, "a note's descriptor is aligned to 4");
  // The descriptor follows the name at a multiple of 4, not of 8.
  unsigned char bytes[NOTE_HEAD_BYTES + sizeof(uly_note)];
  note.note = (uly_note){.struct_size = sizeof(uly_note),
                         .abi_major = ULY_ABI_MAJOR,
                         .abi_minor = ULY_ABI_MINOR,
                         .blob_bytes = blob->bytes,
                         .n_levels = code->n_levels,
                         .n_kernels = code->n_kernels};
  for (uint32_t l = 0; l < code->n_levels; l++) note.note.levels[l] = level_row(code->levels[l]);
  memcpy(note.note.program, blob->program, sizeof blob->program);
  memcpy(bytes, &note, NOTE_HEAD_BYTES);
  memcpy(bytes + NOTE_HEAD_BYTES, &note.note, sizeof note.note);
  LLVMSetSection(add_constant(a, "note", text_constant(a, bytes, sizeof bytes), 4), ULY_NOTE_SECTION);
}

static LLVMValueRef add_kernels(const artifact *a, const uly_code *code, uint32_t level, uly_arena *arena) {
  LLVMValueRef *kernels = ULY_NEW_ARRAY(arena, LLVMValueRef, code->n_kernels + 1);
  LLVMTypeRef params[] = {a->ptr}, type = LLVMFunctionType(LLVMVoidTypeInContext(a->context), params, 1, false);
  for (uint32_t k = 0; k < code->n_kernels; k++) {
    kernels[k] = LLVMGetNamedFunction(a->module, code->symbols[k][level]); // levels may share one
    if (!kernels[k]) kernels[k] = LLVMAddFunction(a->module, code->symbols[k][level], type);
    LLVMSetVisibility(kernels[k], LLVMHiddenVisibility);
  }
  return add_constant(a, "kernels", LLVMConstArray2(a->ptr, kernels, code->n_kernels), 8);
}

// uly_model, field by field.
static LLVMValueRef add_model(const artifact *a, const uly_code *code, LLVMValueRef blob, uly_arena *arena) {
  uly_level levels[ULY_MAX_LEVELS];
  LLVMValueRef kernels[ULY_MAX_LEVELS];
  for (uint32_t l = 0; l < ULY_MAX_LEVELS; l++) {
    kernels[l] = l < code->n_levels ? add_kernels(a, code, l, arena) : LLVMConstNull(a->ptr);
    if (l < code->n_levels) levels[l] = level_row(code->levels[l]);
  }
  LLVMValueRef level_rows = add_constant(a, "levels", text_constant(a, levels, code->n_levels * sizeof *levels), 8);
  LLVMValueRef fields[] = {u32(a, sizeof(uly_model)),
                           LLVMConstInt(a->i16, ULY_ABI_MAJOR, false),
                           LLVMConstInt(a->i16, ULY_ABI_MINOR, false),
                           blob,
                           u32(a, code->n_levels),
                           u32(a, code->n_kernels),
                           LLVMConstArray2(a->ptr, kernels, ULY_MAX_LEVELS),
                           level_rows};
  return add_constant(a, "model", LLVMConstStructInContext(a->context, fields, sizeof fields / sizeof *fields, false), 8);
}

static void add_query(const artifact *a, LLVMValueRef model) {
  LLVMValueRef f = LLVMAddFunction(a->module, ULY_QUERY_SYMBOL, LLVMFunctionType(a->ptr, NULL, 0, false));
  LLVMBuilderRef b = LLVMCreateBuilderInContext(a->context);
  LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(a->context, f, ""));
  LLVMBuildRet(b, model);
  LLVMDisposeBuilder(b);
}

static uly_status emit(const artifact *a, uly_arena *arena, uly_code_bytes *out_object, uly_text *error) {
  char message[256] = "";
  LLVMTargetMachineRef machine = uly_target_machine_create("x86-64", message, sizeof message);
  uly_status status = machine ? uly_target_machine_emit(machine, a->module, arena, out_object, message, sizeof message) : ULY_INTERNAL;
  if (machine) LLVMDisposeTargetMachine(machine);
  if (status != ULY_OK) uly_text_add(error, "%s", message);
  return status;
}

uly_status uly_artifact_object(uly_arena *arena, const uly_blob *blob, const uly_code *code, uly_code_bytes *out_object, uly_text *error) {
  artifact a = {.context = LLVMContextCreate()};
  a.module = LLVMModuleCreateWithNameInContext("ulyc", a.context);
  a.i8 = LLVMInt8TypeInContext(a.context), a.i16 = LLVMInt16TypeInContext(a.context), a.i32 = LLVMInt32TypeInContext(a.context);
  a.ptr = LLVMPointerTypeInContext(a.context, 0);
  LLVMValueRef bytes = add_constant(&a, "blob", text_constant(&a, blob, blob->bytes), 64);
  add_note(&a, blob, code);
  add_query(&a, add_model(&a, code, bytes, arena));
  uly_status status = emit(&a, arena, out_object, error);
  LLVMDisposeModule(a.module);
  LLVMContextDispose(a.context);
  return status;
}

uly_status uly_artifact_seal(uly_code_bytes library, uly_text *error) {
  unsigned char *bytes = (unsigned char *)(uintptr_t)library.ptr;
  const Elf64_Ehdr *header = (const void *)bytes;
  for (int i = 0; i < header->e_phnum; i++) {
    const Elf64_Phdr *p = (const Elf64_Phdr *)(const void *)(bytes + header->e_phoff) + i;
    if (p->p_type != PT_NOTE || p->p_filesz != NOTE_HEAD_BYTES + sizeof(uly_note)) continue;
    size_t at = p->p_offset + NOTE_HEAD_BYTES + offsetof(uly_note, contents);
    uint64_t hash;
    if (!uly_contents_hash(bytes, library.n, at, &hash)) break;
    memcpy(bytes + at, &hash, sizeof hash);
    return ULY_OK;
  }
  uly_text_add(error, "the linker's output has no note");
  return ULY_INTERNAL;
}
