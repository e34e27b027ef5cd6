// RUN: %opt --passes=mark_load %s | FileCheck %s
// RUN: %opt --passes=mark_load,fuse %s | FileCheck --check-prefix=FUSED %s

#id = array<i64: 0, 1, 2>
#last = array<i64: 2>
#vec = array<i64: 0>
#m0 = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#m1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#m2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?x?x32xf32, "B,S sp=1">
!w = tensor<32x32xf32, "sp=*">
!g = tensor<32xf32, "sp=*">
!r = tensor<?xf32, "S sp=0">
module attributes {uly.grid = [["sp", "S"]], uly.symbols = ["B", "S"]} {
// An expression over parameters belongs to load, what reads the input does not. Fused, they stay apart.
// CHECK-LABEL: func.func @weights(
// FUSED-LABEL: func.func @weights(
func.func @weights(%a0: !x) -> (!x) attributes {uly.entry} {
  // CHECK: %[[G:.*]] = "uly.param"() {names = ["g"]}
  // CHECK-NEXT: %[[ONE:.*]] = "uly.map"(%[[G]]) {{.*}}uly.load}
  // CHECK-NEXT: %[[TWICE:.*]] = "uly.map"(%[[ONE]]) {{.*}}uly.load}
  // CHECK-NEXT: "uly.map"(%arg0, %[[TWICE]]) {
  // CHECK-NOT: uly.load
  // CHECK: "uly.linear"
  // CHECK-NOT: uly.load
  // CHECK: return
  // FUSED: %[[G:.*]] = "uly.param"
  // FUSED: %[[W:.*]] = call @[[LOAD:.*]](%[[G]]) {uly.load}
  // FUSED: %[[Y:.*]] = call @[[FORWARD:.*]](%arg0, %[[W]]) : (
  %0 = "uly.param"() {names = ["g"]} : () -> !g
  %1 = "uly.map"(%0) {access = [#vec], expr = "1.0 + x0", operandSegmentSizes = #m1} : (!g) -> !g
  %2 = "uly.map"(%1) {access = [#vec], expr = "2.0 * x0", operandSegmentSizes = #m1} : (!g) -> !g
  %3 = "uly.map"(%a0, %2) {access = [#id, #last], expr = "x0 * x1", operandSegmentSizes = #m2} : (!x, !g) -> !x
  %4 = "uly.param"() {names = ["w"]} : () -> !w
  %5 = "uly.linear"(%3, %4) : (!x, !w) -> !x
  return %5 : !x
}

// Sizes known only at bind: neither in a result's dims nor in an expression.
// CHECK-LABEL: func.func @sizes(
// CHECK-NOT: uly.load
// CHECK: return
func.func @sizes(%a0: !x) -> (!x, !r) attributes {uly.entry} {
  %0 = "uly.param"() {names = ["g"]} : () -> !g
  %1 = "uly.map"(%0) {access = [#vec], expr = "x0 * float(size(S))", operandSegmentSizes = #m1} : (!g) -> !g
  %2 = "uly.map"(%a0, %1) {access = [#id, #last], expr = "x0 * x1", operandSegmentSizes = #m2} : (!x, !g) -> !x
  %3 = "uly.map"() {access = [], expr = "float(i0)", operandSegmentSizes = #m0} : () -> !r
  return %2, %3 : !x, !r
}

// In a loop: a parameter with a name an iteration, one without, and a constant. The loop's own values do not belong to load, whatever it starts from.
// CHECK-LABEL: func.func @loop(
func.func @loop(%a0: !x) -> (!x, !g) attributes {uly.entry} {
  // CHECK: "uly.map"() {{.*}}uly.load}
  // CHECK: scf.for
  // CHECK: "uly.map"(%{{.*}}, %{{.*}}) {{.*}}expr = "x0 + x1"{{.*}}uly.load}
  // CHECK: "uly.map"(%{{.*}}) {access = [array<i64: 0>], expr = "x0 * x0", operandSegmentSizes = array<{{[^>]*}}>} :
  %0 = "uly.map"() {access = [], expr = "0.5", operandSegmentSizes = #m0} : () -> !g
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %1:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a0, %g = %0) -> (!x, !g) {
    %2 = "uly.param"() {names = ["g0", "g1", "g2"]} : () -> !g
    %3 = "uly.map"(%2, %0) {access = [#vec, #vec], expr = "x0 + x1", operandSegmentSizes = #m2} : (!g, !g) -> !g
    %4 = "uly.rmsnorm"(%x, %3) {eps = 1.000000e-06 : f64} : (!x, !g) -> !x
    %5 = "uly.map"(%g) {access = [#vec], expr = "x0 * x0", operandSegmentSizes = #m1} : (!g) -> !g
    scf.yield %4, %5 : !x, !g
  }
  return %1#0, %1#1 : !x, !g
}

// Weights that are only turned are packed from where they stand; not where something else reads them, or they are computed.
// CHECK-LABEL: func.func @turned(
// FUSED-LABEL: func.func @turned(
func.func @turned(%a0: !x) -> (!x, !x, !x, !w) attributes {uly.entry} {
  // CHECK: "uly.map"(%{{.*}}) {{.*}}expr = "x0"{{.*}}uly.load, uly.view}
  // CHECK: "uly.map"(%{{.*}}) {{.*}}expr = "2.0 * x0"{{.*}}uly.load}
  // CHECK: "uly.map"(%{{.*}}) {{.*}}expr = "x0"{{.*}}uly.load}
  // FUSED: %[[T:.*]] = "uly.map"(%{{.*}}) {{.*}}uly.view}
  // FUSED: %[[H:.*]] = "uly.slice"(%[[T]])
  // FUSED: call @{{.*}}_rows(
  // FUSED: call @{{.*}}_gemm(%arg0, %[[T]])
  %0 = "uly.param"() {names = ["t0"]} : () -> !w
  %1 = "uly.map"(%0) {access = [array<i64: 1, 0>], expr = "x0", operandSegmentSizes = #m1} : (!w) -> !w
  %2 = "uly.slice"(%1) {dim = 0, begin = "0", end = "32", uly.load} : (!w) -> !w
  %3 = "uly.map"(%0) {access = [array<i64: 1, 0>], expr = "2.0 * x0", operandSegmentSizes = #m1} : (!w) -> !w
  %4 = "uly.param"() {names = ["t1"]} : () -> !w
  %5 = "uly.map"(%4) {access = [array<i64: 1, 0>], expr = "x0", operandSegmentSizes = #m1} : (!w) -> !w
  %6 = "uly.linear"(%a0, %1) : (!x, !w) -> !x
  %7 = "uly.linear"(%6, %2) : (!x, !w) -> !x
  %8 = "uly.linear"(%7, %3) : (!x, !w) -> !x
  %9 = "uly.linear"(%8, %5) : (!x, !w) -> !x
  return %6, %7, %9, %5 : !x, !x, !x, !w
}
}
