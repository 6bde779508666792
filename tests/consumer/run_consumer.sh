# run_consumer PROGRAM PREFIX: sourced; runs the consumer on a fresh store and reads what it says.
run_consumer() {
    local store libraries
    store=$(mktemp -d)
    libraries=$(dirname "$(find "$2" -name 'libholdfast.*' | head -n 1)")
    LD_LIBRARY_PATH=$libraries "$1" "$store/locks" | tee /dev/stderr | grep -q 'holds stock:101'
    rm -rf "$store"
}
