// A library that runs code when it is loaded: must be refused before that.
#include <stdlib.h>

__attribute__((constructor)) static void strike(void) { abort(); }
