// RUN: %opt --passes=infer_distribution,insert_all_to_all %s | FileCheck %s
// Axes do not see each other: the batch stays split over dp while heads are exchanged over sp.

// A captured tensor keeps its share of the batch where mask and score read it at b alone.

#s3 = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s5 = array<i32: 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
!q = tensor<?x?x4x16xf32, "B,S">
!l = tensor<?x?x4xf32, "B,S">
!doc = tensor<?x?xi32, "B,S">

module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"], ["dp", "B"]]} {
// CHECK-LABEL: func.func @f(
// CHECK-SAME: tensor<?x?x4x16xf32, "B,S sp=1 dp=0">
func.func @f(%q: !q) -> !q attributes {uly.entry} {
  // CHECK: "uly.exchange"({{.*}}) {axis = "sp", {{.*}} -> (tensor<?x?x4x16xf32, "B,S sp=2 dp=0">
  // CHECK: "uly.attention"({{.*}}) {{.*}} -> (tensor<?x?x4x16xf32, "B,S sp=2 dp=0">, tensor<?x?x4xf32, "B,S sp=2 dp=0">)
  %o, %l = "uly.attention"(%q, %q, %q) {mask = "true", scale = 0.25, captures = 3, operandSegmentSizes = #s3} : (!q, !q, !q) -> (!q, tensor<?x?x4xf32, "B,S">)
  return %o : !q
}
// CHECK-LABEL: func.func @at_b(
func.func @at_b(%q: !q, %doc: !doc, %off: tensor<?xi32, "B">) -> !q attributes {uly.entry} {
  // CHECK: %[[D:.*]] = "uly.all_gather"({{.*}}) {axis = "sp"} : {{.*}} -> tensor<?x?xi32, "B,S sp=* dp=0">
  // CHECK-NOT: axis = "dp"
  // CHECK: "uly.attention"({{.*}}, %arg2, %[[D]])
  %o, %l = "uly.attention"(%q, %q, %q, %off, %doc) {mask = "c0i[b, q] == c0i[b, k]", score = "s + float(c0i[b, 0])", scale = 0.25, captures = 4, q_offset = 3, operandSegmentSizes = #s5}
    : (!q, !q, !q, tensor<?xi32, "B">, !doc) -> (!q, !l)
  return %o : !q
}
// CHECK-LABEL: func.func @beside_b(
func.func @beside_b(%q: !q, %doc: !doc) -> (!q, !q) attributes {uly.entry} {
  // CHECK: "uly.all_gather"({{.*}}) {axis = "dp"} : {{.*}} -> tensor<?x?xi32, "B,S sp=* dp=*">
  %o, %l = "uly.attention"(%q, %q, %q, %doc) {mask = "c0i[b, q] == c0i[0, k]", scale = 0.25, captures = 3, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
    : (!q, !q, !q, !doc) -> (!q, !l)
  // CHECK: "uly.all_gather"({{.*}}) {axis = "dp"}
  %p, %m = "uly.attention"(%q, %q, %q, %doc) {mask = "true", score = "s * float(c0i[b // 2, k])", scale = 0.25, captures = 3, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
    : (!q, !q, !q, !doc) -> (!q, !l)
  return %o, %p : !q, !q
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
