#!/usr/bin/env bash
# What the collector costs: on a loop device over memory, on a device without service times, on a modelled disk.
# Serves the last two with target/release/weir, and takes them down again.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp --directory /run/weir-bench.XXXXXX)
state=$folder/state
trap 'target/release/weir serve --down-all "$state" && rm -r "$folder"' EXIT
device() {
    printf 'name: "%s"\nprofile: "%s"\nheads: 1\nsize_mib: 1024\n' "$1" "$1" >"$folder/$1.yml"
    target/release/weir serve "$folder/$1.yml" --state "$state" --background --json |
        sed -n 's|.*"path": *"\(/dev/[a-z0-9]*\)".*|\1|p' | head -n 1
}
null=$(device null)
disk=$(device hdd-7200)
cargo run --release --locked -p weir-collectors --example bench_collect -- "$null=0.92" "$disk=0.99" "$@"
