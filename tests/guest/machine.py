"""An emulated machine with another kernel, and the programs of this host."""

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from support import ROOT, WEIR, weir

HERE = Path(__file__).parent
#: kvm is quicker, but not every host that offers it can run a guest with it.
ACCELERATOR = os.environ.get("WEIR_GUEST_ACCELERATOR", "tcg")
#: Size of each disk.
DISK_MIB = 192
RESULTS_MIB = 64


def run(
    folder, init, modules, programs, files, disks=(), kernel="stable", timeout_s=420, memory_mib=1024, cpus=2
):
    """Boots, and returns the folder of what `init` left on the disk of results; it powers the machine off.

    `kernel` is `stable`, `backports` for the newest that Debian has for this release, or a path: the
    configuration of a kernel to build from the source that Debian has.
    """
    for program in ("qemu-system-x86_64", "cpio", *programs):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed: see CONTRIBUTING.md, Tests in a guest")
    is_built = isinstance(kernel, Path)
    unpacked = ROOT / ".weir/guest" / (kernel.stem if is_built else kernel)
    script = HERE / ("build_kernel.sh" if is_built else "fetch_kernel.sh")
    made = subprocess.run([script, unpacked, kernel], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"the guest's kernel cannot be had: {made.stderr.strip()[-2000:]}")
    initramfs = folder / "initramfs"
    pack = [HERE / "initramfs.sh", unpacked, initramfs, init]
    subprocess.run([*pack, *modules, "--", *programs, "--", *files], check=True)
    drives = []
    for name, mib in (*((name, DISK_MIB) for name in disks), ("results", RESULTS_MIB)):
        image = folder / f"{name}.img"
        with image.open("wb") as file:
            file.truncate(mib << 20)
        drives += ["-drive", f"file={image},format=raw,if=none,id={name},cache=writeback"]
        drives += ["-device", f"virtio-blk-pci,drive={name},serial={name}"]
    (image,) = (unpacked / "boot").glob("vmlinuz-*")
    machine = ["-machine", f"q35,accel={ACCELERATOR}", "-smp", str(cpus), "-m", str(memory_mib)]
    machine += ["-nodefaults", "-no-reboot"]
    # Emulated, cmpxchg16b spoils the flags now and then (QEMU 7.2): Linux 6.12 dies of it in its allocator.
    machine += ["-cpu", "qemu64,-cx16"]
    boot = ["-kernel", image, "-initrd", initramfs, "-append", "console=ttyS0 panic=-1"]
    console = folder / "console.log"
    out = ["-display", "none", "-serial", f"file:{console}"]
    subprocess.run(["qemu-system-x86_64", *machine, *drives, *boot, *out], check=True, timeout=timeout_s)
    try:
        with tarfile.open(folder / "results.img") as archive:
            archive.extractall(folder / "results", filter="data")
    except tarfile.ReadError:
        pytest.fail(f"the guest left nothing; its console said:\n{console.read_text()[-4000:]}")
    return folder / "results"


def run_study(folder, study, disk, **options):
    """Runs a study on one modelled disk, `shared`, under the kernel of io_controllers.config.

    The text of the study begins with its name. Returns what the guest left, and the runs of the plan.
    """
    file = folder / f"{study.split()[1]}.yml"
    file.write_text(study)
    planned = weir("plan", file, "--json")
    assert planned.returncode == 0, planned.stderr
    plan = json.loads(planned.stdout)["runs"]
    testbed = {"devices": {"shared": {"modelled": {"state": "/run/weir/devices/shared.json"}}}}
    texts = {
        "plan.json": planned.stdout,
        "ids": "\n".join(run["id"] for run in plan),
        "shared.yml": disk,
        "testbed.json": json.dumps(testbed),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    files = [folder / name for name in texts]
    programs = ("busybox", "fio", "losetup", "umount", str(WEIR))
    config = HERE / "io_controllers.config"
    left = run(
        folder, HERE / "study.init", (), programs, files,
        kernel=config, timeout_s=900, memory_mib=2048, **options,
    )  # fmt: skip
    return left, plan
