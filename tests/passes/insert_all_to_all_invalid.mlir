// RUN: %not %opt --passes=insert_all_to_all %s 2>&1 | FileCheck %s

module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"]]} {
func.func @f(%x: tensor<?x?x8xf32, "B,S sp=+">) -> tensor<?x?x8xf32, "B,S sp=1"> {
  // CHECK: insert_all_to_all_invalid.mlir:[[@LINE+1]]:8: error: over sp: nothing moves a value from `+` to `1` yet
  %r = "uly.reshard"(%x) : (tensor<?x?x8xf32, "B,S sp=+">) -> tensor<?x?x8xf32, "B,S sp=1">
  return %r : tensor<?x?x8xf32, "B,S sp=1">
}
}
