// RUN: %not %opt --passes=verify_distribution %s 2>&1 | FileCheck %s

#s1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s4 = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#e1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
!qh = tensor<?x?x4x16xf32, "B,S sp=2 dp=*">
!kc = tensor<?x?x2x16xf32, "B,S sp=2/2 dp=*">
!g = tensor<?x?xi32, "B,S sp=* dp=*">
!lh = tensor<?x?x4xf32, "B,S sp=2 dp=*">

module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"], ["dp", "B"]]} {

func.func @missing_reduction(%x: tensor<?x?x8xf32, "B,S sp=1 dp=0">) -> tensor<?x8xf32, "B sp=+ dp=0"> attributes {uly.entry} {
  %s = "uly.sum"(%x) {dim = 1} : (tensor<?x?x8xf32, "B,S sp=1 dp=0">) -> tensor<?x8xf32, "B sp=+ dp=0">
  // CHECK: :[[@LINE+1]]:3: error: over sp: result 0 is a partial sum: a reduction is missing
  return %s : tensor<?x8xf32, "B sp=+ dp=0">
  // CHECK: :[[@LINE-3]]:{{.*}} note: this value
}

func.func @averaged_twice(%x: tensor<8xf32, "sp=* dp=*">) -> tensor<8xf32, "sp=* dp=*"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: every rank already holds the whole sum: adding once more would make it as many times too large as there are ranks
  %r = "uly.reduce"(%x) {axis = "sp"} : (tensor<8xf32, "sp=* dp=*">) -> tensor<8xf32, "sp=* dp=*">
  return %r : tensor<8xf32, "sp=* dp=*">
}

func.func @nonlinear(%x: tensor<?x8xf32, "B sp=+ dp=*">, %w: tensor<8xf32, "sp=* dp=*">) -> tensor<?x8xf32, "B sp=+ dp=*"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: uly.rmsnorm of a partial sum, but it is not linear; a reduction is missing
  %n = "uly.rmsnorm"(%x, %w) {eps = 1.0e-5} : (tensor<?x8xf32, "B sp=+ dp=*">, tensor<8xf32, "sp=* dp=*">) -> tensor<?x8xf32, "B sp=+ dp=*">
  return %n : tensor<?x8xf32, "B sp=+ dp=*">
}

func.func @square(%x: tensor<8xf32, "sp=+ dp=*">) -> tensor<8xf32, "sp=+ dp=*"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: uly.map of a partial sum, but it is not linear; a reduction is missing
  %n = "uly.map"(%x) {expr = "x0 * x0", access = [array<i64: 0>], operandSegmentSizes = #s1} : (tensor<8xf32, "sp=+ dp=*">) -> tensor<8xf32, "sp=+ dp=*">
  return %n : tensor<8xf32, "sp=+ dp=*">
}

func.func @counted_often(%x: tensor<8xf32, "sp=+ dp=*">, %y: tensor<8xf32, "sp=* dp=*">) -> tensor<8xf32, "sp=+ dp=*"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: uly.map of a partial sum, but it adds a value that every rank holds, which would be counted once a rank
  %n = "uly.map"(%x, %y) {expr = "x0 + x1", access = [array<i64: 0>, array<i64: 0>], operandSegmentSizes = #s2} : (tensor<8xf32, "sp=+ dp=*">, tensor<8xf32, "sp=* dp=*">) -> tensor<8xf32, "sp=+ dp=*">
  return %n : tensor<8xf32, "sp=+ dp=*">
}

func.func @bias_often(%x: tensor<?x8xf32, "B sp=1 dp=*">, %w: tensor<4x8xf32, "sp=1 dp=*">, %b: tensor<4xf32, "sp=* dp=*">) -> tensor<?x4xf32, "B sp=+ dp=*"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: operand 2 is added on every rank to a partial sum: it would be counted once a rank
  %n = "uly.linear"(%x, %w, %b) : (tensor<?x8xf32, "B sp=1 dp=*">, tensor<4x8xf32, "sp=1 dp=*">, tensor<4xf32, "sp=* dp=*">) -> tensor<?x4xf32, "B sp=+ dp=*">
  return %n : tensor<?x4xf32, "B sp=+ dp=*">
}

func.func @wrong_cover(%q: !qh, %k: tensor<?x?x2x16xf32, "B,S sp=2 dp=*">, %v: !kc, %d: !g) -> !qh {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: k is `2`, but shares of 4 query heads need `2/2` of 2 kv heads
  %o, %l = "uly.attention"(%q, %k, %v, %d) {mask = "true", scale = 0.25, captures = 3, operandSegmentSizes = #s4} : (!qh, tensor<?x?x2x16xf32, "B,S sp=2 dp=*">, !kc, !g) -> (!qh, !lh)
  return %o : !qh
}

func.func @local_mask(%q: !qh, %k: !kc, %d: tensor<?x?xi32, "B,S sp=1 dp=*">) -> !qh {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: c0 is read at global indices, but a rank holds only `1` of it: indices would be local
  %o, %l = "uly.attention"(%q, %k, %k, %d) {mask = "c0i[b, q] == c0i[b, k]", scale = 0.25, captures = 3, operandSegmentSizes = #s4} : (!qh, !kc, !kc, tensor<?x?xi32, "B,S sp=1 dp=*">) -> (!qh, !lh)
  return %o : !qh
}

func.func @rows_in_attention(%q: tensor<?x?x4x16xf32, "B,S sp=1 dp=*">, %k: !kc, %d: !g) -> tensor<?x?x4x16xf32, "B,S sp=1 dp=*"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: queries are split by rows, but attention needs all rows of a rank's heads: an exchange is missing
  %o, %l = "uly.attention"(%q, %k, %k, %d) {mask = "true", scale = 0.25, captures = 3, operandSegmentSizes = #s4} : (tensor<?x?x4x16xf32, "B,S sp=1 dp=*">, !kc, !kc, !g) -> (tensor<?x?x4x16xf32, "B,S sp=1 dp=*">, tensor<?x?x4xf32, "B,S sp=1 dp=*">)
  return %o : tensor<?x?x4x16xf32, "B,S sp=1 dp=*">
}

func.func @axis_mismatch(%q: tensor<?x?x4x16xf32, "B,S sp=1 dp=0">) -> tensor<?x?x4x16xf32, "B,S sp=2 dp=0"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: operand 0 changes from `1` to `2`, but the axis of this exchange is `dp`
  %e = "uly.exchange"(%q) {axis = "dp", operandSegmentSizes = #e1, resultSegmentSizes = #e1} : (tensor<?x?x4x16xf32, "B,S sp=1 dp=0">) -> tensor<?x?x4x16xf32, "B,S sp=2 dp=0">
  return %e : tensor<?x?x4x16xf32, "B,S sp=2 dp=0">
}

func.func @no_axis(%q: tensor<?x4xf32, "S sp=0 dp=*">) -> tensor<?x4xf32, "S sp=* dp=*"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: `tp` is no axis of the grid
  %e = "uly.all_gather"(%q) {axis = "tp"} : (tensor<?x4xf32, "S sp=0 dp=*">) -> tensor<?x4xf32, "S sp=* dp=*">
  return %e : tensor<?x4xf32, "S sp=* dp=*">
}

func.func @misaligned(%x: tensor<?x8xf32, "S sp=0 dp=*">, %y: tensor<?x8xf32, "S sp=* dp=*">) -> tensor<?x8xf32, "S sp=0 dp=*"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: operand 1 holds all of dim 0, but operand 0 a share of it: indices would not match
  %n = "uly.map"(%x, %y) {expr = "x0 + x1", access = [array<i64: 0, 1>, array<i64: 0, 1>], operandSegmentSizes = #s2} : (tensor<?x8xf32, "S sp=0 dp=*">, tensor<?x8xf32, "S sp=* dp=*">) -> tensor<?x8xf32, "S sp=0 dp=*">
  return %n : tensor<?x8xf32, "S sp=0 dp=*">
}

func.func @cut_features(%x: tensor<?x8xf32, "S sp=1 dp=*">, %w: tensor<8xf32, "sp=* dp=*">) -> tensor<?x8xf32, "S sp=1 dp=*"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: operand 0 is cut along dim 1, which uly.rmsnorm needs whole
  %n = "uly.rmsnorm"(%x, %w) {eps = 1.0e-5} : (tensor<?x8xf32, "S sp=1 dp=*">, tensor<8xf32, "sp=* dp=*">) -> tensor<?x8xf32, "S sp=1 dp=*">
  return %n : tensor<?x8xf32, "S sp=1 dp=*">
}

func.func @lost_rows(%x: tensor<?x8xf32, "S sp=0 dp=*">) -> tensor<?x2x4xf32, "S sp=* dp=*"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: result 0 is `*`, but its operands make it `0`
  %n = "uly.heads"(%x) : (tensor<?x8xf32, "S sp=0 dp=*">) -> tensor<?x2x4xf32, "S sp=* dp=*">
  return %n : tensor<?x2x4xf32, "S sp=* dp=*">
}

func.func @overlap_twice(%k: tensor<?x4x16xf32, "S sp=1/2 dp=*">) -> tensor<?x16xf32, "S sp=+ dp=*"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: operand 0 is summed over a cover, whose shares overlap: some terms would count twice
  %n = "uly.sum"(%k) {dim = 1} : (tensor<?x4x16xf32, "S sp=1/2 dp=*">) -> tensor<?x16xf32, "S sp=+ dp=*">
  return %n : tensor<?x16xf32, "S sp=+ dp=*">
}

func.func @callers_rows(%x: tensor<?x8xf32, "S sp=* dp=*">) -> tensor<?x8xf32, "S sp=* dp=*"> attributes {uly.entry} {
  // CHECK: :[[@LINE-1]]:{{.*}} error: over sp: argument 0 of an entry is `*`, but callers hold `0`
  // CHECK: error: over sp: result 0 of an entry is `*`, but callers hold `0`
  return %x : tensor<?x8xf32, "S sp=* dp=*">
}

func.func @not_distributed(%x: tensor<?x8xf32, "S">, %w: tensor<8xf32>) -> tensor<?x8xf32, "S"> {
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.rmsnorm: operand 0 is not distributed, but other values of this module are
  %n = "uly.rmsnorm"(%x, %w) {eps = 1.0e-5} : (tensor<?x8xf32, "S">, tensor<8xf32>) -> tensor<?x8xf32, "S">
  return %n : tensor<?x8xf32, "S">
}
}
