// RUN: %opt --passes=infer_distribution,insert_all_to_all %s | FileCheck %s
// Axes do not see each other: the batch stays split over dp while heads are exchanged over sp.

#s3 = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
!q = tensor<?x?x4x16xf32, "B,S">

module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"], ["dp", "B"]]} {
// CHECK-LABEL: func.func @f(
// CHECK-SAME: tensor<?x?x4x16xf32, "B,S sp=1 dp=0">
func.func @f(%q: !q) -> !q attributes {uly.entry} {
  // CHECK: "uly.exchange"({{.*}}) {axis = "sp", {{.*}} -> (tensor<?x?x4x16xf32, "B,S sp=2 dp=0">
  // CHECK: "uly.attention"({{.*}}) {{.*}} -> (tensor<?x?x4x16xf32, "B,S sp=2 dp=0">, tensor<?x?x4xf32, "B,S sp=2 dp=0">)
  %o, %l = "uly.attention"(%q, %q, %q) {mask = "true", scale = 0.25, captures = 3, operandSegmentSizes = #s3} : (!q, !q, !q) -> (!q, tensor<?x?x4xf32, "B,S">)
  return %o : !q
}
// CHECK-LABEL: func.func @total(
func.func @total(%x: tensor<?x?xf32, "B,S">) -> tensor<f32> attributes {uly.entry} {
  // CHECK: %[[A:.*]] = "uly.sum"(%{{.*}}) {{.*}} -> tensor<?xf32, "B sp=+ dp=0">
  %a = "uly.sum"(%x) {dim = 1} : (tensor<?x?xf32, "B,S">) -> tensor<?xf32, "B">
  // CHECK: %[[R:.*]] = "uly.reduce"(%[[A]]) {axis = "sp"} : {{.*}} -> tensor<?xf32, "B sp=* dp=0">
  // CHECK: "uly.sum"(%[[R]]) {{.*}} -> tensor<f32, "sp=* dp=+">
  %c = "uly.sum"(%a) {dim = 0} : (tensor<?xf32, "B">) -> tensor<f32>
  // CHECK: "uly.reduce"({{.*}}) {axis = "dp"} : {{.*}} -> tensor<f32, "sp=* dp=*">
  return %c : tensor<f32>
}
}
