// RUN: %opt --passes=fold_collectives %s | FileCheck %s

#s1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#e1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#e2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>
!r = tensor<?x?x4x16xf32, "B,S sp=1">
!h = tensor<?x?x4x16xf32, "B,S sp=2">
!d = tensor<?x?xi32, "B,S sp=1">
!g = tensor<?x?xi32, "B,S sp=*">

module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"]]} {
// Gathers of what no iteration changes move out of both loops and become one; parameters of an iteration stay.
// CHECK-LABEL: func.func @invariant(
func.func @invariant(%doc: !d, %x0: !g) -> !g {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  // CHECK: %[[G:.*]] = "uly.all_gather"
  // CHECK: scf.for
  %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %x0) -> (!g) {
    // CHECK: scf.for
    %z = scf.for %j = %c0 to %c3 step %c1 iter_args(%u = %x) -> (!g) {
      // CHECK-NOT: uly.all_gather
      // CHECK: "uly.param"
      %a = "uly.all_gather"(%doc) {axis = "sp"} : (!d) -> !g
      %b = "uly.all_gather"(%doc) {axis = "sp"} : (!d) -> !g
      %p = "uly.param"() {names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"]} : () -> tensor<1x1xi32, "sp=*">
      // CHECK: "uly.map"(%[[G]], %[[G]]
      %m = "uly.map"(%a, %b, %p, %u) {expr = "x0i + x1i + x2i + x3i", access = [array<i64: 0, 1>, array<i64: 0, 1>, array<i64: -1, -1>, array<i64: 0, 1>],
        operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!g, !g, tensor<1x1xi32, "sp=*">, !g) -> !g
      scf.yield %m : !g
    }
    scf.yield %z : !g
  }
  return %y : !g
}

// A table of a loop is another number in each iteration: what reads it stays, and it is not that of another loop.
// CHECK-LABEL: func.func @tables(
func.func @tables(%a: !r, %c0: index, %c2: index, %c1: index) -> !r {
  // CHECK: scf.for
  // CHECK-NEXT: %[[T:.*]] = "uly.table"
  // CHECK-NEXT: "uly.map"(%{{.*}}, %[[T]])
  // CHECK: scf.for
  // CHECK-NEXT: %[[U:.*]] = "uly.table"
  // CHECK-NEXT: "uly.map"(%{{.*}}, %[[U]])
  %x = scf.for %i = %c0 to %c2 step %c1 iter_args(%y = %a) -> (!r) {
    %t = "uly.table"() {numbers = array<f64: 1.0, 2.0>} : () -> tensor<f64, "sp=*">
    %m = "uly.map"(%a, %t) {expr = "x0 * x1", access = [array<i64: 0, 1, 2, 3>, array<i64>], operandSegmentSizes = #s2} : (!r, tensor<f64, "sp=*">) -> !r
    scf.yield %m : !r
  }
  %z = scf.for %i = %c0 to %c2 step %c1 iter_args(%y = %x) -> (!r) {
    %t = "uly.table"() {numbers = array<f64: 1.0, 2.0>} : () -> tensor<f64, "sp=*">
    %m = "uly.map"(%x, %t) {expr = "x0 * x1", access = [array<i64: 0, 1, 2, 3>, array<i64>], operandSegmentSizes = #s2} : (!r, tensor<f64, "sp=*">) -> !r
    scf.yield %m : !r
  }
  return %z : !r
}

// There and back is where it was; the other half of the exchange stays.
// CHECK-LABEL: func.func @inverse(
// CHECK-SAME: %[[A:[a-z0-9]+]]: {{[^%]*}}%[[B:[a-z0-9]+]]:
func.func @inverse(%a: !r, %b: !r) -> (!r, !h) {
  // CHECK: %[[E:.*]] = "uly.exchange"(%[[B]])
  // CHECK-NEXT: return %[[A]], %[[E]]
  %e:2 = "uly.exchange"(%a, %b) {axis = "sp", operandSegmentSizes = #e2, resultSegmentSizes = #e2} : (!r, !r) -> (!h, !h)
  %f = "uly.exchange"(%e#0) {axis = "sp", operandSegmentSizes = #e1, resultSegmentSizes = #e1} : (!h) -> !r
  return %f, %e#1 : !r, !h
}

// Nobody reads them.
// CHECK-LABEL: func.func @dead(
func.func @dead(%a: !r) -> !r {
  // CHECK-NEXT: return
  %e = "uly.exchange"(%a) {axis = "sp", operandSegmentSizes = #e1, resultSegmentSizes = #e1} : (!r) -> !h
  %f = "uly.map"(%e) {expr = "x0", access = [array<i64: 0, 1, 2, 3>], operandSegmentSizes = #s1} : (!h) -> !h
  return %a : !r
}

// Equal, but for an attribute: both stay.
// CHECK-LABEL: func.func @not_equal(
func.func @not_equal(%a: tensor<?x8xf32, "B sp=*">) -> (tensor<?x4xf32, "B sp=*">, tensor<?x4xf32, "B sp=*">) {
  // CHECK: "uly.slice"
  // CHECK: "uly.slice"
  %e = "uly.slice"(%a) {dim = 1, begin = "0", end = "4"} : (tensor<?x8xf32, "B sp=*">) -> tensor<?x4xf32, "B sp=*">
  %f = "uly.slice"(%a) {dim = 1, begin = "4", end = "8"} : (tensor<?x8xf32, "B sp=*">) -> tensor<?x4xf32, "B sp=*">
  return %e, %f : tensor<?x4xf32, "B sp=*">, tensor<?x4xf32, "B sp=*">
}

// Heads that are merged again are what they were made of; merged into something else they are not.
// CHECK-LABEL: func.func @merged(
// CHECK-NEXT: %[[M:.*]] = "uly.reshape"
// CHECK-NEXT: return %arg0, %[[M]]
func.func @merged(%x: tensor<?x?x64xf32, "B,S sp=1">) -> (tensor<?x?x64xf32, "B,S sp=1">, tensor<?x?x2x32xf32, "B,S sp=1">) {
  %h = "uly.heads"(%x) : (tensor<?x?x64xf32, "B,S sp=1">) -> !r
  %m = "uly.merge"(%h) : (!r) -> tensor<?x?x64xf32, "B,S sp=1">
  %a = "uly.reshape"(%m) : (tensor<?x?x64xf32, "B,S sp=1">) -> tensor<?x?x2x32xf32, "B,S sp=1">
  return %m, %a : tensor<?x?x64xf32, "B,S sp=1">, tensor<?x?x2x32xf32, "B,S sp=1">
}
}
