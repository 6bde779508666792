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
    echo "building $target: minutes the first time, seconds after that (log: ${log#"$root"/})" >&2
    : >"$log"
    report_progress "$log" "$target" &
    local reporter=$!
    local built=true
    { cmake "${arguments[@]}" && cmake --build build/release -j "$jobs" --target "$target"; } \
        >"$log" 2>&1 || built=false
    kill "$reporter" 2>/dev/null || true
    wait "$reporter" 2>/dev/null || true
    [[ ! -t 2 ]] || printf '\r\033[K' >&2
    if ! $built; then
        tail -n 40 "$log" >&2
        echo "building $target failed after $((SECONDS - started)) s; the log: ${log#"$root"/}" >&2
        return 1
    fi
    echo "built $target in $((SECONDS - started)) s" >&2
}

# report_progress LOG TARGET: how far the build is. On a terminal one line that is written over,
# elsewhere a line every 20 s. Ends with the script that started it.
report_progress() {
    local log=$1 target=$2 pause=20 before='' after='\n' steps seconds=0
    if [[ -t 2 ]]; then
        pause=1 before='\r\033[K' after=''
    fi
    # Without our standard error: whoever reads it must not wait for this sleep.
    while sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        ((++seconds % pause == 0)) || continue
        steps=$(sed -nE 's#^\[([0-9]+)/([0-9]+)\].*#step \1 of \2#p' "$log" | tail -n 1)
        printf "$before  $target: %s, %s s$after" "${steps:-looking for compiler and libraries}" \
            "$seconds" >&2
    done
}
