// `ulyc opt` alone, for the golden tests.
#include "passes/opt.h"

int main(int argc, char **argv) { return uly_opt_main(argc, argv); }
