#!/usr/bin/env bash
# program.sh PREFIX ENGINE ADDRESS: the installed program loads an engine that is installed, and says
# which package is missing for one that is not.
set -euo pipefail
prefix=$1 engine=$2 address=$3
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
trap 'mv "$library.away" "$library"' EXIT
mv "$library" "$library.away"
expect "package libholdfast-$engine"
