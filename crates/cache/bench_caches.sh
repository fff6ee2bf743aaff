#!/usr/bin/env bash
# How fast the caches are, and libCacheSim's on the same 20 million requests (Zipf 0.9 over a million objects), with the
# same misses. Python's package libcachesim is fetched into a folder of its own, if it can be.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(mktemp --directory "${TMPDIR:-/tmp}/weir-caches.XXXXXX")
trap 'rm -r "$folder"' EXIT
cargo build --release --locked --quiet -p weir-cache --example bench_caches
"${CARGO_TARGET_DIR:-target}/release/examples/bench_caches" "$folder/zipf.oracleGeneral.bin" | tee "$folder/ours.json"
python3 -m venv "$folder/venv"
if "$folder/venv/bin/pip" install --quiet libcachesim==0.3.5; then
    "$folder/venv/bin/python" crates/cache/bench_libcachesim.py "$folder/zipf.oracleGeneral.bin" "$folder/ours.json"
else
    echo "libcachesim cannot be installed here: no comparison" >&2
fi
