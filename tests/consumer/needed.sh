#!/usr/bin/env bash
# needed.sh FILE LIBRARY,…: the dynamic section of FILE names these libraries, and no others but
# those of the C++ runtime. Without their versions: libssl.so.
set -euo pipefail
runtime=' libstdc++.so libm.so libgcc_s.so libc.so ld-linux-x86-64.so ld-linux-aarch64.so '
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\.so\).*\]/\1/p' | sort)
others=
for library in $needed; do
    [[ $runtime == *" $library "* ]] || others+="$library,"
done
[[ $others == "${2:+$2,}" ]] || {
    echo "$1 needs $others and not $2,"
    exit 1
}
