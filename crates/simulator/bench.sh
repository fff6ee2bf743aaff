#!/usr/bin/env bash
# How many disk requests a second of one core the simulator serves, and SimPy, at the same load, in turns. SimPy is fetched
# into a folder of its own, if it can be.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(mktemp --directory "${TMPDIR:-/tmp}/weir-simulator.XXXXXX")
trap 'rm -r "$folder"' EXIT
cargo build --release --locked --quiet -p weir-simulator --example bench_simulator
bench="${CARGO_TARGET_DIR:-target}/release/examples/bench_simulator"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet simpy==4.1.2 || echo "SimPy cannot be installed here: no comparison" >&2
"$folder/venv/bin/python" crates/simulator/benches/simpy_peer.py "$bench"
