#!/usr/bin/env bash
# install_shared.sh SOURCE BUILD PREFIX [CMAKE_ARGUMENT…]: the libraries, shared, and the program.
set -euo pipefail
source=$1 build=$2 prefix=$3
shift 3
rm -rf "$prefix"
"$CMAKE" -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
    -DBUILD_SHARED_LIBS=ON -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_TESTING=OFF \
    -DHOLDFAST_BUILD_BENCH=OFF -DHOLDFAST_BUILD_EXAMPLES=OFF \
    -DHOLDFAST_BUILD_LAB=OFF -DCMAKE_UNITY_BUILD=ON "$@"
"$CMAKE" --build "$build"
"$CMAKE" --install "$build" --prefix "$prefix" >/dev/null
find "$prefix" -name 'libholdfast.so' | grep . >/dev/null
