#!/usr/bin/env bash
# Makes a clean root of Debian in a temporary folder, clones the last commit into it, and does there what README.md tells a new user:
# without root and packages, as root, and without root again. Removes the folder afterwards.
# Usage: tests/fresh/run.sh DIST TESTS    DIST is bookworm or trixie; TESTS=no leaves out `make test`.
set -euo pipefail
cd "$(dirname "$0")/../.."
source setup/say.sh
source setup/apt.sh
source tests/fresh/root.sh
dist=$1 tests=$2

((EUID == 0)) || refuse "test-fresh needs root: it makes a root of Debian and mounts /proc, /sys and /dev in it"
make_root fresh "$dist" make,git,ca-certificates
git clone --quiet --no-hardlinks . "$root/home/weir"
[[ -z $(git status --porcelain) ]] || say "uncommitted changes are not tested"
in_root tests/fresh/inside.sh "$tests"
say "Debian $dist: all of it works"
