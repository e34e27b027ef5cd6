// RUN: %opt --passes=infer_distribution %s | FileCheck %s

#s0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s3 = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s4 = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s5 = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?x?x64xf32, "B,S">
!q = tensor<?x?x4x16xf32, "B,S">
!k = tensor<?x?x2x16xf32, "B,S">
!i = tensor<?x?xi32, "B,S">
!lse = tensor<?x?x4xf32, "B,S">

module attributes {uly.symbols = ["B", "S", "T"], uly.grid = [["sp", "S", "T"]]} {

// Rows are split, parameters are whole.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x?x64xf32, "B,S sp=1">
// CHECK-SAME: -> tensor<?x?x32xf32, "B,S sp=1">
func.func @rows(%x: !x) -> tensor<?x?x32xf32, "B,S"> attributes {uly.entry} {
  // CHECK: %[[G:.*]] = "uly.param"() {{.*}} -> tensor<64xf32, "sp=*">
  %g = "uly.param"() {names = ["g"]} : () -> tensor<64xf32>
  %w = "uly.param"() {names = ["w"]} : () -> tensor<32x64xf32>
  %b = "uly.param"() {names = ["b"]} : () -> tensor<32xf32>
  // CHECK: "uly.rmsnorm"(%[[X]], %[[G]]) {{.*}} -> tensor<?x?x64xf32, "B,S sp=1">
  %n = "uly.rmsnorm"(%x, %g) {eps = 1.0e-5} : (!x, tensor<64xf32>) -> !x
  // CHECK-NOT: uly.reshard
  // CHECK: "uly.linear"({{.*}}) : (tensor<?x?x64xf32, "B,S sp=1">, tensor<32x64xf32, "sp=*">, tensor<32xf32, "sp=*">) -> tensor<?x?x32xf32, "B,S sp=1">
  %y = "uly.linear"(%n, %w, %b) : (!x, tensor<32x64xf32>, tensor<32xf32>) -> tensor<?x?x32xf32, "B,S">
  return %y : tensor<?x?x32xf32, "B,S">
}

// A weight made of parameters stays whole; global row numbers are split like rows; a table is whole where it is looked up.
// CHECK-LABEL: func.func @sources(
func.func @sources(%ids: !i) -> (!x, !x) attributes {uly.entry} {
  %g = "uly.param"() {names = ["g"]} : () -> tensor<64x64xf32>
  // CHECK: %[[W:.*]] = "uly.map"(%{{.*}}) {{.*}} : (tensor<64x64xf32, "sp=*">) -> tensor<64x64xf32, "sp=*">
  %w = "uly.map"(%g) {expr = "1.0 + x0", access = [array<i64: 0, 1>], operandSegmentSizes = #s1} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  // CHECK: %[[P:.*]] = "uly.map"() {{.*}} -> tensor<?x?xi32, "B,S sp=1">
  %p = "uly.map"() {expr = "i1", access = [], operandSegmentSizes = #s0} : () -> !i
  // CHECK-NOT: uly.reshard
  // CHECK: "uly.gather"(%[[W]], %[[P]]) : {{.*}} -> tensor<?x?x64xf32, "B,S sp=1">
  %a = "uly.gather"(%w, %p) : (tensor<64x64xf32>, !i) -> !x
  %c = "uly.gather"(%w, %ids) : (tensor<64x64xf32>, !i) -> !x
  return %a, %c : !x, !x
}

// Attention: q by heads, k and v what those heads need, captured tensors and the sink whole; o and lse back to rows.
// CHECK-LABEL: func.func @attention(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<?x?x4x16xf32, "B,S sp=1">, %[[K:[a-z0-9]+]]: tensor<?x?x2x16xf32, "B,S sp=1">, %[[DOC:[a-z0-9]+]]: tensor<?x?xi32, "B,S sp=1">
func.func @attention(%q: !q, %k: !k, %doc: !i) -> (!q, !lse) attributes {uly.entry} {
  %sink = "uly.param"() {names = ["sink"]} : () -> tensor<4xf32>
  // CHECK: %[[QH:.*]] = "uly.reshard"(%[[Q]]) : (tensor<?x?x4x16xf32, "B,S sp=1">) -> tensor<?x?x4x16xf32, "B,S sp=2">
  // CHECK: %[[KC:.*]] = "uly.reshard"(%[[K]]) : (tensor<?x?x2x16xf32, "B,S sp=1">) -> tensor<?x?x2x16xf32, "B,S sp=2/2">
  // CHECK: %[[VC:.*]] = "uly.reshard"(%[[K]]) : (tensor<?x?x2x16xf32, "B,S sp=1">) -> tensor<?x?x2x16xf32, "B,S sp=2/2">
  // CHECK: %[[D:.*]] = "uly.reshard"(%[[DOC]]) : (tensor<?x?xi32, "B,S sp=1">) -> tensor<?x?xi32, "B,S sp=*">
  // CHECK: %[[O:.*]]:2 = "uly.attention"(%[[QH]], %[[KC]], %[[VC]], %{{.*}}, %[[D]]) {{.*}} -> (tensor<?x?x4x16xf32, "B,S sp=2">, tensor<?x?x4xf32, "B,S sp=2">)
  %o, %l = "uly.attention"(%q, %k, %k, %sink, %doc) {mask = "k <= q and c0i[b, q] == c0i[b, k]", scale = 0.25, sink = 3, captures = 4, operandSegmentSizes = #s5}
    : (!q, !k, !k, tensor<4xf32>, !i) -> (!q, !lse)
  // CHECK: %[[OR:.*]] = "uly.reshard"(%[[O]]#0) : {{.*}} -> tensor<?x?x4x16xf32, "B,S sp=1">
  // CHECK: %[[LR:.*]] = "uly.reshard"(%[[O]]#1) : {{.*}} -> tensor<?x?x4xf32, "B,S sp=1">
  // CHECK: return %[[OR]], %[[LR]]
  return %o, %l : !q, !lse
}

// As many kv heads as query heads: a cover of 1 is a split. Keys with a length of their own.
// CHECK-LABEL: func.func @cross(
func.func @cross(%q: !q, %k: tensor<?x?x4x16xf32, "B,T">) -> !q attributes {uly.entry} {
  // CHECK: "uly.reshard"(%{{.*}}) : (tensor<?x?x4x16xf32, "B,T sp=1">) -> tensor<?x?x4x16xf32, "B,T sp=2">
  %o, %l = "uly.attention"(%q, %k, %k) {mask = "true", scale = 0.25, captures = 3, operandSegmentSizes = #s3}
    : (!q, tensor<?x?x4x16xf32, "B,T">, tensor<?x?x4x16xf32, "B,T">) -> (!q, !lse)
  return %o : !q
}

// Keys that every rank holds stay where they are.
// CHECK-LABEL: func.func @whole_keys(
func.func @whole_keys(%q: !q, %k: tensor<?x77x2x16xf32, "B">) -> !q attributes {uly.entry} {
  // CHECK: "uly.attention"({{.*}}) {{.*}} : (tensor<?x?x4x16xf32, "B,S sp=2">, tensor<?x77x2x16xf32, "B sp=*">, tensor<?x77x2x16xf32, "B sp=*">)
  %o, %l = "uly.attention"(%q, %k, %k) {mask = "true", scale = 0.25, captures = 3, operandSegmentSizes = #s3}
    : (!q, tensor<?x77x2x16xf32, "B">, tensor<?x77x2x16xf32, "B">) -> (!q, !lse)
  return %o : !q
}

// A mean over rows: partial sums, reduced before they are divided. A slice of rows is whole.
// CHECK-LABEL: func.func @mean(
// CHECK-SAME: -> (tensor<?x64xf32, "B sp=*">, tensor<?x64xf32, "B sp=*">)
func.func @mean(%x: !x, %m: tensor<?x?xf32, "B,S">) -> (tensor<?x64xf32, "B">, tensor<?x64xf32, "B">) attributes {uly.entry} {
  // CHECK: %[[A:.*]] = "uly.sum"(%{{.*}}) {{.*}} -> tensor<?x64xf32, "B sp=+">
  %a = "uly.sum"(%x) {dim = 1} : (!x) -> tensor<?x64xf32, "B">
  // CHECK: %[[C:.*]] = "uly.sum"(%{{.*}}) {{.*}} -> tensor<?xf32, "B sp=+">
  %c = "uly.sum"(%m) {dim = 1} : (tensor<?x?xf32, "B,S">) -> tensor<?xf32, "B">
  // CHECK: %[[AR:.*]] = "uly.reshard"(%[[A]]) : {{.*}} -> tensor<?x64xf32, "B sp=*">
  // CHECK: %[[CR:.*]] = "uly.reshard"(%[[C]]) : {{.*}} -> tensor<?xf32, "B sp=*">
  // CHECK: "uly.map"(%[[AR]], %[[CR]])
  %y = "uly.map"(%a, %c) {expr = "x0 / x1", access = [array<i64: 0, 1>, array<i64: 0>], operandSegmentSizes = #s2} : (tensor<?x64xf32, "B">, tensor<?xf32, "B">) -> tensor<?x64xf32, "B">
  // CHECK: "uly.slice"(%{{.*}}) {{.*}} : (tensor<?x?x64xf32, "B,S sp=1">) -> tensor<?x64xf32, "B sp=*">
  %z = "uly.slice"(%x) {dim = 1, begin = "0", end = "1", drop} : (!x) -> tensor<?x64xf32, "B">
  return %y, %z : tensor<?x64xf32, "B">, tensor<?x64xf32, "B">
}

// What moves elements keeps rows: dims that rows are joined with, parts put together, rows moved along, softmax of features. Stretched parts are whole.
// CHECK-LABEL: func.func @moves(
func.func @moves(%x: !x, %t: tensor<1x?x64xf32, "S">, %u: tensor<64xf32>)
    -> (tensor<?x?xf32, "B,64*S">, tensor<?x?x2x32xf32, "B,S">, tensor<?x?x128xf32, "B,S">, !x, !x, tensor<?x?x3xf32, "B,S">) attributes {uly.entry} {
  // CHECK-NOT: uly.reshard
  // CHECK: "uly.reshape"(%{{.*}}) : (tensor<?x?x64xf32, "B,S sp=1">) -> tensor<?x?xf32, "B,64*S sp=1">
  %a = "uly.reshape"(%x) : (!x) -> tensor<?x?xf32, "B,64*S">
  // CHECK: "uly.reshape"(%{{.*}}) : {{.*}} -> tensor<?x?x2x32xf32, "B,S sp=1">
  %b = "uly.reshape"(%x) : (!x) -> tensor<?x?x2x32xf32, "B,S">
  // CHECK: "uly.concat"(%{{.*}}) {{.*}} : (tensor<?x?x64xf32, "B,S sp=1">, tensor<1x?x64xf32, "S sp=1">) -> tensor<?x?x128xf32, "B,S sp=1">
  %c = "uly.concat"(%x, %t) {operandSegmentSizes = #s2} : (!x, tensor<1x?x64xf32, "S">) -> tensor<?x?x128xf32, "B,S">
  // CHECK: "uly.shift"(%{{.*}}) {{.*}} -> tensor<?x?x64xf32, "B,S sp=1">
  %d = "uly.shift"(%x) {dim = 1, n = 2, fill = 0.0} : (!x) -> !x
  // CHECK: "uly.softmax"(%{{.*}}) : {{.*}} -> tensor<?x?x64xf32, "B,S sp=1">
  %e = "uly.softmax"(%x) : (!x) -> !x
  // CHECK: "uly.slice"(%{{.*}}) {{.*}} -> tensor<?x?x3xf32, "B,S sp=1">
  %f = "uly.slice"(%x) {dim = 2, begin = "1", end = "4"} : (!x) -> tensor<?x?x3xf32, "B,S">
  return %a, %b, %c, %d, %e, %f : tensor<?x?xf32, "B,64*S">, tensor<?x?x2x32xf32, "B,S">, tensor<?x?x128xf32, "B,S">, !x, !x, tensor<?x?x3xf32, "B,S">
}

// Softmax over the split dim, and a table that is split, are whole; so is a slice of rows, also of as many as another symbol says.
// CHECK-LABEL: func.func @whole(
func.func @whole(%m: tensor<?x?xf32, "B,S">, %w: tensor<?x8xf32, "S">, %i: tensor<?xi32, "T">, %y: tensor<?x8xf32, "2*T">)
    -> (tensor<?x?xf32, "B,S">, tensor<?x8xf32, "T">, tensor<?x8xf32, "T">, tensor<?x8xf32, "2*T-1">) attributes {uly.entry} {
  // CHECK: %[[M:.*]] = "uly.reshard"(%{{.*}}) : (tensor<?x?xf32, "B,S sp=1">) -> tensor<?x?xf32, "B,S sp=*">
  // CHECK: %[[P:.*]] = "uly.softmax"(%[[M]])
  %a = "uly.softmax"(%m) : (tensor<?x?xf32, "B,S">) -> tensor<?x?xf32, "B,S">
  // CHECK: %[[W:.*]] = "uly.reshard"(%{{.*}}) : {{.*}} -> tensor<?x8xf32, "S sp=*">
  // CHECK: "uly.gather"(%[[W]], %{{.*}}) : {{.*}} -> tensor<?x8xf32, "T sp=0">
  %b = "uly.gather"(%w, %i) : (tensor<?x8xf32, "S">, tensor<?xi32, "T">) -> tensor<?x8xf32, "T">
  // CHECK: %[[S:.*]] = "uly.slice"(%{{.*}}) {{.*}} : (tensor<?x8xf32, "2*T sp=0">) -> tensor<?x8xf32, "T sp=*">
  %c = "uly.slice"(%y) {dim = 0, begin = "T", end = "2*T"} : (tensor<?x8xf32, "2*T">) -> tensor<?x8xf32, "T">
  // CHECK: "uly.slice"(%{{.*}}) {{.*}} -> tensor<?x8xf32, "2*T-1 sp=*">
  %d = "uly.slice"(%y) {dim = 0, begin = "0", end = "2*T-1"} : (tensor<?x8xf32, "2*T">) -> tensor<?x8xf32, "2*T-1">
  // CHECK: %[[PR:.*]] = "uly.reshard"(%[[P]]) : {{.*}} -> tensor<?x?xf32, "B,S sp=1">
  // CHECK: %[[SR:.*]] = "uly.reshard"(%[[S]]) : {{.*}} -> tensor<?x8xf32, "T sp=0">
  return %a, %b, %c, %d : tensor<?x?xf32, "B,S">, tensor<?x8xf32, "T">, tensor<?x8xf32, "T">, tensor<?x8xf32, "2*T-1">
}

// Sums over a dim that no axis splits leave rows alone.
// CHECK-LABEL: func.func @sum_features(
func.func @sum_features(%x: !x) -> (tensor<?x?xf32, "B,S">, tensor<1x?x64xf32, "S">) attributes {uly.entry} {
  // CHECK: "uly.sum"(%{{.*}}) {{.*}} -> tensor<?x?xf32, "B,S sp=1">
  %a = "uly.sum"(%x) {dim = 2} : (!x) -> tensor<?x?xf32, "B,S">
  // CHECK: "uly.sum"(%{{.*}}) {{.*}} -> tensor<1x?x64xf32, "S sp=1">
  %c = "uly.sum"(%x) {dim = 0, keep} : (!x) -> tensor<1x?x64xf32, "S">
  return %a, %c : tensor<?x?xf32, "B,S">, tensor<1x?x64xf32, "S">
}

// Pairs of rows: the second of them is needed whole. A whole value becomes rows by a cut.
// CHECK-LABEL: func.func @pairs(
func.func @pairs(%a: tensor<?x8xf32, "S">) -> (tensor<?x?xf32, "S,S">, tensor<4x?xf32, "S">) attributes {uly.entry} {
  // CHECK: %[[W:.*]] = "uly.reshard"(%{{.*}}) : {{.*}} -> tensor<?x8xf32, "S sp=*">
  // CHECK: "uly.linear"(%{{.*}}, %[[W]]) : {{.*}} -> tensor<?x?xf32, "S,S sp=0">
  %s = "uly.linear"(%a, %a) : (tensor<?x8xf32, "S">, tensor<?x8xf32, "S">) -> tensor<?x?xf32, "S,S">
  %p = "uly.param"() {names = ["p"]} : () -> tensor<4x8xf32>
  // CHECK: "uly.linear"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32, "sp=*">, tensor<?x8xf32, "S sp=0">) -> tensor<4x?xf32, "S sp=1">
  %t = "uly.linear"(%p, %a) : (tensor<4x8xf32>, tensor<?x8xf32, "S">) -> tensor<4x?xf32, "S">
  return %s, %t : tensor<?x?xf32, "S,S">, tensor<4x?xf32, "S">
}

// Heads that one attention gives, and another takes a cover of, go by way of rows.
// CHECK-LABEL: func.func @heads_of_heads(
func.func @heads_of_heads(%q: !q, %y: tensor<?x?x2x16xf32, "B,S">) -> !q attributes {uly.entry} {
  // CHECK: %[[Z:.*]]:2 = "uly.attention"({{.*}} -> (tensor<?x?x2x16xf32, "B,S sp=2">,
  %z, %m = "uly.attention"(%y, %y, %y) {mask = "true", scale = 0.25, captures = 3, operandSegmentSizes = #s3} : (tensor<?x?x2x16xf32, "B,S">, tensor<?x?x2x16xf32, "B,S">, tensor<?x?x2x16xf32, "B,S">) -> (tensor<?x?x2x16xf32, "B,S">, tensor<?x?x2xf32, "B,S">)
  // CHECK: %[[R:.*]] = "uly.reshard"(%[[Z]]#0) : {{.*}} -> tensor<?x?x2x16xf32, "B,S sp=1">
  // CHECK: %[[C:.*]] = "uly.reshard"(%[[R]]) : {{.*}} -> tensor<?x?x2x16xf32, "B,S sp=2/2">
  // CHECK: "uly.attention"(%{{.*}}, %{{.*}}, %[[C]])
  %o, %l = "uly.attention"(%q, %y, %z) {mask = "true", scale = 0.25, captures = 3, operandSegmentSizes = #s3} : (!q, tensor<?x?x2x16xf32, "B,S">, tensor<?x?x2x16xf32, "B,S">) -> (!q, !lse)
  return %o : !q
}

// A loop carries rows, whatever its body leaves.
// CHECK-LABEL: func.func @loop(
func.func @loop(%q0: !q) -> !q attributes {uly.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  // CHECK: scf.for {{.*}} -> (tensor<?x?x4x16xf32, "B,S sp=1">)
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%q = %q0) -> (!q) {
    %o, %l = "uly.attention"(%q, %q, %q) {mask = "true", scale = 0.25, captures = 3, operandSegmentSizes = #s3} : (!q, !q, !q) -> (!q, !lse)
    // CHECK: %[[R:.*]] = "uly.reshard"(%{{.*}}#0) : (tensor<?x?x4x16xf32, "B,S sp=2">) -> tensor<?x?x4x16xf32, "B,S sp=1">
    // CHECK: scf.yield %[[R]]
    scf.yield %o : !q
  }
  return %r : !q
}
}
