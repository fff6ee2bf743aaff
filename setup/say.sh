# Shared by the set-up scripts: how they speak and how they give up.
# shellcheck shell=bash

# One line about what is being done.
say() { printf 'setup: %s\n' "$*"; }

# One line about what is wrong and what to do; ends the script with exit code 2.
refuse() {
    printf 'setup: %s\n' "$*" >&2
    exit 2
}

# Runs a command quietly: logged FILE COMMAND... ; its output is kept in FILE.
logged() {
    local log=$1
    shift
    mkdir -p "$(dirname "$log")"
    "$@" >"$log" 2>&1 </dev/null
}
