#!/usr/bin/env bash
# Builds the images of Containerfile: `weir` from dist/, which is used as docs/how-to/install.md says, and `develop`, in which a clone
# is set up as .devcontainer does. Removes images and containers.
# The base is a clean root of Debian 12 made here, so that no registry of images is needed. Needs root, podman or apt-get.
set -euo pipefail
cd "$(dirname "$0")/../.."
source setup/say.sh
source setup/apt.sh
source tests/fresh/root.sh

((EUID == 0)) || refuse "test-image needs root: it makes a root of Debian"
[[ -e dist/SHA256SUMS ]] || refuse "dist/SHA256SUMS is missing: call make packages first"
command -v podman >/dev/null || (apt_update && apt_install podman buildah)
fail() {
    warn "FAILED: $*"
    exit 1
}

make_root image bookworm ca-certificates
# Images and containers are in the folder of the root, and go with it. podman prefers a state in tmpfs.
podman=(podman --root "$place/storage" --runroot "$place/run")
remove_storage() {
    "${podman[@]}" system reset --force >/dev/null 2>&1 || true
    remove_root
}
trap remove_storage EXIT
tar --create --directory "$root" --one-file-system . | "${podman[@]}" import --quiet - localhost/bookworm >/dev/null

# What this machine lets containers do: limits above its own need CAP_SYS_RESOURCE, crun refuses two versions of control groups at once.
run=()
for try in "" "--ulimit=nofile=1000:1000 --ulimit=nproc=1000:1000" "runc" "runc --ulimit=nofile=1000:1000 --ulimit=nproc=1000:1000"; do
    options=$try
    runtime=()
    if [[ $try == runc* ]]; then
        command -v runc >/dev/null || continue
        runtime=(--runtime runc)
        options=${try#runc}
    fi
    # shellcheck disable=SC2206 # words
    run=("${podman[@]}" "${runtime[@]}" run --rm --network host $options)
    if why=$("${run[@]}" localhost/bookworm true 2>&1); then
        say "containers run here by podman ${runtime[*]} run --network host $options"
        break
    fi
    say "podman ${runtime[*]} run --network host $options: $(tail -1 <<<"$why")"
    run=()
done
((${#run[@]})) || refuse "podman runs no container here, for the reasons above; apt-get install runc may help"

say "building the image"
# RUN in a chroot: it needs no runtime, and the network of this machine.
arguments=(--isolation chroot --network host --build-arg BASE=localhost/bookworm)
for name in PIP_CERT PIP_INDEX_URL PIP_FIND_LINKS SSL_CERT_FILE; do
    [[ -z ${!name:-} ]] || arguments+=(--env "$name=${!name}")
done
build() {
    logged "$place/$1.log" "${podman[@]}" build "${arguments[@]}" --target "$1" --tag "$1" . || {
        tail -20 "$place/$1.log" >&2
        fail "podman build --target $1"
    }
}
build weir

say "a study in virtual time, as the user's folder is mounted"
mkdir "$place/work"
"${run[@]}" --volume "$place/work:/work" --entrypoint sh weir -c 'weir init demo && cd demo && weir simulate demo && weir report demo' ||
    fail "weir in the container"
[[ -s $place/work/demo/results/demo/report.html ]] || fail "the container left no report in the folder that was mounted"

if [[ -e /dev/fuse && -e /dev/loop-control ]]; then
    say "a study on modelled disks, with --privileged"
    cp tests/packages/tiny.yml "$place/work/demo/studies/"
    # By a shell: the collection takes the project from PWD, which a container without a shell does not have.
    play='ansible-playbook -i /usr/share/ansible/collections/ansible_collections/weir/qos/inventories/localhost.yml weir.qos.study'
    "${run[@]}" --privileged --volume /dev:/dev --volume "$place/work:/work" --workdir /work/demo --entrypoint sh weir \
        -c "exec $play -e study=tiny -e weir_state=/run/weir-image" >"$place/play.log" 2>&1 || {
        tail -40 "$place/play.log" >&2
        fail "the study on devices in the container"
    }
    [[ $(find "$place/work/demo/results/tiny" -name verdict.json | wc -l) == 2 ]] || fail "there are not 2 runs"
else
    say "no /dev/fuse or no loop devices here: no study on devices"
fi

say "the image develop, and set-up of a clone in it"
build develop
mkdir "$place/clone"
git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$place/clone"
settings=(--env CARGO_HOME=/opt/cargo)
for name in $(compgen -e | grep -E '^(PIP_(CERT|INDEX|EXTRA_INDEX|TRUSTED|DEFAULT_TIMEOUT)|UV_|CARGO_(HTTP|NET|REGISTR|SOURCE)|SSL_CERT)'); do
    settings+=(--env "$name=${!name}")
done
"${run[@]}" "${settings[@]}" --volume "$place/clone:/weir" --workdir /weir --entrypoint sh develop -c 'make setup && target/release/weir --version' \
    >"$place/setup.log" 2>&1 || {
    tail -40 "$place/setup.log" >&2
    fail "make setup in the image develop"
}
say "$(tail -1 "$place/setup.log")"
say "the images work"
