#!/usr/bin/env bash
# unknown_component.sh PREFIX BUILD COMPONENT WORDS: what was not built is refused, in these words.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
rm -rf "$2"
if output=$("$CMAKE" -S "$here/project" -B "$2" -G Ninja -DCMAKE_PREFIX_PATH="$1" \
    -DCONSUMER_COMPONENTS="local;$3" 2>&1); then
    echo "find_package found $3, which is not there"
    exit 1
fi
# CMake breaks the message into lines as it likes.
tr -s ' \n' ' ' <<<"$output" | grep -F -- "$4"
