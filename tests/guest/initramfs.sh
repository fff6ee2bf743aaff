#!/usr/bin/env bash
# Packs a root file system for a guest: initramfs.sh KERNEL_DIR OUT INIT MODULE... -- PROGRAM... -- FILE...
# Programs come with their shared libraries; files go into the root.
set -euo pipefail

kernel=$1 out=$2 init=$3
shift 3
root=$(mktemp --directory)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,dev,etc,lib,mnt,proc,run,sys,tmp,results,work}
version=$(ls "$kernel/lib/modules")

# In the order in which they are to be loaded.
while [[ $1 != -- ]]; do
    modprobe --dirname "$kernel" --set-version "$version" --show-depends "$1" | sed -n 's/^insmod *\([^ ]*\).*/\1/p'
    shift
done | awk '!seen[$0]++' | while read -r module; do
    cp "$module" "$root/lib/"
    basename "$module"
done >"$root/lib/modules.list"
shift

while [[ $1 != -- ]]; do
    program=$(command -v "$1")
    cp --dereference "$program" "$root/bin/"
    ldd "$program" 2>/dev/null | sed -n 's/.*\(\/[^ ]*\) (0x.*/\1/p' | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp --dereference "$library" "$root$library"
    done
    shift
done
shift
[[ $# -eq 0 ]] || cp "$@" "$root/work/"
install --mode=755 "$init" "$root/init"
(cd "$root" && find . | cpio --quiet --create --format=newc | gzip --fast) >"$out"
