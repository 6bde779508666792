# Sourced by the scripts next to it: where the project is, and how to build the release quietly.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
logs=$root/build/logs
mkdir -p "$logs"
jobs=$(nproc 2>/dev/null || echo 2)

# build_release TARGET [CMAKE_ARGUMENT…]: build/release/bin/TARGET. What an earlier configuration
# chose to build (the tests, for example) stays chosen; by default only the least is.
build_release() {
    local target=$1 log=$logs/$1-build.log started=$SECONDS
    shift
    local arguments=(--preset release "$@")
    if [[ ! -f build/release/CMakeCache.txt ]]; then
        arguments=(--preset release -DHOLDFAST_BUILD_TESTS=OFF -DHOLDFAST_BUILD_TESTING=OFF
            -DHOLDFAST_BUILD_BENCH=OFF "$@")
    fi
    printf 'building %s (log: %s) … ' "$target" "${log#"$root"/}" >&2
    if ! { cmake "${arguments[@]}" && cmake --build build/release -j "$jobs" --target "$target"; } \
        >"$log" 2>&1; then
        echo failed >&2
        tail -n 40 "$log" >&2
        return 1
    fi
    echo "$((SECONDS - started)) s" >&2
}
