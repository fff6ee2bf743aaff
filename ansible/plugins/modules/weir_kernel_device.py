"""Module `weir_kernel_device`: disks in memory (null_blk, scsi_debug)."""

import subprocess
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_kernel_device
author: The weir developers
short_description: Create disks in memory
description:
  - C(null_blk) creates one disk, C(/dev/nullbN), through configfs. C(scsi_debug) creates several disks behind
    an emulated host adapter. Their data are lost when they are removed. The kernel must have the module.
  - Only disks that this module created are changed or removed.
options:
  kind:
    description: Kernel module that provides the disk.
    type: str
    choices: [null_blk, scsi_debug]
    required: true
  index:
    description: Number of the disk, for C(null_blk).
    type: int
    default: 0
  count:
    description: Number of disks, for C(scsi_debug).
    type: int
    default: 1
  size_mib:
    description: Size of each disk.
    type: int
    default: 256
  latency_us:
    description: Service time of a request. 0 is none.
    type: int
    default: 0
  queue_depth:
    description: Queue depth of each disk.
    type: int
    default: 64
  state:
    description: Whether the disks exist.
    type: str
    choices: [present, absent]
    default: present
"""

RETURN = """
paths: {description: "Names of the disks below /dev/disk/by-id.", type: list, returned: when present}
"""

CONFIGFS = Path("/sys/kernel/config/nullb")
#: Written where this module has loaded scsi_debug: another one's is left alone.
MARK = Path("/run/weir-scsi_debug")
#: How long udev may take for a name.
NAMED_WITHIN_S = 30
#: Where disks have names that do not move.
BY_ID = Path("/dev/disk/by-id")


def main():
    """Makes, keeps or removes the disks."""
    module = AnsibleModule(
        argument_spec={
            "kind": {"choices": ["null_blk", "scsi_debug"], "required": True},
            "index": {"type": "int", "default": 0},
            "count": {"type": "int", "default": 1},
            "size_mib": {"type": "int", "default": 256},
            "latency_us": {"type": "int", "default": 0},
            "queue_depth": {"type": "int", "default": 64},
            "state": {"choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    for field, least in (("index", 0), ("count", 1), ("size_mib", 8), ("latency_us", 0), ("queue_depth", 1)):
        if wanted[field] < least:
            module.fail_json(msg=f"{field} is {wanted[field]}; it must be at least {least}")
    kind = NullBlk(wanted) if wanted["kind"] == "null_blk" else ScsiDebug(wanted)
    try:
        changed = kind.differs() if wanted["state"] == "present" else kind.is_there()
        if changed and not module.check_mode:
            if kind.is_there():
                kind.remove()
            if wanted["state"] == "present":
                kind.make()
        if wanted["state"] == "absent" or module.check_mode:
            module.exit_json(changed=changed)
        module.exit_json(changed=changed, paths=kind.paths())
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or error
        module.fail_json(msg=f"{wanted['kind']}: {str(said).strip()}")


def load(name, *parameters):
    """Loads a module of the kernel, unless it is there or built in."""
    if Path("/sys/module", name).exists():
        return
    subprocess.run(["modprobe", name, *parameters], check=True, capture_output=True, text=True)


def wait_for(names):
    """Waits until udev has named the disks."""
    until = time.monotonic() + NAMED_WITHIN_S
    while not (found := names()):
        if time.monotonic() > until:
            raise RuntimeError(f"its disks do not come up, or have no name below {BY_ID}: is udev running?")
        time.sleep(0.1)
    return found


class NullBlk:
    """One disk of null_blk."""

    def __init__(self, wanted):
        """Makes nothing yet."""
        self.name = f"nullb{wanted['index']}"
        self.folder = CONFIGFS / self.name
        # irqmode 0: answered at once; 2: by a timer.
        self.fields = {
            "size": wanted["size_mib"],
            "memory_backed": 1,
            "hw_queue_depth": wanted["queue_depth"],
            "irqmode": 2 if wanted["latency_us"] else 0,
            "completion_nsec": wanted["latency_us"] * 1000 or 10_000,
        }

    def is_there(self):
        """Whether there is one of this name."""
        return self.folder.exists()

    def differs(self):
        """Whether there is none that is like this."""
        wanted = self.fields | {"power": 1}
        return not self.is_there() or any(
            (self.folder / name).read_text().strip() != str(value) for name, value in wanted.items()
        )

    def make(self):
        """Makes it."""
        load("null_blk", "nr_devices=0")
        if not CONFIGFS.exists():
            raise RuntimeError(f"no {CONFIGFS}: was the module loaded by others, or configfs not mounted?")
        self.folder.mkdir()
        for name, value in self.fields.items():
            (self.folder / name).write_text(f"{value}\n")
        try:
            (self.folder / "power").write_text("1\n")
        except FileExistsError as error:
            self.folder.rmdir()
            # A driver that is built into the kernel makes a disk at its start.
            raise RuntimeError(f"/dev/{self.name} is there: boot with null_blk.nr_devices=0") from error

    def remove(self):
        """Removes it."""
        (self.folder / "power").write_text("0\n")
        self.folder.rmdir()

    def paths(self):
        """Its name."""
        number = (self.folder / "index").read_text().strip()
        link = BY_ID / f"null_blk-nullb{number}"
        return wait_for(lambda: [str(link)] if link.exists() else [])


class ScsiDebug:
    """All disks of scsi_debug, which is loaded once."""

    PARAMETERS = Path("/sys/module/scsi_debug/parameters")

    def __init__(self, wanted):
        """Makes nothing yet."""
        self.count = wanted["count"]
        # Disks of one adapter have their memory in common, and those of a stripe must not be one another.
        self.fields = {
            "dev_size_mb": wanted["size_mib"],
            "add_host": wanted["count"],
            "num_tgts": 1,
            "max_luns": 1,
            "max_queue": min(wanted["queue_depth"], 192),
            "ndelay": wanted["latency_us"] * 1000,
            "delay": 0,
            "per_host_store": 1,
        }
        if not wanted["latency_us"]:
            del self.fields["ndelay"]

    def is_there(self):
        """Whether the module is loaded, by us."""
        if not self.PARAMETERS.exists():
            return False
        if not MARK.exists():
            raise RuntimeError("was loaded by others: unload it (modprobe --remove scsi_debug)")
        return True

    def differs(self):
        """Whether it is not loaded like this."""
        return not self.is_there() or MARK.read_text() != self.text()

    def text(self):
        """What it is loaded with."""
        return " ".join(f"{name}={value}" for name, value in self.fields.items())

    def make(self):
        """Loads it."""
        load("scsi_debug", *self.text().split())
        MARK.write_text(self.text())
        # udev's names contain the number of the adapter, which depends on the host's other adapters.
        BY_ID.mkdir(parents=True, exist_ok=True)
        for link, disk in zip(self.links(), wait_for(self.disks), strict=True):
            link.unlink(missing_ok=True)
            link.symlink_to(Path("/dev") / disk)

    def remove(self):
        """Unloads it."""
        subprocess.run(["modprobe", "--remove", "scsi_debug"], check=True, capture_output=True, text=True)
        for link in BY_ID.glob("scsi_debug-*"):
            link.unlink()
        MARK.unlink()

    def links(self):
        """Their names, in order."""
        return [BY_ID / f"scsi_debug-{number}" for number in range(self.count)]

    def disks(self):
        """What the kernel calls them, in order; empty while it has not found all."""
        driver = Path("/sys/bus/pseudo/drivers/scsi_debug")
        found = driver.glob("adapter*/host*/target*/*/block/*")
        names = [disk.name for disk in sorted(found, key=lambda disk: _number(disk, driver))]
        there = len(names) == self.count and all(Path("/dev", name).exists() for name in names)
        return names if there else []

    def paths(self):
        """Their names, in order."""
        return [str(link) for link in self.links()]


def _number(disk, driver):
    """Number of a disk's adapter: the tenth comes after the ninth."""
    return int(disk.relative_to(driver).parts[0].removeprefix("adapter"))


if __name__ == "__main__":
    main()
