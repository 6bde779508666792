#!/usr/bin/env bash
# program.sh PREFIX ENGINE ADDRESS: the installed program loads an engine that is installed, and says
# which package is missing for one that is not.
set -euo pipefail
engine=$2 address=$3
# A copy: other tests use the installed one.
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cp -a "$1/." "$prefix"
library=$(find "$prefix" -name "libholdfast_$engine.so.0")

# expect WORDS: the program cannot reach the store, and says so in these words.
expect() {
    local said
    said=$("$prefix/bin/holdfast" inspect stock --store "$address" 2>&1) && return 1
    echo "$said"
    [[ $said == *"$1"* ]]
}

"$prefix/bin/holdfast" --version
expect 'store unavailable'
rm "$library"
expect "package libholdfast-$engine"
