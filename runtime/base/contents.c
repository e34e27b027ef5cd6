#include "runtime/base/contents.h"

#include <elf.h>
#include <string.h>

enum { HOLE_BYTES = sizeof(uint64_t) };

// A step maps different states to different states and different words to different states, so one changed word always changes the hash.
static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

static uint64_t add_range(uint64_t hash, const unsigned char *bytes, size_t begin, size_t end) {
  for (uint64_t word = 0; begin < end; begin += sizeof word, word = 0) {
    memcpy(&word, bytes + begin, end - begin < sizeof word ? end - begin : sizeof word);
    hash = mix(hash, word);
  }
  return mix(hash, end);
}

bool uly_contents_hash(const void *file, size_t n, size_t hole, uint64_t *out_hash) {
  const unsigned char *bytes = file;
  Elf64_Ehdr header;
  if (n < sizeof header) return false;
  memcpy(&header, bytes, sizeof header);
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phoff > n || (n - header.e_phoff) / sizeof(Elf64_Phdr) < header.e_phnum) return false;
  uint64_t hash = header.e_phnum;
  for (size_t i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr p;
    memcpy(&p, bytes + header.e_phoff + i * sizeof p, sizeof p);
    if (p.p_type != PT_LOAD) continue;
    if (p.p_offset > n || n - p.p_offset < p.p_filesz) return false;
    size_t begin = p.p_offset < sizeof header ? sizeof header : p.p_offset, end = p.p_offset + p.p_filesz;
    bool has_hole = hole >= begin && end >= HOLE_BYTES && hole <= end - HOLE_BYTES;
    if (has_hole) hash = add_range(hash, bytes, begin, hole);
    hash = add_range(hash, bytes, has_hole ? hole + HOLE_BYTES : begin, end);
  }
  *out_hash = hash ? hash : 1;
  return true;
}
