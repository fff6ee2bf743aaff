#!/usr/bin/env bash
# Builds a kernel of Debian's newest linux-source package into a folder, without installing anything: build_kernel.sh DIR CONFIG
# CONFIG lists all options; what it does not name is off. There are no modules. Takes 5 minutes on 2 CPUs.
set -euo pipefail

to=$(realpath --canonicalize-missing "$1")
config=$(realpath "$2")
if [[ -e $to/done ]] && cmp --quiet "$config" "$to/done"; then exit 0; fi
for tool in flex bison bc make gcc; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed" >&2 && exit 1; }
done
rm -rf "$to" && mkdir -p "$to/build"
cd "$to/build"
package=$(apt-cache pkgnames linux-source- | grep -E '^linux-source-[0-9.]+$' | sort --version-sort | tail -n 1)
apt-get download --quiet "$package"
dpkg-deb --fsys-tarfile ./*.deb | tar --extract --to-stdout --wildcards './usr/src/linux-source-*.tar.xz' | tar --extract --xz
cd linux-source-*/
make --quiet KCONFIG_ALLCONFIG="$config" allnoconfig
# An option that this kernel does not know, or whose needs are off, is dropped without a word.
missing=$(grep '^CONFIG_' "$config" | grep --line-regexp --fixed-strings --invert-match --file=.config || true)
[[ -z $missing ]] || { echo "$package has no $missing" >&2 && exit 1; }
make --quiet --jobs="$(nproc)" bzImage
version=$(make --silent kernelrelease)
mkdir -p "$to/boot" "$to/lib/modules/$version"
cp arch/x86/boot/bzImage "$to/boot/vmlinuz-$version"
cd "$to"
rm -rf build
cp "$config" done
