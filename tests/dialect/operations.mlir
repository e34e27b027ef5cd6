// RUN: %mlir-opt %s | %mlir-opt | FileCheck %s
// Every kind of slot: none, required, one optional, many optional.

#s1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s3 = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#e2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
!x = tensor<?x?x64xbf16, "B,S sp=1">
!q = tensor<?x?x4x16xbf16, "B,S sp=1">
!h = tensor<?x?x4x16xbf16, "B,S sp=2">

// CHECK-LABEL: func.func @f
func.func @f(%x: !x, %q: !q) -> (!x, !h) {
  // CHECK: "uly.param"() {names = ["w"], train}
  %w = "uly.param"() {names = ["w"], train} : () -> tensor<64x64xbf16, "sp=*">
  %b = "uly.param"() {names = ["b"]} : () -> tensor<64xbf16, "sp=*">
  // CHECK: "uly.linear"(%{{.*}}, %{{.*}}) : (
  %y = "uly.linear"(%x, %w) : (!x, tensor<64x64xbf16, "sp=*">) -> !x
  // CHECK: "uly.linear"(%{{.*}}, %{{.*}}, %{{.*}}) : (
  %z = "uly.linear"(%y, %w, %b) : (!x, tensor<64x64xbf16, "sp=*">, tensor<64xbf16, "sp=*">) -> !x
  // CHECK: "uly.map"
  %m = "uly.map"(%z) {expr = "tanh(x0)", access = [array<i64: 0, 1, 2>], operandSegmentSizes = #s1} : (!x) -> !x
  // CHECK: "uly.exchange"
  %e:2 = "uly.exchange"(%q, %q) {axis = "sp", operandSegmentSizes = #e2, resultSegmentSizes = #e2} : (!q, !q) -> (!h, !h)
  // CHECK: "uly.attention"
  %o, %l = "uly.attention"(%e#0, %e#1, %e#1) {mask = "k <= q", scale = 0.25, captures = 3, operandSegmentSizes = #s3} : (!h, !h, !h) -> (!h, tensor<?x?x4xf32, "B,S sp=2">)
  return %m, %o : !x, !h
}
