#!/usr/bin/env bash
# install.sh BUILD PREFIX: installs a finished build into an empty prefix.
set -euo pipefail
rm -rf "$2"
"$CMAKE" --install "$1" --prefix "$2" >/dev/null
test -f "$2/include/holdfast/holdfast.hpp"
test -f "$2/include/holdfast/detail/deadline.hpp"
find "$2" -name holdfast-config.cmake | grep . >/dev/null
find "$2" -name holdfast.pc | grep . >/dev/null
# Where the program is, its man page and its completions are, too.
if [[ -x $2/bin/holdfast ]]; then
    test -s "$2/share/man/man1/holdfast.1"
    test -s "$2/share/bash-completion/completions/holdfast"
    test -s "$2/share/zsh/site-functions/_holdfast"
    test -s "$2/share/fish/vendor_completions.d/holdfast.fish"
fi
