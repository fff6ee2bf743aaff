#!/usr/bin/env bash
# Finds a Rust toolchain that is new enough. One that is not the first in the PATH gets links in .weir/rust, which the Makefile puts
# into the PATH. Changes no toolchain.
# Usage: setup/rust.sh             make the links, or say what is missing
#        setup/rust.sh --find      print where such a cargo is; exit code 1 if there is none
#        setup/rust.sh --why       print what is wrong with the cargo of the PATH
#        setup/rust.sh --packages  print the packages that bring one, if none is there
#        setup/rust.sh --lint      say what is missing to check the style
#        setup/rust.sh --check-oldest  check the workspace with the oldest Rust that Cargo.toml promises, if rustup has it
set -euo pipefail
cd "$(dirname "$0")/.."
source setup/say.sh

needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
enough() { printf '%s\n%s\n' "$needed" "$1" | sort --version-sort --check=quiet; }
version() { "$1" --version 2>/dev/null | sed -E 's/^[a-z]+ ([0-9.]+).*/\1/' || true; }
# The cargo that the user has: make puts .weir/rust, which this script fills, in front.
in_path() { PATH=${PATH//"$PWD/.weir/rust:"/} command -v cargo || true; }

find_cargo() {
    local cargo
    # Ubuntu's packages for several versions are in /usr/lib/rust-VERSION.
    for cargo in "$(in_path)" /usr/bin/cargo /usr/lib/rust-*/bin/cargo; do
        if [[ -x $cargo ]] && enough "$(version "$cargo")"; then
            echo "$cargo"
            return
        fi
    done
    return 1
}

why() {
    local found
    found=$(version "$(in_path)")
    if [[ -n $found ]]; then found="cargo is $found, too old"; else found="cargo is not in the PATH"; fi
    echo "Rust $needed or newer is missing ($found)"
}

# rustc-web is Debian's newer Rust, which it builds browsers with; rustc-1.89 and the like are Ubuntu's.
packages() {
    local compiler candidate
    ! find_cargo >/dev/null || return 0
    command -v apt-cache >/dev/null || return 0
    for compiler in rustc rustc-web $(apt-cache pkgnames rustc-1. | grep -xE 'rustc-1\.[0-9]+' | sort --version-sort --reverse); do
        candidate=$(apt-cache policy "$compiler" | sed -nE 's/^ *Candidate: ([0-9.]+).*/\1/p')
        if [[ -n $candidate ]] && enough "$candidate"; then
            echo "${compiler/rustc/cargo} $compiler"
            return
        fi
    done
    # Debian, whose package lists have not been read yet.
    if grep --quiet --line-regexp ID=debian /etc/os-release && [[ -z $(apt-cache policy rustc) ]]; then
        echo "cargo-web rustc-web"
    fi
}

case ${1:-} in
--find) find_cargo ;;
--why) why ;;
--packages) packages ;;
--lint)
    for tool in fmt clippy; do
        cargo "$tool" --version >/dev/null 2>&1 ||
            refuse "cargo $tool is missing: rustup component add rustfmt clippy; or apt-get install what belongs to the package of Rust: rustfmt rust-clippy (rustc), rustfmt-web rust-web-clippy (rustc-web), rustfmt-1.91 rust-1.91-clippy (rustc-1.91)"
    done
    ;;
'')
    cargo=$(find_cargo) || refuse "$(why). Install it from https://rustup.rs, then run it again"
    [[ $cargo != "$(in_path)" ]] || exit 0
    told=no
    [[ ! .weir/rust/cargo -ef $cargo ]] || told=yes
    mkdir -p .weir/rust
    # Each time, because rustfmt and clippy may have been installed since.
    for program in cargo rustc rustdoc rustfmt cargo-fmt cargo-clippy clippy-driver; do
        [[ ! -x ${cargo%/*}/$program ]] || ln --symbolic --force "${cargo%/*}/$program" .weir/rust/
    done
    [[ $told == yes ]] || say "$(why); $cargo is used"
    ;;
--check-oldest)
    if cargo "+$needed" --version >/dev/null 2>&1; then
        cargo "+$needed" check --locked --offline --workspace --all-targets --target-dir target/oldest
    else
        # Still checked elsewhere: cargo refuses a crate that needs a newer Rust, and clippy (incompatible_msrv, by make lint) a call.
        say "skipped: the workspace was not checked with Rust $needed, which is not installed (rustup toolchain install $needed)"
    fi
    ;;
*) refuse "rust.sh: unknown argument $1 (known: --find, --why, --packages, --lint, --check-oldest)" ;;
esac
