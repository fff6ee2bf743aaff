#!/usr/bin/env bash
# Makes .venv with exactly the packages of requirements.lock, and weir's own package in it (editable).
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh

# Two that begin together would each make half of it.
mkdir -p .weir
exec 9>.weir/python.lock
flock 9

log=.weir/logs/python.log
stamp=.venv/.weir-lock
want=$(cat requirements.lock pyproject.toml setup/python.sh | sha256sum)
if [[ -f $stamp && $(<"$stamp") == "$want" ]] && .venv/bin/python -c 'import weir' 2>/dev/null; then
    exit 0
fi

# The first Python that is new enough and can make an environment: a pyenv or Conda one may lack either.
usable='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c "$usable" 2>/dev/null; then
        python=$candidate
        break
    fi
done
[[ -n $python ]] || refuse "no Python 3.11 or newer with venv: apt-get install python3-venv (Debian 12 has 3.11), then again"

.venv/bin/python -c '' 2>/dev/null || rm -rf .venv
say "Python environment .venv from requirements.lock"
network="check the network, then again (log: $log)"
[[ -x .venv/bin/python ]] ||
    logged "$log" "$python" -m venv .venv || refuse "python3 -m venv fails: apt-get install python3-venv, then again (log: $log)"

# uv itself comes out of the lock too, by pip, which checks its hashes.
if [[ ! -x .venv/bin/uv ]]; then
    mkdir -p .weir
    awk '/^uv==/ {inside = 1} inside && /^[^ ]/ && !/^uv==/ {exit} inside && !/#/' requirements.lock >.weir/uv.lock
    logged "$log" .venv/bin/python -m pip install --disable-pip-version-check --require-hashes --no-deps -r .weir/uv.lock ||
        refuse "pip cannot fetch uv: $network"
fi
# Compiled once here: where Python may not write what it compiles, every start would take seconds longer.
logged "$log" .venv/bin/uv pip sync --python .venv/bin/python --compile-bytecode --require-hashes requirements.lock ||
    refuse "the Python packages cannot be fetched: $network"
logged "$log" .venv/bin/uv pip install --python .venv/bin/python --no-deps --editable . ||
    refuse "weir's Python package cannot be installed: $network"
printf '%s\n' "$want" >"$stamp"
