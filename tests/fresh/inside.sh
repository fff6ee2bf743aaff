#!/usr/bin/env bash
# The part of run.sh that runs inside the clean root.
set -euo pipefail
tests=$1

step() { printf 'fresh: %5d s  %s\n' "$SECONDS" "$*"; }
fail() {
    printf 'fresh: FAILED: %s\n' "$*" >&2
    exit 1
}
as_user() { setpriv --reuid=user --regid=user --init-groups env HOME=/home/user USER=user "$@"; }

# What a failed study left on the host is taken down before the root is removed.
trap '[[ ! -x /home/weir/target/release/weir ]] || (cd /home/weir && target/release/weir clean)' EXIT

useradd --create-home user
mkdir -p /opt/cargo
chown --recursive user: /home/weir /opt/cargo
cd /home/weir

step "a user without root, and nothing installed"
code=0
as_user make study >/tmp/first 2>&1 || code=$?
cat /tmp/first
[[ $code == 2 ]] || fail "make study ended with exit code $code, not 2"
for part in "missing: clang" "is missing (cargo is not in the PATH)" "https://rustup.rs" "sudo apt-get install" "cargo-web rustc-web"; do
    grep --quiet "$part" /tmp/first || fail "make study does not say: $part"
done
[[ ! -e target && ! -e .venv ]] || fail "make study made something before it was refused"

chown --recursive root: /home/weir /opt/cargo
step "root: make setup"
make setup
step "root: make setup again"
again=$(make setup 2>&1) || fail "the second make setup ended with exit code $?: $again"
[[ -z $again ]] || fail "the second make setup says: $again"
code=0
make study STUDY=quikc >/tmp/wrong 2>&1 || code=$?
grep --quiet "did you mean .quick" /tmp/wrong || fail "make study does not say: did you mean quick"
[[ $code == 2 ]] || fail "make study of a wrong name ended with exit code $code, not 2"

if [[ -e /dev/fuse && -e /dev/loop-control ]]; then
    step "root: make study, on devices"
    make study
    rm --recursive results/quick
else
    step "no /dev/fuse or no loop devices here: no study on devices"
fi

chown --recursive user: /home/weir /opt/cargo
step "user: make study, in virtual time"
as_user make study
[[ -s results/quick/report.html ]] || fail "there is no results/quick/report.html"
if [[ $tests == yes ]]; then
    step "user: make test"
    as_user make test
fi
step "done"
