// `ulyc inspect`: what a model.so holds, from its tables: entries; with --program steps, buffers and exchanges; with --kernels kernels and CPU levels.
#include <inttypes.h>

#include "driver/commands.h"
#include "runtime/kernel_abi.h"
#include "runtime/loaded.h"

enum { MAX_NODE_TEXT = 160 };

// ---- sizes: r is the rank, P the number of ranks of the axis

static void add_node(uly_text *out, const uly_tables *t, uint32_t id);

static void add_call(uly_text *out, const uly_tables *t, const char *name, uint32_t a, uint32_t b) {
  uly_text_add(out, "%s(", name);
  add_node(out, t, a);
  if (b != ULY_NONE) {
    uly_text_add(out, ", ");
    add_node(out, t, b);
  }
  uly_text_add(out, ")");
}

static void add_infix(uly_text *out, const uly_tables *t, const char *sign, const uly_node *n) {
  bool group = n->kind != ULY_NODE_MUL;
  if (group) uly_text_add(out, "(");
  add_node(out, t, n->a);
  uly_text_add(out, "%s", sign);
  add_node(out, t, n->b);
  if (group) uly_text_add(out, ")");
}

static uly_str axis_name(const uly_tables *t, int64_t axis) { return uly_tables_text(t, t->axes[axis].name); }

static void add_node(uly_text *out, const uly_tables *t, uint32_t id) {
  if (out->len > MAX_NODE_TEXT) {
    if (out->ptr[out->len - 1] != '.') uly_text_add(out, "...");
    return;
  }
  const uly_node *n = &t->nodes[id];
  switch ((uly_node_kind)n->kind) {
  case ULY_NODE_CONST: uly_text_add(out, "%" PRId64, n->value); return;
  case ULY_NODE_SYM: uly_text_add_str(out, uly_tables_text(t, t->symbols[n->value].name)); return;
  case ULY_NODE_AXIS_SIZE: uly_text_add(out, "P.%.*s", ULY_STR_ARG(axis_name(t, n->value))); return;
  case ULY_NODE_AXIS_RANK: uly_text_add(out, "r.%.*s", ULY_STR_ARG(axis_name(t, n->value))); return;
  case ULY_NODE_ADD: add_infix(out, t, " + ", n); return;
  case ULY_NODE_SUB: add_infix(out, t, " - ", n); return;
  case ULY_NODE_MUL: add_infix(out, t, " * ", n); return;
  case ULY_NODE_FDIV: add_infix(out, t, " // ", n); return;
  case ULY_NODE_MOD: add_infix(out, t, " % ", n); return;
  case ULY_NODE_CDIV: add_call(out, t, "cdiv", n->a, n->b); return;
  case ULY_NODE_MIN: add_call(out, t, "min", n->a, n->b); return;
  case ULY_NODE_MAX: add_call(out, t, "max", n->a, n->b); return;
  case ULY_NODE_SHARE: add_call(out, t, "share", n->a, ULY_NONE); return;
  case ULY_NODE_START: add_call(out, t, "start", n->a, ULY_NONE); return;
  case ULY_NODE_PEER_SUM: add_call(out, t, "sum over ranks", n->a, ULY_NONE); return;
  case ULY_NODE_PEER_BEFORE: add_call(out, t, "sum over ranks before", n->a, ULY_NONE); return;
  case ULY_NODE_PEER_MAX: add_call(out, t, "max over ranks", n->a, ULY_NONE); return;
  case ULY_NODE_SELECT:
    add_call(out, t, "select", n->a, n->b);
    out->len--;
    uly_text_add(out, ", ");
    add_node(out, t, n->c);
    uly_text_add(out, ")");
    return;
  default: uly_text_add(out, "?"); return;
  }
}

static uly_str node_text(uly_arena *arena, const uly_tables *t, uint32_t id) {
  uly_text out = {.arena = arena};
  if (id == ULY_NONE) return ULY_STR("-");
  add_node(&out, t, id);
  return uly_text_str(&out);
}

// ---- entries

static void add_tensor(uly_driver *d, const uly_tables *t, const uly_tensor *tensor, uly_str name) {
  uly_text_add(&d->out, "%.*s %s[", ULY_STR_ARG(name), uly_dtype_name((uly_dtype)tensor->dtype));
  for (uint32_t i = 0; i < tensor->rank; i++) uly_text_add(&d->out, "%s%.*s", i ? ", " : "", ULY_STR_ARG(node_text(d->arena, t, tensor->dims[i])));
  uly_text_add(&d->out, "]");
  if (tensor->id_limit) uly_text_add(&d->out, ", each below %" PRId64, tensor->id_limit);
  uly_text_add(&d->out, "\n");
}

static void add_entry(uly_driver *d, const uly_tables *t, const uly_entry *entry) {
  uint32_t n_params = 0;
  uly_text_add(&d->out, "entry %.*s\n", ULY_STR_ARG(uly_tables_name(t, entry->name)));
  for (uint32_t i = 0; i < entry->tensors.count; i++) {
    const uly_tensor *tensor = &t->tensors[entry->tensors.first + i];
    uly_text_add(&d->out, "  %s ", tensor->role == ULY_INPUT ? "input " : "output");
    add_tensor(d, t, tensor, uly_tables_name(t, tensor->names.first));
  }
  for (uint32_t i = 0; i < entry->params.count; i++) n_params += t->tensors[t->indices[entry->params.first + i]].names.count;
  uly_text_add(&d->out, "  %u parameters, %u steps to load, %u to run\n", n_params, entry->steps[ULY_PHASE_LOAD].count, entry->steps[ULY_PHASE_FORWARD].count);
  for (uint32_t i = 0; i < entry->params.count; i++) {
    const uly_tensor *tensor = &t->tensors[t->indices[entry->params.first + i]];
    for (uint32_t n = 0; n < tensor->names.count; n++) {
      uly_text_add(&d->out, "    ");
      add_tensor(d, t, tensor, uly_tables_name(t, tensor->names.first + n));
    }
  }
}

// ---- --program

static void add_operands(uly_driver *d, const uly_tables *t, const uly_step *step) {
  static const char *const kinds[] = {"buffer", "tensor", "peers", "segments", "absent"};
  for (uint32_t i = 0; i < step->operands.count; i++) {
    const uly_operand *o = &t->operands[step->operands.first + i];
    const char *kind = o->kind < sizeof kinds / sizeof *kinds ? kinds[o->kind] : "?";
    uly_text_add(&d->out, "%s%s%s", i ? ", " : " ", o->access & ULY_WRITE ? "*" : "", kind);
    if (o->kind != ULY_OPERAND_ABSENT) uly_text_add(&d->out, " %u", o->index);
  }
}

static void add_steps(uly_driver *d, const uly_tables *t, const uly_entry *entry, int phase) {
  static const char *const kinds[] = {
#define X(name) #name,
      ULY_STEP_KINDS(X)
#undef X
  };
  static const char *const phases[] = {"load", "bind", "forward", "backward", "step"};
  int indent = 2;
  if (!entry->steps[phase].count) return;
  uly_text_add(&d->out, "%.*s, %s\n", ULY_STR_ARG(uly_tables_name(t, entry->name)), phases[phase]);
  for (uint32_t i = 0; i < entry->steps[phase].count; i++) {
    uint32_t number = entry->steps[phase].first + i;
    const uly_step *s = &t->steps[number];
    if (s->kind == ULY_STEP_END && indent > 2) indent -= 2;
    uly_text_add(&d->out, "%5u%*s%s %u %.*s", number, indent, "", kinds[s->kind], s->a, ULY_STR_ARG(uly_tables_name(t, s->name)));
    if (s->kind == ULY_STEP_KERNEL || s->kind == ULY_STEP_LOOP || s->kind == ULY_STEP_COPY)
      uly_text_add(&d->out, ", items %.*s", ULY_STR_ARG(node_text(d->arena, t, s->items)));
    if (s->spec_line) uly_text_add(&d->out, ", line %u", s->spec_line);
    if (s->operands.count) uly_text_add(&d->out, ":");
    add_operands(d, t, s);
    uly_text_add(&d->out, "\n");
    if (s->kind == ULY_STEP_LOOP) indent += 2;
  }
}

static void add_program(uly_driver *d, const uly_tables *t) {
  for (uint32_t i = 0; i < t->n_entries; i++)
    for (int phase = 0; phase < ULY_N_PHASES; phase++) add_steps(d, t, &t->entries[i], phase);
  uly_text_add(&d->out, "buffers\n");
  for (uint32_t i = 0; i < t->n_buffers; i++) {
    const uly_buffer *b = &t->buffers[i];
    uly_text_add(&d->out, "%5u  %.*s, %.*s bytes", i, ULY_STR_ARG(uly_tables_name(t, b->name)), ULY_STR_ARG(node_text(d->arena, t, b->bytes)));
    if (b->slots > 1) uly_text_add(&d->out, ", %u slots", b->slots);
    uly_text_add(&d->out, b->phase == ULY_PHASE_LOAD ? ", kept from load\n" : ", live in steps %u to %u\n", b->live_from, b->live_to);
  }
  if (t->n_exchanges) uly_text_add(&d->out, "exchanges: bytes from rank i to j are unit * rows(i) * cols(j)\n");
  for (uint32_t i = 0; i < t->n_exchanges; i++) {
    const uly_exchange *x = &t->exchanges[i];
    uly_text_add(&d->out, "%5u  %.*s, unit %.*s, rows %.*s, cols %.*s, line %u\n", i, ULY_STR_ARG(uly_tables_name(t, x->name)),
                 ULY_STR_ARG(node_text(d->arena, t, x->unit)), ULY_STR_ARG(node_text(d->arena, t, x->rows)), ULY_STR_ARG(node_text(d->arena, t, x->cols)),
                 x->spec_line);
  }
}

// ---- --kernels

static void add_kernel(uly_driver *d, const uly_tables *t, uint32_t k) {
  static const char *const docs[] = {
#define KIND(name, doc) doc,
      ULY_KERNEL_KINDS(KIND)
#undef KIND
  };
  const uly_kernel_row *row = &t->kernels[k];
  uly_text_add(&d->out, "%5u  %.*s, line %u: %s, code ", k, ULY_STR_ARG(uly_tables_text(t, row->name)), row->spec_line,
               row->kind < ULY_N_KERNEL_KINDS ? docs[row->kind] : "?");
  for (size_t i = 0; i < 8; i++) uly_text_add(&d->out, "%02x", row->code[i]);
  uly_text_add(&d->out, "\n");
}

uly_status uly_command_inspect(uly_driver *d) {
  uly_error error = {0};
  uly_loaded *loaded;
  uly_status status = uly_loaded_open(d->args.operand, &error, &loaded);
  if (status != ULY_OK) {
    uly_text_add(&d->error, "%s", error.text);
    return status;
  }
  const uly_tables *t = &loaded->tables;
  uly_text_add(&d->out, "program ");
  for (int i = 0; i < 8; i++) uly_text_add(&d->out, "%02x", t->program[i]);
  uly_text_add(&d->out, ", code for");
  for (uint32_t l = 0; l < loaded->n_levels; l++) uly_text_add(&d->out, " %s%s", loaded->levels[l].name, l == loaded->level ? " (used here)" : "");
  uly_text_add(&d->out, "\n");
  bool program = d->args.given[ULY_OPTION_PROGRAM], kernels = d->args.given[ULY_OPTION_KERNELS];
  for (uint32_t i = 0; i < t->n_entries && !program && !kernels; i++) add_entry(d, t, &t->entries[i]);
  if (program) add_program(d, t);
  for (uint32_t k = 0; k < t->n_kernels && kernels; k++) add_kernel(d, t, k);
  uly_loaded_destroy(loaded);
  return ULY_OK;
}
