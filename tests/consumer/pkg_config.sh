#!/usr/bin/env bash
# pkg_config.sh PREFIX BUILD [guard_STORE,…]: builds and runs the consumer with nothing but a compiler
# and pkg-config, both ways of asking for the libraries, and a program for each of the guards.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/run_consumer.sh"
rm -rf "$2"
mkdir -p "$2"
PKG_CONFIG_PATH=$(dirname "$(find "$1" -name holdfast.pc)")
export PKG_CONFIG_PATH
for static in '' --static; do
    # shellcheck disable=SC2046 # the flags are words
    "$CXX" -std=c++20 "$here/project/main.cpp" -o "$2/consumer" \
        $(pkg-config $static --cflags --libs holdfast)
    run_consumer "$2/consumer" "$1"
done

libraries=$(dirname "$(find "$1" -name 'libholdfast.*' | head -n 1)")
for guard in $(tr ',' ' ' <<<"${3:-}"); do
    package=holdfast-${guard//_/-}
    # Not --static: Debian's libpq names libraries there that it does not bring.
    # shellcheck disable=SC2046
    "$CXX" -std=c++20 "$here/project/$guard.cpp" -o "$2/$guard" $(pkg-config --cflags --libs "$package")
    LD_LIBRARY_PATH=$libraries "$2/$guard"
    echo "$package: compiled, linked and run"
done
