#!/usr/bin/env bash
# Fetches the locked crates that are not there yet.
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
