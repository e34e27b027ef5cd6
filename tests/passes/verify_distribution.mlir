// RUN: %opt --passes=verify_distribution %s | FileCheck %s
// What the lattice allows beyond what infer_distribution makes: tensor-parallel linears, sums of partial sums, covers through row operations.

#s1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s3 = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#e1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"]]} {
// CHECK-LABEL: func.func @columns
func.func @columns(%x: tensor<?x64xf32, "S sp=*">, %w: tensor<96x64xf32, "sp=0">, %b: tensor<96xf32, "sp=0">, %v: tensor<64x96xf32, "sp=1">) -> tensor<?x64xf32, "S sp=+"> {
  %y = "uly.linear"(%x, %w, %b) : (tensor<?x64xf32, "S sp=*">, tensor<96x64xf32, "sp=0">, tensor<96xf32, "sp=0">) -> tensor<?x96xf32, "S sp=1">
  %z = "uly.linear"(%y, %v) : (tensor<?x96xf32, "S sp=1">, tensor<64x96xf32, "sp=1">) -> tensor<?x64xf32, "S sp=+">
  return %z : tensor<?x64xf32, "S sp=+">
}
// CHECK-LABEL: func.func @linear_maps
func.func @linear_maps(%a: tensor<8xf32, "sp=+">, %b: tensor<8xf32, "sp=+">, %c: tensor<8xf32, "sp=*">) -> tensor<f32, "sp=*"> {
  %m = "uly.map"(%a, %b, %c) {expr = "-(x0 - 2.0 * x1) / x2", access = [array<i64: 0>, array<i64: 0>, array<i64: 0>], operandSegmentSizes = #s3}
    : (tensor<8xf32, "sp=+">, tensor<8xf32, "sp=+">, tensor<8xf32, "sp=*">) -> tensor<8xf32, "sp=+">
  %n = "uly.sum"(%m) {dim = 0} : (tensor<8xf32, "sp=+">) -> tensor<f32, "sp=+">
  %r = "uly.reduce"(%n) {axis = "sp"} : (tensor<f32, "sp=+">) -> tensor<f32, "sp=*">
  return %r : tensor<f32, "sp=*">
}
// CHECK-LABEL: func.func @covers
func.func @covers(%k: tensor<?x?x2x16xf32, "B,S sp=2/2">) -> tensor<?x?x2x16xf32, "B,S sp=2/2"> {
  %m = "uly.map"(%k) {expr = "x0 * x0", access = [array<i64: 0, 1, 2, 3>], operandSegmentSizes = #s1} : (tensor<?x?x2x16xf32, "B,S sp=2/2">) -> tensor<?x?x2x16xf32, "B,S sp=2/2">
  return %m : tensor<?x?x2x16xf32, "B,S sp=2/2">
}
// CHECK-LABEL: func.func @casts
func.func @casts(%f: tensor<64x8xf32, "sp=flat">, %d: tensor<?x2x16xf32, "S sp=1/2+">) -> (tensor<64x8xf32, "sp=*">, tensor<?x2x16xf32, "S sp=0">) {
  %g = "uly.all_gather"(%f) {axis = "sp"} : (tensor<64x8xf32, "sp=flat">) -> tensor<64x8xf32, "sp=*">
  %e = "uly.exchange"(%d) {axis = "sp", operandSegmentSizes = #e1, resultSegmentSizes = #e1} : (tensor<?x2x16xf32, "S sp=1/2+">) -> tensor<?x2x16xf32, "S sp=0">
  return %g, %e : tensor<64x8xf32, "sp=*">, tensor<?x2x16xf32, "S sp=0">
}
}
