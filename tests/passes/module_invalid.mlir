// RUN: %not %opt %s 2>&1 | FileCheck %s
// CHECK: error: a module names its symbols and grid
module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "T"]]} {}
