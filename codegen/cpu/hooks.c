#include "codegen/cpu/hooks.h"

#include "codegen/cpu/expr_to_vector.h"
#include "codegen/cpu/memory.h"

// ---- elementwise hooks ---------------------------------------------------------------------------------------------------------------------

typedef struct hook_site {
  const uly_hook *hook;
  LLVMValueRef call, index[ULY_HOOK_INDICES], n, lanes, inputs[2];
} hook_site;

static LLVMValueRef element_index(uly_llvm *ir, const hook_site *site, const uly_hook_operand *operand, bool *out_contiguous) {
  LLVMValueRef sum = LLVMConstInt(ir->i64, 0, false);
  *out_contiguous = operand->stride[ULY_HOOK_INDICES - 1] == -2;
  for (int d = 0; d < ULY_HOOK_INDICES; d++) {
    int32_t slot = operand->stride[d];
    if (slot == -1) continue;
    LLVMValueRef term = site->index[d];
    bool lane_strided = d == ULY_HOOK_INDICES - 1 && slot >= 0;
    if (lane_strided) term = LLVMBuildAdd(ir->b, uly_llvm_splat(ir, term), uly_llvm_iota(ir, ir->i64), "");
    if (slot >= 0) {
      LLVMValueRef stride = uly_memory_value(ir, site->call, slot);
      term = LLVMBuildMul(ir->b, term, lane_strided ? uly_llvm_splat(ir, stride) : stride, "");
    }
    uly_llvm_match(ir, &sum, &term);
    sum = LLVMBuildAdd(ir->b, sum, term, "");
  }
  return sum;
}

static uly_location place_of(uly_llvm *ir, const hook_site *site, const uly_hook_operand *operand) {
  bool contiguous;
  LLVMTypeRef element = LLVMIntTypeInContext(ir->context, 8u * (unsigned)uly_dtype_bytes(operand->dtype));
  uly_location place = {.dtype = operand->dtype, .pointer = uly_memory_pointer(ir, site->call, operand->op)};
  LLVMValueRef index = element_index(ir, site, operand, &contiguous);
  if (contiguous)
    place.pointer = uly_llvm_offset(ir, element, place.pointer, index);
  else
    place.index = index;
  return place;
}

static LLVMValueRef hook_leaf(void *context, uly_llvm *ir, const uly_expr_node *node, const LLVMValueRef *args) {
  const hook_site *site = context;
  const uly_hook *hook = site->hook;
  (void)args;
  if (node->op == ULY_SC_OPERAND && node->index < hook->n_inputs) return site->inputs[node->index];
  if (node->op == ULY_SC_OPERAND) return uly_memory_load(ir, place_of(ir, site, &hook->operands[node->index - hook->n_inputs]), site->lanes);
  if (node->op == ULY_SC_SIZE) return uly_memory_value(ir, site->call, hook->size[node->index]);
  int d = node->index - ULY_COORD_I0;
  ULY_ASSERT(node->op == ULY_SC_COORD && d >= 0 && d < ULY_HOOK_INDICES);
  LLVMValueRef index = site->index[d];
  if (hook->start[d] >= 0) index = LLVMBuildAdd(ir->b, index, uly_memory_value(ir, site->call, hook->start[d]), "");
  return d == ULY_HOOK_INDICES - 1 ? LLVMBuildAdd(ir->b, uly_llvm_splat(ir, index), uly_llvm_iota(ir, ir->i64), "") : index;
}

static LLVMValueRef emit_hook(uly_llvm *ir, hook_site *site) {
  uly_expr_leaves leaves = {site, hook_leaf};
  return uly_expr_to_vector(ir, &site->hook->expr, &leaves);
}

static LLVMValueRef as_lanes_f32(uly_llvm *ir, LLVMValueRef v) {
  LLVMTypeRef type = uly_llvm_like(ir, v, ir->f32), from = uly_llvm_element(v);
  if (from == ir->f64) v = LLVMBuildFPTrunc(ir->b, v, type, "");
  if (from == ir->i64) v = LLVMBuildSIToFP(ir->b, v, type, "");
  if (from == ir->i1) v = LLVMBuildUIToFP(ir->b, v, type, "");
  return uly_llvm_splat(ir, v);
}

static LLVMValueRef as_lanes_i64(uly_llvm *ir, LLVMValueRef v) {
  LLVMTypeRef from = uly_llvm_element(v), type = uly_llvm_like(ir, v, ir->i64);
  ULY_ASSERT(from == ir->i64 || from == ir->i1);
  return uly_llvm_splat(ir, from == ir->i1 ? LLVMBuildZExt(ir->b, v, type, "") : v);
}

// Parameters of rows and rowsum hooks: call, i0 … i4, c, n[, y].
static hook_site rows_site(uly_llvm *ir, const uly_hook *hook) {
  hook_site site = {.hook = hook, .call = uly_llvm_param(ir, 0), .n = uly_llvm_param(ir, 1 + ULY_HOOK_INDICES)};
  for (int d = 0; d < ULY_HOOK_INDICES; d++) site.index[d] = uly_llvm_param(ir, 1 + (unsigned)d);
  site.lanes = uly_memory_lanes(ir, site.n);
  return site;
}

static void store_result(uly_llvm *ir, hook_site *site, LLVMValueRef value) {
  uly_memory_store(ir, place_of(ir, site, &site->hook->out), site->n, value);
  LLVMBuildRetVoid(ir->b);
}

static void define_rows_value(uly_llvm *ir, const uly_hook *hook) {
  hook_site site = rows_site(ir, hook);
  LLVMBuildRet(ir->b, as_lanes_f32(ir, emit_hook(ir, &site)));
}

static void define_rows_in(uly_llvm *ir, const uly_kernel_desc *desc) { define_rows_value(ir, &desc->u.rows.in); }
static void define_rowsum_term(uly_llvm *ir, const uly_kernel_desc *desc) { define_rows_value(ir, &desc->u.rowsum.term); }

// Without one nothing calls it: statistics are there.
static void define_nll_in(uly_llvm *ir, const uly_kernel_desc *desc) {
  if (desc->u.nll.in.present)
    define_rows_value(ir, &desc->u.nll.in);
  else
    LLVMBuildRet(ir->b, LLVMConstNull(uly_llvm_vector_of(ir, ir->f32)));
}

// Of a sum of floats nobody calls it.
static void define_rowsum_int_term(uly_llvm *ir, const uly_kernel_desc *desc) {
  hook_site site = rows_site(ir, &desc->u.rowsum.term);
  LLVMTypeRef type = uly_llvm_vector_of(ir, ir->i64);
  LLVMBuildRet(ir->b, desc->u.rowsum.ints ? as_lanes_i64(ir, emit_hook(ir, &site)) : LLVMConstNull(type));
}

static void define_rows_out(uly_llvm *ir, const uly_kernel_desc *desc) {
  const uly_hook *hook = &desc->u.rows.out;
  hook_site site = rows_site(ir, hook);
  site.inputs[0] = uly_llvm_param(ir, 2 + ULY_HOOK_INDICES);
  store_result(ir, &site, hook->present ? emit_hook(ir, &site) : site.inputs[0]);
}

static void define_rows_map(uly_llvm *ir, const uly_kernel_desc *desc) {
  hook_site site = rows_site(ir, &desc->u.rows.in);
  store_result(ir, &site, emit_hook(ir, &site));
}

// Parameters: call, part, i0, i1, c, n, a0, a1.
static void define_epilogue(uly_llvm *ir, const uly_kernel_desc *desc) {
  const uly_gemm_desc *gemm = &desc->u.gemm;
  LLVMBasicBlockRef otherwise = uly_llvm_block(ir);
  LLVMValueRef choice = LLVMBuildSwitch(ir->b, uly_llvm_param(ir, 1), otherwise, (unsigned)gemm->n_parts);
  for (int32_t p = 0; p < gemm->n_parts; p++) {
    if (!gemm->parts[p].epilogue.present) continue;
    LLVMBasicBlockRef block = uly_llvm_block(ir);
    LLVMAddCase(choice, LLVMConstInt(ir->i32, (unsigned)p, false), block);
    LLVMPositionBuilderAtEnd(ir->b, block);
    hook_site site = {.hook = &gemm->parts[p].epilogue, .call = uly_llvm_param(ir, 0), .n = uly_llvm_param(ir, 5)};
    for (int d = 0; d < ULY_HOOK_INDICES; d++) site.index[d] = LLVMConstInt(ir->i64, 0, false);
    site.index[0] = uly_llvm_param(ir, 2), site.index[1] = uly_llvm_param(ir, 3), site.index[ULY_HOOK_INDICES - 1] = uly_llvm_param(ir, 4);
    site.inputs[0] = uly_llvm_param(ir, 6), site.inputs[1] = uly_llvm_param(ir, 7);
    site.lanes = uly_memory_lanes(ir, site.n);
    LLVMBuildRet(ir->b, as_lanes_f32(ir, emit_hook(ir, &site)));
  }
  LLVMPositionBuilderAtEnd(ir->b, otherwise);
  LLVMBuildRet(ir->b, uly_llvm_param(ir, 6));
}

// ---- captures --------------------------------------------------------------------------------------------------------------------------------

// void uly_fault_report(call, index, batch, query, key): the first fault of a call wins.
static LLVMValueRef fault_reporter(uly_llvm *ir) {
  LLVMValueRef f = LLVMGetNamedFunction(ir->module, "uly_fault_report");
  if (f) return f;
  LLVMTypeRef params[] = {ir->ptr, ir->i64, ir->i64, ir->i64, ir->i64};
  f = LLVMAddFunction(ir->module, "uly_fault_report", LLVMFunctionType(ir->none, params, 5, false));
  LLVMSetLinkage(f, LLVMInternalLinkage);
  uly_llvm_attribute(ir, f, "noinline");
  uly_llvm_attribute(ir, f, "cold");
  uly_llvm_attribute(ir, f, "nounwind");
  uly_llvm inner;
  uly_llvm_init(&inner, ir->arena, ir->module, ir->lanes);
  uly_llvm_enter(&inner, f);
  LLVMValueRef at = uly_llvm_offset(&inner, ir->i8, LLVMGetParam(f, 0), LLVMConstInt(ir->i64, offsetof(uly_call, fault), false));
  LLVMValueRef fault = uly_llvm_load_invariant(&inner, ir->ptr, at);
  LLVMValueRef swap =
      LLVMBuildAtomicCmpXchg(inner.b, fault, LLVMConstInt(ir->i32, ULY_FAULT_NONE, false), LLVMConstInt(ir->i32, ULY_FAULT_CAPTURE_RANGE, false),
                             LLVMAtomicOrderingSequentiallyConsistent, LLVMAtomicOrderingSequentiallyConsistent, false);
  LLVMBasicBlockRef first = uly_llvm_block(&inner), done = uly_llvm_block(&inner);
  LLVMBuildCondBr(inner.b, LLVMBuildExtractValue(inner.b, swap, 1, ""), first, done);
  LLVMPositionBuilderAtEnd(inner.b, first);
  const size_t offsets[] = {offsetof(uly_fault, a), offsetof(uly_fault, at[0]), offsetof(uly_fault, at[1]), offsetof(uly_fault, at[2])};
  for (unsigned i = 0; i < 4; i++)
    LLVMBuildStore(inner.b, LLVMGetParam(f, i + 1), uly_llvm_offset(&inner, ir->i8, fault, LLVMConstInt(ir->i64, offsets[i], false)));
  LLVMBuildBr(inner.b, done);
  LLVMPositionBuilderAtEnd(inner.b, done);
  LLVMBuildRetVoid(inner.b);
  uly_llvm_finish(&inner);
  return f;
}

// Reports |index| where |bad| (i1, or i1 in each lane) is set anywhere.
static void check(uly_llvm *ir, const uly_attention_site *site, LLVMValueRef bad, LLVMValueRef index) {
  LLVMValueRef lane = LLVMConstInt(ir->i64, 0, false), any = bad, bits = NULL;
  LLVMTypeRef mask = LLVMIntTypeInContext(ir->context, (unsigned)ir->lanes);
  if (uly_llvm_is_vector(bad)) {
    bits = LLVMBuildBitCast(ir->b, bad, mask, "");
    any = LLVMBuildICmp(ir->b, LLVMIntNE, bits, LLVMConstNull(mask), "");
  }
  LLVMBasicBlockRef report = uly_llvm_block(ir), next = uly_llvm_block(ir);
  LLVMBuildCondBr(ir->b, any, report, next);
  LLVMPositionBuilderAtEnd(ir->b, report);
  if (bits) {
    LLVMValueRef args[] = {bits, LLVMConstInt(ir->i1, 0, false)};
    lane = LLVMBuildZExt(ir->b, uly_llvm_call(ir, "llvm.cttz", mask, args, 2), ir->i64, "");
  }
  if (uly_llvm_is_vector(index)) index = LLVMBuildExtractElement(ir->b, index, lane, "");
  LLVMValueRef args[] = {site->call, index, site->b, LLVMBuildAdd(ir->b, site->q, lane, ""), site->k}, f = fault_reporter(ir);
  LLVMBuildCall2(ir->b, LLVMGlobalGetValueType(f), f, args, 5, "");
  LLVMBuildBr(ir->b, next);
  LLVMPositionBuilderAtEnd(ir->b, next);
}

// Sixteen zero bytes to load from where a scalar index is out of range.
static LLVMValueRef zero_element(uly_llvm *ir) {
  LLVMValueRef zero = LLVMGetNamedGlobal(ir->module, "uly_zero_element");
  if (zero) return zero;
  LLVMTypeRef type = LLVMArrayType2(ir->i64, 2);
  zero = LLVMAddGlobal(ir->module, type, "uly_zero_element");
  LLVMSetInitializer(zero, LLVMConstNull(type));
  LLVMSetGlobalConstant(zero, true);
  LLVMSetLinkage(zero, LLVMInternalLinkage);
  return zero;
}

// One flag for all lanes: is any of them valid?
static LLVMValueRef any_valid(uly_llvm *ir, const uly_attention_site *site) {
  if (!site->valid) return LLVMConstInt(ir->i1, 1, false);
  LLVMTypeRef mask = LLVMIntTypeInContext(ir->context, (unsigned)ir->lanes);
  return LLVMBuildICmp(ir->b, LLVMIntNE, LLVMBuildBitCast(ir->b, site->valid, mask, ""), LLVMConstNull(mask), "");
}

static LLVMValueRef load_capture(uly_llvm *ir, const uly_attention_site *site, const uly_expr_node *node, const LLVMValueRef *indices) {
  const uly_capture *capture = &site->desc->captures[node->index];
  LLVMValueRef sum = LLVMConstInt(ir->i64, 0, false), inside = LLVMConstInt(ir->i1, 1, false);
  bool contiguous = false;
  ULY_ASSERT(node->n_args == capture->rank);
  for (int d = 0; d < capture->rank; d++) {
    LLVMValueRef i = indices[d], size = uly_memory_value(ir, site->call, capture->dim[d]), term = i;
    bool lanes = uly_llvm_is_vector(i);
    if (capture->start[d] >= 0) {
      LLVMValueRef start = uly_memory_value(ir, site->call, capture->start[d]);
      term = LLVMBuildSub(ir->b, i, lanes ? uly_llvm_splat(ir, start) : start, "");
    }
    LLVMValueRef fits = LLVMBuildICmp(ir->b, LLVMIntULT, term, lanes ? uly_llvm_splat(ir, size) : size, "");
    LLVMValueRef bad = LLVMBuildNot(ir->b, fits, "");
    if (lanes && site->valid) bad = LLVMBuildAnd(ir->b, bad, site->valid, "");
    if (!lanes) bad = LLVMBuildAnd(ir->b, bad, any_valid(ir, site), "");
    check(ir, site, bad, i);
    uly_llvm_match(ir, &inside, &fits);
    inside = LLVMBuildAnd(ir->b, inside, fits, "");
    contiguous = d == capture->rank - 1 && capture->stride[d] == -2 && term == site->queries;
    if (contiguous) term = site->q;
    if (capture->stride[d] == -1) continue;
    if (capture->stride[d] >= 0) {
      LLVMValueRef stride = uly_memory_value(ir, site->call, capture->stride[d]);
      term = LLVMBuildMul(ir->b, term, uly_llvm_is_vector(term) ? uly_llvm_splat(ir, stride) : stride, "");
    }
    uly_llvm_match(ir, &sum, &term);
    sum = LLVMBuildAdd(ir->b, sum, term, "");
  }
  uly_location place = {.dtype = capture->dtype, .pointer = uly_memory_pointer(ir, site->call, capture->op), .index = sum};
  LLVMTypeRef element = LLVMIntTypeInContext(ir->context, 8u * (unsigned)uly_dtype_bytes(capture->dtype));
  if (uly_llvm_is_vector(inside)) {
    if (site->valid) inside = LLVMBuildAnd(ir->b, inside, site->valid, "");
    if (contiguous && !uly_llvm_is_vector(sum)) {
      place.pointer = uly_llvm_offset(ir, element, place.pointer, sum);
      place.index = NULL;
    } else {
      place.index = uly_llvm_splat(ir, sum);
    }
    return uly_memory_load(ir, place, inside);
  }
  place.pointer = LLVMBuildSelect(ir->b, inside, uly_llvm_offset(ir, element, place.pointer, sum), zero_element(ir), "");
  place.index = LLVMConstInt(ir->i64, 0, false);
  return uly_memory_load(ir, place, NULL);
}

// ---- attention hooks -------------------------------------------------------------------------------------------------------------------------

LLVMValueRef uly_hooks_attention_leaf(void *context, uly_llvm *ir, const uly_expr_node *node, const LLVMValueRef *args) {
  const uly_attention_site *site = context;
  if (node->op == ULY_SC_LOAD) return load_capture(ir, site, node, args);
  if (node->op == ULY_SC_SIZE) return uly_memory_value(ir, site->call, site->desc->size[node->index]);
  ULY_ASSERT(node->op == ULY_SC_COORD);
  switch (node->index) {
  case ULY_COORD_B: return site->b;
  case ULY_COORD_H: return site->h;
  case ULY_COORD_Q: return site->queries;
  case ULY_COORD_K: return site->k;
  case ULY_COORD_S: return site->s;
  default: ULY_ASSERT(false && "a coordinate of an attention"); return NULL;
  }
}

// Parameters: call, b, h, q0, k, then live and s (score) or n (mask).
static uly_attention_site attention_site(uly_llvm *ir, const uly_attention_desc *desc) {
  uly_attention_site site = {.desc = desc,
                             .call = uly_llvm_param(ir, 0),
                             .b = uly_llvm_param(ir, 1),
                             .h = uly_llvm_param(ir, 2),
                             .q = uly_llvm_param(ir, 3),
                             .k = uly_llvm_param(ir, 4)};
  site.queries = LLVMBuildAdd(ir->b, uly_llvm_splat(ir, site.q), uly_llvm_iota(ir, ir->i64), "");
  return site;
}

static void define_score(uly_llvm *ir, const uly_kernel_desc *kernel) {
  const uly_attention_desc *desc = &kernel->u.attention;
  uly_attention_site site = attention_site(ir, desc);
  LLVMValueRef live = uly_llvm_param(ir, 5);
  site.valid = LLVMBuildICmp(ir->b, LLVMIntNE, live, LLVMConstNull(LLVMTypeOf(live)), "");
  site.s = uly_llvm_param(ir, 6);
  uly_expr_leaves leaves = {&site, uly_hooks_attention_leaf};
  LLVMBuildRet(ir->b, desc->has_score ? as_lanes_f32(ir, uly_expr_to_vector(ir, &desc->score, &leaves)) : site.s);
}

static void define_mask(uly_llvm *ir, const uly_kernel_desc *kernel) {
  const uly_attention_desc *desc = &kernel->u.attention;
  uly_attention_site site = attention_site(ir, desc);
  LLVMTypeRef result = uly_llvm_vector_of(ir, ir->i32);
  site.valid = uly_memory_lanes(ir, uly_llvm_param(ir, 5));
  uly_expr_leaves leaves = {&site, uly_hooks_attention_leaf};
  LLVMValueRef allowed = desc->mask.n_nodes ? uly_expr_to_vector(ir, &desc->mask, &leaves) : LLVMConstInt(ir->i1, 1, false);
  LLVMBuildRet(ir->b, LLVMBuildSExt(ir->b, uly_llvm_splat(ir, allowed), result, ""));
}

// ---- all -------------------------------------------------------------------------------------------------------------------------------------

static void define_range(uly_llvm *ir, const uly_kernel_desc *desc) { uly_ranges_define(ir, &desc->u.attention); }

static const struct {
  const char *name;
  uly_kernel_kind kind;
  void (*define)(uly_llvm *ir, const uly_kernel_desc *desc);
} hooks[] = {
    {"uly_hook_rows_in", ULY_KERNEL_ROWS, define_rows_in},
    {"uly_hook_rows_out", ULY_KERNEL_ROWS, define_rows_out},
    {"uly_hook_rows_map", ULY_KERNEL_ROWS, define_rows_map},
    {"uly_hook_gemm_epilogue", ULY_KERNEL_GEMM, define_epilogue},
    {"uly_hook_attention_score", ULY_KERNEL_ATTENTION, define_score},
    {"uly_hook_attention_mask", ULY_KERNEL_ATTENTION, define_mask},
    {"uly_hook_attention_range", ULY_KERNEL_ATTENTION, define_range},
    {"uly_hook_rowsum_term", ULY_KERNEL_ROWSUM, define_rowsum_term},
    {"uly_hook_nll_in", ULY_KERNEL_NLL, define_nll_in},
    {"uly_hook_rowsum_int_term", ULY_KERNEL_ROWSUM, define_rowsum_int_term},
};

static void define_body(uly_llvm *ir, const char *name, const uly_kernel_desc *desc) {
  for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
    if (strcmp(hooks[i].name, name) != 0) continue;
    ULY_ASSERT(hooks[i].kind == desc->kind);
    hooks[i].define(ir, desc);
    return;
  }
  ULY_ASSERT(false && "a hook of templates/template.h");
}

void uly_hooks_define(uly_llvm *ir, const uly_kernel_desc *desc) {
  for (LLVMValueRef f = LLVMGetFirstFunction(ir->module); f; f = LLVMGetNextFunction(f)) {
    size_t length;
    const char *name = LLVMGetValueName2(f, &length);
    if (!LLVMIsDeclaration(f) || strncmp(name, "uly_hook_", 9) != 0) continue;
    LLVMSetLinkage(f, LLVMInternalLinkage);
    uly_llvm_attribute(ir, f, "alwaysinline");
    uly_llvm_enter(ir, f);
    define_body(ir, name, desc);
  }
}
