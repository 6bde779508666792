#!/usr/bin/env bash
# no_naive_locks.sh PREFIX: the lab's broken locks (namespace naive) are in nothing that is installed,
# neither as a file nor as a symbol.
set -euo pipefail
if find "$1" -iname '*naive*' | grep .; then
    exit 1
fi
if grep -rlaE '(^|[^a-z])naive::|N5naive' "$1"; then
    exit 1
fi
