// RUN: %opt --passes=insert_all_to_all %s | FileCheck %s

!q1 = tensor<?x?x4x16xf32, "B,S sp=1">
!qh = tensor<?x?x4x16xf32, "B,S sp=2">
!k1 = tensor<?x?x2x16xf32, "B,S sp=1">
!kc = tensor<?x?x2x16xf32, "B,S sp=2/2">

module attributes {uly.symbols = ["B", "S", "T"], uly.grid = [["sp", "S", "T"]]} {
// Reshards that stand together travel together; the gather between them does not part them.
// CHECK-LABEL: func.func @merged(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: {{[^%]*}}%[[K:[a-z0-9]+]]: {{[^%]*}}%[[V:[a-z0-9]+]]: {{[^%]*}}%[[D:[a-z0-9]+]]:
func.func @merged(%q: !q1, %k: !k1, %v: !k1, %d: tensor<?x?xi32, "B,S sp=1">) -> (!qh, !kc, !kc, tensor<?x?xi32, "B,S sp=*">) {
  // CHECK: %[[E:.*]]:3 = "uly.exchange"(%[[Q]], %[[K]], %[[V]]) {axis = "sp", {{.*}} -> (tensor<?x?x4x16xf32, "B,S sp=2">, tensor<?x?x2x16xf32, "B,S sp=2/2">, tensor<?x?x2x16xf32, "B,S sp=2/2">)
  // CHECK: %[[G:.*]] = "uly.all_gather"(%[[D]]) {axis = "sp"}
  // CHECK-NOT: uly.reshard
  // CHECK: return %[[E]]#0, %[[E]]#1, %[[E]]#2, %[[G]]
  %qh = "uly.reshard"(%q) : (!q1) -> !qh
  %kc = "uly.reshard"(%k) : (!k1) -> !kc
  %dg = "uly.reshard"(%d) : (tensor<?x?xi32, "B,S sp=1">) -> tensor<?x?xi32, "B,S sp=*">
  %vc = "uly.reshard"(%v) : (!k1) -> !kc
  return %qh, %kc, %vc, %dg : !qh, !kc, !kc, tensor<?x?xi32, "B,S sp=*">
}

// A message has rows of one length: keys of another length than the queries travel by themselves.
// CHECK-LABEL: func.func @lengths(
func.func @lengths(%q: !q1, %k: tensor<?x?x4x16xf32, "B,T sp=1">, %v: tensor<?x?x4x16xf32, "B,T sp=1">) -> (!qh, tensor<?x?x4x16xf32, "B,T sp=2">, tensor<?x?x4x16xf32, "B,T sp=2">) {
  // CHECK: %[[Q:.*]] = "uly.exchange"(%{{.*}}) {axis = "sp", {{.*}} -> tensor<?x?x4x16xf32, "B,S sp=2">
  // CHECK: %[[KV:.*]]:2 = "uly.exchange"(%{{.*}}, %{{.*}}) {axis = "sp", {{.*}} -> (tensor<?x?x4x16xf32, "B,T sp=2">, tensor<?x?x4x16xf32, "B,T sp=2">)
  // CHECK-NEXT: return %[[Q]], %[[KV]]#0, %[[KV]]#1
  %qh = "uly.reshard"(%q) : (!q1) -> !qh
  %kh = "uly.reshard"(%k) : (tensor<?x?x4x16xf32, "B,T sp=1">) -> tensor<?x?x4x16xf32, "B,T sp=2">
  %vh = "uly.reshard"(%v) : (tensor<?x?x4x16xf32, "B,T sp=1">) -> tensor<?x?x4x16xf32, "B,T sp=2">
  return %qh, %kh, %vh : !qh, tensor<?x?x4x16xf32, "B,T sp=2">, tensor<?x?x4x16xf32, "B,T sp=2">
}

// One that needs another's result comes after it.
// CHECK-LABEL: func.func @chain(
func.func @chain(%s: tensor<?x8xf32, "S sp=+">) -> tensor<?x8xf32, "S sp=0"> {
  // CHECK: %[[R:.*]] = "uly.reduce"(%{{.*}}) {axis = "sp"}
  // CHECK: "uly.cut"(%[[R]]) {axis = "sp"} : (tensor<?x8xf32, "S sp=*">) -> tensor<?x8xf32, "S sp=0">
  %r = "uly.reshard"(%s) : (tensor<?x8xf32, "S sp=+">) -> tensor<?x8xf32, "S sp=*">
  %c = "uly.reshard"(%r) : (tensor<?x8xf32, "S sp=*">) -> tensor<?x8xf32, "S sp=0">
  return %c : tensor<?x8xf32, "S sp=0">
}

// The backward's form: partial sums over overlapping shares go home in one exchange.
// CHECK-LABEL: func.func @adjoint(
func.func @adjoint(%dk: tensor<?x?x2x16xf32, "B,S sp=2/2+">) -> !k1 {
  // CHECK: "uly.exchange"(%{{.*}}) {axis = "sp", {{.*}} : (tensor<?x?x2x16xf32, "B,S sp=2/2+">) -> tensor<?x?x2x16xf32, "B,S sp=1">
  %r = "uly.reshard"(%dk) : (tensor<?x?x2x16xf32, "B,S sp=2/2+">) -> !k1
  return %r : !k1
}

// CHECK-LABEL: func.func @nothing(
func.func @nothing(%k: !k1) -> !k1 {
  // CHECK-NEXT: return %{{.*}}
  %r = "uly.reshard"(%k) : (!k1) -> !k1
  return %r : !k1
}
}
