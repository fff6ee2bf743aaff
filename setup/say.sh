# Messages and logs of the set-up scripts.
# shellcheck shell=bash

# One line about what is being done.
say() { printf 'setup: %s\n' "$*"; }

# One line about what is wrong.
warn() { printf 'setup: %s\n' "$*" >&2; }

# One line about what is wrong and what to do; ends the script with exit code 2.
refuse() {
    warn "$@"
    exit 2
}

# Runs a command quietly: logged FILE COMMAND... ; its output is kept in FILE.
logged() {
    local log=$1
    shift
    mkdir -p "$(dirname "$log")"
    "$@" >"$log" 2>&1 </dev/null
}
