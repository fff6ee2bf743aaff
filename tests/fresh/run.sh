#!/usr/bin/env bash
# Makes a clean root of Debian in a temporary folder, clones the last commit into it, and does there what README.md tells a new user:
# without root and packages, as root, and without root again. Removes the folder afterwards.
# Usage: tests/fresh/run.sh DIST TESTS    DIST is bookworm or trixie; TESTS=no leaves out `make test`.
# Mounts are made in a mount namespace of their own: they end with its last process, and nothing is unmounted here.
set -euo pipefail
cd "$(dirname "$0")/../.."
source setup/say.sh
source setup/apt.sh
dist=$1 tests=$2

((EUID == 0)) || refuse "test-fresh needs root: it makes a root of Debian and mounts /proc, /sys and /dev in it"
command -v mmdebstrap >/dev/null || (apt_update && apt_install mmdebstrap)

place=$(mktemp --directory --tmpdir="${TMPDIR:-/var/tmp}" weir-fresh.XXXXXX)
root=$place/root
remove() {
    # A mount that reached this namespace stays, and so does the folder.
    if findmnt --noheadings --list --output TARGET | grep --quiet --fixed-strings "$place/"; then
        warn "something is mounted in $place, which is left as it is"
    else
        rm --recursive --force --one-file-system "$place"
    fi
}
trap remove EXIT
# A signal ends the script by way of the trap above.
trap 'exit 1' INT TERM HUP

# This machine's own sources with the other distribution's name, where it is a Debian; else mmdebstrap's default.
host_dist=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
# shellcheck disable=SC2016 # apt-get replaces these, not the shell
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Component: main' 'Origin: Debian' |
    grep " $host_dist" | sed "s/ $host_dist/ $dist/" | sort --unique >"$place/sources.list" || true
sources=()
[[ ! -s $place/sources.list ]] || sources=("$place/sources.list")
say "making a clean root of Debian $dist in $root"
logged "$place/mmdebstrap.log" mmdebstrap --variant=minbase --include=make,git,ca-certificates "$dist" "$root" "${sources[@]}" || {
    tail "$place/mmdebstrap.log" >&2
    exit 1
}

# How this machine reaches its package registries: names, certificates, settings of the clients.
cp --dereference /etc/resolv.conf /etc/hosts "$root/etc/"
for file in /etc/ssl/certs/ca-certificates.crt /etc/pip.conf ~/.config/pip/pip.conf ~/.config/uv/uv.toml "${CARGO_HOME:-$HOME/.cargo}/config.toml"; do
    [[ ! -e $file ]] || install -D --mode=644 "$file" "$root/${file/#${CARGO_HOME:-$HOME/.cargo}//opt/cargo}"
done
mapfile -t clients < <(env | grep -E '^(PIP_(CERT|INDEX|EXTRA_INDEX|TRUSTED|DEFAULT_TIMEOUT)|UV_|CARGO_(HTTP|NET|REGISTR|SOURCE)|SSL_CERT|[A-Za-z]+_(proxy|PROXY)=)')

git clone --quiet --no-hardlinks . "$root/home/weir"
[[ -z $(git status --porcelain) ]] || say "uncommitted changes are not tested"
# One store of crates for both users: the second builds nothing again.
environment=(HOME=/root USER=root LANG=C.UTF-8 CARGO_HOME=/opt/cargo PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${clients[@]}")
cp tests/fresh/inside.sh "$root/root/"
# shellcheck disable=SC2016 # the inner shell replaces these
unshare --mount --propagation private --pid --fork --kill-child bash -euc '
    mount --types proc proc "$1/proc"
    mount --rbind /sys "$1/sys"
    mount --rbind /dev "$1/dev"
    shift
    exec "$@"' - "$root" chroot "$root" env --ignore-environment "${environment[@]}" bash /root/inside.sh "$tests" </dev/null
say "Debian $dist: all of it works"
