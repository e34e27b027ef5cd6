// `ulyc inspect`: what a model.so holds, from its tables, which are read as bytes: nothing of the file is executed, and it need not fit this processor.
#include "driver/commands.h"
#include "driver/program_text.h"
#include "runtime/base/escape.h"
#include "runtime/base/features.h"
#include "runtime/kernel_abi.h"
#include "runtime/loaded.h"

static void add_entry(uly_text *out, const uly_tables *t, const uly_entry *entry) {
  uly_text_add(out, "entry ");
  uly_text_add_escaped(out, uly_tables_name(t, entry->name));
  uly_text_add(out, "\n");
  for (uint32_t i = 0; i < entry->tensors.count; i++) {
    const uly_tensor *tensor = &t->tensors[entry->tensors.first + i];
    uly_text_add(out, "  %s ", tensor->role == ULY_INPUT ? "input " : "output");
    uly_program_print_tensor(out, t, tensor, tensor->names.first);
    if (tensor->id_limit) uly_text_add(out, ", each below %lld", (long long)tensor->id_limit);
    uly_text_add(out, "\n");
  }
  uint32_t n_params = 0;
  for (uint32_t i = 0; i < entry->params.count; i++) n_params += t->tensors[t->indices[entry->params.first + i]].names.count;
  uly_text_add(out, "  %u parameters, %u steps to load, %u to run, %u values to see (--values)\n", n_params, entry->steps[ULY_PHASE_LOAD].count,
               entry->steps[ULY_PHASE_FORWARD].count, entry->probes.count);
  for (uint32_t i = 0; i < entry->params.count; i++) {
    const uly_tensor *tensor = &t->tensors[t->indices[entry->params.first + i]];
    for (uint32_t n = 0; n < tensor->names.count; n++) {
      uly_text_add(out, "    ");
      uly_program_print_tensor(out, t, tensor, tensor->names.first + n);
      uly_text_add(out, "\n");
    }
  }
}

static void add_kernel(uly_text *out, const uly_tables *t, uint32_t k) {
  static const char *const docs[] = {
#define KIND(name, doc) doc,
      ULY_KERNEL_KINDS(KIND)
#undef KIND
  };
  const uly_kernel_row *row = &t->kernels[k];
  uint32_t n_calls = 0;
  for (uint32_t s = 0; s < t->n_steps; s++) n_calls += t->steps[s].kind == ULY_STEP_KERNEL && t->steps[s].a == k;
  uly_text_add_escaped(out, uly_tables_text(t, row->name));
  uly_text_add(out, ", line %u, %u calls, code ", row->spec_line, n_calls);
  for (size_t i = 0; i < 8; i++) uly_text_add(out, "%02x", row->code[i]);
  uly_text_add(out, ": %s\n", row->kind < ULY_N_KERNEL_KINDS ? docs[row->kind] : "?");
}

static void add_names(uly_text *out, const char *what, const uly_tables *t, uint32_t n, bool axes) {
  if (!n) return;
  uly_text_add(out, ", %s", what);
  for (uint32_t i = 0; i < n; i++) {
    uly_text_add(out, " ");
    uly_text_add_escaped(out, uly_tables_text(t, axes ? t->axes[i].name : t->symbols[i].name));
  }
}

static void add_level(uly_text *out, const uly_level *level, bool used) {
  uly_text_add(out, " ");
  uly_text_add_escaped(out, (uly_str){level->name, strnlen(level->name, sizeof level->name)});
  if (used) uly_text_add(out, " (used here)");
}

static void add_head(uly_text *out, const uly_tables *t, const uly_note *note) {
  uly_error error;
  uint32_t used = ULY_NONE;
  if (uly_level_choose(note->levels, note->n_levels, uly_level_features(note->levels, note->n_levels), NULL, &error, &used) != ULY_OK) used = ULY_NONE;
  uly_text_add(out, "program ");
  for (size_t i = 0; i < 8; i++) uly_text_add(out, "%02x", note->program[i]);
  uly_text_add(out, ", ABI %u.%u", note->abi_major, note->abi_minor);
  add_names(out, "sizes", t, t->n_symbols, false);
  add_names(out, "grid", t, t->n_axes, true);
  uly_text_add(out, "\n%u kernels for", note->n_kernels);
  for (uint32_t l = 0; l < note->n_levels; l++) add_level(out, &note->levels[l], l == used);
  int64_t kept = 0;
  for (uint32_t b = 0; b < t->n_buffers; b++)
    if (t->buffers[b].phase == ULY_PHASE_LOAD && !(t->buffers[b].flags & ULY_BUFFER_CONSTANT) && t->nodes[t->buffers[b].bytes].kind == ULY_NODE_CONST)
      kept += t->nodes[t->buffers[b].bytes].value * t->buffers[b].slots;
  uly_text_add(out, ", tables %llu bytes, packed weights %lld bytes\n", (unsigned long long)note->blob_bytes, (long long)kept);
}

uly_status uly_command_inspect(uly_driver *d) {
  uly_error error = {0};
  uly_note note;
  uly_tables tables;
  uly_status status = uly_model_inspect(d->args.operands[0], &error, &note, &tables);
  if (status != ULY_OK) {
    uly_text_add(&d->error, "%s", error.text);
    return status;
  }
  bool program = d->args.given[ULY_OPTION_PROGRAM], kernels = d->args.given[ULY_OPTION_KERNELS], values = d->args.given[ULY_OPTION_VALUES];
  add_head(&d->out, &tables, &note);
  for (uint32_t i = 0; i < tables.n_entries && !program && !kernels && !values; i++) add_entry(&d->out, &tables, &tables.entries[i]);
  if (program) uly_program_print(&d->out, &tables);
  if (values) uly_program_print_values(&d->out, &tables);
  for (uint32_t k = 0; k < tables.n_kernels && kernels; k++) add_kernel(&d->out, &tables, k);
  uly_tables_free(&tables);
  return ULY_OK;
}
