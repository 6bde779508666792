#!/usr/bin/env bash
# install.sh BUILD PREFIX: installs a finished build into an empty prefix.
set -euo pipefail
rm -rf "$2"
"$CMAKE" --install "$1" --prefix "$2" >/dev/null
test -f "$2/include/holdfast/holdfast.hpp"
test -f "$2/include/holdfast/detail/deadline.hpp"
find "$2" -name holdfast-config.cmake | grep . >/dev/null
find "$2" -name holdfast.pc | grep . >/dev/null
