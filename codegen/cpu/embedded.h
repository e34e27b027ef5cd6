// The kernel templates as clang compiled them when ulyc was built: bitcode, or machine code for SUPPORT rows of kernels.def; one a level.
#ifndef ULY_CODEGEN_CPU_EMBEDDED_H
#define ULY_CODEGEN_CPU_EMBEDDED_H

typedef struct uly_embedded {
  const char *name, *level;
  const unsigned char *begin, *end;
} uly_embedded;

extern const uly_embedded uly_embedded_files[]; // ends with a row without name

#endif
