# No vector of the register tiles may live in memory: a spilled accumulator costs a tile most of its speed, and LLVM's scheduler decides.
# Run by ctest with CLANG, SOURCE, INCLUDE and LEVEL.
execute_process(COMMAND ${CLANG} -std=gnu17 -O3 -fPIC -ffreestanding -ffp-contract=off -fno-math-errno -fomit-frame-pointer -mprefer-vector-width=512 -march=${LEVEL} -I${INCLUDE} -S ${SOURCE} -o -
  OUTPUT_VARIABLE assembly RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "cannot compile ${SOURCE}")
endif()
string(REGEX MATCHALL "[^\n]*vfmadd[^\n]*" fma "${assembly}")
string(REGEX MATCHALL "[^\n]*mm[0-9]+[^\n]*\\(%rsp[^\n]*|[^\n]*\\(%rsp[^\n]*mm[0-9]+[^\n]*" spills "${assembly}")
list(LENGTH fma n_fma)
list(LENGTH spills n_spills)
message("${LEVEL}: ${n_fma} vector FMAs, ${n_spills} stack accesses")
if(n_fma LESS 100 OR n_spills GREATER 0)
  message(FATAL_ERROR "register tiles spill: ${spills}")
endif()
