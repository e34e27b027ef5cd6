// The copy kernel, compiled by clang for each CPU level.
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define uly_kernel_move JOIN(uly_exchange_move, ULY_LEVEL)
#include "codegen/cpu/templates/move.c"
