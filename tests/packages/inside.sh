#!/usr/bin/env bash
# The part of run.sh that runs inside the clean root.
set -euo pipefail
dist=$1

step() { printf 'packages: %s: %5d s  %s\n' "$dist" "$SECONDS" "$*"; }
fail() {
    printf 'packages: FAILED: %s\n' "$*" >&2
    exit 1
}
as_user() { setpriv --reuid=user --regid=user --init-groups env HOME=/home/user USER=user "$@"; }
# A command that must be refused: refused CODE TEXT COMMAND...
refused() {
    local code=0 wanted=$1 text=$2 said
    shift 2
    said=$("$@" 2>&1) || code=$?
    [[ $code == "$wanted" ]] || fail "$* ended with exit code $code, not $wanted: $said"
    grep --quiet --fixed-strings -- "$text" <<<"$said" || fail "$* does not say: $text, but: $said"
}
export DEBIAN_FRONTEND=noninteractive
useradd --create-home user
deb=$(echo /opt/dist/weir_*.deb) wheel=$(echo /opt/dist/weir_bench-*.whl) collection=$(echo /opt/dist/weir-qos-*.tar.gz)
version=$(dpkg-deb --field "$deb" Version)
version=${version%-*}
apt-get --quiet --quiet update

step "the Debian package alone, without what it recommends"
apt-get --quiet --quiet --yes --no-install-recommends install "$deb" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; fail "apt-get install"; }
[[ ! -e /usr/lib/x86_64-linux-gnu/libelf.so.1 ]] || fail "the root has libelf.so.1: it cannot show that the binary needs none"
[[ $(weir --version) == "weir $version" ]] || fail "weir --version says $(weir --version), not weir $version"
[[ -s /usr/share/man/man1/weir.1.gz && -s /usr/share/man/man1/weir-simulate.1.gz ]] || fail "there are no manual pages"
bash -n /usr/share/bash-completion/completions/weir
[[ -s /usr/share/doc/weir/copyright ]] || fail "there is no copyright file"
cd /home/user
as_user weir list studies >/tmp/studies
grep --quiet kernel-schedulers /tmp/studies || fail "weir list studies lacks kernel-schedulers"
as_user weir init demo >/dev/null
cd demo
as_user weir check studies/demo.yml >/dev/null
as_user weir simulate demo >/dev/null
[[ $(find results/demo -mindepth 2 -maxdepth 2 -name requests.parquet | wc -l) == 20 ]] || fail "weir simulate demo did not make 20 runs"
refused 2 "weir_bench-" as_user weir report demo
refused 3 "weir_bench-" as_user weir doctor
refused 3 "apt-get install xfsprogs" as_user weir doctor

step "the wheel beside it, in the environment of the project"
as_user python3 -m venv .venv
as_user .venv/bin/pip --quiet --disable-pip-version-check install --constraint /opt/dist/constraints.txt "$wheel[control]"
as_user weir summary demo >/tmp/summary
grep --quiet "Which scheduler keeps video on time" /tmp/summary || fail "weir summary demo does not repeat the question"
as_user weir report demo
[[ -s results/demo/report.html ]] || fail "there is no results/demo/report.html"

step "the Debian package leaves nothing behind"
dpkg-query --listfiles weir >/tmp/files
apt-get --quiet --quiet --yes purge weir >/dev/null 2>&1
while read -r file; do
    [[ $file == */weir* && -e $file ]] && fail "$file is left after the removal of the package"
done </tmp/files

step "the wheel alone"
hash -r
[[ $(as_user .venv/bin/weir --version) == "weir $version" ]] || fail "the wheel's weir is not weir $version"
rm --recursive results/demo
as_user .venv/bin/weir simulate demo >/dev/null
as_user .venv/bin/weir report demo
[[ -s results/demo/report.html ]] || fail "there is no results/demo/report.html"

step "the Ansible collection, in virtual time"
as_user .venv/bin/ansible-galaxy collection install "$collection" >/dev/null
inventory=/home/user/.ansible/collections/ansible_collections/weir/qos/inventories/localhost.yml
refused 2 "name an inventory with -i" as_user .venv/bin/ansible-playbook weir.qos.study -e study=demo
refused 2 "did you mean" as_user .venv/bin/ansible-playbook -i "$inventory" weir.qos.study -e stuudy=demo
rm --recursive results/demo
as_user env ANSIBLE_STDOUT_CALLBACK=weir .venv/bin/ansible-playbook -i "$inventory" weir.qos.study -e study=demo >/tmp/play 2>&1 ||
    { cat /tmp/play; fail "ansible-playbook weir.qos.study"; }
[[ -s results/demo/report.html ]] || fail "there is no results/demo/report.html"

step "the Debian package with what it recommends"
apt-get --quiet --quiet --yes install "$deb" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; fail "apt-get install"; }
for program in fio mkfs.xfs mkfs.btrfs blktrace fusermount3 ip modprobe; do
    command -v "$program" >/dev/null || fail "$program is not installed with the package"
done
if [[ -e /dev/fuse && -e /dev/loop-control ]]; then
    step "root: a study on modelled disks, by the collection"
    cp /root/tiny.yml studies/
    ANSIBLE_COLLECTIONS_PATH=/home/user/.ansible/collections .venv/bin/ansible-playbook -i "$inventory" weir.qos.study \
        -e study=tiny -e weir_state=/run/weir-packages >/tmp/play 2>&1 || { cat /tmp/play; fail "the study on devices"; }
    [[ $(find results/tiny -name verdict.json | wc -l) == 2 && -s results/tiny/report.html ]] || fail "there are not 2 runs and a report in results/tiny"
    weir clean --state /run/weir-packages >/dev/null
else
    step "no /dev/fuse or no loop devices here: no study on devices"
fi
step "done"
