#!/usr/bin/env bash
# Builds target/release/weir from the locked crates. cargo knows what is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh

# For this machine only: the lock also names crates of systems that weir does not run on.
fetch=(cargo fetch --locked --target "$(rustc --version --verbose | sed -n 's/^host: //p')")
if ! "${fetch[@]}" --quiet --offline 2>/dev/null; then
    say "fetching the locked crates"
    logged .weir/logs/fetch.log "${fetch[@]}" ||
        refuse "the crates cannot be fetched: check the network, then again (log: .weir/logs/fetch.log)"
fi
quiet=--quiet
if [[ ! -x target/release/weir ]]; then
    say "building target/release/weir (a few minutes the first time)"
    quiet=
fi
# shellcheck disable=SC2086 # absent is not the same as empty here
cargo build --release --locked --offline $quiet -p weir-cli ||
    refuse "the build fails (see above)"
