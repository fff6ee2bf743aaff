#!/usr/bin/env bash
# Unpacks Debian's cloud kernel and its modules into a folder, without installing anything: fetch_kernel.sh DIR
set -euo pipefail

to=$(realpath --canonicalize-missing "$1")
[[ ! -e $to/done ]] || exit 0
package=$(apt-cache depends --important linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p')
rm -rf "$to" && mkdir -p "$to"
cd "$to"
apt-get download --quiet "$package"
dpkg-deb --extract ./*.deb .
rm ./*.deb
depmod --basedir "$to" "$(ls lib/modules)"
touch done
