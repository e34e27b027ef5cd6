// A model file made without the compiler: the scale program, its kernels and the note, laid out as abi.h says.
#include "model_blob.inc"
#include "tests/unit/scale_kernels.h"

static const _Alignas(8) unsigned char blob[] = BLOB;

static const uly_kernel kernels[] = {
#define KERNEL(name) scale_##name,
    SCALE_KERNELS(KERNEL)
#undef KERNEL
};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

static const uly_level levels[] = {{"x86-64", 0, 0}, {"x86-64-v3", ULY_CPU_AVX2 | ULY_CPU_FMA, 0}};

typedef struct __attribute__((packed, aligned(4))) note {
  uint32_t name_bytes, desc_bytes, type;
  char name[8];
  uly_note desc;
} note;
extern const note model_note;
__attribute__((section(ULY_NOTE_SECTION ",\"a\",@note#"), used, aligned(4)))
const note model_note = {sizeof "ulyc",
                         sizeof(uly_note),
                         ULY_NOTE_TYPE,
                         "ulyc",
                         {.struct_size = sizeof(uly_note),
                          .abi_major = ULY_ABI_MAJOR,
                          .abi_minor = MINOR,
                          .blob_bytes = BLOB_BYTES,
                          .n_levels = 2,
                          .n_kernels = N_KERNELS,
                          .levels = {{"x86-64", 0, 0}, {"x86-64-v3", ULY_CPU_AVX2 | ULY_CPU_FMA, 0}},
                          .program = PROGRAM_BYTES}};

static const uly_model model = {.struct_size = sizeof(uly_model),
                                .abi_major = ULY_ABI_MAJOR,
                                .abi_minor = MINOR,
                                .blob = (const uly_blob *)(const void *)blob,
                                .n_levels = 2,
                                .n_kernels = N_KERNELS,
                                .kernels = {kernels, kernels},
                                .levels = levels};

const uly_model *ulyc_model(void);
__attribute__((visibility("default"))) const uly_model *ulyc_model(void) { return &model; }
