# run_consumer PROGRAM PREFIX: sourced; runs the consumer on a fresh store and reads what it says.
run_consumer() {
    local store libraries said
    store=$(mktemp -d)
    libraries=$(dirname "$(find "$2" -name 'libholdfast.*' | head -n 1)")
    said=$(LD_LIBRARY_PATH=$libraries "$1" "$store/locks")
    rm -rf "$store"
    echo "$said"
    [[ $said == *'holds stock:101'* ]]
}
