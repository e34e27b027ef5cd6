// RUN: %not %opt --passes=verify_distribution %s 2>&1 | FileCheck %s
// What moves elements: shapes that do not fit, and shares that it does not keep.

#s2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
!l = tensor<?x8xf32, "S sp=0">

module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"]]} {

func.func @shapes(%l: !l, %two: tensor<2x8xf32, "sp=*">) {
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.slice: begin and end are numbers or sizes
  %15 = "uly.slice"(%l) {dim = 1, begin = "0", end = "R"} : (!l) -> !l
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.slice: a slice lies inside its dim
  %16 = "uly.slice"(%l) {dim = 1, begin = "4", end = "9"} : (!l) -> tensor<?x5xf32, "S sp=0">
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.slice: a slice lies inside its dim
  %17 = "uly.slice"(%l) {dim = 0, begin = "1", end = "S+1"} : (!l) -> tensor<?x8xf32, "S sp=*">
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.slice: the result has as many as the slice takes
  %18 = "uly.slice"(%l) {dim = 0, begin = "1", end = "S"} : (!l) -> tensor<?x8xf32, "S sp=*">
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.slice: begin and end are sizes of one symbol
  %19 = "uly.slice"(%l) {dim = 0, begin = "B", end = "S"} : (!l) -> tensor<?x8xf32, "S sp=*">
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.reshape: operand and result have as many elements
  %20 = "uly.reshape"(%l) : (!l) -> tensor<?x9xf32, "S sp=0">
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.concat: the result's last dim is the sum of its operands'
  %21 = "uly.concat"(%l, %l) {operandSegmentSizes = #s2} : (!l, !l) -> tensor<?x15xf32, "S sp=0">
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.concat: operand and result: dim 0 is 2 and dim 0 is S
  %22 = "uly.concat"(%l, %two) {operandSegmentSizes = #s2} : (!l, tensor<2x8xf32, "sp=*">) -> tensor<?x16xf32, "S sp=0">
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.shift: there is no such dim
  %23 = "uly.shift"(%l) {dim = 2, n = 1, fill = 0.0} : (!l) -> !l
  // CHECK: :[[@LINE+1]]:{{.*}} error: uly.softmax: operand and result: dim 1 is 8 and dim 1 is 9
  %24 = "uly.softmax"(%l) : (!l) -> tensor<?x9xf32, "S sp=0">
  return
}

func.func @shares(%x: tensor<4x?xf32, "S sp=1">, %y: tensor<?x?xf32, "B,S sp=1">, %z: tensor<?x8xf32, "S sp=+">, %l: !l) {
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: operand 0 is cut along dim 1, which uly.reshape needs whole
  %0 = "uly.reshape"(%x) : (tensor<4x?xf32, "S sp=1">) -> tensor<?xf32, "4*S sp=0">
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: operand 0 is cut along dim 1, which uly.softmax needs whole
  %1 = "uly.softmax"(%y) : (tensor<?x?xf32, "B,S sp=1">) -> tensor<?x?xf32, "B,S sp=1">
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: uly.shift of a partial sum, but it is not linear; a reduction is missing
  %2 = "uly.shift"(%z) {dim = 0, n = 1, fill = 1.0} : (tensor<?x8xf32, "S sp=+">) -> tensor<?x8xf32, "S sp=+">
  // CHECK: :[[@LINE+1]]:{{.*}} error: over sp: result 0 is `*`, but its operands make it `0`
  %3 = "uly.shift"(%l) {dim = 0, n = 1, fill = 1.0} : (!l) -> tensor<?x8xf32, "S sp=*">
  return
}
}
