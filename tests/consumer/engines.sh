#!/usr/bin/env bash
# engines.sh PREFIX BUILD ENGINE ADDRESS: an application that links the engine gets as far as its
# server, which is not there; one that does not is told what to link. With CMake and with pkg-config.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
prefix=$1 work=$2 engine=$3 address=$4
libraries=$(dirname "$(find "$prefix" -name 'libholdfast.*' | head -n 1)")
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name holdfast.pc)")
export PKG_CONFIG_PATH
rm -rf "$work"
mkdir -p "$work"

# expect WORDS PROGRAM: both attempts, the one before main and the one in it, end in these words.
expect() {
    local said
    said=$(LD_LIBRARY_PATH=$libraries CONSUMER_STORE=$address "$2")
    echo "$2: $said"
    [[ $(grep -cF -- "$1" <<<"$said") == 2 ]]
}

"$CMAKE" -S "$here/project" -B "$work/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DCONSUMER_COMPONENTS="local;$engine" -DCONSUMER_ENGINE="$engine" \
    -DCMAKE_EXE_LINKER_FLAGS=-Wl,--as-needed -DCMAKE_SHARED_LINKER_FLAGS=-Wl,--as-needed
"$CMAKE" --build "$work/cmake"
expect 'store unavailable' "$work/cmake/with_engine"
expect 'store unavailable' "$work/cmake/with_engine_in_a_library"
expect "link holdfast::$engine" "$work/cmake/without_engine"

for linker in bfd gold lld; do
    command -v "ld.$linker" >/dev/null || continue
    for order in "holdfast-$engine" "holdfast holdfast-$engine"; do
        # shellcheck disable=SC2046,SC2086 # the flags are words
        "$CXX" -std=c++20 "$here/project/engine.cpp" -o "$work/$linker" "-fuse-ld=$linker" \
            -Wl,--as-needed $(pkg-config --cflags --libs $order)
        expect 'store unavailable' "$work/$linker"
    done
done
