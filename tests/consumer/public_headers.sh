#!/usr/bin/env bash
# public_headers.sh INCLUDE: every public header compiles by itself, and pulls in nothing but the
# standard library (what <bits/stdc++.h> consists of) and other public headers.
set -euo pipefail
include=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

dependencies() {
    tr -s ' \\' '\n' | grep '^/' | sort -u
}
compile() {
    "$CXX" -std=c++20 -Wall -Wextra -Werror -I "$include" -fsyntax-only -x c++ "$@"
}

echo '#include <bits/stdc++.h>' >"$work/standard.cpp"
"$CXX" -std=c++20 -pthread -M "$work/standard.cpp" | dependencies >"$work/standard"
failed=0
while read -r header; do
    echo "#include <$header>" >"$work/alone.cpp"
    if ! compile "$work/alone.cpp"; then
        echo "$header does not compile by itself"
        failed=1
        continue
    fi
    "$CXX" -std=c++20 -I "$include" -M "$work/alone.cpp" | dependencies |
        grep -v -e "^$include/holdfast/" -e "^$work/" >"$work/used" || true
    if foreign=$(comm -23 "$work/used" "$work/standard" | grep .); then
        echo "$header includes what is neither standard nor ours:"$'\n'"$foreign"
        failed=1
    fi
done < <(cd "$include" && find holdfast -name '*.hpp' | sort)
exit "$failed"
