#!/usr/bin/env bash
# Installs the Debian packages of debian-packages.txt that are missing. Needs root only if some are. Without root, those that
# only runs on devices need are left: virtual time does without.
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh

[[ ${WEIR_PACKAGES:-} != skip ]] || exit 0
log=.weir/logs/packages.log
names() { sed -E 's/#.*//; s/^[[:space:]]+//; s/[[:space:]].*//; /^$/d'; }
mapfile -t wanted < <(names <setup/debian-packages.txt)
# From this heading on.
mapfile -t for_devices < <(sed -n '/^# To run studies/,$p' setup/debian-packages.txt | names)

command -v dpkg-query >/dev/null ||
    refuse "this is no Debian: install ${wanted[*]} or your system's equivalents, then make setup with WEIR_PACKAGES=skip"

installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null |
    sed -n 's/^installed //p' || true)
missing=()
for package in "${wanted[@]}"; do
    grep --quiet --line-regexp --fixed-strings "$package" <<<"$installed" || missing+=("$package")
done
((${#missing[@]})) || exit 0

if ((EUID != 0)); then
    needed=()
    for package in "${missing[@]}"; do
        [[ " ${for_devices[*]} " == *" $package "* ]] || needed+=("$package")
    done
    if ((${#needed[@]} == 0)); then
        say "not installed, since only root can: ${missing[*]} (studies in virtual time do without)"
        exit 0
    fi
    missing=("${needed[@]}")
    refuse "packages are missing and only root can install them: sudo apt-get install --no-install-recommends ${missing[*]}"
fi

say "installing ${#missing[@]} Debian packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# A lock held by an unattended upgrade is waited for.
apt=(apt-get --quiet --yes -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2)
logged "$log" "${apt[@]}" update ||
    refuse "apt-get cannot read the package lists: check the network and /etc/apt/sources.list, then again (log: $log)"
# Servers are started by what needs them, with a configuration of their own: their packages are to start none. Debian asks
# this program (policy-rc.d) before it starts a service.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
    trap 'rm --force "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
# Lists that cannot be fetched are only a warning to apt-get update: the next step tells.
logged "$log" "${apt[@]}" install --no-install-recommends "${missing[@]}" ||
    refuse "apt-get cannot install ${missing[*]}: check the network, then again (log: $log)"
# Nor when the machine is started next.
for pair in nginx-light:nginx postgresql-15:postgresql; do
    service=${pair#*:}.service
    if [[ " ${missing[*]} " == *" ${pair%:*} "* && -d /run/systemd/system ]]; then
        systemctl --quiet disable "$service" || say "$service stays enabled: systemctl disable $service"
    fi
done
