#!/usr/bin/env bash
# Installs the missing Debian packages of debian-packages.txt, and a Rust toolchain where there is none. Needs root only if
# something is missing. Without root, packages that only studies on devices need may be missing.
# Usage: setup/packages.sh [--print]; --print installs nothing and prints the packages, for an administrator.
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh
source setup/apt.sh

list=setup/debian-packages.txt
names() { sed -E 's/#.*//; s/^[[:space:]]+//; s/[[:space:]].*//; /^$/d'; }
mapfile -t wanted < <(names <"$list")
# From this heading on.
mapfile -t for_devices < <(sed -n '/^# To run studies/,$p' "$list" | names)
rust_packages() { setup/rust.sh --packages || true; }

case ${1:-} in
'') ;;
--print)
    # shellcheck disable=SC2046 # one word for each package
    printf '%s\n' "${wanted[@]}" $(rust_packages)
    exit 0
    ;;
*) refuse "packages.sh: unknown argument $1 (known: --print)" ;;
esac
[[ ${WEIR_PACKAGES:-} != skip ]] || exit 0

# Names in another distribution: others COLUMN of other-packages.txt.
others() { sed 's/#.*//' setup/other-packages.txt | awk -v column="$1" '$column && $column != "-" && !seen[$column]++ {printf " %s", $column}'; }
if ! command -v dpkg-query >/dev/null; then
    case $(sed -n 's/^ID\(_LIKE\)\?=//p' /etc/os-release 2>/dev/null) in
    *fedora*) install="dnf install$(others 2)" ;;
    *suse*) install="zypper install$(others 3)" ;;
    *) install="install ${wanted[*]} or your system's equivalents" ;;
    esac
    refuse "this system has no dpkg. As root: $install; then run make with WEIR_PACKAGES=skip"
fi

installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null |
    sed -n 's/^installed //p' || true)
missing=()
for package in "${wanted[@]}"; do
    grep --quiet --line-regexp --fixed-strings "$package" <<<"$installed" || missing+=("$package")
done
rust=there
setup/rust.sh --find >/dev/null || rust=

if ((EUID != 0)); then
    needed=() optional=()
    for package in "${missing[@]}"; do
        if [[ " ${for_devices[*]} " == *" $package "* ]]; then optional+=("$package"); else needed+=("$package"); fi
    done
    ((${#optional[@]} == 0)) || say "not installed, and only root can: ${optional[*]} (studies in virtual time do without)"
    for package in "${needed[@]}"; do
        warn "missing: $package ($(sed -nE "s/^$package +//p" "$list"))"
    done
    if [[ -z $rust ]]; then
        warn "$(setup/rust.sh --why): https://rustup.rs installs it without root"
        mapfile -t -O "${#needed[@]}" needed < <(rust_packages | tr ' ' '\n')
    fi
    ((${#needed[@]} == 0)) ||
        refuse "only root can install packages: sudo apt-get install --no-install-recommends ${needed[*]} (all of them: setup/packages.sh --print)"
    [[ -n $rust ]] || exit 2
    exit 0
fi

[[ ${#missing[@]} -gt 0 || -z $rust ]] || exit 0
apt_update
if [[ -z $rust ]]; then
    why=$(setup/rust.sh --why)
    read -ra toolchain < <(rust_packages) || true
    ((${#toolchain[@]})) || refuse "$why, and no package of this system has one. Install it from https://rustup.rs, then run it again"
    # A package that would replace an older toolchain is for its owner to choose.
    "${apt[@]}" --simulate --no-remove install "${toolchain[@]}" >/dev/null 2>&1 ||
        refuse "$why, and ${toolchain[*]} would replace packages. If that is wanted: apt-get install ${toolchain[*]}; else https://rustup.rs"
    say "$why: installing ${toolchain[*]}"
    if [[ -n ${SUDO_USER:-} ]]; then
        say "to use a toolchain of $SUDO_USER instead: sudo env HOME=\"\$HOME\" PATH=\"\$PATH\" make ..."
    fi
    missing+=("${toolchain[@]}")
fi
say "installing ${#missing[@]} Debian packages: ${missing[*]}"
apt_install "${missing[@]}"
# Their services are not started at the next boot either.
for pair in nginx-light:nginx postgresql:postgresql; do
    service=${pair#*:}.service
    if [[ " ${missing[*]} " == *" ${pair%:*} "* && -d /run/systemd/system ]]; then
        systemctl --quiet disable "$service" || say "$service stays enabled: systemctl disable $service"
    fi
done
