// Operations that differ in an attribute alone are not equal, also where their hashes meet: 64 of them among 256 places.
// RUN: awk '/ITH/ { for (i = 1; i <= 64; i++) { t = $0; gsub("BEFORE", i - 1, t); gsub("ITH", i, t); print t }; next } 1' %s > %t
// RUN: %opt --passes=fold_collectives %t | FileCheck %s
// CHECK-COUNT-128: "uly.map"

#s1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#s2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
!x = tensor<?xf32, "S sp=0">

module attributes {uly.symbols = ["S"], uly.grid = [["sp", "S"]]} {
func.func @f(%x: !x, %a0: !x) -> !x {
  %mITH = "uly.map"(%x) {expr = "x0 * ITH.0", access = [array<i64: 0>], operandSegmentSizes = #s1} : (!x) -> !x
  %aITH = "uly.map"(%aBEFORE, %mITH) {expr = "x0 + x1", access = [array<i64: 0>, array<i64: 0>], operandSegmentSizes = #s2} : (!x, !x) -> !x
  return %a64 : !x
}
}
