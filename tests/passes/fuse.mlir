// RUN: %opt --passes=fuse %s | FileCheck %s
// RUN: %opt -O0 --passes=fuse %s | FileCheck --check-prefix=UNFUSED %s

#id = array<i64: 0, 1, 2>
#row = array<i64: 0, 1>
#kept = array<i64: 0, 1, -1>
#m0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#m1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#m2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#m3 = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#m4 = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#e1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#e3 = array<i32: 1, 1, 1, 0, 0, 0, 0, 0>
!x = tensor<?x?x32xf32, "B,S sp=1">
!v = tensor<?x?x16xf32, "B,S sp=1">
!f = tensor<?x?x48xf32, "B,S sp=1">
!s = tensor<?x?xf32, "B,S sp=1">
!s1 = tensor<?x?x1xf32, "B,S sp=1">
!c = tensor<?x?x4xf32, "B,S sp=1">
!q = tensor<?x?x4x8xf32, "B,S sp=1">
!k = tensor<?x?x2x8xf32, "B,S sp=1">
!qh = tensor<?x?x4x8xf32, "B,S sp=2">
!kh = tensor<?x?x2x8xf32, "B,S sp=2/2">
!w = tensor<32x32xf32, "sp=*">
!wk = tensor<16x32xf32, "sp=*">
!g = tensor<32xf32, "sp=*">
!t = tensor<?x32x?xf32, "B,S sp=2">
!d = tensor<?x?xi32, "B,S sp=1">
!d1 = tensor<?x?xi32, "B,S sp=1">
!da = tensor<?x?xi32, "B,S sp=*">
!l = tensor<?x?x4xf32, "B,S sp=2">
!wg = tensor<48x32xf32, "sp=*">
!wd = tensor<32x48xf32, "sp=*">

module attributes {uly.grid = [["sp", "S"]], uly.symbols = ["B", "S"]} {
// q, k and v of one input, with bias, map and heads, are one kernel, whose results are the message; attention another.
// CHECK-LABEL: func.func @message(
func.func @message(%a0: !x, %a1: !c, %a2: !c, %a3: !d, %a4: !w) -> (!q) attributes {uly.entry} {
  // CHECK: call @[[MESSAGE:k[0-9]+_gemm]](%[[N:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
  // CHECK: "uly.exchange"(%[[M:.*]]#0, %[[M]]#1, %[[M]]#2)
  // CHECK: %[[DOC:.*]] = "uly.all_gather"
  // CHECK: call @[[ATTENTION:k[0-9]+_attention]](%[[E:.*]]#0, %[[E]]#1, %[[E]]#2, %[[DOC]])
  // CHECK: "uly.exchange"(
  %0 = "uly.param"() {names = ["q.weight"]} : () -> !w
  %1 = "uly.linear"(%a0, %0) : (!x, !w) -> !x
  %2 = "uly.heads"(%1) : (!x) -> !q
  %3 = "uly.param"() {names = ["k.weight"]} : () -> !wk
  %4 = "uly.param"() {init = 0.000000e+00 : f64, names = ["k.bias"]} : () -> tensor<16xf32, "sp=*">
  %5 = "uly.linear"(%a0, %3, %4) : (!x, !wk, tensor<16xf32, "sp=*">) -> !v
  %6 = "uly.heads"(%5) : (!v) -> !k
  %7 = "uly.param"() {names = ["v.weight"]} : () -> !wk
  %8 = "uly.linear"(%a0, %7) : (!x, !wk) -> !v
  %9 = "uly.map"(%8) {access = [#id], expr = "x0 * 0.5", operandSegmentSizes = #m1} : (!v) -> !v
  %10 = "uly.heads"(%9) : (!v) -> !k
  %11:3 = "uly.exchange"(%2, %6, %10) {axis = "sp", operandSegmentSizes = #e3, resultSegmentSizes = #e3} : (!q, !k, !k) -> (!qh, !kh, !kh)
  %12 = "uly.all_gather"(%a3) {axis = "sp"} : (!d) -> !da
  %13:2 = "uly.attention"(%11#0, %11#1, %11#2, %12) {captures = 3 : i64, mask = "k <= q and c0i[b, q] == c0i[b, k]", operandSegmentSizes = #m4, scale = 0.35355339059327373 : f64} : (!qh, !kh, !kh, !da) -> (!qh, !l)
  %14 = "uly.exchange"(%13#0) {axis = "sp", operandSegmentSizes = #e1, resultSegmentSizes = #e1} : (!qh) -> !q
  return %14 : !q
}

// Linears of different inputs do not share a kernel, but its code.
// CHECK-LABEL: func.func @apart(
func.func @apart(%a0: !x, %a1: !x) -> (!q) attributes {uly.entry} {
  // CHECK: call @[[VALUES:k[0-9]+_rows]](
  // CHECK: "uly.heads"(
  // CHECK: call @[[HEADS:k[0-9]+_gemm]](%arg0
  // CHECK: call @[[HEADS]](%arg1
  %0 = "uly.param"() {names = ["aq.weight"]} : () -> !w
  %1 = "uly.linear"(%a0, %0) : (!x, !w) -> !x
  %2 = "uly.heads"(%1) : (!x) -> !q
  %3 = "uly.param"() {names = ["ak.weight"]} : () -> !w
  %4 = "uly.linear"(%a1, %3) : (!x, !w) -> !x
  %5 = "uly.heads"(%4) : (!x) -> !q
  %6 = "uly.map"(%a0, %a1) {access = [#id, #id], expr = "x0 * x1", operandSegmentSizes = #m2} : (!x, !x) -> !x
  %7 = "uly.heads"(%6) : (!x) -> !q
  %8:3 = "uly.exchange"(%2, %5, %7) {axis = "sp", operandSegmentSizes = #e3, resultSegmentSizes = #e3} : (!q, !q, !q) -> (!qh, !qh, !qh)
  %9:2 = "uly.attention"(%8#0, %8#1, %8#2) {captures = 3 : i64, mask = "k <= q", operandSegmentSizes = #m3, scale = 0.35355339059327373 : f64} : (!qh, !qh, !qh) -> (!qh, !l)
  %10 = "uly.exchange"(%9#0) {axis = "sp", operandSegmentSizes = #e1, resultSegmentSizes = #e1} : (!qh) -> !q
  return %10 : !q
}

// Other angles: two calls. What is sent twice is made once.
// CHECK-LABEL: func.func @turned(
func.func @turned(%a0: !x) -> (!q) attributes {uly.entry} {
  // CHECK: %[[K:.*]] = call @[[ROPE:k[0-9]+_gemm]](%arg0
  // CHECK: %[[Q:.*]] = call @[[ROPE]](%arg0
  // CHECK: "uly.exchange"(%[[Q]], %[[K]], %[[K]])
  %0 = "uly.param"() {names = ["tq.weight"]} : () -> !w
  %1 = "uly.linear"(%a0, %0) : (!x, !w) -> !x
  %2 = "uly.heads"(%1) : (!x) -> !q
  %3 = "uly.map"() {access = [], expr = "wide cos(float(i1) * 100.0 ** (-0.25 * float(i2)))", operandSegmentSizes = #m0} : () -> !c
  %4 = "uly.map"() {access = [], expr = "wide sin(float(i1) * 100.0 ** (-0.25 * float(i2)))", operandSegmentSizes = #m0} : () -> !c
  %5 = "uly.rope"(%2, %3, %4) {pairs = "half"} : (!q, !c, !c) -> !q
  %6 = "uly.param"() {names = ["tk.weight"]} : () -> !w
  %7 = "uly.linear"(%a0, %6) : (!x, !w) -> !x
  %8 = "uly.heads"(%7) : (!x) -> !q
  %9 = "uly.map"() {access = [], expr = "wide cos(float(i1) * 200.0 ** (-0.25 * float(i2)))", operandSegmentSizes = #m0} : () -> !c
  %10 = "uly.map"() {access = [], expr = "wide sin(float(i1) * 200.0 ** (-0.25 * float(i2)))", operandSegmentSizes = #m0} : () -> !c
  %11 = "uly.rope"(%8, %9, %10) {pairs = "half"} : (!q, !c, !c) -> !q
  %12:3 = "uly.exchange"(%5, %11, %11) {axis = "sp", operandSegmentSizes = #e3, resultSegmentSizes = #e3} : (!q, !q, !q) -> (!qh, !qh, !qh)
  %13:2 = "uly.attention"(%12#0, %12#1, %12#2) {captures = 3 : i64, mask = "k <= q", operandSegmentSizes = #m3, scale = 0.35355339059327373 : f64} : (!qh, !qh, !qh) -> (!qh, !l)
  %14 = "uly.exchange"(%13#0) {axis = "sp", operandSegmentSizes = #e1, resultSegmentSizes = #e1} : (!qh) -> !q
  return %14 : !q
}

// gate and up are two accumulators of one kernel; a residual is an epilogue.
// CHECK-LABEL: func.func @pair(
func.func @pair(%a0: !x, %a1: !x) -> (!x) attributes {uly.entry} {
  // CHECK: %[[F:.*]] = call @[[PAIR:k[0-9]+_gemm]](%arg0, %{{.*}}, %{{.*}})
  // CHECK: call @[[DOWN:k[0-9]+_gemm]](%[[F]], %{{.*}}, %arg1)
  %0 = "uly.param"() {names = ["gate.weight"]} : () -> !wg
  %1 = "uly.linear"(%a0, %0) : (!x, !wg) -> !f
  %2 = "uly.map"(%1) {access = [#id], expr = "x0 * sigmoid(x0)", operandSegmentSizes = #m1} : (!f) -> !f
  %3 = "uly.param"() {names = ["up.weight"]} : () -> !wg
  %4 = "uly.linear"(%a0, %3) : (!x, !wg) -> !f
  %5 = "uly.map"(%2, %4) {access = [#id, #id], expr = "x0 * x1", operandSegmentSizes = #m2} : (!f, !f) -> !f
  %6 = "uly.param"() {names = ["down.weight"]} : () -> !wd
  %7 = "uly.linear"(%5, %6) : (!f, !wd) -> !x
  %8 = "uly.map"(%a1, %7) {access = [#id, #id], expr = "x0 + x1", operandSegmentSizes = #m2} : (!x, !x) -> !x
  return %8 : !x
}

// Used twice: stays a value.
// CHECK-LABEL: func.func @both(
func.func @both(%a0: !x) -> (!x, !x) attributes {uly.entry} {
  // CHECK: %[[Y:.*]] = call @[[PLAIN:k[0-9]+_gemm]](
  // CHECK: %[[Z:.*]] = call @{{k[0-9]+_rows}}(%[[Y]])
  // CHECK: return %[[Y]], %[[Z]]
  %0 = "uly.param"() {names = ["both.weight"]} : () -> !w
  %1 = "uly.linear"(%a0, %0) : (!x, !w) -> !x
  %2 = "uly.map"(%1) {access = [#id], expr = "x0 * 2.0", operandSegmentSizes = #m1} : (!x) -> !x
  return %1, %2 : !x, !x
}

// Norms take in the maps before and behind them.
// CHECK-LABEL: func.func @norms(
func.func @norms(%a0: !x, %a1: !x, %a2: !s) -> (!x, !x) attributes {uly.entry} {
  // CHECK: call @[[NORM:k[0-9]+_rows]](%arg0, %arg1, %{{.*}}, %arg2)
  // CHECK: call @[[LAYERNORM:k[0-9]+_rows]](%arg0,
  %0 = "uly.map"(%a0, %a1) {access = [#id, #id], expr = "x0 + x1", operandSegmentSizes = #m2} : (!x, !x) -> !x
  %1 = "uly.param"() {init = 1.000000e+00 : f64, names = ["n.weight"]} : () -> !g
  %2 = "uly.rmsnorm"(%0, %1) {eps = 9.9999999999999995E-7 : f64} : (!x, !g) -> !x
  %3 = "uly.map"(%2) {access = [#id], expr = "tanh(x0)", operandSegmentSizes = #m1} : (!x) -> !x
  %4 = "uly.map"(%a2) {access = [#row], expr = "x0", operandSegmentSizes = #m1} : (!s) -> !s1
  %5 = "uly.map"(%3, %4) {access = [#id, #kept], expr = "x0 * x1", operandSegmentSizes = #m2} : (!x, !s1) -> !x
  %6 = "uly.map"(%a0) {access = [#id], expr = "x0 * 2.0", operandSegmentSizes = #m1} : (!x) -> !x
  %7 = "uly.param"() {init = 1.000000e+00 : f64, names = ["m.weight"]} : () -> !g
  %8 = "uly.param"() {init = 0.000000e+00 : f64, names = ["m.bias"]} : () -> !g
  %9 = "uly.layernorm"(%6, %7, %8) {eps = 1.000000e-05 : f64} : (!x, !g, !g) -> !x
  return %5, %9 : !x, !x
}

// exp(s) is evaluated once a row, not once an element; exp(x) has two users; an index is cheaper than a value.
// CHECK-LABEL: func.func @maps(
func.func @maps(%a0: !x, %a1: !s, %a2: !g) -> (!x, !x, !x) attributes {uly.entry} {
  // CHECK: %[[T:.*]] = call @{{k[0-9]+_rows}}(%arg1)
  // CHECK: %[[U:.*]] = call @{{k[0-9]+_rows}}(%arg0)
  // CHECK: call @[[STRETCH:k[0-9]+_rows]](%arg0, %[[T]])
  // CHECK: call @{{k[0-9]+_rows}}(%[[U]], %arg2)
  // CHECK: call @[[INDEX:k[0-9]+_rows]](%[[U]])
  %0 = "uly.map"(%a1) {access = [#row], expr = "exp(x0)", operandSegmentSizes = #m1} : (!s) -> !s
  %1 = "uly.map"(%a0) {access = [#id], expr = "exp(x0)", operandSegmentSizes = #m1} : (!x) -> !x
  %2 = "uly.map"(%0) {access = [#row], expr = "x0", operandSegmentSizes = #m1} : (!s) -> !s1
  %3 = "uly.map"(%a0, %2) {access = [#id, #kept], expr = "x0 * x1", operandSegmentSizes = #m2} : (!x, !s1) -> !x
  %4 = "uly.map"(%1, %a2) {access = [#id, array<i64: 2>], expr = "x0 + x1", operandSegmentSizes = #m2} : (!x, !g) -> !x
  %5 = "uly.map"() {access = [], expr = "i1", operandSegmentSizes = #m0} : () -> !d
  %6 = "uly.map"(%5) {access = [#row], expr = "x0i", operandSegmentSizes = #m1} : (!d) -> tensor<?x?x1xi32, "B,S sp=1">
  %7 = "uly.map"(%1, %6) {access = [#id, #kept], expr = "x0 * float(x1i)", operandSegmentSizes = #m2} : (!x, tensor<?x?x1xi32, "B,S sp=1">) -> !x
  return %3, %4, %7 : !x, !x, !x
}

// Maps of maps are one map, through transpositions.
// CHECK-LABEL: func.func @chain(
func.func @chain(%a0: !x, %a1: !t) -> (!x) attributes {uly.entry} {
  // CHECK: %[[Y:.*]] = call @[[CHAIN:k[0-9]+_rows]](%arg0, %arg1)
  // CHECK: return %[[Y]]
  %0 = "uly.map"(%a0) {access = [#id], expr = "x0 * 2.0", operandSegmentSizes = #m1} : (!x) -> !x
  %1 = "uly.map"(%0) {access = [#id], expr = "exp(x0)", operandSegmentSizes = #m1} : (!x) -> !x
  %2 = "uly.map"(%a1) {access = [#id], expr = "x0 + 1.0", operandSegmentSizes = #m1} : (!t) -> !t
  %3 = "uly.map"(%2) {access = [#id], expr = "sin(x0)", operandSegmentSizes = #m1} : (!t) -> !t
  %4 = "uly.map"(%3) {access = [array<i64: 0, 2, 1>], expr = "x0", operandSegmentSizes = #m1} : (!t) -> !x
  %5 = "uly.map"(%1, %4) {access = [#id, #id], expr = "x0 + x1", operandSegmentSizes = #m2} : (!x, !x) -> !x
  return %5 : !x
}

// A sum over rows is a kernel of its own, exact; one over columns goes row by row.
// CHECK-LABEL: func.func @sums(
func.func @sums(%a0: !x, %a1: !s) -> (tensor<?x32xf32, "B sp=*">, !s) attributes {uly.entry} {
  // CHECK: %[[P:.*]] = call @[[ROWSUM:k[0-9]+_rowsum]](%arg0, %arg1)
  // CHECK: %[[B:.*]] = call @[[SUM:k[0-9]+_rows]](%arg0)
  // CHECK: %[[A:.*]] = "uly.reduce"(%[[P]])
  // CHECK: return %[[A]], %[[B]]
  %0 = "uly.map"(%a1) {access = [#row], expr = "x0", operandSegmentSizes = #m1} : (!s) -> !s1
  %1 = "uly.map"(%a0, %0) {access = [#id, #kept], expr = "x0 * x1", operandSegmentSizes = #m2} : (!x, !s1) -> !x
  %2 = "uly.sum"(%1) {dim = 1 : i64} : (!x) -> tensor<?x32xf32, "B sp=+">
  %3 = "uly.map"(%a0) {access = [#id], expr = "x0 * x0", operandSegmentSizes = #m1} : (!x) -> !x
  %4 = "uly.sum"(%3) {dim = 2 : i64} : (!x) -> !s
  %5 = "uly.map"(%4) {access = [#row], expr = "0.5 * x0", operandSegmentSizes = #m1} : (!s) -> !s
  %6 = "uly.reduce"(%2) {axis = "sp"} : (tensor<?x32xf32, "B sp=+">) -> tensor<?x32xf32, "B sp=*">
  return %6, %5 : tensor<?x32xf32, "B sp=*">, !s
}

// Softmax takes in the map before it and the one behind it; a sum of ints adds rows up whatever its dim, and takes its terms in.
// CHECK-LABEL: func.func @softmaxes(
func.func @softmaxes(%a0: !x) -> (!x, tensor<?x?xi64, "B,S sp=1">) attributes {uly.entry} {
  // CHECK: %[[P:.*]] = call @[[SOFTMAX:k[0-9]+_rows]](%arg0)
  // CHECK: %[[N:.*]] = call @[[COUNT:k[0-9]+_rowsum]](%arg0)
  // CHECK: return %[[P]], %[[N]]
  %0 = "uly.map"(%a0) {access = [#id], expr = "8.0 * x0", operandSegmentSizes = #m1} : (!x) -> !x
  %1 = "uly.softmax"(%0) : (!x) -> !x
  %2 = "uly.map"(%1) {access = [#id], expr = "x0 + 1.0", operandSegmentSizes = #m1} : (!x) -> !x
  %3 = "uly.map"(%a0) {access = [#id], expr = "x0 > 0.0", operandSegmentSizes = #m1} : (!x) -> tensor<?x?x32xi1, "B,S sp=1">
  %4 = "uly.sum"(%3) {dim = 2 : i64} : (tensor<?x?x32xi1, "B,S sp=1">) -> tensor<?x?xi64, "B,S sp=1">
  return %2, %4 : !x, tensor<?x?xi64, "B,S sp=1">
}

// A wide map stays apart from f32 code.
// CHECK-LABEL: func.func @angles(
func.func @angles(%a0: !s) -> (!c) attributes {uly.entry} {
  // CHECK: call @{{k[0-9]+_rows}}()
  // CHECK: call @{{k[0-9]+_rows}}(%arg0,
  %0 = "uly.map"(%a0) {access = [#row], expr = "x0", operandSegmentSizes = #m1} : (!s) -> !s1
  %1 = "uly.map"() {access = [], expr = "i0", operandSegmentSizes = #m0} : () -> tensor<4xi32, "sp=*">
  %2 = "uly.map"(%1) {access = [array<i64: 0>], expr = "-0.25 * float(x0i)", operandSegmentSizes = #m1} : (tensor<4xi32, "sp=*">) -> tensor<4xf32, "sp=*">
  %3 = "uly.map"(%2) {access = [array<i64: 0>], expr = "100.0 ** x0", operandSegmentSizes = #m1} : (tensor<4xf32, "sp=*">) -> tensor<4xf32, "sp=*">
  %4 = "uly.map"(%0, %3) {access = [#kept, array<i64: 2>], expr = "x0 * x1", operandSegmentSizes = #m2} : (!s1, tensor<4xf32, "sp=*">) -> !c
  %5 = "uly.map"(%4) {access = [#id], expr = "cos(x0)", operandSegmentSizes = #m1} : (!c) -> !c
  return %5 : !c
}

// In loops as outside, and one function for equal code: this is @pair's, @both's.
// CHECK-LABEL: func.func @loop(
func.func @loop(%x: !x) -> !x attributes {uly.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  // CHECK: scf.for %{{.*}} iter_args(%[[Y:.*]] = %arg0)
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%y = %x) -> (!x) {
    %w = "uly.param"() {names = ["w0", "w1", "w2"]} : () -> !w
    %z = "uly.linear"(%y, %w) : (!x, !w) -> !x
    // CHECK: %[[Z:.*]] = func.call @[[PLAIN]](%[[Y]], %{{.*}})
    // CHECK-NEXT: %[[U:.*]] = func.call @[[HALF:k[0-9]+_rows]](%[[Z]])
    // CHECK-NEXT: %[[V:.*]] = func.call @[[HALF]](%[[U]])
    // CHECK: func.call @{{k[0-9]+_rows}}(%[[V]], %{{.*}}, %[[Z]], %[[U]])
    %u = "uly.map"(%z) {expr = "x0 * 0.5", access = [#id], operandSegmentSizes = #m1} : (!x) -> !x
    %v = "uly.map"(%u) {expr = "x0 * 0.5", access = [#id], operandSegmentSizes = #m1} : (!x) -> !x
    %g = "uly.param"() {names = ["g"]} : () -> !g
    %n = "uly.rmsnorm"(%v, %g) {eps = 1.0e-5 : f64} : (!x, !g) -> !x
    %s = "uly.map"(%n, %z, %u, %v) {expr = "x0 + x1 * x2 - x3", access = [#id, #id, #id, #id], operandSegmentSizes = #m4} : (!x, !x, !x, !x) -> !x
    scf.yield %s : !x
  }
  return %r : !x
}

// A wide producer is not taken in: it has been rounded to f32.
// CHECK-LABEL: func.func @wide(
func.func @wide(%x: !x) -> !x attributes {uly.entry} {
  // CHECK: %[[A:.*]] = call @[[WIDE:k[0-9]+_rows]](%arg0)
  // CHECK: call @{{k[0-9]+_rows}}(%[[A]])
  %a = "uly.map"(%x) {expr = "wide cos(x0)", access = [#id], operandSegmentSizes = #m1} : (!x) -> !x
  %b = "uly.map"(%a) {expr = "x0 + 1.0", access = [#id], operandSegmentSizes = #m1} : (!x) -> !x
  return %b : !x
}

// A loss takes in the linear that makes its logits, with what is between; not where somebody else reads them too, or two linears meet.
// CHECK-LABEL: func.func @losses(
func.func @losses(%x: !x, %y: !d1, %w: !w) -> (!x, !s, !s, !s) attributes {uly.entry} {
  // CHECK: call @[[LOSS:k[0-9]+_gemm]](%arg0, %arg2, %arg1)
  // CHECK: %[[L:.*]] = call @[[PLAIN]](%arg0, %arg2)
  // CHECK-DAG: call @[[NLL:k[0-9]+_nll]](%[[L]], %arg1)
  // CHECK-DAG: %[[G:.*]] = call @{{k[0-9]+_gemm}}(%arg0, %arg2)
  // CHECK: call @[[NLL]](%[[G]], %arg1)
  %a = "uly.linear"(%x, %w) : (!x, !w) -> !x
  %b = "uly.map"(%a) {expr = "tanh(x0)", access = [#id], operandSegmentSizes = #m1} : (!x) -> !x
  %c = "uly.nll"(%b, %y) {ignore = -100 : i64} : (!x, !d1) -> !s
  %d = "uly.linear"(%x, %w) : (!x, !w) -> !x
  %e = "uly.nll"(%d, %y) {ignore = -100 : i64} : (!x, !d1) -> !s
  %f = "uly.linear"(%x, %w) : (!x, !w) -> !x
  %g = "uly.linear"(%x, %w) : (!x, !w) -> !x
  %h = "uly.map"(%f, %g) {expr = "x0 * x1", access = [#id, #id], operandSegmentSizes = #m2} : (!x, !x) -> !x
  %i = "uly.nll"(%h, %y) {ignore = -100 : i64} : (!x, !d1) -> !s
  return %d, %c, %e, %i : !x, !s, !s, !s
}
}

// CHECK: func.func private @[[MESSAGE]]({{.*}}) -> (tensor<?x?x4x8xf32, "B,S sp=1">, tensor<?x?x2x8xf32, "B,S sp=1">, tensor<?x?x2x8xf32, "B,S sp=1">) attributes {uly.kernel = "gemm"}
// CHECK-NEXT: %[[Q0:.*]] = "uly.linear"(%arg0, %arg1)
// CHECK-NEXT: %[[Q:.*]] = "uly.heads"(%[[Q0]])
// CHECK-NEXT: %[[K0:.*]] = "uly.linear"(%arg0, %arg2, %arg3)
// CHECK-NEXT: %[[K:.*]] = "uly.heads"(%[[K0]])
// CHECK-NEXT: %[[V0:.*]] = "uly.linear"(%arg0, %arg4)
// CHECK-NEXT: %[[V1:.*]] = "uly.map"(%[[V0]]) {{.*}}expr = "x0 * 0.5"
// CHECK-NEXT: %[[V:.*]] = "uly.heads"(%[[V1]])
// CHECK-NEXT: return %[[Q]], %[[K]], %[[V]]
// CHECK: func.func private @[[ATTENTION]]({{.*}} attributes {uly.kernel = "attention"}
// CHECK-NEXT: "uly.attention"(%arg0, %arg1, %arg2, %arg3) {captures = 3 : i64, mask = "k <= q and c0i[b, q] == c0i[b, k]"
// CHECK: func.func private @[[ROPE]](
// CHECK-NEXT: "uly.linear"
// CHECK-NEXT: "uly.heads"
// CHECK-NEXT: "uly.rope"(%{{.*}}, %arg2, %arg3) {pairs = "half"}
// CHECK: func.func private @[[PAIR]](
// CHECK-NEXT: %[[G:.*]] = "uly.linear"(%arg0, %arg1)
// CHECK-NEXT: %[[U:.*]] = "uly.linear"(%arg0, %arg2)
// CHECK-NEXT: "uly.map"(%[[G]], %[[U]]) {{.*}}expr = "x0 * sigmoid(x0) * x1"
// CHECK: func.func private @[[DOWN]](
// CHECK-NEXT: %[[D:.*]] = "uly.linear"(%arg0, %arg1)
// CHECK-NEXT: "uly.map"(%arg2, %[[D]]) {{.*}}expr = "x0 + x1"
// CHECK: func.func private @[[NORM]](
// CHECK-NEXT: %[[B:.*]] = "uly.map"(%arg0, %arg1) {{.*}}expr = "x0 + x1"
// CHECK-NEXT: %[[N:.*]] = "uly.rmsnorm"(%[[B]], %arg2)
// CHECK-NEXT: "uly.map"(%[[N]], %arg3) {access = [array<i64: 0, 1, 2>, array<i64: 0, 1>], expr = "tanh(x0) * x1"
// CHECK: func.func private @[[LAYERNORM]](
// CHECK-NEXT: "uly.map"(%arg0) {{.*}}expr = "x0 * 2.0"
// CHECK-NEXT: "uly.layernorm"
// CHECK: func.func private @[[STRETCH]](
// CHECK-NEXT: "uly.map"(%arg0, %arg1) {access = [array<i64: 0, 1, 2>, array<i64: 0, 1>], expr = "x0 * x1"
// CHECK: func.func private @[[INDEX]](
// CHECK-NEXT: "uly.map"(%arg0) {{.*}}expr = "x0 * float(i1)"
// CHECK: func.func private @[[CHAIN]](
// CHECK-NEXT: "uly.map"(%arg0, %arg1) {access = [array<i64: 0, 1, 2>, array<i64: 0, 2, 1>], expr = "exp(x0 * 2.0) + sin(x1 + 1.0)"
// CHECK: func.func private @[[ROWSUM]]({{.*}} -> tensor<?x32xf32, "B sp=+">
// CHECK-NEXT: "uly.map"(%arg0, %arg1) {{.*}}expr = "x0 * x1"
// CHECK-NEXT: "uly.sum"(%{{.*}}) {dim = 1 : i64}
// CHECK: func.func private @[[SUM]](
// CHECK-NEXT: "uly.map"(%arg0) {{.*}}expr = "x0 * x0"
// CHECK-NEXT: "uly.sum"(%{{.*}}) {dim = 2 : i64}
// CHECK-NEXT: "uly.map"({{.*}}expr = "0.5 * x0"
// CHECK: func.func private @[[WIDE]](
// CHECK-NEXT: "uly.map"(%arg0) {{.*}}expr = "wide cos(x0)"
// CHECK: func.func private @[[LOSS]](
// CHECK-NEXT: %[[L0:.*]] = "uly.linear"(%arg0, %arg1)
// CHECK-NEXT: %[[L1:.*]] = "uly.map"(%[[L0]]) {{.*}}expr = "tanh(x0)"
// CHECK-NEXT: "uly.nll"(%[[L1]], %arg2) {ignore = -100 : i64}
// CHECK: func.func private @[[NLL]]({{.*}} attributes {uly.kernel = "nll"}
// CHECK-NEXT: "uly.nll"(%arg0, %arg1)

// Without fusion a function has one operation, and heads and rope stay where they were.
// UNFUSED-LABEL: func.func @message(
// UNFUSED: %[[Q:.*]] = call @{{k[0-9]+_gemm}}(
// UNFUSED: %[[QH:.*]] = "uly.heads"(%[[Q]])
// UNFUSED: call @{{k[0-9]+_gemm}}(
// UNFUSED: %[[V0:.*]] = call @{{k[0-9]+_gemm}}(
// UNFUSED-NEXT: %[[V1:.*]] = call @{{k[0-9]+_rows}}(%[[V0]])
// UNFUSED-NEXT: %[[V:.*]] = "uly.heads"(%[[V1]])
// UNFUSED-NEXT: "uly.exchange"(%[[QH]], %{{.*}}, %[[V]])
// UNFUSED-LABEL: func.func @turned(
// UNFUSED: "uly.heads"
// UNFUSED: "uly.rope"
// UNFUSED-LABEL: func.func @losses(
// UNFUSED: call @{{k[0-9]+_gemm}}
// UNFUSED: call @{{k[0-9]+_rows}}
// UNFUSED: call @{{k[0-9]+_nll}}
// UNFUSED: func.func private
// UNFUSED-NEXT: "uly.
// UNFUSED-NEXT: return
