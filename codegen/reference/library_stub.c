// What the reference calls of libm.so.6 (with LIBM) and libc.so.6. Models are linked against two libraries that hold nothing but these names, so that ulyc needs no library of the
// system where it runs; when a model is loaded, the dynamic linker takes the real ones, which every process has.
#define FUNCTION(name) __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n");
#ifdef LIBM
FUNCTION(cos)
FUNCTION(erf)
FUNCTION(exp)
FUNCTION(exp2)
FUNCTION(fmod)
FUNCTION(ldexp)
FUNCTION(log)
FUNCTION(log2)
FUNCTION(pow)
FUNCTION(sin)
FUNCTION(tanh)
#else
FUNCTION(bcmp)
FUNCTION(memcmp)
FUNCTION(memcpy)
FUNCTION(memset)
FUNCTION(strlen)
#endif
