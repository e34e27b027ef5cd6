// A hash of what a model file maps: the compiler writes it into the file's note, the loader compares it, so that a damaged file is refused and no changed code runs. It finds
// damage, not intent.
#ifndef ULY_RUNTIME_BASE_CONTENTS_H
#define ULY_RUNTIME_BASE_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Of the bytes of the loaded segments of the ELF file |file| of |n| bytes, but for the ELF header, which `strip` changes, and for the 8 bytes at |hole|, where the hash itself
// stands. Never 0. False where the segments do not lie in the file.
bool uly_contents_hash(const void *file, size_t n, size_t hole, uint64_t *out_hash);

#endif
