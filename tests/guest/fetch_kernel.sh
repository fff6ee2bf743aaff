#!/usr/bin/env bash
# Unpacks Debian's cloud kernel and its modules into a folder, without installing anything: fetch_kernel.sh DIR [backports]
# The one of backports is newer; its package lists are fetched aside, so that this host's own stay as they are.
set -euo pipefail

to=$(realpath --canonicalize-missing "$1")
[[ ! -e $to/done ]] || exit 0
rm -rf "$to" && mkdir -p "$to"
cd "$to"

apt=()
if [[ ${2:-} == backports ]]; then
    . /etc/os-release
    site=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(SITE)' "Created-By: Packages" |
        awk -v release="$VERSION_CODENAME" '$1 == release && $2 == "main" { print $3; exit }')
    mkdir -p lists/partial
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$keys] $site $VERSION_CODENAME-backports main" >sources.list
    apt=(-o "Dir::Etc::sourcelist=$to/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$to/lists"
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
    apt-get "${apt[@]}" --quiet update
fi
package=$(apt-cache "${apt[@]}" depends --important linux-image-cloud-amd64 |
    sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p')
apt-get "${apt[@]}" download --quiet "$package"
dpkg-deb --extract ./*.deb .
rm -rf ./*.deb lists sources.list
depmod --basedir "$to" "$(ls lib/modules)"
touch done
