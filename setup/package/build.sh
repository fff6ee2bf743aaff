#!/usr/bin/env bash
# Builds the packages in dist/: a wheel and a Debian package that carry the same binary, the Ansible collection, constraints.txt with
# the versions of the Python packages that weir is tested with, and SHA256SUMS. A package that exists is replaced when all are built.
# Called by `make packages`, which has installed what weir needs. Reads the network the first time: cargo-deb and maturin.
set -euo pipefail
cd "$(dirname "$0")/../.."
source setup/say.sh

# Needs the newest glibc that all supported systems have, and a libelf.a without zstd: both are Debian 12's.
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
[[ $release == bookworm ]] ||
    refuse "packages are built on Debian 12, so that they run on newer systems too; this is ${release:-another system}. Build them in a container: docs/how-to/install.md"
libraries=$(gcc -print-file-name=libelf.a)
libraries=${libraries%/*}
[[ -e $libraries/libelf.a && -e $libraries/libz.a ]] ||
    refuse "libelf.a or libz.a is missing: apt-get install libelf-dev zlib1g-dev, then again"

# The versions of the two tools are fixed: the same sources make the same packages.
tools=$PWD/.weir/package
cargo_deb=3.8.0
if [[ $("$tools/bin/cargo-deb" --version 2>/dev/null) != "cargo-deb $cargo_deb" ]]; then
    say "building cargo-deb $cargo_deb for the first time: about 3 minutes on 2 processors"
    logged .weir/logs/cargo-deb.log cargo install --quiet --locked --root "$tools" --version "=$cargo_deb" cargo-deb ||
        refuse "cargo-deb cannot be built: check the network, then again (log: .weir/logs/cargo-deb.log)"
fi
# In an environment of its own: .venv has the packages of requirements.lock only.
{ [[ -x $tools/python/bin/python ]] || logged .weir/logs/maturin.log uv venv "$tools/python"; } &&
    logged .weir/logs/maturin.log uv pip install --python "$tools/python" --require-hashes -r setup/package/requirements.lock ||
    refuse "maturin cannot be fetched: check the network, then again (log: .weir/logs/maturin.log)"

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
parts=$PWD/target/package
mkdir -p "$parts"
new=$(mktemp --directory .weir/dist.XXXXXX)
# maturin leaves its binary as target/release/weir, in place of the one that `make setup` built. cargo puts that one back at once.
finish() {
    rm --recursive --force "$new"
    unset SOURCE_DATE_EPOCH
    setup/build.sh
}
trap finish EXIT

# In a folder of their own, because the linker prefers a shared library that lies beside a static one.
mkdir -p "$parts/static"
ln --symbolic --force "$libraries/libelf.a" "$libraries/libz.a" "$parts/static/"
say "building the wheel of weir $version"
logged .weir/logs/wheel.log "$tools/python/bin/maturin" build --release --locked --auditwheel check --out "$new" -- -L "native=$parts/static" ||
    refuse "the wheel cannot be built (log: .weir/logs/wheel.log)"

say "building the Debian package of weir $version"
weir=target/release/weir
rm --recursive --force "$parts/man" "$parts/completions"
mkdir -p "$parts/completions"
"$weir" man "$parts/man"
for shell in bash zsh fish; do
    "$weir" completions "$shell" >"$parts/completions/$shell"
done
python3 -m zipfile --extract "$new"/*.whl "$parts/wheel"
cp "$parts"/wheel/*.dist-info/sboms/weir-cli.cyclonedx.json "$parts/crates.cyclonedx.json"
rm --recursive --force "$parts/wheel"
# Not before: for cargo a variable of the environment that build scripts read is a reason to build all crates again.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
cat >"$parts/changelog" <<END
weir ($version-1) unstable; urgency=medium

  * Package of weir $version; /usr/share/doc/weir/changelog.gz lists its changes.

 -- The weir developers  $(date --utc --rfc-email --date "@$SOURCE_DATE_EPOCH")
END
logged .weir/logs/deb.log "$tools/bin/cargo-deb" -p weir-cli --no-build --no-strip --locked --output "$new" ||
    refuse "the Debian package cannot be built (log: .weir/logs/deb.log)"

say "building the Ansible collection of weir $version"
logged .weir/logs/collection.log ansible-galaxy collection build ansible --output-path "$new" ||
    refuse "the Ansible collection cannot be built (log: .weir/logs/collection.log)"

# Names and versions without hashes: pip accepts no wheel from a file beside hashes.
sed -nE 's/^([a-z0-9][^ ]*==[^\\]*[^\\ ]) *\\?$/\1/p' requirements.lock >"$new/constraints.txt"
chmod 644 "$new"/*
(cd "$new" && sha256sum -- *) >"$new.sums"
mv "$new.sums" "$new/SHA256SUMS"

# Packages of another version that an earlier call made; a file of another name stays.
mkdir -p dist
if [[ -e dist/SHA256SUMS ]]; then
    while read -r _ name; do
        [[ $name == */* || -e $new/$name ]] || rm --force -- "dist/$name"
    done <dist/SHA256SUMS
fi
mv "$new"/* dist/
(cd dist && ls --size --human-readable -1 -- $(cut -d ' ' -f 3 SHA256SUMS))
