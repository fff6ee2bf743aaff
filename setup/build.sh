#!/usr/bin/env bash
# Builds target/release/weir from the locked crates, which are fetched already. cargo knows what is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh

quiet=--quiet
if [[ ! -x target/release/weir ]]; then
    # No time left: the last crates take longer than the many before them. cargo counts its crates on a terminal.
    say "building target/release/weir for the first time: about 4 minutes on 2 processors"
    quiet=
fi
# shellcheck disable=SC2086 # absent is not the same as empty here
cargo build --release --locked --offline $quiet -p weir-cli ||
    refuse "the build fails (see above)"
[[ -n $quiet ]] || say "built in $((SECONDS / 60)) min $((SECONDS % 60)) s"
