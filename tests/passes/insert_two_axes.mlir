// RUN: %opt --passes=insert_all_to_all %s | FileCheck %s
// What is moved over one axis and then over another: the second move does not travel with others in front of the first.

!q1 = tensor<?x?x4x16xf32, "B,S sp=1 dp=*">
!qh = tensor<?x?x4x16xf32, "B,S sp=2 dp=*">
!k1 = tensor<?x?x4x16xf32, "B,S sp=1 dp=0">

module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"], ["dp", "B"]]} {
// CHECK-LABEL: func.func @behind(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: {{[^%]*}}%[[K:[a-z0-9]+]]:
func.func @behind(%q: !q1, %k: !k1) -> (!qh, !qh) {
  // CHECK-DAG: %[[QH:.*]] = "uly.exchange"(%[[Q]]) {axis = "sp"
  // CHECK-DAG: %[[G:.*]] = "uly.all_gather"(%[[K]]) {axis = "dp"}
  // CHECK: %[[KH:.*]] = "uly.exchange"(%[[G]]) {axis = "sp"
  // CHECK: return %[[QH]], %[[KH]]
  %qh = "uly.reshard"(%q) : (!q1) -> !qh
  %kg = "uly.reshard"(%k) : (!k1) -> !q1
  %kh = "uly.reshard"(%kg) : (!q1) -> !qh
  return %qh, %kh : !qh, !qh
}
}
