#!/usr/bin/env bash
# unknown_component.sh PREFIX BUILD: an engine that was not built is refused, by name.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
rm -rf "$2"
if output=$("$CMAKE" -S "$here/project" -B "$2" -G Ninja -DCMAKE_PREFIX_PATH="$1" \
    -DCONSUMER_COMPONENTS='local;carrier_pigeon' 2>&1); then
    echo "find_package found an engine that does not exist"
    exit 1
fi
# CMake breaks the message into lines as it likes.
tr -s ' \n' ' ' <<<"$output" | grep 'built without: carrier_pigeon (it has:'
