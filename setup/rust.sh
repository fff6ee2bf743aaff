#!/usr/bin/env bash
# Checks that a Rust toolchain is there that is new enough. Installs nothing: how you get Rust is yours to choose.
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh

needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
remedy="install Rust $needed or newer (https://rustup.rs), then again"
if [[ -n ${SUDO_USER:-} ]]; then
    remedy="$remedy; or, if it is yours and not root's: sudo env HOME=\"\$HOME\" PATH=\"\$PATH\" make ..."
fi

found=$(cargo --version 2>/dev/null | sed -E 's/^cargo ([0-9.]+).*/\1/') || true
[[ -n $found ]] || refuse "cargo is not in the PATH: $remedy"
oldest=$(printf '%s\n%s\n' "$needed" "$found" | sort --version-sort | head -n 1)
[[ $oldest == "$needed" ]] || refuse "cargo is $found, too old: $remedy"
