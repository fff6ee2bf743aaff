#!/usr/bin/env bash
# How many disk requests a second of one core the simulator serves, and SimPy, at the same load. SimPy is fetched into a
# folder of its own, if it can be.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(mktemp --directory "${TMPDIR:-/tmp}/weir-simulator.XXXXXX")
trap 'rm -r "$folder"' EXIT
cargo build --release --locked --quiet -p weir-simulator --example bench_simulator
bench="${CARGO_TARGET_DIR:-target}/release/examples/bench_simulator"
for policy in fcfs look satf; do "$bench" seagate-elite3 "$policy"; done
"$bench" seagate-elite3 scan | tee "$folder/ours.json"
python3 -m venv "$folder/venv"
if "$folder/venv/bin/pip" install --quiet simpy==4.1.2; then
    "$folder/venv/bin/python" crates/simulator/benches/simpy_peer.py "$folder/ours.json"
else
    echo "SimPy cannot be installed here: no comparison" >&2
fi
