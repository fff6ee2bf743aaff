#!/usr/bin/env bash
# Packs a root file system for a guest: initramfs.sh KERNEL_DIR OUT INIT MODULE... -- PROGRAM... -- FILE...
# Programs come with their shared libraries; files go into the root.
set -euo pipefail

kernel=$1 out=$2 init=$3
shift 3
modules=() programs=()
while [[ $1 != -- ]]; do
    modules+=("$1")
    shift
done
shift
while [[ $1 != -- ]]; do
    programs+=("$(command -v "$1")")
    shift
done
shift

root=$(mktemp --directory)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,dev,etc,lib,mnt,proc,run,sys,tmp,results,given}
version=$(ls "$kernel/lib/modules")

# In the order in which they are to be loaded; what is built in has no file.
for module in "${modules[@]}"; do
    modprobe --dirname "$kernel" --set-version "$version" --show-depends "$module"
done | sed -n 's/^insmod *\([^ ]*\).*/\1/p' | awk '!seen[$0]++' | while read -r module; do
    # Debian packs them since Linux 6.6, and busybox loads only what is not.
    name=$(basename "$module" .xz)
    if [[ $module == *.xz ]]; then xz --decompress --stdout "$module"; else cat "$module"; fi >"$root/lib/$name"
    echo "$name"
done >"$root/lib/modules.list"

for program in "${programs[@]}"; do
    cp --dereference "$program" "$root/bin/"
    # A program that is linked statically has no libraries to show.
    { ldd "$program" 2>/dev/null || true; } | sed -n 's/.*[ \t]\(\/[^ ]*\) (0x.*/\1/p' | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp --dereference "$library" "$root$library"
    done
done
[[ $# -eq 0 ]] || cp "$@" "$root/given/"
install --mode=755 "$init" "$root/init"
(cd "$root" && find . | cpio --quiet --create --format=newc | gzip --fast) >"$out"
