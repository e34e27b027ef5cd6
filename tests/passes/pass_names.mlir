// RUN: %not %opt --passes=fold_colectives %s 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: %opt --print-after=infer_distribution --stop-after=insert_all_to_all %s | FileCheck %s --check-prefix=PRINT
// NAME: error: there is no pass `fold_colectives`
// NAME: did you mean `fold_collectives`?
// PRINT: // after infer_distribution
// PRINT-NEXT: module
// PRINT-NOT: // after
// PRINT: module
module attributes {uly.symbols = ["B", "S"], uly.grid = [["sp", "S"]]} {
}
