// RUN: %mlir-opt %s --split-input-file --verify-diagnostics

func.func @few(%x: tensor<8xf32>) {
  // expected-error@+1 {{expects at least 2 operands, but got 1}}
  %y = "uly.linear"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @many(%x: tensor<8xf32>) {
  // expected-error@+1 {{expects exactly 1 operands, but got 2}}
  %y = "uly.heads"(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @no_tensor(%x: index) {
  // expected-error@+1 {{expected base type 'builtin.tensor' but got 'builtin.index'}}
  %y = "uly.merge"(%x) : (index) -> tensor<8xf32>
  return
}

// -----

func.func @no_attribute(%x: tensor<8xf32>) {
  // expected-error@+1 {{attribute "dim" is expected but not provided}}
  %y = "uly.sum"(%x) : (tensor<8xf32>) -> tensor<f32>
  return
}

// -----

func.func @kind(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected base attribute 'builtin.string' but got 'builtin.integer'}}
  %y = "uly.all_gather"(%x) {axis = 1} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @segments(%x: tensor<8xf32>) {
  // expected-error@+1 {{'operandSegmentSizes' attribute for specifying operand segments must have 24 elements, but got 1}}
  %y = "uly.map"(%x) {expr = "x0", access = [array<i64: 0>], operandSegmentSizes = array<i32: 1>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @unknown(%x: tensor<8xf32>) {
  // expected-error@+1 {{unregistered operation 'uly.alltoall' found in dialect ('uly')}}
  %y = "uly.alltoall"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return
}
