# Clean roots of Debian or Ubuntu in a temporary folder, for run.sh here and in tests/packages.
# shellcheck shell=bash
# The caller has read setup/say.sh and setup/apt.sh, and is root. Mounts are made in a mount namespace of their own: they end with its
# last process, and nothing is unmounted here.

# Makes a root: make_root NAME DIST PACKAGES; sets `root`, and `place`, which is removed when the script ends. Call it once.
make_root() {
    local name=$1 dist=$2 packages=$3 file options=() sources=()
    command -v mmdebstrap >/dev/null || (apt_update && apt_install mmdebstrap)
    place=$(mktemp --directory --tmpdir="${TMPDIR:-/var/tmp}" "weir-$name.XXXXXX")
    root=$place/root
    trap remove_root EXIT
    # A signal ends the script by way of the trap above.
    trap 'exit 1' INT TERM HUP

    if [[ $dist == noble ]]; then
        ubuntu_sources
    else
        debian_sources
    fi
    say "making a clean root of $dist in $root"
    logged "$place/mmdebstrap.log" mmdebstrap --variant=minbase --include="$packages" "${options[@]}" "$dist" "$root" "${sources[@]}" || {
        tail "$place/mmdebstrap.log" >&2
        exit 1
    }

    # How this machine reaches its package registries: names, certificates, settings of the clients.
    cp --dereference /etc/resolv.conf /etc/hosts "$root/etc/"
    for file in /etc/ssl/certs/ca-certificates.crt /etc/pip.conf ~/.config/pip/pip.conf ~/.config/uv/uv.toml "${CARGO_HOME:-$HOME/.cargo}/config.toml"; do
        [[ ! -e $file ]] || install -D --mode=644 "$file" "$root/${file/#${CARGO_HOME:-$HOME/.cargo}//opt/cargo}"
    done
}

# Sets `sources` of make_root: this machine's own with the other release's name, where it is a Debian; else mmdebstrap's default.
debian_sources() {
    local host_dist
    host_dist=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    # shellcheck disable=SC2016 # apt-get replaces these, not the shell
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Component: main' 'Origin: Debian' |
        grep " $host_dist" | sed "s/ $host_dist/ $dist/" | sort --unique >"$place/sources.list" || true
    [[ ! -s $place/sources.list ]] || sources=("$place/sources.list")
}

# Sets `sources` and `options` of make_root. Debian has no key of Ubuntu's archive: it is fetched, and compared with a fixed checksum.
ubuntu_sources() {
    local archive=http://archive.ubuntu.com/ubuntu keyring=ubuntu-keyring_2023.11.28.1_all.deb
    /usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file "$archive/pool/main/u/ubuntu-keyring/$keyring" "$place/$keyring" \
        SHA256:36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8 ||
        refuse "the key of Ubuntu's archive cannot be fetched: check that this machine reaches $archive, then again"
    dpkg-deb --extract "$place/$keyring" "$place/keyring"
    options=(--include=apt --keyring="$place/keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg")
    # fio and blktrace are in universe.
    sources=("deb $archive $dist main universe")
}

remove_root() {
    # A mount that reached this namespace stays, and so does the folder.
    if findmnt --noheadings --list --output TARGET | grep --quiet --fixed-strings "$place/"; then
        warn "something is mounted in $place, which is left as it is"
    else
        rm --recursive --force --one-file-system "$place"
    fi
}

# Runs a script inside the root, with its arguments: in_root FILE ARGUMENT...
in_root() {
    local script=$1 clients environment
    shift
    mapfile -t clients < <(env | grep -E '^(PIP_(CERT|INDEX|EXTRA_INDEX|TRUSTED|DEFAULT_TIMEOUT)|UV_|CARGO_(HTTP|NET|REGISTR|SOURCE)|SSL_CERT|[A-Za-z]+_(proxy|PROXY)=)')
    # One store of crates for all users: the second builds nothing again.
    environment=(HOME=/root USER=root LANG=C.UTF-8 CARGO_HOME=/opt/cargo PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${clients[@]}")
    cp "$script" "$root/root/"
    # shellcheck disable=SC2016 # the inner shell replaces these
    unshare --mount --propagation private --pid --fork --kill-child bash -euc '
        mount --types proc proc "$1/proc"
        mount --rbind /sys "$1/sys"
        mount --rbind /dev "$1/dev"
        shift
        exec "$@"' - "$root" chroot "$root" env --ignore-environment "${environment[@]}" bash "/root/${script##*/}" "$@" </dev/null
}
