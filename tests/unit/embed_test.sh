#!/bin/sh
# Installs the runtime somewhere, builds examples/embed.c against it with pkg-config and with CMake, and runs both on a model.
# Usage: embed_test.sh CMAKE BUILD_DIR SOURCE_DIR CC MODEL
set -eu
cmake=$1 build=$2 source=$3 cc=$4 model=$5
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
"$cmake" --install "$build" --component runtime --prefix "$prefix/usr" >/dev/null
found=$(find "$prefix/usr" -name ulyrt.pc)
PKG_CONFIG_PATH=$(dirname "$found")
export PKG_CONFIG_PATH
lib=$(pkg-config --variable=libdir ulyrt)
"$cc" -std=c11 -Wall -Wextra -Werror "$source/examples/embed.c" $(pkg-config --cflags --libs ulyrt) -Wl,-rpath,"$lib" -pthread -o "$prefix/embed"
"$cmake" -S "$source/examples" -B "$prefix/build" -DCMAKE_PREFIX_PATH="$prefix/usr" -DCMAKE_C_COMPILER="$cc" >/dev/null
"$cmake" --build "$prefix/build" >/dev/null
for program in "$prefix/embed" "$prefix/build/embed"; do
  "$program" "$model" B=1 S=10 | sort >"$prefix/out"
  cat "$prefix/out"
  test "$(grep -c '^rank . of 4: first number .*, sent 24 bytes$' "$prefix/out")" = 4
done
# What a user sees of a mistake.
if "$prefix/embed" "$model" B=1 2>"$prefix/err"; then exit 1; fi
grep -q 'symbol S has no value' "$prefix/err"
if "$prefix/embed" "$source/examples/embed.c" 2>"$prefix/err"; then exit 1; fi
grep -q 'is not a model: not an ELF file' "$prefix/err"
# Nothing but the public names.
if nm -D --defined-only "$lib/libulyrt.so" | grep -v -e ' ulyrt_' -e ' ULYRT_'; then exit 1; fi
# A host's process stays as it is: jansson, whose allocator commands set for all of theirs, is theirs alone.
for library in "$lib"/libulyrt*.so "$build"/lib/libulyc_lower.so; do
  if ! readelf -d "$library" >"$prefix/needs" || grep -q jansson "$prefix/needs"; then exit 1; fi
done
