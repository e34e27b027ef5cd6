#!/usr/bin/env bash
# Fuzzes with every harness, one after the other: run_long.sh SECONDS [ROUNDS] [HARNESS…]. Prints the inputs of each and their sum; ends with the first find.
set -u
cd "$(dirname "$0")/../.." || exit 1
seconds=${1:?seconds for each harness} rounds=${2-1}
shift; [ $# = 0 ] || shift
cmake --preset fuzz >/dev/null && cmake --build --preset fuzz >/dev/null || exit 1
[ $# != 0 ] || set -- $(sed -n 's/^uly_fuzz(\([a-z]*\).*/\1/p' tests/fuzz/CMakeLists.txt)
sum=0
for ((round = 1; round <= rounds; round++)); do
  for name; do
    said=$(ULY_FUZZ_SECONDS=$seconds tests/fuzz/run.sh "build/fuzz/bin/${name}_fuzz" "tests/fuzz/$name")
    status=$?
    n=${said##*: } n=${n% inputs}
    sum=$((sum + ${n:-0}))
    printf '%s, %d in all\n' "$said" "$sum"
    [ $status = 0 ] || exit 1
  done
done
