#include "frontend/graph_print.h"

#include <inttypes.h>
#include <math.h>

#include "runtime/base/escape.h"

const char *uly_op_name(uly_op op) {
  static const char *const names[] = {
#define OP(id, name, ...) name,
#include "frontend/ops.def"
  };
  ULY_ASSERT((unsigned)op < ULY_N_OPS);
  return names[op];
}

void uly_dim_print(uly_text *text, uly_dim dim, const uly_str *symbols) {
  if (dim.symbol < 0) {
    uly_text_add(text, "%" PRId64, dim.add);
    return;
  }
  if (dim.mul != 1) uly_text_add(text, "%" PRId64 "*", dim.mul);
  uly_text_add_str(text, symbols[dim.symbol]);
  if (dim.add) uly_text_add(text, " %c %" PRId64, dim.add < 0 ? '-' : '+', dim.add < 0 ? -dim.add : dim.add);
}

static void add_type(uly_text *text, const uly_tensor_type *type, const uly_str *symbols) {
  uly_text_add(text, "%s[", uly_dtype_name(type->dtype));
  for (int32_t i = 0; i < type->rank; i++) {
    if (i) uly_text_add(text, ", ");
    uly_dim_print(text, type->dims[i], symbols);
  }
  uly_text_add(text, "]");
}

uly_str uly_type_text(uly_arena *arena, const uly_tensor_type *type, const uly_str *symbols) {
  uly_text text = {.arena = arena};
  add_type(&text, type, symbols);
  return uly_text_str(&text);
}

// ---- attributes -----------------------------------------------------------------------------------------------------------------------------------------------

static void print_name(uly_text *text, const char *before, uly_str name) {
  uly_text_add(text, "%s\"", before);
  uly_text_add_escaped(text, name);
  uly_text_add(text, "\"");
}

static void print_names(uly_text *text, const uly_graph_value *value) {
  const uly_str *names = value->u.param.names;
  int32_t n = value->u.param.n_names;
  print_name(text, " ", names[0]);
  if (n > 1) {
    print_name(text, " … ", names[n - 1]);
    uly_text_add(text, " (%d)", n);
  }
  if (!isnan(value->u.param.init)) uly_text_add(text, " init=%g", value->u.param.init);
  if (!value->u.param.train) uly_text_add(text, " train=false");
}

static void print_map(uly_text *text, const uly_graph_value *value, const uly_graph *graph) {
  uly_str expr = uly_expr_print(text->arena, &value->u.map.expr, graph->symbols, graph->n_symbols);
  uly_text_add(text, " {%.*s}", ULY_STR_ARG(expr));
  for (int32_t i = 0; i < value->n_operands; i++) {
    int32_t rank = value->operands[i]->type.rank;
    bool plain = rank == value->type.rank;
    for (int32_t d = 0; d < rank; d++) plain &= value->u.map.access[i].dim[d] == d;
    if (plain) continue;
    uly_text_add(text, " x%d[", i);
    for (int32_t d = 0; d < rank; d++) {
      int dim = value->u.map.access[i].dim[d];
      uly_text_add(text, dim < 0 ? "%s0" : "%si%d", d ? ", " : "", dim);
    }
    uly_text_add(text, "]");
  }
}

static void print_table(uly_text *text, const uly_graph_value *value) {
  for (int32_t i = 0; i < value->u.table.n_numbers; i++) {
    const uly_number *number = &value->u.table.numbers[i];
    if (number->type == ULY_SCALAR_FLOAT)
      uly_text_add(text, "%s%g", i ? ", " : " ", number->f);
    else
      uly_text_add(text, "%s%" PRId64, i ? ", " : " ", number->i);
  }
}

static void print_attention(uly_text *text, const uly_attention_attrs *a, const uly_graph *graph) {
  uly_str mask = uly_expr_print(text->arena, &a->mask, graph->symbols, graph->n_symbols);
  uly_text_add(text, " mask={%.*s}", ULY_STR_ARG(mask));
  if (a->has_score) {
    uly_str score = uly_expr_print(text->arena, &a->score, graph->symbols, graph->n_symbols);
    uly_text_add(text, " score={%.*s}", ULY_STR_ARG(score));
  }
  uly_text_add(text, " scale=%g", a->scale);
  if (a->sink >= 0) uly_text_add(text, " sink=#%d", a->sink);
  if (a->q_offset >= 0)
    uly_text_add(text, " q_offset=#%d", a->q_offset);
  else if (a->q_offset_value)
    uly_text_add(text, " q_offset=%" PRId64, a->q_offset_value);
}

static void print_attributes(uly_text *text, const uly_graph_value *value, const uly_graph *graph) {
  switch (value->op) {
  case ULY_OP_INPUT:
  case ULY_OP_BODY_ARG:
  case ULY_OP_RESULT: uly_text_add(text, " %d", value->u.arg.index); return;
  case ULY_OP_PARAM: print_names(text, value); return;
  case ULY_OP_TABLE: print_table(text, value); return;
  case ULY_OP_MAP: print_map(text, value, graph); return;
  case ULY_OP_RMSNORM:
  case ULY_OP_LAYERNORM: uly_text_add(text, " eps=%g", value->u.norm.eps); return;
  case ULY_OP_HEADS: uly_text_add(text, " n=%" PRId64, value->u.heads.count); return;
  case ULY_OP_ROPE: uly_text_add(text, value->u.rope.interleaved ? " interleaved" : " half"); return;
  case ULY_OP_ATTENTION: print_attention(text, value->u.attention, graph); return;
  case ULY_OP_SUM: uly_text_add(text, " dim=%d%s", value->u.sum.dim, value->u.sum.keep ? " keep" : ""); return;
  case ULY_OP_SLICE:
    uly_text_add(text, " dim=%d [", value->u.slice.dim);
    uly_dim_print(text, value->u.slice.begin, graph->symbols);
    uly_text_add(text, " : ");
    uly_dim_print(text, value->u.slice.end, graph->symbols);
    uly_text_add(text, "]%s", value->u.slice.drop ? " drop" : "");
    return;
  case ULY_OP_SHIFT: uly_text_add(text, " n=%" PRId64 " fill=%g dim=%d", value->u.shift.n, value->u.shift.fill, value->u.shift.dim); return;
  case ULY_OP_NLL: uly_text_add(text, " ignore=%" PRId64, value->u.nll.ignore); return;
  case ULY_OP_REPEAT: uly_text_add(text, " %" PRId64, value->u.repeat.count); return;
  case ULY_OP_GATHER:
  case ULY_OP_LINEAR:
  case ULY_OP_MERGE:
  case ULY_OP_RESHAPE:
  case ULY_OP_SOFTMAX:
  case ULY_OP_CONCAT:
  case ULY_N_OPS: return;
  }
}

// ---- values ---------------------------------------------------------------------------------------------------------------------------------------------------

static void print_region(uly_text *text, const uly_graph *graph, const uly_graph_region *region, int indent);

static void print_value(uly_text *text, const uly_graph *graph, const uly_graph_value *value, int indent) {
  uly_text_add(text, "%*s%%%d: ", indent, "", value->id);
  add_type(text, &value->type, graph->symbols);
  uly_text_add(text, " = %s", uly_op_name(value->op));
  print_attributes(text, value, graph);
  for (int32_t i = 0; i < value->n_operands; i++) uly_text_add(text, "%s%%%d", i ? ", " : " ", value->operands[i]->id);
  uly_text_add(text, "  # line %u\n", value->loc.line);
  if (value->op == ULY_OP_REPEAT) print_region(text, graph, value->u.repeat.body, indent + 2);
}

static void print_region(uly_text *text, const uly_graph *graph, const uly_graph_region *region, int indent) {
  for (int32_t i = 0; i < region->n_values; i++) print_value(text, graph, region->values[i], indent);
  if (!region->n_yields) return;
  uly_text_add(text, "%*syield", indent, "");
  for (int32_t i = 0; i < region->n_yields; i++) uly_text_add(text, "%s%%%d", i ? ", " : " ", region->yields[i]->id);
  uly_text_add(text, "\n");
}

void uly_graph_print(uly_text *text, const uly_graph *graph) {
  for (int32_t i = 0; i < graph->n_entries; i++) {
    const uly_graph_entry *entry = &graph->entries[i];
    uly_text_add(text, "%s %.*s(", entry->is_model ? "model" : "layer", ULY_STR_ARG(entry->name));
    for (int32_t j = 0; j < entry->n_inputs; j++) {
      uly_text_add(text, "%s%.*s: ", j ? ", " : "", ULY_STR_ARG(entry->inputs[j].name));
      add_type(text, &entry->inputs[j].type, graph->symbols);
      if (entry->inputs[j].id_limit) uly_text_add(text, " < %" PRId64, entry->inputs[j].id_limit);
    }
    uly_text_add(text, ")\n");
    print_region(text, graph, &entry->body, 2);
    for (int32_t j = 0; j < entry->n_results; j++) uly_text_add(text, "  %.*s = %%%d\n", ULY_STR_ARG(entry->results[j].name), entry->results[j].value->id);
  }
}
