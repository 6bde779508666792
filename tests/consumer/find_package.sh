#!/usr/bin/env bash
# find_package.sh PREFIX BUILD [COMPONENT,…]: configures, builds and runs the consumer against an
# installed tree.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/run_consumer.sh"
rm -rf "$2"
components=${3:-}
"$CMAKE" -S "$here/project" -B "$2" -G Ninja -DCMAKE_PREFIX_PATH="$1" \
    -DCONSUMER_COMPONENTS="${components//,/;}"
"$CMAKE" --build "$2"
run_consumer "$2/consumer" "$1"
