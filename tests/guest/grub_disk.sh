#!/usr/bin/env bash
# Makes the disk of a machine with systemd, GRUB and two kernels, of Debian 12 and of its backports: grub_disk.sh FOLDER PUBLIC_KEY
# FOLDER gets disk.img, host_key.pub and kernels (the paths of both images, the newer last). GRUB's menu has one entry, for the newer
# kernel, until update-grub in the machine writes another.
set -euo pipefail

to=$(realpath "$1") key=$(realpath "$2")
role=$(realpath "$(dirname "$0")/../../ansible/roles/guest_image/files")
root=$to/root
trap 'rm --recursive --force --one-file-system "$root"' EXIT
# shellcheck disable=SC2016 # apt-get replaces these, not the shell
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Component: main' 'Origin: Debian' |
    grep ' bookworm' | sort --unique >"$to/sources.list"
awk '$3 == "bookworm" { print $1, $2, "bookworm-backports", $4; exit }' "$to/sources.list" >"$to/backports.list"
[[ -s $to/backports.list ]] || { echo "this machine has no sources of Debian 12" >&2; exit 1; }

packages=linux-image-amd64,systemd-sysv,udev,dbus,openssh-server,python3,iproute2,kmod,util-linux,e2fsprogs,fio,libelf1,grub-pc,kexec-tools
# The hook's $1 is the root. A kernel of backports has another name, so the first one stays.
# shellcheck disable=SC2016
newer='chroot "$1" apt-get -qq --yes --no-install-recommends --target-release bookworm-backports install linux-image-amd64 >&2'
mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" \
    --customize-hook="$newer" --customize-hook="$role/customize.sh \"\$1\" $key" \
    bookworm "$root" "$to/sources.list" "$to/backports.list"

echo '/dev/vda1 / ext4 noatime 0 0' >"$root/etc/fstab"
cat >>"$root/etc/default/grub" <<'END'
GRUB_TIMEOUT=1
GRUB_CMDLINE_LINUX="net.ifnames=0 console=ttyS0"
END
mapfile -t images < <(cd "$root" && printf '/%s\n' boot/vmlinuz-* | sort --version-sort)
printf '%s\n' "${images[@]}" >"$to/kernels"
newest=${images[-1]}
mkdir -p "$root/boot/grub"
cp --recursive "$root/usr/lib/grub/i386-pc" "$root/boot/grub/"
chroot "$root" grub-editenv /boot/grub/grubenv create
cat >"$root/boot/grub/grub.cfg" <<END
set timeout=0
menuentry first {
    linux $newest root=/dev/vda1 rw net.ifnames=0 console=ttyS0
    initrd ${newest/vmlinuz/initrd.img}
}
END
# What grub-install would write before the first partition. It needs a block device; a file can be written as it is.
chroot "$root" grub-mkimage --format=i386-pc --prefix='(hd0,msdos1)/boot/grub' --output=/boot/core.img \
    biosdisk part_msdos ext2 normal configfile linux
cp "$root/etc/ssh/ssh_host_ed25519_key.pub" "$to/host_key.pub"

mib=3072
truncate --size="${mib}M" "$to/disk.img"
echo '2048,,83,*' | sfdisk --quiet --label dos "$to/disk.img"
mkfs.ext4 -q -F -E offset=$((2048 * 512)) -d "$root" "$to/disk.img" "$((mib - 1))M"
dd if="$root/usr/lib/grub/i386-pc/boot.img" of="$to/disk.img" bs=440 count=1 conv=notrunc status=none
dd if="$root/boot/core.img" of="$to/disk.img" bs=512 seek=1 conv=notrunc status=none
