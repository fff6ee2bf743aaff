"""Module `weir_cgroup`: a control group with limits of memory and disks."""

import contextlib
import json
import os
import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_cgroup
author: The weir developers
short_description: A control group with limits
description:
  - Makes C(weir/NAME) in each tree of control groups that it needs, version 2, or version 1 (memory, blkio)
    where that has the controllers, and sets limits there. C(absent) removes it.
  - One that somebody else made is left alone.
options:
  name:
    description: Its name below C(weir/).
    type: str
    required: true
  memory_mib:
    description: Memory that it may take, pages of files among it; 0 is no limit.
    type: int
    default: 0
  weight:
    description: >-
      Its share of disks whose scheduler is bfq, or of those with a cost model; 0 leaves it as it is.
    type: int
    default: 0
  disks:
    description: Limits of its requests by the disk's number, C(MAJOR:MINOR).
    type: dict
    default: {}
  record:
    description: The file in which is written down what was made.
    type: path
    required: true
  state:
    description: Whether it is to be there.
    type: str
    choices: [present, absent]
    default: present
"""

RETURN = """
folders: {description: Its folders; programs are put into it by cgroup.procs., type: list, returned: always}
"""

#: Limits of a disk: their names in io.max, and their files of version 1.
LIMITS = {
    "read_bytes_per_s": ("rbps", "blkio.throttle.read_bps_device"),
    "write_bytes_per_s": ("wbps", "blkio.throttle.write_bps_device"),
    "reads_per_s": ("riops", "blkio.throttle.read_iops_device"),
    "writes_per_s": ("wiops", "blkio.throttle.write_iops_device"),
}

#: Attribute of weir's folder at the top of a tree: controllers that the top hands on for its sake, as
#: `weir` itself has it.
HANDED_ON = "trusted.weir.handed_on"
#: What files of a group say that nobody has limited.
UNLIMITED = {
    "io.max": "",
    "io.latency": "",
    "io.weight": "default 100",
    "memory.max": "max",
    "memory.high": "max",
    "memory.low": "0",
    "memory.min": "0",
}


def main():
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"required": True},
            "memory_mib": {"type": "int", "default": 0},
            "weight": {"type": "int", "default": 0},
            "disks": {"type": "dict", "default": {}},
            "record": {"type": "path", "required": True},
            "state": {"choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    try:
        check(wanted)
        changed, folders = (present if wanted["state"] == "present" else absent)(wanted, module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"control group {wanted['name']}: {error}")
    module.exit_json(changed=changed, folders=folders)


def check(wanted):
    """Whether what is wanted can be had anywhere.

    Raises:
        ValueError: it cannot.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", wanted["name"]):
        raise ValueError("its name may have small letters, digits and _.- only")
    if wanted["memory_mib"] < 0 or not (wanted["weight"] == 0 or 1 <= wanted["weight"] <= 1000):
        raise ValueError("memory_mib must be at least 0, and weight from 1 to 1000")
    for number, limits in wanted["disks"].items():
        if not re.fullmatch(r"\d+:\d+", number):
            raise ValueError(f"{number} is no number of a disk, such as 8:0")
        for name, value in limits.items():
            if name not in LIMITS:
                raise ValueError(f"{number} has no limit {name}; there are {', '.join(LIMITS)}")
            if not str(value).isdigit() or int(value) == 0:
                raise ValueError(f"{number}: {name} is {value}; it must be at least 1")


def trees(mounts, controllers):
    """The trees of groups: those of `memory` and `io` as (top, version), and `two` as a top or None.

    Args:
        mounts: the table of mounts.
        controllers: what of version 2's controllers a top has.
    """
    found = {"two": None}
    for line in mounts.splitlines():
        _, point, kind, options = line.split(" ")[:4]
        if kind == "cgroup2":
            found["two"] = point
            found |= {name: (point, 2) for name in ("memory", "io") if name in controllers(point)}
        elif kind == "cgroup":
            words = options.split(",")
            for name, controller in (("memory", "memory"), ("io", "blkio")):
                if controller in words:
                    found[name] = (point, 1)
    return found


def here():
    """The trees of this host."""
    return trees(
        Path("/proc/self/mounts").read_text(encoding="utf-8"),
        lambda top: Path(top, "cgroup.controllers").read_text(encoding="utf-8").split(),
    )


def settings(wanted, found):
    """What is to be set, as {(top, file, key): (value, the value of no limit)}.

    Raises:
        ValueError: this host cannot limit that.
    """
    result = {}
    if wanted["memory_mib"]:
        if "memory" not in found:
            raise ValueError("this host has no controller of memory")
        top, version = found["memory"]
        file, none = ("memory.max", "max") if version == 2 else ("memory.limit_in_bytes", "-1")
        result[top, file, ""] = (str(wanted["memory_mib"] << 20), none)
    if (wanted["weight"] or wanted["disks"]) and "io" not in found:
        raise ValueError("this host has no controller of disks")
    if wanted["weight"]:
        top, version = found["io"]
        files = ("io.weight", "io.bfq.weight") if version == 2 else ("blkio.bfq.weight", "blkio.weight")
        result[top, "|".join(files), "default"] = (str(wanted["weight"]), "100")
    for number, limits in wanted["disks"].items():
        top, version = found["io"]
        if version == 2:
            words = [f"{LIMITS[name][0]}={limits.get(name, 'max')}" for name in LIMITS]
            result[top, "io.max", number] = (" ".join(words), "rbps=max wbps=max riops=max wiops=max")
        else:
            for name, value in limits.items():
                result[top, LIMITS[name][1], number] = (str(value), "0")
    return result


def present(wanted, dry):
    """Makes the group and sets its limits; returns whether that changed anything, and its folders."""
    found = here()
    goal = settings(wanted, found)
    tops = sorted({top for top, _, _ in goal} | ({found["two"]} if found["two"] else set()))
    if not tops:
        raise ValueError("no control groups are mounted (/sys/fs/cgroup): mount them")
    record = Path(wanted["record"])
    known = json.loads(record.read_text()) if record.exists() else None
    folders = [str(Path(top, "weir", wanted["name"])) for top in tops]
    ours = known["folders"] if known else []
    for folder in folders:
        if Path(folder).exists() and folder not in ours:
            raise ValueError(f"{folder} was made by others: take another name")
    lifted = {
        tuple(key): (none, none) for key, none in (known["set"] if known else []) if tuple(key) not in goal
    }
    missing = [folder for folder in folders if not Path(folder).exists()]
    changed = bool(missing) or any(
        read(wanted["name"], key) != value for key, (value, _) in (goal | lifted).items()
    )
    if dry or not changed:
        return changed, folders
    every = sorted({*folders, *ours})
    record.parent.mkdir(parents=True, exist_ok=True)
    # Written down first, so that a group that is left in between is known as ours.
    note(record, every, goal | lifted)
    for top in tops:
        make(top, wanted["name"], [name for name in ("memory", "io") if found.get(name) == (top, 2)])
    for key, (value, _) in (goal | lifted).items():
        write(wanted["name"], key, value)
    note(record, every, goal)
    return True, folders


def note(record, folders, values):
    """Writes down what is ours, and how a limit that is set is lifted."""
    lift = [[list(key), none] for key, (_, none) in values.items()]
    record.write_text(json.dumps({"folders": folders, "set": lift}, indent=2) + "\n")


def make(top, name, controllers):
    """Makes the group in a tree; those below get controllers only if each above hands them on."""
    ours = Path(top, "weir")
    ours.mkdir(exist_ok=True)
    added = missing(top, controllers)
    if added:
        # The top is the host's: what is added there is on record at weir's folder first.
        os.setxattr(ours, HANDED_ON, " ".join(recorded(ours) + added).encode())
    for folder in (Path(top), ours):
        for controller in missing(folder, controllers):
            (folder / "cgroup.subtree_control").write_text(f"+{controller}")
    (ours / name).mkdir(exist_ok=True)


def missing(folder, controllers):
    """Those of the controllers that a group does not hand on."""
    if not controllers:
        return []
    there = Path(folder, "cgroup.subtree_control").read_text().split()
    return [controller for controller in controllers if controller not in there]


def recorded(ours):
    """The controllers that the top hands on for weir's sake alone."""
    try:
        return [word for word in os.getxattr(ours, HANDED_ON).decode().split() if word.isalnum()]
    except OSError:
        return []


def remove_empty(ours):
    """Removes weir's folder at a top if nothing is in it, and takes back what was added to the top."""
    if not ours.exists() or any(entry.is_dir() for entry in ours.iterdir()):
        return
    added = recorded(ours)
    ours.rmdir()
    if added and not any(is_limited(group) for group in ours.parent.iterdir() if group.is_dir()):
        for controller in added:
            # Refused where a group of somebody else's hands it on in turn: then it is in use.
            with contextlib.suppress(OSError):
                (ours.parent / "cgroup.subtree_control").write_text(f"-{controller}")


def is_limited(group):
    """Whether somebody has limited a group by what the top hands on."""
    for file, unlimited in UNLIMITED.items():
        with contextlib.suppress(OSError):
            if (group / file).read_text().strip() != unlimited:
                return True
    return False


def file_of(name, key):
    """The file of a setting: the first that there is, where several would do.

    Raises:
        ValueError: there is none.
    """
    top, files, _ = key
    paths = [Path(top, "weir", name, file) for file in files.split("|")]
    for path in paths:
        if path.exists():
            return path
    raise ValueError(f"this kernel has no {paths[0].name}")


def read(name, key):
    """What is set now; None if nothing is."""
    try:
        lines = file_of(name, key).read_text().splitlines()
    except (OSError, ValueError):
        return None
    for line in lines:
        first, _, rest = line.partition(" ")
        if not key[2] or (key[2] == "default" and not rest):
            return line
        if first == key[2]:
            return rest
    return "0" if "throttle" in key[1] else None


def write(name, key, value):
    """Sets a value and reads it back.

    Raises:
        ValueError: the kernel refuses it, or makes another of it.
    """
    path = file_of(name, key)
    text = f"{key[2]} {value}" if ":" in key[2] else value
    try:
        path.write_text(text)
    except OSError as error:
        raise ValueError(f"{path} does not take {text}: {error.strerror}") from error
    unlimited = value in ("max", "-1", "rbps=max wbps=max riops=max wiops=max")
    if not unlimited and read(name, key) != value:
        raise ValueError(f"{path} says {read(name, key)}, not {value}")


def absent(wanted, dry):
    """Removes the group; returns whether it was there, and its folders."""
    record = Path(wanted["record"])
    if not record.exists():
        return False, []
    folders = json.loads(record.read_text())["folders"]
    for folder in map(Path, folders):
        inside = (folder / "cgroup.procs").read_text().split() if folder.exists() else []
        if inside:
            raise ValueError(f"{folder} has {len(inside)} processes: end them, or put them elsewhere")
    if not dry:
        for folder in map(Path, folders):
            if folder.exists():
                folder.rmdir()
            # That of others stays.
            remove_empty(folder.parent)
        record.unlink()
    return True, folders


if __name__ == "__main__":
    main()
