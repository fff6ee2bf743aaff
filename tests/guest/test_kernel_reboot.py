"""The factor `kernel` on a host that reboots itself: by GRUB, and by kexec.

    make test-guest

The host is an emulated Debian 12 with systemd, GRUB and a second kernel of backports, reached by ssh.
Emulation shows which kernel ran, not how fast it is.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess

import pytest
from kernel_study import Controller
from machine import ACCELERATOR, HERE
from support import wait_for

pytestmark = pytest.mark.guest

#: Programs that make and run the machine.
PROGRAMS = ("mmdebstrap", "sfdisk", "mkfs.ext4", "qemu-system-x86_64", "ssh", "ssh-keygen")
#: An emulated boot by its firmware takes minutes on a busy host.
BOOT_S = 900


class Machine:
    """A running machine with its own boot loader, and the kernels of its disk."""

    def __init__(self, folder):
        self.folder = folder
        self.stable, self.next = (folder / "kernels").read_text().split()
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]
        kind, key = (folder / "host_key.pub").read_text().split()[:2]
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n")
        self.options = ["-o", f"UserKnownHostsFile={folder / 'known_hosts'}", "-o", "IdentitiesOnly=yes"]
        self.process = subprocess.Popen(
            [
                *("qemu-system-x86_64", "-machine", f"q35,accel={ACCELERATOR}", "-smp", "2", "-m", "1024"),
                *("-cpu", "qemu64,-cx16", "-nodefaults", "-no-user-config", "-display", "none"),
                *("-serial", f"file:{folder / 'console.log'}"),
                *("-drive", f"file={folder / 'disk.img'},format=raw,if=virtio,cache=unsafe"),
                *("-device", "virtio-rng-pci"),
                *("-netdev", f"user,id=out,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22"),
                *("-device", "virtio-net-pci,netdev=out"),
                # The unit of the image waits for a second card.
                *("-netdev", "user,id=lab,restrict=on", "-device", "virtio-net-pci,netdev=lab"),
            ],
            stdin=subprocess.DEVNULL,
        )

    def ssh(self, command):
        """Runs a command in the machine; returns code and output."""
        done = subprocess.run(
            [
                *("ssh", "-q", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", *self.options),
                *("-i", self.folder / "key", "-p", str(self.port), "root@127.0.0.1", command),
            ],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BOOT_S, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.strip()

    def answers(self):
        """Whether the machine is up."""
        assert self.process.poll() is None, "QEMU has ended"
        return self.ssh("true")[0] == 0

    def next_boot(self):
        """The entry of grub's next boot; GRUB leaves an empty one after it."""
        assert self.ssh("cat /sys/kernel/kexec_loaded") == (0, "0")
        code, entry = self.ssh("grub-editenv - list | sed -n 's/^next_entry=//p'")
        assert code == 0
        return entry

    @contextlib.contextmanager
    def without_reboots(self):
        """Lets the program that would reboot the machine wait, and ends it."""
        script = r"#!/bin/sh\necho $$ >/root/held\nexec sleep 3600\n"
        write = f"printf '{script}' >/root/hold && chmod +x /root/hold"
        code, told = self.ssh(f"{write} && mount --bind /root/hold /usr/bin/systemctl")
        assert code == 0, told
        yield
        end = "umount /usr/bin/systemctl && kill $(cat /root/held)"
        code, told = self.ssh(f"{end} && rm /root/held /root/hold")
        assert code == 0, told

    def inventory(self, how):
        """The file of an inventory that boots kernels in this way."""
        host = {
            "ansible_host": "127.0.0.1",
            "ansible_port": self.port,
            "ansible_user": "root",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_ssh_private_key_file": str(self.folder / "key"),
            "ansible_ssh_common_args": " ".join(self.options),
            "weir_kernel_boot": how,
            "weir_kernels": {
                name: {"image": image, "initrd": image.replace("vmlinuz", "initrd.img")}
                for name, image in (("stable", self.stable), ("next", self.next))
            },
            "weir_kernel_devices": [{"kind": "null_blk", "index": 0, "size_mib": 256}],
            "weir_devices": {"text": {"path": "/dev/disk/by-id/null_blk-nullb0"}},
        }
        file = self.folder / f"{how}.yml"
        file.write_text(json.dumps({"all": {"hosts": {f"host-{how}": host}}}))
        return file


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A machine whose GRUB has a menu of both kernels, and has booted the newer one."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    absent = [program for program in PROGRAMS if not shutil.which(program)]
    if absent:
        pytest.skip(f"{', '.join(absent)} not installed: see CONTRIBUTING.md, Tests in a guest")
    folder = tmp_path_factory.mktemp("machine")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
    made = subprocess.run(
        [HERE / "grub_disk.sh", folder, folder / "key.pub"], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr[-4000:]
    machine = Machine(folder)
    try:
        wait_for(machine.answers, f"the machine; see {folder / 'console.log'}", BOOT_S)
        code, told = machine.ssh("update-grub 2>&1 && sync")
        assert code == 0, told
        yield machine
    finally:
        machine.process.terminate()
        machine.process.wait(60)


@pytest.fixture(params=["grub", "kexec"])
def controller(request, tmp_path, machine):
    """The controller of the machine, for each way to boot it."""
    controller = Controller(tmp_path, machine.inventory(request.param))
    controller.play("prepare_hosts")
    yield controller
    controller.play("prepare_hosts", state="absent")


def release(image):
    return image.removeprefix("/boot/vmlinuz-")


def test_each_run_has_the_kernel_of_its_level(controller, machine):
    """This test will boot the machine three times in each way."""
    code, before = machine.ssh("uname -r; cat /boot/grub/grub.cfg /etc/default/grub")
    assert code == 0 and before.startswith(release(machine.next))
    _, runs = controller.carry_out("reboot", kernels="stable, next", schedulers="none", repetitions=1)
    booted = {host["kernel"]["name"]: host["kernel"] for _, host, _ in runs}
    assert booted["stable"]["release"] == release(machine.stable)
    assert booted["next"]["release"] == release(machine.next)
    assert booted["stable"]["source"] == machine.stable
    assert booted["stable"]["boot_id"] != booted["next"]["boot_id"]
    # The boot loader is as it was, and the machine has the kernel that it had.
    assert machine.ssh("uname -r; cat /boot/grub/grub.cfg /etc/default/grub") == (0, before)
    assert machine.next_boot() == ""


@pytest.mark.parametrize("moment", ["chosen", "booted"])
def test_a_killed_study_is_continued(controller, machine, tmp_path, moment):
    """The playbook is killed before the boot, or under the other kernel; the next one makes the run."""
    own, other = release(machine.next), release(machine.stable)
    assert machine.ssh("uname -r") == (0, own)
    study = controller.study("killed", kernels="stable", schedulers="none", repetitions=1)
    log = tmp_path / "killed.log"

    def is_reached():
        if moment == "booted":
            return machine.ssh("uname -r") == (0, other)
        # The program that would reboot has been called.
        return machine.ssh("test -s /root/held")[0] == 0

    held = machine.without_reboots() if moment == "chosen" else contextlib.nullcontext()
    with (
        held,
        log.open("w") as output,
        controller.start(output, "study", study=str(study)) as playing,
    ):
        try:
            wait_for(is_reached, f"the boot to be {moment}; see {log}", BOOT_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(playing.pid, signal.SIGKILL)
    if moment == "chosen":
        chosen = "grep 'next_entry=.' /boot/grub/grubenv || grep 1 /sys/kernel/kexec_loaded"
        assert machine.ssh(chosen)[0] == 0
    again = controller.play("study", study=str(study))
    assert "1 of them to do" in again and "booting its own kernel" in again, again[-4000:]
    assert machine.ssh("uname -r") == (0, own)
    assert machine.next_boot() == ""
