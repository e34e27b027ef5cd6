// RUN: %opt --passes=slice_weights %s | FileCheck %s

!x = tensor<?x?x64xf32, "B,S">
!y = tensor<?x?x96xf32, "B,S">
!h = tensor<?x?x2x48xf32, "B,S">
!p = tensor<?x?x32xf32, "B,S">
!g = tensor<?x?x2x16xf32, "B,S">
!w = tensor<96x64xf32>
!b = tensor<96xf32>
module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"]]} {
// q, k and v of one linear: each is a linear of a range of its weights and of its bias.
// CHECK-LABEL: func.func @columns(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK: %[[W:.*]] = "uly.param"() {names = ["w"]}
// CHECK: %[[B:.*]] = "uly.param"() {names = ["b"]}
// CHECK-NEXT: %[[W0:.*]] = "uly.slice"(%[[W]]) {begin = "0", dim = 0 : i64, end = "32"} : (tensor<96x64xf32>) -> tensor<32x64xf32>
// CHECK-NEXT: %[[B0:.*]] = "uly.slice"(%[[B]]) {begin = "0", dim = 0 : i64, end = "32"} : (tensor<96xf32>) -> tensor<32xf32>
// CHECK-NEXT: %[[Q:.*]] = "uly.linear"(%[[X]], %[[W0]], %[[B0]])
// CHECK-NEXT: %[[W1:.*]] = "uly.slice"(%[[W]]) {begin = "32", dim = 0 : i64, end = "64"}
// CHECK-NEXT: %[[B1:.*]] = "uly.slice"(%[[B]]) {begin = "32", dim = 0 : i64, end = "64"}
// CHECK-NEXT: %[[K:.*]] = "uly.linear"(%[[X]], %[[W1]], %[[B1]])
// CHECK-NEXT: return %[[Q]], %[[K]]
func.func @columns(%x: !x) -> (!p, !p) {
  %w = "uly.param"() {names = ["w"]} : () -> !w
  %b = "uly.param"() {names = ["b"]} : () -> !b
  %y = "uly.linear"(%x, %w, %b) : (!x, !w, !b) -> !y
  %q = "uly.slice"(%y) {dim = 2, begin = "0", end = "32"} : (!y) -> !p
  %k = "uly.slice"(%y) {dim = 2, begin = "32", end = "64"} : (!y) -> !p
  return %q, %k : !p, !p
}

// Of each head: the weights are cut head by head.
// CHECK-LABEL: func.func @heads(
// CHECK: %[[W:.*]] = "uly.param"
// CHECK-NEXT: %[[A:.*]] = "uly.reshape"(%[[W]]) : (tensor<96x64xf32>) -> tensor<2x48x64xf32>
// CHECK-NEXT: %[[C:.*]] = "uly.slice"(%[[A]]) {begin = "16", dim = 1 : i64, end = "32"} : (tensor<2x48x64xf32>) -> tensor<2x16x64xf32>
// CHECK-NEXT: %[[J:.*]] = "uly.reshape"(%[[C]]) : (tensor<2x16x64xf32>) -> tensor<32x64xf32>
// CHECK-NEXT: %[[Z:.*]] = "uly.linear"(%{{.*}}, %[[J]])
// CHECK-NEXT: %[[R:.*]] = "uly.heads"(%[[Z]])
// CHECK-NEXT: return %[[R]]
func.func @heads(%x: !x) -> !g {
  %w = "uly.param"() {names = ["w"]} : () -> !w
  %y = "uly.linear"(%x, %w) : (!x, !w) -> !y
  %h = "uly.heads"(%y) : (!y) -> !h
  %k = "uly.slice"(%h) {dim = 3, begin = "16", end = "32"} : (!h) -> !g
  return %k : !g
}

// A head of its own, and whole heads: ranges of the columns.
// CHECK-LABEL: func.func @head(
// CHECK: "uly.slice"(%{{.*}}) {begin = "48", dim = 0 : i64, end = "96"} : (tensor<96x64xf32>) -> tensor<48x64xf32>
// CHECK-NEXT: %[[Z:.*]] = "uly.linear"
// CHECK-NEXT: return %[[Z]] : tensor<?x?x48xf32, "B,S">
func.func @head(%x: !x) -> tensor<?x?x48xf32, "B,S"> {
  %w = "uly.param"() {names = ["w"]} : () -> !w
  %y = "uly.linear"(%x, %w) : (!x, !w) -> !y
  %h = "uly.reshape"(%y) : (!y) -> !h
  %k = "uly.slice"(%h) {dim = 2, begin = "1", end = "2", drop} : (!h) -> tensor<?x?x48xf32, "B,S">
  return %k : tensor<?x?x48xf32, "B,S">
}

// A slice of a slice.
// CHECK-LABEL: func.func @twice(
// CHECK: %[[A:.*]] = "uly.slice"(%{{.*}}) {begin = "32", dim = 0 : i64, end = "96"}
// CHECK-NEXT: %[[C:.*]] = "uly.slice"(%[[A]]) {begin = "16", dim = 0 : i64, end = "48"}
// CHECK-NEXT: "uly.linear"(%{{.*}}, %[[C]])
// CHECK-NEXT: return
func.func @twice(%x: !x) -> !p {
  %w = "uly.param"() {names = ["w"]} : () -> !w
  %y = "uly.linear"(%x, %w) : (!x, !w) -> !y
  %a = "uly.slice"(%y) {dim = 2, begin = "32", end = "96"} : (!y) -> !x
  %c = "uly.slice"(%a) {dim = 2, begin = "16", end = "48"} : (!x) -> !p
  return %c : !p
}

// The whole is read too; what overlaps is more than the whole; a panel would be mostly padding; rows, not columns. Nothing changes.
// CHECK-LABEL: func.func @whole(
// CHECK: "uly.linear"{{.*}} -> tensor<?x?x96xf32, "B,S">
// CHECK-NEXT: uly.slice
func.func @whole(%x: !x) -> (!p, !y) {
  %w = "uly.param"() {names = ["w"]} : () -> !w
  %y = "uly.linear"(%x, %w) : (!x, !w) -> !y
  %a = "uly.slice"(%y) {dim = 2, begin = "0", end = "32"} : (!y) -> !p
  return %a, %y : !p, !y
}
// CHECK-LABEL: func.func @overlapping(
// CHECK: "uly.linear"{{.*}} -> tensor<?x?x96xf32, "B,S">
// CHECK-NEXT: uly.slice
func.func @overlapping(%x: !x) -> (!x, !x) {
  %w = "uly.param"() {names = ["w"]} : () -> !w
  %y = "uly.linear"(%x, %w) : (!x, !w) -> !y
  %a = "uly.slice"(%y) {dim = 2, begin = "0", end = "64"} : (!y) -> !x
  %b = "uly.slice"(%y) {dim = 2, begin = "32", end = "96"} : (!y) -> !x
  return %a, %b : !x, !x
}
// CHECK-LABEL: func.func @narrow(
// CHECK: "uly.linear"{{.*}} -> tensor<?x?x96xf32, "B,S">
// CHECK-NEXT: uly.slice
func.func @narrow(%x: !x) -> (tensor<?x?x15xf32, "B,S">, !p) {
  %w = "uly.param"() {names = ["w"]} : () -> !w
  %y = "uly.linear"(%x, %w) : (!x, !w) -> !y
  %a = "uly.slice"(%y) {dim = 2, begin = "0", end = "15"} : (!y) -> tensor<?x?x15xf32, "B,S">
  %b = "uly.slice"(%y) {dim = 2, begin = "32", end = "64"} : (!y) -> !p
  return %a, %b : tensor<?x?x15xf32, "B,S">, !p
}
// CHECK-LABEL: func.func @rows(
// CHECK: "uly.linear"{{.*}} -> tensor<?x?x96xf32, "B,S">
// CHECK-NEXT: uly.slice
func.func @rows(%x: !x) -> tensor<?x3x96xf32, "B"> {
  %w = "uly.param"() {names = ["w"]} : () -> !w
  %y = "uly.linear"(%x, %w) : (!x, !w) -> !y
  %a = "uly.slice"(%y) {dim = 1, begin = "0", end = "3"} : (!y) -> tensor<?x3x96xf32, "B">
  return %a : tensor<?x3x96xf32, "B">
}
}
