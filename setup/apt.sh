# Shared by the scripts that install Debian packages.
# shellcheck shell=bash

# A lock that an unattended upgrade holds is waited for.
apt=(apt-get --quiet --yes -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2)
apt_log=.weir/logs/packages.log
export DEBIAN_FRONTEND=noninteractive

# Reads the package lists. A list that cannot be fetched is only a warning to apt-get: apt_install fails then.
apt_update() {
    logged "$apt_log" "${apt[@]}" update ||
        refuse "apt-get cannot read the package lists. Check the network and /etc/apt/sources.list, then run it again (log: $apt_log)"
}

# Installs packages: apt_install PACKAGE... It starts no service and removes no package.
apt_install() {
    # apt asks this program whether a package may start its service. Studies and tests start servers with a configuration of their own.
    local policy=/usr/sbin/policy-rc.d
    if [[ ! -e $policy ]]; then
        # shellcheck disable=SC2064 # the name is known now
        trap "rm --force $policy" EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    logged "$apt_log" "${apt[@]}" --no-remove install --no-install-recommends "$@" ||
        refuse "apt-get cannot install $* without removing a package, or cannot fetch it. Read $apt_log, then run it again"
}
