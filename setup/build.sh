#!/usr/bin/env bash
# Builds target/release/weir from the locked crates, which are fetched already. cargo knows what is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh

quiet=--quiet
if [[ ! -x target/release/weir ]]; then
    say "building target/release/weir (a few minutes the first time)"
    quiet=
fi
# shellcheck disable=SC2086 # absent is not the same as empty here
cargo build --release --locked --offline $quiet -p weir-cli ||
    refuse "the build fails (see above)"
