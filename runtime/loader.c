// Opens a model.so. The file is read as a whole and judged with libelf before it is mapped, since mapping a truncated one would kill the process, and since code that the
// processor cannot run, or that would run on load, its own or a library's that it brings along, must not get that far.
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/contents.h"
#include "runtime/base/env.h"
#include "runtime/base/features.h"
#include "runtime/base/full_io.h"
#include "runtime/loaded.h"

typedef struct file {
  const char *path;
  char *memory; // all of it
  uint64_t bytes;
  Elf *elf;
  uint64_t note_at; // where the note's descriptor begins
} file;

static uly_status truncated(const file *f, const char *what, uint64_t end, uly_error *error) {
  return uly_fail(error, ULY_INVALID_INPUT, "%s is truncated: its %s reach to byte %llu, the file has %llu", f->path, what, (unsigned long long)end,
                  (unsigned long long)f->bytes);
}

static bool ends_by(uint64_t offset, uint64_t bytes, uint64_t limit, uint64_t *out_end) {
  return !__builtin_add_overflow(offset, bytes, out_end) && *out_end <= limit;
}

static uly_status not_elf(const char *path, uly_error *error) { return uly_fail(error, ULY_INVALID_INPUT, "%s is not a model: not an ELF file", path); }

static uly_status check_header(const file *f, uly_error *error) {
  GElf_Ehdr h;
  uint64_t end;
  if (elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &h)) return not_elf(f->path, error);
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_machine != EM_X86_64 || h.e_type != ET_DYN)
    return uly_fail(error, ULY_INVALID_INPUT, "%s is not a model: not a shared library for x86-64", f->path);
  if (!ends_by(h.e_phoff, (uint64_t)h.e_phnum * h.e_phentsize, f->bytes, &end)) return truncated(f, "program headers", end, error);
  if (!ends_by(h.e_shoff, (uint64_t)h.e_shnum * h.e_shentsize, f->bytes, &end)) return truncated(f, "section headers", end, error);
  return ULY_OK;
}

// The text at |address| of the mapped file, as the dynamic linker finds it; NULL where it does not lie in the file.
static const char *text_at(const file *f, uint64_t address) {
  size_t n;
  if (elf_getphdrnum(f->elf, &n) != 0) return NULL;
  for (size_t i = 0; i < n; i++) {
    GElf_Phdr p;
    if (!gelf_getphdr(f->elf, (int)i, &p) || p.p_type != PT_LOAD || address < p.p_vaddr || address - p.p_vaddr >= p.p_filesz) continue;
    uint64_t at = address - p.p_vaddr + p.p_offset;
    return at < f->bytes && memchr(f->memory + at, 0, f->bytes - at) ? f->memory + at : NULL;
  }
  return NULL;
}

// Libraries that a model may need: those that this process has anyway. They are found by name in what is loaded, so that nothing is searched for.
static uly_status check_needed(const file *f, const char *name, uly_error *error) {
  if (name && (strcmp(name, "libm.so.6") == 0 || strcmp(name, "libc.so.6") == 0)) return ULY_OK;
  return uly_fail(error, ULY_INVALID_INPUT, "%s is not a model: it needs the library %.80s", f->path, name ? name : "?");
}

static uly_status check_dynamic(const file *f, const GElf_Phdr *p, uly_error *error) {
  Elf_Data *data = elf_getdata_rawchunk(f->elf, (int64_t)p->p_offset, p->p_filesz, ELF_T_DYN);
  GElf_Dyn d;
  uint64_t texts = 0;
  for (int i = 0; data && gelf_getdyn(data, i, &d) && d.d_tag != DT_NULL; i++) {
    bool runs = d.d_tag == DT_INIT || d.d_tag == DT_FINI;
    bool has_array = (d.d_tag == DT_INIT_ARRAYSZ || d.d_tag == DT_FINI_ARRAYSZ || d.d_tag == DT_PREINIT_ARRAYSZ) && d.d_un.d_val != 0;
    if (runs || has_array) return uly_fail(error, ULY_INVALID_INPUT, "%s is not a model: it would run code when it is loaded", f->path);
    if (d.d_tag == DT_RPATH || d.d_tag == DT_RUNPATH || d.d_tag == DT_FILTER || d.d_tag == DT_AUXILIARY)
      return uly_fail(error, ULY_INVALID_INPUT, "%s is not a model: it says where to look for libraries", f->path);
    if (d.d_tag == DT_STRTAB) texts = d.d_un.d_ptr;
  }
  for (int i = 0; data && gelf_getdyn(data, i, &d) && d.d_tag != DT_NULL; i++)
    if (d.d_tag == DT_NEEDED) ULY_TRY(check_needed(f, text_at(f, texts + d.d_un.d_val), error));
  return ULY_OK;
}

// Looks for our note in |data|, which stands at |offset| of the file.
static void find_note(file *f, uint64_t offset, Elf_Data *data, uly_note *out_note, size_t *out_bytes) {
  GElf_Nhdr n;
  size_t name, desc, at = 0;
  while (data && (at = gelf_getnote(data, at, &n, &name, &desc)) > 0) {
    if (n.n_type != ULY_NOTE_TYPE || n.n_namesz != sizeof "ulyc" || memcmp((const char *)data->d_buf + name, "ulyc", sizeof "ulyc") != 0) continue;
    *out_bytes = n.n_descsz;
    f->note_at = offset + desc;
    memcpy(out_note, (const char *)data->d_buf + desc, n.n_descsz < sizeof *out_note ? n.n_descsz : sizeof *out_note);
    return;
  }
}

static uly_status check_segments(file *f, uly_error *error, uly_note *out_note, size_t *out_bytes) {
  size_t n;
  uint64_t end;
  *out_bytes = 0;
  if (elf_getphdrnum(f->elf, &n) != 0) return uly_fail(error, ULY_INVALID_INPUT, "%s is not a model: %s", f->path, elf_errmsg(-1));
  for (size_t i = 0; i < n; i++) {
    GElf_Phdr p;
    if (!gelf_getphdr(f->elf, (int)i, &p)) return uly_fail(error, ULY_INVALID_INPUT, "%s is not a model: %s", f->path, elf_errmsg(-1));
    if (!ends_by(p.p_offset, p.p_filesz, f->bytes, &end)) return truncated(f, "segments", end, error);
    if (p.p_type == PT_DYNAMIC) ULY_TRY(check_dynamic(f, &p, error));
    if (p.p_type == PT_NOTE && !*out_bytes)
      find_note(f, p.p_offset, elf_getdata_rawchunk(f->elf, (int64_t)p.p_offset, p.p_filesz, ELF_T_NHDR), out_note, out_bytes);
  }
  for (Elf_Scn *s = NULL; (s = elf_nextscn(f->elf, s));) {
    GElf_Shdr h;
    if (!gelf_getshdr(s, &h) || h.sh_type == SHT_NOBITS) continue;
    if (!ends_by(h.sh_offset, h.sh_size, f->bytes, &end)) return truncated(f, "sections", end, error);
    if (h.sh_type == SHT_NOTE && !*out_bytes) find_note(f, h.sh_offset, elf_getdata(s, NULL), out_note, out_bytes);
  }
  return ULY_OK;
}

static uly_status check_note(const file *f, const uly_note *note, size_t bytes, uly_error *error) {
  if (!bytes) return uly_fail(error, ULY_INVALID_INPUT, "%s is not a model: it has no note of ulyc", f->path);
  if (bytes < offsetof(uly_note, blob_bytes)) return uly_fail(error, ULY_INVALID_INPUT, "%s has a note of %zu bytes, too few", f->path, bytes);
  if (note->abi_major != ULY_ABI_MAJOR)
    return uly_fail(error, ULY_INVALID_INPUT, "%s has ABI %u.%u, this runtime reads %u.%u: compile it again", f->path, note->abi_major, note->abi_minor,
                    ULY_ABI_MAJOR, ULY_ABI_MINOR);
  if (bytes < sizeof *note || note->struct_size < sizeof *note || note->n_levels < 1 || note->n_levels > ULY_MAX_LEVELS)
    return uly_fail(error, ULY_INVALID_INPUT, "%s has a note of %zu bytes and %u CPU levels: compile it again", f->path, bytes, note->n_levels);
  return ULY_OK;
}

// Whether the file is the one that was written.
static uly_status check_contents(const file *f, const uly_note *note, uly_error *error) {
  uint64_t hash;
  if (!note->contents) return ULY_OK;
  if (!uly_contents_hash(f->memory, f->bytes, f->note_at + offsetof(uly_note, contents), &hash) || hash != note->contents)
    return uly_fail(error, ULY_INVALID_INPUT, "%s is damaged: its contents are not those that ulyc wrote", f->path);
  return ULY_OK;
}

// Whether this processor can run the code.
static uly_status check_level(const file *f, const uly_note *note, uly_error *error) {
  uint32_t level;
  uly_status status =
      uly_level_choose(note->levels, note->n_levels, uly_level_features(note->levels, note->n_levels), uly_env_text(ULY_ENV_CPU_LEVEL), error, &level);
  if (status != ULY_OK) uly_error_prefix(error, "%s: ", f->path);
  return status;
}

static uly_status read_open_file(file *f, int fd, uly_error *error) {
  struct stat st;
  char start[SELFMAG];
  if (fstat(fd, &st) != 0) return uly_fail(error, ULY_IO, "cannot open %s: %s", f->path, strerror(errno));
  if (!S_ISREG(st.st_mode)) return uly_fail(error, ULY_INVALID_INPUT, "%s is not a regular file", f->path);
  f->bytes = (uint64_t)st.st_size;
  if (f->bytes < sizeof(Elf64_Ehdr)) return not_elf(f->path, error);
  if (!uly_full_read_at_start(fd, start, sizeof start)) return uly_fail(error, ULY_IO, "cannot read %s: %s", f->path, strerror(errno));
  if (memcmp(start, ELFMAG, sizeof start) != 0) return not_elf(f->path, error);
  f->memory = malloc(f->bytes);
  if (!f->memory) return uly_fail(error, ULY_EXHAUSTED, "no memory for the %llu bytes of %s", (unsigned long long)f->bytes, f->path);
  if (!uly_full_read_at_start(fd, f->memory, f->bytes)) return uly_fail(error, ULY_IO, "cannot read %s: %s", f->path, strerror(errno));
  return ULY_OK;
}

// Without waiting where it is a pipe.
static uly_status read_file(file *f, const char *path, uly_error *error) {
  *f = (file){.path = path};
  int fd = uly_full_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) return uly_fail(error, ULY_IO, "cannot open %s: %s", path, strerror(errno));
  uly_status status = read_open_file(f, fd, error);
  close(fd);
  return status;
}

static uly_status start_elf(file *f, uly_error *error) {
  if (elf_version(EV_CURRENT) == EV_NONE || !(f->elf = elf_memory(f->memory, f->bytes)))
    return uly_fail(error, ULY_EXHAUSTED, "cannot read %s: %s (no memory?)", f->path, elf_errmsg(-1));
  return ULY_OK;
}

static uly_status judge(file *f, uly_error *error, uly_note *out_note) {
  size_t note_bytes;
  ULY_TRY(start_elf(f, error));
  ULY_TRY(check_header(f, error));
  ULY_TRY(check_segments(f, error, out_note, &note_bytes));
  ULY_TRY(check_note(f, out_note, note_bytes, error));
  return check_contents(f, out_note, error);
}

// Maps the file and takes its descriptor. The dynamic linker gives a library of the same name that is loaded already, whatever the file holds by now.
static uly_status map(const char *path, const uly_note *note, uly_error *error, void **out_library, const uly_model **out_model) {
  char *full = realpath(path, NULL); // with a slash, so that no search path is used
  if (!full) return uly_fail(error, ULY_IO, "cannot open %s: %s", path, strerror(errno));
  *out_library = dlopen(full, RTLD_NOW | RTLD_LOCAL);
  free(full);
  if (!*out_library) return uly_fail(error, ULY_INVALID_INPUT, "cannot load %s: %s", path, dlerror());
  void *symbol = dlsym(*out_library, ULY_QUERY_SYMBOL);
  uly_query query;
  if (!symbol) return uly_fail(error, ULY_INVALID_INPUT, "%s is not a model: it does not export %s", path, ULY_QUERY_SYMBOL);
  memcpy(&query, &symbol, sizeof query);
  *out_model = query();
  if (!*out_model || !(*out_model)->blob) return uly_fail(error, ULY_INVALID_INPUT, "%s has no tables", path);
  const uly_blob *blob = (*out_model)->blob;
  if (blob->bytes != note->blob_bytes || memcmp(blob->program, note->program, sizeof note->program) != 0)
    return uly_fail(error, ULY_INVALID_INPUT,
                    "%s has changed since it was loaded into this process: give the new version another name, or destroy the old model first", path);
  return ULY_OK;
}

// The tables stand somewhere in the file, aligned; the note knows their size and hash.
static const uly_blob *find_blob(const file *f, const uly_note *note) {
  for (uint64_t at = 0; note->blob_bytes >= offsetof(uly_blob, tables) && note->blob_bytes <= f->bytes && at <= f->bytes - note->blob_bytes;
       at += _Alignof(uly_blob)) {
    const uly_blob *blob = (const void *)(f->memory + at);
    if (blob->magic == ULY_BLOB_MAGIC && blob->bytes == note->blob_bytes && memcmp(blob->program, note->program, sizeof note->program) == 0) return blob;
  }
  return NULL;
}

static uly_status inspect(file *f, uly_error *error, uly_note *out_note, uly_tables *out_tables) {
  *out_note = (uly_note){0};
  ULY_TRY(judge(f, error, out_note));
  const uly_blob *blob = find_blob(f, out_note);
  if (!blob) return uly_fail(error, ULY_INVALID_INPUT, "%s has no tables", f->path);
  return uly_tables_read(blob, blob->bytes, error, out_tables);
}

uly_status uly_model_inspect(const char *path, uly_error *error, uly_note *out_note, uly_tables *out_tables) {
  file f;
  uly_status status = read_file(&f, path, error);
  if (status == ULY_OK) status = inspect(&f, error, out_note, out_tables);
  elf_end(f.elf);
  free(f.memory);
  return status;
}

uly_status uly_model_inspect_bytes(const char *name, void *bytes, size_t n, uly_error *error, uly_note *out_note, uly_tables *out_tables) {
  file f = {.path = name, .memory = bytes, .bytes = n};
  uly_status status = inspect(&f, error, out_note, out_tables);
  elf_end(f.elf);
  return status;
}

uly_status uly_loaded_open(const char *path, uly_error *error, uly_loaded **out_loaded) {
  uly_note note = {0};
  file f;
  uly_status status = read_file(&f, path, error);
  if (status == ULY_OK) status = judge(&f, error, &note);
  if (status == ULY_OK) status = check_level(&f, &note, error);
  elf_end(f.elf);
  free(f.memory);
  if (status != ULY_OK) return status;
  void *library = NULL;
  const uly_model *model = NULL;
  status = map(path, &note, error, &library, &model);
  if (status == ULY_OK) {
    status = uly_loaded_create(model, error, out_loaded);
    if (status != ULY_OK) uly_error_prefix(error, "%s: ", path);
  }
  if (status == ULY_OK)
    (*out_loaded)->library = library;
  else if (library)
    dlclose(library);
  return status;
}
