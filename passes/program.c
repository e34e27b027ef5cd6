// The program's tables while the passes fill them: growing arrays in the program's arena, size nodes folded and shared, names shared. Codegen reads the
// result (codegen/program_table.c). The evaluator of nodes at bind is the runtime's; the folding here gives the same numbers or leaves a node alone.
#include "passes/program.h"

typedef struct index_map {
  uint32_t *slots; // row + 1, 0 = free
  uint32_t cap, used;
} index_map;

typedef struct program {
  uly_program tables; // first: what callers see
  index_map nodes, names;
} program;

static program *of(uly_program *p) { return (program *)p; }

uly_program *uly_program_create(uly_arena *arena) {
  program *p = ULY_NEW(arena, program);
  p->tables.arena = arena;
  return &p->tables;
}

#define TABLE(kind, type, name)                                                                                                                                \
  uint32_t uly_program_add_##name(uly_program *p, type row) {                                                                                                  \
    ULY_MAKE_ROOM(p->arena, p->name, p->n_##name, p->cap_##name, 32);                                                                                          \
    p->name[p->n_##name] = row;                                                                                                                                \
    return p->n_##name++;                                                                                                                                      \
  }
ULY_PROGRAM_TABLES(TABLE)
TABLE(, uly_kernel_desc *, kernels)
#undef TABLE

static uint64_t hash_bytes(const void *data, size_t bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < bytes; i++) h = (h ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
  return h ^ h >> 29;
}

static uint64_t hash_name(const uly_program *p, uint32_t row) { return hash_bytes(p->chars + p->names[row].first, p->names[row].count); }
static uint64_t hash_node(const uly_program *p, uint32_t row) { return hash_bytes(&p->nodes[row], sizeof(uly_node)); }

static void map_insert(index_map *map, uint32_t row, uint64_t hash) {
  uint32_t i = (uint32_t)hash & (map->cap - 1);
  while (map->slots[i]) i = (i + 1) & (map->cap - 1);
  map->slots[i] = row + 1;
  map->used++;
}

// Makes room for one more row; |hash| finds the hash of a row that is there.
static void map_reserve(uly_program *p, index_map *map, uint64_t (*hash)(const uly_program *p, uint32_t row)) {
  if (2 * (map->used + 1) <= map->cap) return;
  index_map old = *map;
  *map = (index_map){.cap = old.cap ? 2 * old.cap : 64};
  map->slots = ULY_NEW_ARRAY(p->arena, uint32_t, map->cap);
  for (uint32_t i = 0; i < old.cap; i++)
    if (old.slots[i]) map_insert(map, old.slots[i] - 1, hash(p, old.slots[i] - 1));
}

uint32_t uly_program_name(uly_program *p, uly_str name) {
  index_map *map = &of(p)->names;
  map_reserve(p, map, hash_name);
  uint64_t h = hash_bytes(name.ptr, name.len);
  for (uint32_t i = (uint32_t)h & (map->cap - 1); map->slots[i]; i = (i + 1) & (map->cap - 1)) {
    uly_span s = p->names[map->slots[i] - 1];
    if (uly_str_equal((uly_str){p->chars + s.first, s.count}, name)) return map->slots[i] - 1;
  }
  uly_span span = {p->n_chars, (uint32_t)name.len};
  for (size_t i = 0; i < name.len; i++) uly_program_add_chars(p, name.ptr[i]);
  uint32_t row = uly_program_add_names(p, span);
  map_insert(map, row, h);
  return row;
}

// floor(a / b)
static int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

static bool fold_share(bool start, int64_t n, int64_t ranks, int64_t rank, int64_t *out) {
  if (ranks <= 0 || n < 0 || rank < 0 || rank >= ranks) return false;
  int64_t each = n / ranks, more = n % ranks;
  *out = start ? rank * each + (rank < more ? rank : more) : each + (rank < more);
  return true;
}

// Two constant operands. False where the value does not fit or is not defined: the runtime then reports it with the step's name.
static bool fold_constants(uint32_t kind, int64_t a, int64_t b, int64_t *out) {
  switch (kind) {
  case ULY_NODE_ADD: return !__builtin_add_overflow(a, b, out);
  case ULY_NODE_SUB: return !__builtin_sub_overflow(a, b, out);
  case ULY_NODE_MUL: return !__builtin_mul_overflow(a, b, out);
  case ULY_NODE_FDIV: return b != 0 && !(b == -1 && a == INT64_MIN) && (*out = floor_div(a, b), true);
  case ULY_NODE_CDIV: return b != 0 && a != INT64_MIN && !(b == -1 && a == INT64_MIN) && (*out = -floor_div(-a, b), true);
  case ULY_NODE_MOD: return b != 0 && b != -1 && (*out = a - floor_div(a, b) * b, true);
  case ULY_NODE_MIN: return *out = a < b ? a : b, true;
  case ULY_NODE_MAX: return *out = a > b ? a : b, true;
  default: return false;
  }
}

static int n_operands(uint32_t kind) {
  switch (kind) {
  case ULY_NODE_CONST:
  case ULY_NODE_SYM:
  case ULY_NODE_AXIS_SIZE:
  case ULY_NODE_AXIS_RANK: return 0;
  case ULY_NODE_PEER_SUM:
  case ULY_NODE_PEER_BEFORE:
  case ULY_NODE_PEER_MAX: return 1;
  case ULY_NODE_SHARE:
  case ULY_NODE_START:
  case ULY_NODE_SELECT: return 3;
  default: return 2;
  }
}

// x + 0, x - 0, 1 · x, 0 · x, x / 1, min(x, x) and the like: the operand's row, or ULY_NONE.
static uint32_t fold_identity(uly_program *p, const uly_node *n) {
  const uly_node *a = &p->nodes[n->a], *b = n_operands(n->kind) > 1 ? &p->nodes[n->b] : NULL;
  bool ca = a->kind == ULY_NODE_CONST, cb = b && b->kind == ULY_NODE_CONST;
  switch (n->kind) {
  case ULY_NODE_ADD: return cb && b->value == 0 ? n->a : ca && a->value == 0 ? n->b : ULY_NONE;
  case ULY_NODE_SUB: return cb && b->value == 0 ? n->a : n->a == n->b ? uly_program_const(p, 0) : ULY_NONE;
  case ULY_NODE_MUL:
    if (cb && b->value == 1) return n->a;
    if (ca && a->value == 1) return n->b;
    return (ca && a->value == 0) || (cb && b->value == 0) ? uly_program_const(p, 0) : ULY_NONE;
  case ULY_NODE_FDIV:
  case ULY_NODE_CDIV: return cb && b->value == 1 ? n->a : ULY_NONE;
  case ULY_NODE_MIN:
  case ULY_NODE_MAX: return n->a == n->b ? n->a : ULY_NONE;
  case ULY_NODE_SELECT: return ca ? (a->value ? n->b : n->c) : n->b == n->c ? n->b : ULY_NONE;
  default: return ULY_NONE;
  }
}

static uint32_t fold(uly_program *p, const uly_node *n) {
  int count = n_operands(n->kind);
  if (count == 0) return ULY_NONE;
  int64_t value;
  const uly_node *a = &p->nodes[n->a], *b = count > 1 ? &p->nodes[n->b] : NULL, *c = count > 2 ? &p->nodes[n->c] : NULL;
  bool constant = a->kind == ULY_NODE_CONST && (!b || b->kind == ULY_NODE_CONST) && (!c || c->kind == ULY_NODE_CONST);
  if (n->kind == ULY_NODE_PEER_MAX && constant) return n->a;
  if (constant && count == 2 && fold_constants(n->kind, a->value, b->value, &value)) return uly_program_const(p, value);
  if (constant && (n->kind == ULY_NODE_SHARE || n->kind == ULY_NODE_START) && fold_share(n->kind == ULY_NODE_START, a->value, b->value, c->value, &value))
    return uly_program_const(p, value);
  return fold_identity(p, n);
}

uint32_t uly_program_node(uly_program *p, uly_node node) {
  int count = n_operands(node.kind);
  ULY_ASSERT(node.kind < ULY_N_NODE_KINDS && (count < 1 || node.a < p->n_nodes) && (count < 2 || node.b < p->n_nodes) && (count < 3 || node.c < p->n_nodes));
  if (count < 1) node.a = 0;
  if (count < 2) node.b = 0;
  if (count < 3) node.c = 0;
  if (count > 1) node.value = 0;
  bool commutes = node.kind == ULY_NODE_ADD || node.kind == ULY_NODE_MUL || node.kind == ULY_NODE_MIN || node.kind == ULY_NODE_MAX;
  if (commutes && node.b < node.a) {
    uint32_t a = node.a;
    node.a = node.b, node.b = a;
  }
  if (node.kind == ULY_NODE_SYM) p->used_symbols |= 1u << node.value;
  uint32_t folded = fold(p, &node);
  if (folded != ULY_NONE) return folded;

  index_map *map = &of(p)->nodes;
  map_reserve(p, map, hash_node);
  uint64_t h = hash_bytes(&node, sizeof node);
  for (uint32_t i = (uint32_t)h & (map->cap - 1); map->slots[i]; i = (i + 1) & (map->cap - 1))
    if (memcmp(&p->nodes[map->slots[i] - 1], &node, sizeof node) == 0) return map->slots[i] - 1;
  uint32_t row = uly_program_add_nodes(p, node);
  map_insert(map, row, h);
  return row;
}

uint32_t uly_program_const(uly_program *p, int64_t value) { return uly_program_node(p, (uly_node){.kind = ULY_NODE_CONST, .value = value}); }

uint32_t uly_program_op(uly_program *p, uly_node_kind kind, uint32_t a, uint32_t b) {
  ULY_ASSERT(n_operands(kind) == 2);
  return uly_program_node(p, (uly_node){.kind = kind, .a = a, .b = b});
}

const char *uly_rows_mode_name(uly_rows_mode mode) {
  static const char *const names[] = {"map", "rmsnorm", "layernorm", "sum", "softmax"};
  return names[mode];
}

uint32_t uly_program_add_constants(uly_program *p, const uint64_t *slots, uint32_t n, uly_str name) {
  if (p->n_indices % 2) uly_program_add_indices(p, 0);
  uly_buffer b = {.phase = ULY_PHASE_LOAD, .bytes = uly_program_const(p, 8), .slots = n, .flags = ULY_BUFFER_CONSTANT, .words = p->n_indices};
  b.name = uly_program_name(p, name);
  for (uint32_t i = 0; i < n; i++) {
    uly_program_add_indices(p, (uint32_t)slots[i]);
    uly_program_add_indices(p, (uint32_t)(slots[i] >> 32));
  }
  return uly_program_add_buffers(p, b);
}

const char *uly_kernel_kind_name(uly_kernel_kind kind) {
  static const char *const names[ULY_N_KERNEL_KINDS] = {
#define KIND(name, doc) [ULY_KERNEL_##name] = #name,
      ULY_KERNEL_KINDS(KIND)
#undef KIND
  };
  ULY_ASSERT((unsigned)kind < ULY_N_KERNEL_KINDS);
  return names[kind];
}
