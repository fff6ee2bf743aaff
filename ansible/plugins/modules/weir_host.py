"""Module `weir_host`: programs, kernel parts, disks, memory and claims of a host. Reads only."""

import itertools
import json
import os
import re
import shutil
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_host
author: The weir developers
short_description: Check a host for the needs of a study
description: Reads what a study needs in one task, in place of gathered facts. Changes nothing.
options:
  commands:
    description: Programs to look for.
    type: list
    elements: str
    default: []
  kernel:
    description: Parts of the kernel, as C(weir plan --needs) lists them (C(kind), C(name), C(module)).
    type: list
    elements: dict
    default: []
  disks:
    description: Paths of disks that the study uses.
    type: list
    elements: str
    default: []
  capture:
    description: Whether block requests must be captured, which needs BPF.
    type: bool
    default: false
  modelled:
    description: Whether devices are modelled, which needs FUSE and loop devices.
    type: bool
    default: false
  results:
    description: Folder of results. It need not exist.
    type: path
    required: true
  state:
    description: The state folder. It need not exist.
    type: path
    required: true
"""

RETURN = """
root: {description: Whether tasks run as root., type: bool, returned: always}
lacking: {description: Missing requirements of runs on devices., type: list, returned: always}
missing_commands: {description: Missing programs., type: list, returned: always}
missing_disks: {description: Missing disks., type: list, returned: always}
same_disk: {description: "Pairs of those disks' paths that lead to one disk.", type: list, returned: always}
absent: {description: Kernel parts that are neither present nor loadable., type: list, returned: always}
to_load: {description: Modules to load., type: list, returned: always}
memory_mib: {description: Available memory., type: int, returned: always}
disk_mib: {description: Free space in the folder of results., type: int, returned: always}
owner: {description: Process that claimed the state folder., type: dict, returned: always}
run_pid: {description: Process of the present run. 0 without a run., type: int, returned: always}
"""

# Besides the usual places: a login shell of an unprivileged user has no sbin.
PLACES = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])

#: Names of the kinds of kernel parts in messages.
LABELS = {
    "file_system": "file system",
    "scheduler": "scheduler",
    "raid": "RAID level",
    "device_node": "device node",
}


def main():
    """Runs the module."""
    names = {"type": "list", "elements": "str", "default": []}
    folder = {"type": "path", "required": True}
    options = {"commands": names, "disks": names, "kernel": names | {"elements": "dict"}}
    options |= {"results": folder, "state": folder}
    options |= {name: {"type": "bool", "default": False} for name in ("capture", "modelled")}
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    wanted = module.params
    absent, to_load = kernel_parts(wanted["kernel"])
    state = Path(wanted["state"])
    module.exit_json(
        changed=False,
        root=os.geteuid() == 0,
        lacking=lacking(wanted["modelled"], wanted["capture"]),
        missing_commands=[name for name in wanted["commands"] if not shutil.which(name, path=PLACES)],
        missing_disks=[path for path in wanted["disks"] if not os.path.exists(path)],
        same_disk=same_disk(wanted["disks"]),
        absent=absent,
        to_load=to_load,
        memory_mib=available_memory_mib(),
        disk_mib=free_mib(Path(wanted["results"])),
        owner=read_json(state / "owner.json"),
        run_pid=living_run(state / "journal" / "run.json"),
    )


def same_disk(paths):
    """Pairs of paths that lead to one disk: by number, by WWN or serial, or by the file of a loop device."""
    known = {path: disk_identity(path) for path in sorted(set(paths)) if os.path.exists(path)}
    return [
        [one, other]
        for one, other in itertools.combinations(known, 2)
        if any(known[one][part] == known[other][part] for part in ("number", "image") if known[one][part])
        # Namespaces of one NVMe controller have its serial in common, and each a WWN of its own.
        or _same_name(known[one], known[other], "wwn", "serial")
    ]


def _same_name(one, other, *parts):
    """Whether the first part that both have is the same."""
    shared = [part for part in parts if one[part] and other[part]]
    return bool(shared) and one[shared[0]] == other[shared[0]]


def disk_identity(path):
    """Who a disk is: `number` (of the whole disk), `serial`, `wwn`, and `image`, a loop device's file."""
    device = os.stat(path).st_rdev
    folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    if (folder / "partition").exists():
        folder = folder.parent
    backing = read_text(folder / "loop/backing_file").strip()
    image = os.stat(backing) if backing and os.path.exists(backing) else None
    names = {
        part: next((text for file in files if (text := read_text(folder / file).strip())), "")
        for part, files in (("serial", ("device/serial", "serial")), ("wwn", ("wwid", "device/wwid")))
    }
    return {
        "number": read_text(folder / "dev").strip() or f"{os.major(device)}:{os.minor(device)}",
        "image": f"{image.st_dev}:{image.st_ino}" if image else "",
        **names,
    }


def lacking(modelled, capture):
    """Rights and parts of the kernel that runs on devices need and are not here."""
    found = [] if os.geteuid() == 0 else ["root"]
    if modelled:
        parts = [("FUSE", "/dev/fuse", "fuse"), ("loop devices", "/dev/loop-control", "loop")]
        modules = loadable_modules()
        found += [text for text, node, module in parts if not Path(node).exists() and module not in modules]
    # Without root nobody can say.
    if capture and os.geteuid() == 0 and not has_bpf():
        found.append("BPF")
    return found


def has_bpf():
    """Whether this process may load BPF programs, and the kernel describes its types to them."""
    effective = 0
    for line in read_text("/proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
    # Bits of include/uapi/linux/capability.h.
    sys_admin, perfmon, bpf = (effective >> bit & 1 for bit in (21, 38, 39))
    return Path("/sys/kernel/btf/vmlinux").exists() and bool(sys_admin or (bpf and perfmon))


def loadable_modules():
    """Names of the modules that this kernel could load."""
    return {
        Path(line.split(":")[0]).name.split(".")[0].replace("_", "-")
        for line in read_text(f"/lib/modules/{os.uname().release}/modules.dep").splitlines()
    }


def kernel_parts(wanted):
    """Parts that are absent from the kernel, and modules to load for those that are not there yet."""
    loadable = loadable_modules()
    missing = [part for part in wanted if not has_part(part["kind"], part["name"])]
    absent = [f"{LABELS[part['kind']]} {part['name']}" for part in missing if part["module"] not in loadable]
    return absent, [part["module"] for part in missing if part["module"] in loadable]


def has_part(kind, name):
    """Whether the kernel has a part now, built in or loaded."""
    if kind == "file_system":
        return name in (
            line.split()[-1] for line in read_text("/proc/filesystems").splitlines() if line.strip()
        )
    if kind == "scheduler":
        queues = Path("/sys/block").glob("*/queue/scheduler")
        return name == "none" or any(name in re.findall(r"[\w-]+", read_text(queue)) for queue in queues)
    return f"[{name}]" in read_text("/proc/mdstat") if kind == "raid" else Path("/dev", name).exists()


def available_memory_mib():
    """Memory that can be had without swapping."""
    for line in read_text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def free_mib(path):
    """Room on the file system of a folder, or of the nearest folder above it that exists."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free >> 20


def living_run(journal):
    """The pid of the run whose journal this is, if it lives; else 0."""
    content = read_json(journal)
    if not content:
        return 0
    stat = read_text(f"/proc/{content['pid']}/stat")
    fields = stat.rpartition(")")[2].split()
    # Field 22 of proc(5) is the start time: a pid may have been used again. A zombie (field 3) is dead.
    alive = fields and fields[0] not in "ZX" and int(fields[19]) == content["started_ticks"]
    return content["pid"] if alive else 0


def read_json(path):
    """A file's JSON object; empty if there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def read_text(path):
    """A file's text; empty if there is none."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    main()
