#!/usr/bin/env bash
# Installs the packages of dist/ in a clean root of each release, and uses them there as a user does. Removes the roots.
# Usage: tests/packages/run.sh DIST...    DIST is bookworm, trixie or noble (Ubuntu 24.04).
set -euo pipefail
cd "$(dirname "$0")/../.."
source setup/say.sh
source setup/apt.sh
source tests/fresh/root.sh

((EUID == 0)) || refuse "test-packages needs root: it makes roots of Debian or Ubuntu and mounts /proc, /sys and /dev in them"
[[ -e dist/SHA256SUMS ]] || refuse "dist/SHA256SUMS is missing: call make packages first"
(cd dist && sha256sum --quiet --check SHA256SUMS) || refuse "dist/ differs from its SHA256SUMS: call make packages again"
# In subshells: each removes its root before the next one is made.
for dist in "$@"; do
    (
        make_root packages "$dist" ca-certificates,python3-venv
        cp --recursive dist "$root/opt/dist"
        cp tests/packages/tiny.yml "$root/root/"
        in_root tests/packages/inside.sh "$dist"
    )
    say "$dist: the packages work"
done
