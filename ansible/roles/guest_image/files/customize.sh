#!/bin/sh
# What makes a root file system one of a test host: customize.sh ROOT PUBLIC_KEY
set -eu
root=$1 key=$2

install -d -m 0700 "$root/root/.ssh"
install -m 0600 "$key" "$root/root/.ssh/authorized_keys"
printf 'weir-guest\n' > "$root/etc/hostname"
printf '/dev/vda / ext4 noatime 0 0\n' > "$root/etc/fstab"
# No background service of the distribution may disturb a measurement.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
    fstrim.timer systemd-networkd-wait-online.service systemd-timesyncd.service getty@tty1.service \
    mdmonitor-oneshot.timer mdcheck_start.timer mdcheck_continue.timer glusterd.service glustereventsd.service \
    moosefs-master.service moosefs-chunkserver.service moosefs-metalogger.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
# Roles start these services.
for unit in multi-user.target.wants/nfs-server.service multi-user.target.wants/rpcbind.service sockets.target.wants/rpcbind.socket \
    multi-user.target.wants/nfs-client.target remote-fs.target.wants/nfs-client.target; do
    rm -f "$root/etc/systemd/system/$unit"
done
# Its first steps need few modules, and unpacking all takes an emulated processor long.
echo MODULES=list > "$root/etc/initramfs-tools/conf.d/weir"
printf '%s\n' virtio_pci virtio_blk ext4 crc32c_generic >> "$root/etc/initramfs-tools/modules"
chroot "$root" update-initramfs -u -k all
cat > "$root/usr/local/sbin/weir-guest" << 'SCRIPT'
#!/bin/sh
# The name and the addresses of this guest, as its kernel's command line says.
set -eu
# Its network cards come when udev has found them; all else that udev looks for need not be waited for.
for card in eth0 eth1; do
    until [ -e "/sys/class/net/$card" ]; do sleep 0.1; done
done
for word in $(cat /proc/cmdline); do
    case $word in
        weir.host=*) hostname "${word#*=}" ;;
        weir.address=*) ip address add "${word#*=}" dev eth1 ;;
    esac
done
ip address add 10.0.2.15/24 dev eth0
ip link set lo up
ip link set eth0 up
ip link set eth1 up
SCRIPT
chmod 0755 "$root/usr/local/sbin/weir-guest"
cat > "$root/etc/systemd/system/weir-guest.service" << 'UNIT'
[Unit]
Description=Name and addresses of a test host
DefaultDependencies=no
After=systemd-udevd.service local-fs.target
Before=network.target ssh.service

[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=900
ExecStart=/usr/local/sbin/weir-guest

[Install]
WantedBy=multi-user.target
UNIT
ln -sf ../weir-guest.service "$root/etc/systemd/system/multi-user.target.wants/weir-guest.service"
# Nothing in it is older than its /usr: what systemd would bring up to date at the first start of each guest.
touch "$root/etc/.updated" "$root/var/.updated"
rm -f "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/apt/*.bin
