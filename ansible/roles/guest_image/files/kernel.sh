#!/usr/bin/env bash
# Packs a kernel for the guests: kernel.sh FOLDER package NAME [RELEASE] | deb FILE | image FILE [MODULES] [INITRD]
# FOLDER gets vmlinuz, initrd, modules.img (for /lib/modules) and source, one line. Nothing is installed on this machine.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
to=$(realpath --canonicalize-missing "$1") kind=$2 what=$3
shift 3
debs=()
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/lib/modules" "$work/initrd/lib"

case $kind in
package)
    apt=()
    cd "$work"
    if [[ -n ${1:-} ]]; then
        # Lists of another release are fetched aside: this machine's own stay as they are.
        mirror=$(apt-get indextargets --format '$(COMPONENT) $(SITE)' "Created-By: Packages" | awk '$1 == "main" { print $2; exit }')
        keys=/usr/share/keyrings/debian-archive-keyring.gpg
        mkdir -p lists/partial
        echo "deb [signed-by=$keys] $mirror $1 main" >sources.list
        apt=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists"
            -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)
        apt-get "${apt[@]}" --quiet --quiet update
    fi
    # linux-image-amd64 depends on the package that has the kernel.
    package=$(apt-cache "${apt[@]}" depends --important "$what" | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p' | head -n 1)
    package=${package:-$what}
    # Newer packages are split: linux-image-VERSION has no file, and depends on those of image and modules.
    mapfile -t parts < <(apt-cache "${apt[@]}" depends --important "$package" | sed -n 's/^ *Depends: \(linux-[a-z]*-[0-9].*\)$/\1/p')
    apt-get "${apt[@]}" -o APT::Sandbox::User=root download --quiet --quiet "$package" "${parts[@]}"
    debs=("$work/${package}_"*.deb)
    for part in "${parts[@]}"; do
        debs+=("$work/${part}_"*.deb)
    done
    ;;
deb) debs=("$what") ;;
image)
    image=$what
    echo "$what" >"$work/source"
    [[ -z ${1:-} ]] || cp -a "$1/." "$root/lib/modules"
    initrd=${2:-}
    ;;
*)
    echo "kernel.sh: $kind is no kind of kernel" >&2
    exit 2
    ;;
esac
if ((${#debs[@]})); then
    dpkg-deb --show --showformat '${Package} ${Version}\n' "${debs[0]}" >"$work/source"
    for deb in "${debs[@]}"; do
        dpkg-deb --extract "$deb" "$root"
    done
    [[ ! -d $root/usr/lib/modules ]] || cp -a "$root/usr/lib/modules/." "$root/lib/modules"
    image=$(find "$root" -name 'vmlinuz*' -type f -print -quit)
    [[ -n $image ]] || {
        echo "$what: has no file vmlinuz*: name a package that has a kernel image, or as \`package\` one that depends on it" >&2
        exit 2
    }
fi

for program in busybox cpio depmod; do
    command -v "$program" >/dev/null || {
        echo "kernel.sh: $program is absent: install the packages busybox, cpio and kmod" >&2
        exit 2
    }
done

# In the order in which they are to be loaded; what is built in has no file. Without modules everything is built in.
for version in "$root"/lib/modules/*/; do
    [[ -d $version ]] || continue
    depmod --basedir "$root" "$(basename "$version")"
    for module in virtio_pci virtio_blk ext4; do
        modprobe --dirname "$root" --set-version "$(basename "$version")" --show-depends "$module"
    done
done | sed -n 's/^insmod *\([^ ]*\).*/\1/p' | awk '!seen[$0]++' | while read -r module; do
    # busybox loads only what is not packed.
    name=$(basename "$module")
    unpack=cat
    case $module in
    *.xz) unpack="xz --decompress --stdout" ;;
    *.zst) unpack="zstd --decompress --stdout" ;;
    *.gz) unpack="gzip --decompress --stdout" ;;
    esac
    name=${name%%.ko*}.ko
    $unpack "$module" >"$work/initrd/lib/$name"
    echo "$name"
done >"$work/modules.list"

mkdir -p "$to"
if [[ -n ${initrd:-} ]]; then
    cp "$initrd" "$to/initrd"
else
    mkdir -p "$work"/initrd/{bin,dev,proc,sys,root}
    cp "$work/modules.list" "$work/initrd/lib/"
    busybox=$(command -v busybox)
    cp "$busybox" "$work/initrd/bin/busybox"
    # busybox-static has no libraries to show.
    { ldd "$busybox" 2>/dev/null || true; } | sed -n 's/.*[ \t]\(\/[^ ]*\) (0x.*/\1/p' | while read -r library; do
        mkdir -p "$work/initrd$(dirname "$library")"
        cp --dereference "$library" "$work/initrd$library"
    done
    install --mode=755 "$here/kernel.init" "$work/initrd/init"
    (cd "$work/initrd" && find . | cpio --quiet --create --format=newc | gzip --fast) >"$to/initrd"
fi
mib=$(($(du --summarize --block-size=1M "$root/lib/modules" | cut -f 1) * 5 / 4 + 16))
rm -f "$to/modules.img"
truncate --size="${mib}M" "$to/modules.img"
mkfs.ext4 -q -F -L weir-modules -d "$root/lib/modules" "$to/modules.img"
cp "$image" "$to/vmlinuz"
cp "$work/source" "$to/source"
