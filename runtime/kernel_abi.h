// Calling conventions of the kernels: which operand and which value of a uly_call means what. Written by the passes when they emit steps, read by the
// kernel templates and by tests. Sizes are in elements and strides between elements unless a row says bytes.
//
// Local values are stored with the grid's row dim outermost and the batch next: row (s, b) of a rank is s·B + b. Message rows likewise.
#ifndef ULY_RUNTIME_KERNEL_ABI_H
#define ULY_RUNTIME_KERNEL_ABI_H

// clang-format off: rows and lists, laid out by hand
#include <stdint.h>

// KIND(name, doc). `bits`: what the result's bits may depend on besides the inputs; see ARCHITECTURE.md.
#define ULY_KERNEL_KINDS(KIND)                                                                                                                                 \
  KIND(PACK, "weights into GEMM panels")                                                                                                                       \
  KIND(GEMM, "linear layers that share an input, with their epilogues")                                                                                        \
  KIND(ATTENTION, "attention forward")                                                                                                                         \
  KIND(ROWS, "elementwise code, norms, sums and softmax over the last dim, row by row")                                                                        \
  KIND(GATHER, "rows of a table")                                                                                                                              \
  KIND(MOVE, "a strided copy, to or from messages where asked")                                                                                                \
  KIND(ROWSUM, "exact sum over rows: this rank's part")                                                                                                        \
  KIND(ROUND, "the ranks' parts of an exact sum, added and rounded")                                                                                           \
  KIND(NLL, "the loss of each row of logits, or of their statistics")                                                                                          \
  KIND(REFERENCE, "an operation on whole tensors in float64: codegen/reference/step_words.h")

typedef enum uly_kernel_kind {
#define KIND(name, doc) ULY_KERNEL_##name,
  ULY_KERNEL_KINDS(KIND)
#undef KIND
      ULY_N_KERNEL_KINDS
} uly_kernel_kind;

// ---- GEMM -----------------------------------------------------------------------------------------------------------------------------------
// out_p[row, c] = epilogue_p(Σ_k x[row, k] · w_p[c, k]) for up to ULY_GEMM_MAX_PARTS parts that share x. A part has one accumulator set, or two over the same
// columns (ULY_GEMM_PAIR: gate and up; ULY_GEMM_ROPE: first and second halves of what rope turns).
//
// x, weights and results are of the dtypes of the kernel's description; sums are f32.
//
// Packed weights are panels of ULY_PANEL columns, the same for every CPU level: [panel][K][ULY_PANEL], or [panel][cdiv(K, 2)][ULY_PANEL][2] where they are bf16: pairs of terms, the
// last one with a zero where K is odd. uly_panel_bytes says how long one is. Columns of a part come in groups (heads, or all columns) of
// `group`; within a group, panels follow each other by mode:
//   PLAIN  cdiv(group, 16) panels
//   PAIR   for each 16 columns a panel of the first weight, then one of the second
//   ROPE   for each 16 of the R / 2 pairs a panel of first partners, then one of second partners; then the group − R columns that are not turned
// The last panel of a run is padded with zeros, so that no vector spans two groups. uly_part_panels counts them. A part's packed weights start on a panel.
enum { ULY_GEMM_MAX_PARTS = 4 };
typedef enum uly_gemm_mode { ULY_GEMM_PLAIN, ULY_GEMM_PAIR, ULY_GEMM_ROPE_HALF, ULY_GEMM_ROPE_INTERLEAVED } uly_gemm_mode;

enum uly_gemm_op {
  ULY_GEMM_X,      // 1 pointer, or one a segment of K in rank order (a reverse exchange's messages)
  ULY_GEMM_W,      // packed weights of all parts, part after part
  ULY_GEMM_COS,    // [rows (s, b)][R / 2] of the parts with rope, else absent
  ULY_GEMM_SIN,
  ULY_GEMM_LABELS, // ints, where the one part goes into a loss: then its output are the statistics of NLL; else absent
  ULY_GEMM_OUT,    // of part 0, then of the other parts: 1 pointer; in message mode part 0's holds the peers' pointers and the others are absent
  ULY_GEMM_N_OPS = ULY_GEMM_OUT + ULY_GEMM_MAX_PARTS // hook operands follow
};
enum uly_gemm_val {
  ULY_GEMM_ROWS,     // local rows s (of the row dim)
  ULY_GEMM_BATCH,    // rows of the batch dim: row = s · batch + b
  ULY_GEMM_X_S,      // strides of x over s and b; one a segment where x comes in segments
  ULY_GEMM_X_B,
  ULY_GEMM_X_K,      // columns of each segment; K where there is one
  ULY_GEMM_ROPE_S,   // strides of cos and sin
  ULY_GEMM_ROPE_B,
  ULY_GEMM_LABELS_S, // strides of the labels
  ULY_GEMM_LABELS_B,
  ULY_GEMM_OUT_S,    // strides of part 0's output over s and b, then of part 1 …; in message mode one a peer, the same for all parts
  ULY_GEMM_OUT_B = ULY_GEMM_OUT_S + ULY_GEMM_MAX_PARTS,
  ULY_GEMM_OUT_C = ULY_GEMM_OUT_B + ULY_GEMM_MAX_PARTS, // message mode, part p: column in each peer's message row where the part starts; one a peer
  ULY_GEMM_OUT_G0 = ULY_GEMM_OUT_C + ULY_GEMM_MAX_PARTS, // first group of the part that each peer gets
  ULY_GEMM_OUT_GN = ULY_GEMM_OUT_G0 + ULY_GEMM_MAX_PARTS, // number of groups that each peer gets
  ULY_GEMM_N_VALS = ULY_GEMM_OUT_GN + ULY_GEMM_MAX_PARTS // hook values follow
};
// Items: Σ over parts of cdiv(panels, ULY_GEMM_ITEM_PANELS), times cdiv(rows · batch, ULY_GEMM_ITEM_ROWS); the row block is the slower index.
// Scratch: ULY_GEMM_SCRATCH_BYTES.
enum { ULY_PANEL = 16, ULY_GEMM_ITEM_ROWS = 96, ULY_GEMM_ITEM_PANELS = 16, ULY_GEMM_SCRATCH_BYTES = 512 * 1024 };

static inline int64_t uly_cdiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t uly_panel_bytes(int64_t k, int64_t element_bytes) { return (element_bytes == 2 ? k + k % 2 : k) * ULY_PANEL * element_bytes; }
// Panels of a part: |n_groups| groups of |group| columns, of which rope turns the first |rope|.
static inline int64_t uly_part_panels(uly_gemm_mode mode, int64_t n_groups, int64_t group, int64_t rope) {
  switch (mode) {
  case ULY_GEMM_PLAIN: return n_groups * uly_cdiv(group, ULY_PANEL);
  case ULY_GEMM_PAIR: return n_groups * 2 * uly_cdiv(group, ULY_PANEL);
  case ULY_GEMM_ROPE_HALF:
  case ULY_GEMM_ROPE_INTERLEAVED: return n_groups * (2 * uly_cdiv(rope / 2, ULY_PANEL) + uly_cdiv(group - rope, ULY_PANEL));
  }
  return 0;
}

// ---- PACK -----------------------------------------------------------------------------------------------------------------------------------
// One part's weights (two for PAIR) into its panels. Items: panels of the part. Weights are [N, K] of the panels' dtype, dense in one of the two dims.
enum uly_pack_op { ULY_PACK_W0, ULY_PACK_W1 /* PAIR's second, else absent */, ULY_PACK_OUT, ULY_PACK_N_OPS };
enum uly_pack_val {
  ULY_PACK_COLUMN_0, ULY_PACK_COLUMN_1, // strides over n of W0 and W1
  ULY_PACK_TERM_0, ULY_PACK_TERM_1,     // over k
  ULY_PACK_N_VALS
};

// ---- ATTENTION ------------------------------------------------------------------------------------------------------------------------------
// o[s, b, h, :] = Σ_t softmax_t(score(q·k · scale)) v[t, b, h / group, :] over this rank's batch and query heads; all rows. Masks and scores get
// the global b and h. LSE is natural log.
enum uly_attention_op {
  ULY_ATTENTION_Q, ULY_ATTENTION_K, ULY_ATTENTION_V,
  ULY_ATTENTION_SINK,    // f32 [H] global, or absent
  ULY_ATTENTION_Q_OFFSET,// i32, of this rank's batch or one for all, or absent
  ULY_ATTENTION_OUT,     // P pointers: the messages to each peer [s_p][B][h][Dv]; or 1 pointer
  ULY_ATTENTION_LSE,     // f32, or absent
  ULY_ATTENTION_N_OPS    // captured tensors follow
};
enum uly_attention_val {
  ULY_ATTENTION_S, ULY_ATTENTION_T, // global query rows, keys
  ULY_ATTENTION_B,   // this rank's batch
  ULY_ATTENTION_B0,  // where it starts, global
  ULY_ATTENTION_H,   // this rank's query heads
  ULY_ATTENTION_H0,  // first of them, global
  ULY_ATTENTION_K0,  // first kv head held here, global
  ULY_ATTENTION_Q_S, ULY_ATTENTION_Q_B, ULY_ATTENTION_Q_H, // strides over row, batch, head; features are contiguous
  ULY_ATTENTION_K_S, ULY_ATTENTION_K_B, ULY_ATTENTION_K_H,
  ULY_ATTENTION_V_S, ULY_ATTENTION_V_B, ULY_ATTENTION_V_H,
  ULY_ATTENTION_O_ROW,  // first row of each output pointer: one a peer, ascending (a peer without rows has its successor's)
  ULY_ATTENTION_O_S, ULY_ATTENTION_O_B, ULY_ATTENTION_O_H, // strides, the same for every pointer
  ULY_ATTENTION_L_S, ULY_ATTENTION_L_B, ULY_ATTENTION_L_H,
  ULY_ATTENTION_OFFSET, // q_offset where that operand is absent, else its stride over b
  ULY_ATTENTION_N_VALS // hook values follow
};
// items: B · H_local · cdiv(S, ULY_ATTENTION_ITEM_ROWS), head by head, largest row block first. scratch:
// uly_attention_scratch(Dh, Dv) bytes.
enum { ULY_ATTENTION_ITEM_ROWS = 288 /* whole panels of 24 and of 32 */, ULY_ATTENTION_KEY_BLOCK = 128 };
static inline int64_t uly_attention_scratch(int64_t dh, int64_t dv) {
  const int64_t rows = ULY_ATTENTION_ITEM_ROWS + 64, keys = ULY_ATTENTION_KEY_BLOCK + 8, deep = dh + 32, wide = dv + 16; // rounded up to tiles
  return 4 * (rows * (deep + wide + 4) + keys * (deep + wide + 64)) + 4096;
}

// ---- ROWS -----------------------------------------------------------------------------------------------------------------------------------
// Index space i0 … i4 (outer, in storage order) and c (last dim). All tensors come through hooks. Items: i0 · i1 · i2 · i3 · i4 rows.
enum { ULY_ROWS_OUTER = 5 };
enum uly_rows_val { ULY_ROWS_N0, ULY_ROWS_N1, ULY_ROWS_N2, ULY_ROWS_N3, ULY_ROWS_N4, ULY_ROWS_COLS, ULY_ROWS_N_VALS };
enum uly_rows_op { ULY_ROWS_N_OPS };
typedef enum uly_rows_mode { ULY_ROWS_MAP, ULY_ROWS_RMSNORM, ULY_ROWS_LAYERNORM, ULY_ROWS_SUM, ULY_ROWS_SOFTMAX } uly_rows_mode;

// ---- GATHER ---------------------------------------------------------------------------------------------------------------------------------
// out[i0 … i5, :] = w[ids[i0 … i5], :]; an id outside [0, limit) is ULY_FAULT_INDEX_RANGE and gives zeros.
// Items: ids. They are i32 or i64.
enum { ULY_GATHER_DIMS = 6 };
enum uly_gather_op { ULY_GATHER_IDS, ULY_GATHER_W, ULY_GATHER_OUT, ULY_GATHER_N_OPS };
enum uly_gather_val {
  ULY_GATHER_N0,
  ULY_GATHER_ROW_BYTES = ULY_GATHER_N0 + ULY_GATHER_DIMS, ULY_GATHER_LIMIT,
  ULY_GATHER_START_0, // for faults: where i0 … begin, and which dims of the ids they are; −1: none
  ULY_GATHER_DIM_0 = ULY_GATHER_START_0 + ULY_GATHER_DIMS,
  ULY_GATHER_IDS_0 = ULY_GATHER_DIM_0 + ULY_GATHER_DIMS, // strides; of out and w in bytes
  ULY_GATHER_OUT_0 = ULY_GATHER_IDS_0 + ULY_GATHER_DIMS,
  ULY_GATHER_W_0 = ULY_GATHER_OUT_0 + ULY_GATHER_DIMS,
  ULY_GATHER_N_VALS
};

// ---- MOVE -----------------------------------------------------------------------------------------------------------------------------------
// Copies [n0] … [n5] runs of `bytes` contiguous bytes from one or more sources to one or more destinations. Source and destination have P pointers (messages) or 1,
// cut along dim `src_dim` / `dst_dim`: pointer p holds indices [first(p), first(p) + count(p)) of that dim, counted from the index space's. Where several destinations hold
// an index, each gets it. Items: n0. All strides in bytes.
enum { ULY_MOVE_DIMS = 6 };
enum uly_move_op { ULY_MOVE_SRC, ULY_MOVE_DST, ULY_MOVE_N_OPS };
enum uly_move_val {
  ULY_MOVE_N0,
  ULY_MOVE_BYTES = ULY_MOVE_N0 + ULY_MOVE_DIMS,
  ULY_MOVE_SRC_EACH, ULY_MOVE_DST_EACH,                 // 1: the strides (and the offset) of that side are one a pointer; 0: one number for all
  ULY_MOVE_SRC_0,
  ULY_MOVE_DST_0 = ULY_MOVE_SRC_0 + ULY_MOVE_DIMS,
  ULY_MOVE_SRC_DIM = ULY_MOVE_DST_0 + ULY_MOVE_DIMS, ULY_MOVE_SRC_FIRST, ULY_MOVE_SRC_COUNT, // dim number or -1; first and count one a pointer
  ULY_MOVE_SRC_BASE,                                    // what the sources call the space's index 0 of that dim
  ULY_MOVE_DST_DIM, ULY_MOVE_DST_FIRST, ULY_MOVE_DST_COUNT,
  ULY_MOVE_SRC_OFFSET, ULY_MOVE_DST_OFFSET,             // bytes added to each pointer
  ULY_MOVE_N_VALS
};

// ---- ROWSUM, ROUND --------------------------------------------------------------------------------------------------------------------------
// A sum whose bits do not depend on how rows are cut: each column's f32 terms are added as integers in ULY_EXACT_LIMBS 64-bit limbs of 32 bits weight each
// (limb j counts 2^(32 j − 149); up to 2^31 terms), the last limb is the or of flags of terms that are not finite: 1 NaN, 2 +Inf, 4 −Inf.
// part[outer, c, limb]; ROUND adds the parts of all ranks, ors their flags and rounds once. The term is a hook: expr at (i0 … i4, c), where i0 is summed.
// Sums of ints are one i64 a column, which wraps, and no limbs: part[outer, c].
enum { ULY_EXACT_LIMBS = 10 };
enum uly_rowsum_op { ULY_ROWSUM_OUT, ULY_ROWSUM_N_OPS };                          // i64 [outer][cols][ULY_EXACT_LIMBS]
enum uly_rowsum_val { ULY_ROWSUM_N0 /* summed */, ULY_ROWSUM_N1, ULY_ROWSUM_N2, ULY_ROWSUM_N3, ULY_ROWSUM_N4 /* outer = N1 · N2 · N3 · N4 */, ULY_ROWSUM_COLS, ULY_ROWSUM_N_VALS };
// items: outer · cdiv(cols, 16)
enum uly_round_op { ULY_ROUND_PARTS /* one pointer a rank */, ULY_ROUND_OUT, ULY_ROUND_N_OPS };
enum uly_round_val { ULY_ROUND_COUNT, ULY_ROUND_N_VALS };                         // items: count

// ---- NLL ------------------------------------------------------------------------------------------------------------------------------------
// out[i0 … i4] = log Σ_c exp(x[i0 … i4, c]) − x[i0 … i4, labels[i0 … i4]], 0 where the label is the one to ignore. Another label outside [0, COLS) is ULY_FAULT_INDEX_RANGE and
// gives 0. x is a hook; or a GEMM has made its statistics [2 T + 1][rows], which no two items share lines of: for each of T = cdiv(COLS, ULY_NLL_TILE) tiles of columns the
// largest element m, then for each tile Σ exp(x − m), then x at the label. Items: rows.
enum { ULY_NLL_TILE = 64 };
static inline int64_t uly_nll_tiles(int64_t cols) { return uly_cdiv(cols, ULY_NLL_TILE); }
static inline int64_t uly_nll_row(int64_t tiles) { return 2 * tiles + 1; } // floats of a row's statistics
enum uly_nll_op { ULY_NLL_LABELS, ULY_NLL_STATS /* absent: x */, ULY_NLL_OUT, ULY_NLL_N_OPS };
enum uly_nll_val {
  ULY_NLL_N0, ULY_NLL_N1, ULY_NLL_N2, ULY_NLL_N3, ULY_NLL_N4, ULY_NLL_COLS, // as ROWS has them
  ULY_NLL_LABELS_0, ULY_NLL_OUT_0 = ULY_NLL_LABELS_0 + 5, // strides over i0 … i4
  ULY_NLL_START_0 = ULY_NLL_OUT_0 + 5, ULY_NLL_DIM_0 = ULY_NLL_START_0 + 5, // as GATHER has them
  ULY_NLL_N_VALS = ULY_NLL_DIM_0 + 5
};
// Scratch: a row's statistics.

#endif
