"""Module `weir_disk`: identity, contents and users of a disk. Reads only."""

import os
import re
import stat
import subprocess
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_disk
author: The weir developers
short_description: Identify a disk and check its use
description:
  - Reads a disk or a partition that is listed by a link to its node, such as one below C(/dev/disk/by-id).
    Kernel names are refused, because they may name another disk after a reboot. Changes nothing.
options:
  path:
    description: The link.
    type: str
    required: true
"""

RETURN = """
node: {description: Its node., type: str, returned: always}
number: {description: "Its number, MAJOR:MINOR.", type: str, returned: always}
kernel_name: {description: Its name below /sys/class/block., type: str, returned: always}
whole: {description: "Whether it is a whole disk, which has a queue.", type: bool, returned: always}
size_mib: {description: Its size., type: int, returned: always}
blank: {description: Whether neither blkid nor wipefs finds anything on it., type: bool, returned: always}
names: {description: "Its serial, WWN and names below /dev/disk/by-id.", type: list, returned: always}
signature: {description: "File system or partition table on it; empty if none.", type: str, returned: always}
label: {description: Label of the file system., type: str, returned: always}
points: {description: Where it is mounted., type: list, returned: always}
in_use: {description: "What uses the disk or a part of it. Empty if unused.", type: str, returned: always}
"""


def main():
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={"path": {"type": "str", "required": True}}, supports_check_mode=True
    )
    try:
        found = look(module.params["path"])
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **found)


def look(path):
    """What is to be known of a disk, as RETURN has it.

    Raises:
        ValueError: it is not there, is no disk, or is listed by a name that may move.
    """
    if not os.path.lexists(path):
        raise ValueError(f"{path} is not there")
    if not os.path.islink(path):
        raise ValueError(
            f"{path} may be another disk after a reboot: list it by a name below /dev/disk/by-id"
        )
    node = os.path.realpath(path)
    if not os.path.exists(node) or not stat.S_ISBLK(os.stat(node).st_mode):
        raise ValueError(f"{path} leads to {node}, which is no disk")
    device = os.stat(node).st_rdev
    number = f"{os.major(device)}:{os.minor(device)}"
    name = Path("/sys/dev/block", number).resolve().name
    signature, label = probe(node)
    traces = signature or wipeable(node)
    return {
        "node": node,
        "number": number,
        "kernel_name": name,
        "whole": Path("/sys/block", name).is_dir(),
        "size_mib": int(Path("/sys/class/block", name, "size").read_text()) // 2048,
        "blank": not traces,
        "names": names(node, name),
        "signature": traces,
        "label": label,
        "points": points(node),
        "in_use": in_use(name),
    }


def probe(node):
    """The signature on a disk and its label; both empty if blkid finds none."""
    done = subprocess.run(
        ["blkid", "--probe", "--output", "export", node], capture_output=True, text=True, check=False
    )
    # blkid(8): 2 is "nothing was found", 8 is several.
    if done.returncode == 2:
        return "", ""
    if done.returncode == 8:
        return "several signatures", ""
    if done.returncode != 0:
        raise ValueError(
            f"{node} cannot be read: {done.stderr.strip() or f'blkid ended with {done.returncode}'}"
        )
    fields = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return fields.get("TYPE") or fields.get("PTTYPE") or "an unknown signature", fields.get("LABEL", "")


def wipeable(node):
    """What wipefs finds where blkid finds nothing, such as a partition table's second copy."""
    command = ["wipefs", "--no-act", "--parsable", "--output", "TYPE", node]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(
            f"{node} cannot be read: {done.stderr.strip() or f'wipefs ended with {done.returncode}'}"
        )
    return ", ".join(sorted({line for line in done.stdout.splitlines() if line and not line.startswith("#")}))


def names(node, kernel_name):
    """Names by which a permission may mean this disk and no other."""
    links = [link.name for link in Path("/dev/disk/by-id").glob("*") if os.path.realpath(link) == node]
    files = ("device/serial", "serial", "wwid", "device/wwid")
    told = [Path("/sys/class/block", kernel_name, file) for file in files]
    texts = [file.read_text(encoding="utf-8", errors="replace").strip() for file in told if file.is_file()]
    return sorted({*links, *(text for text in texts if text)})


def points(node):
    """Where a node is mounted."""
    found = []
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
        source, point = (unescape(field) for field in line.split(" ")[:2])
        if source.startswith("/dev/") and os.path.realpath(source) == node:
            found.append(point)
    return found


def unescape(field):
    """A field of the table of mounts as it was before spaces were written in octal."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)


def in_use(name):
    """Who has a disk besides mounts of itself: mounts of its partitions, swap, another device on top."""
    folder = Path("/sys/class/block", name)
    parts = [entry.name for entry in folder.iterdir() if (entry / "partition").exists()]
    swaps = Path("/proc/swaps").read_text(encoding="utf-8").split() if Path("/proc/swaps").exists() else []
    for part in parts:
        if mounted := points(f"/dev/{part}"):
            return f"its partition {part} is mounted at {mounted[0]}"
    for each in [name, *parts]:
        if f"/dev/{each}" in swaps:
            return f"{each} is swap"
        if holders := sorted(entry.name for entry in Path("/sys/class/block", each, "holders").glob("*")):
            return f"{each} is held by {holders[0]}"
    return ""


if __name__ == "__main__":
    main()
