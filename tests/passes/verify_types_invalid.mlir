// RUN: %not %opt --passes=verify_distribution %s 2>&1 | FileCheck %s
// Encodings, shapes and attributes that are wrong, each at its place.

#s1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>

module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"]]} {
func.func @f(%a: tensor<?x8xf32>, %b: tensor<?x8xf32, "R">, %c: tensor<?x8xf32, "S sp=2">, %d: tensor<?x8xf32, "S tp=0">, %e: tensor<?x8xf32, "S  sp=0">, %g: tensor<?x8xf32, "1*S sp=0">,
             %h: tensor<?x8xf32, "S sp=1/1">, %i: tensor<?x8xf32, "S+1 sp=0">, %j: tensor<8xf32, "S sp=*">, %k: tensor<?x8xf32, "S sp=both">, %l: tensor<?x8xf32, "S">, %w: tensor<96x8xf32>) {
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.merge: type of operand 0: dim 0 is dynamic and has no name
  %0 = "uly.merge"(%a) : (tensor<?x8xf32>) -> tensor<8xf32>
  // CHECK: type of operand 0: `R` is no free symbol of this module (uly.symbols)
  %1 = "uly.merge"(%b) : (tensor<?x8xf32, "R">) -> tensor<8xf32>
  // CHECK: type of operand 0: sp cuts dim 2, but there are 2 dims
  %2 = "uly.merge"(%c) : (tensor<?x8xf32, "S sp=2">) -> tensor<8xf32>
  // CHECK: type of operand 0: expected `sp=…`, found `tp=0`: each axis of the grid has its word, in order
  %3 = "uly.merge"(%d) : (tensor<?x8xf32, "S tp=0">) -> tensor<8xf32>
  // CHECK: type of operand 0: expected `sp=…`, found ``
  %4 = "uly.merge"(%e) : (tensor<?x8xf32, "S  sp=0">) -> tensor<8xf32>
  // CHECK: type of operand 0: `1*S sp=0` is not how this encoding is written: `S sp=0`
  %5 = "uly.merge"(%g) : (tensor<?x8xf32, "1*S sp=0">) -> tensor<8xf32>
  // CHECK: type of operand 0: `1/1`: a cover is D/g with g of at least 2
  %6 = "uly.merge"(%h) : (tensor<?x8xf32, "S sp=1/1">) -> tensor<8xf32>
  // CHECK: type of operand 0: sp splits dim 0, whose size S+1 is not whole units of its symbol
  %7 = "uly.merge"(%i) : (tensor<?x8xf32, "S+1 sp=0">) -> tensor<8xf32>
  // CHECK: type of operand 0: expected `sp=…`, found `S`
  %8 = "uly.merge"(%j) : (tensor<8xf32, "S sp=*">) -> tensor<8xf32>
  // CHECK: type of operand 0: `both` is no distribution: write *, D, D/g, +, D/g+ or flat
  %9 = "uly.merge"(%k) : (tensor<?x8xf32, "S sp=both">) -> tensor<8xf32>
  // CHECK: error: uly.linear: x and w: dim 1 is 8 and dim 1 is 96
  %wt = "uly.param"() {names = ["w"]} : () -> tensor<8x96xf32>
  %10 = "uly.linear"(%l, %wt) : (tensor<?x8xf32, "S">, tensor<8x96xf32>) -> tensor<?x8xf32, "S">
  // CHECK: error: uly.heads: H · D is not the size of the joined dim
  %11 = "uly.heads"(%l) : (tensor<?x8xf32, "S">) -> tensor<?x3x2xf32, "S">
  // CHECK: error: uly.sum has no attribute `dims`
  %12 = "uly.sum"(%l) {dim = 1, dims = 1} : (tensor<?x8xf32, "S">) -> tensor<?xf32, "S">
  // CHECK: error: uly.sum: attribute `keep` is a unit
  %13 = "uly.sum"(%l) {dim = 1, keep = true} : (tensor<?x8xf32, "S">) -> tensor<?x1xf32, "S">
  // CHECK: error: uly.map: an access names a dim that the result does not have
  %14 = "uly.map"(%l) {expr = "x0", access = [array<i64: 0, 2>], operandSegmentSizes = #s1} : (tensor<?x8xf32, "S">) -> tensor<?x8xf32, "S">
  return
}
}
