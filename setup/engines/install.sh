#!/usr/bin/env bash
# Installs the job schedulers that `make test-engines` runs: Debian packages, and Python packages in .weir/engines. Starts no service.
set -euo pipefail
cd "$(dirname "$0")/../.."
source setup/say.sh
source setup/apt.sh

# munged and slurmd are started by the tests, with a configuration of their own.
packages=(slurmctld slurmd slurm-client munge parallel)
installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^installed //p' || true)
missing=()
for package in "${packages[@]}"; do
    grep --quiet --line-regexp --fixed-strings "$package" <<<"$installed" || missing+=("$package")
done
if ((${#missing[@]})); then
    ((EUID == 0)) || refuse "only root can install packages: sudo apt-get install --no-install-recommends ${missing[*]}"
    say "installing ${#missing[@]} Debian packages: ${missing[*]}"
    apt_update
    apt_install "${missing[@]}"
fi

# Not in .venv, which has the packages of requirements.lock only. Their dependencies are there.
lock=setup/engines/requirements.lock
stamp=.weir/engines/lock
if ! cmp --quiet "$lock" "$stamp"; then
    logged .weir/logs/engines.log uv pip install --python .venv/bin/python --target .weir/engines --no-deps --require-hashes -r "$lock" ||
        refuse "dask-jobqueue and hyperqueue cannot be fetched: check the network, then again (log: .weir/logs/engines.log)"
    cp "$lock" "$stamp"
fi
