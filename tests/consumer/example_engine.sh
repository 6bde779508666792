#!/usr/bin/env bash
# example_engine.sh EXAMPLE PREFIX BUILD PROGRAM: builds an engine of examples/ against an installed
# tree and runs it through the contract suite.
set -euo pipefail
rm -rf "$3"
"$CMAKE" -S "$1" -B "$3" -G Ninja -DCMAKE_PREFIX_PATH="$2" -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_CXX_FLAGS_DEBUG=-O0
"$CMAKE" --build "$3"
"$3/$4" --gtest_brief=1
