"""Module `weir_queue`: a disk's I/O scheduler and tunables, and what they were before."""

import json
import os
import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_queue
author: The weir developers
short_description: A disk's I/O scheduler and tunables
description:
  - Sets them, reads them back, and writes down what they were when it first came by. C(absent) sets that
    again.
  - Where the kernel refuses a value, what was before is restored.
options:
  disk:
    description: The disk, by its name below C(/sys/block). Not needed to restore it.
    type: str
    default: ""
  scheduler:
    description: The scheduler; empty for the one that is there.
    type: str
    default: ""
  tunables:
    description: Values by name, as in C(/sys/block/DISK/queue/iosched).
    type: dict
    default: {}
  queue:
    description: Values by name, as in C(/sys/block/DISK/queue), such as C(read_ahead_kb).
    type: dict
    default: {}
  record:
    description: The file in which is written down what was before.
    type: path
    required: true
  state:
    description: Whether the values are set, or those of before restored.
    type: str
    choices: [present, absent]
    default: present
"""

RETURN = """
before: {description: What was before., type: dict, returned: always}
"""

SYS_BLOCK = Path("/sys/block")
#: What a change of the scheduler changes besides.
FOLLOW = ("nr_requests", "wbt_lat_usec")


def main():
    """Runs the module."""
    values = {"type": "dict", "default": {}}
    module = AnsibleModule(
        argument_spec={
            "disk": {"default": ""},
            "scheduler": {"default": ""},
            "tunables": values,
            "queue": values,
            "record": {"type": "path", "required": True},
            "state": {"choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    try:
        changed, before = (present if wanted["state"] == "present" else absent)(wanted, module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, before=before)


def present(wanted, dry):
    """Sets what is wanted; returns whether that changed anything, and what was before."""
    queue = Queue(wanted["disk"])
    asked = {
        "scheduler": wanted["scheduler"] or queue.scheduler(),
        "iosched": {name: str(value) for name, value in wanted["tunables"].items()},
        "queue": {name: str(value) for name, value in wanted["queue"].items()},
    }
    queue.check(asked)
    record = Path(wanted["record"])
    known = json.loads(record.read_text()) if record.exists() else None
    now = queue.look(asked["queue"])
    before = known["before"] if known else now
    # A value that is asked for only now was not touched before.
    added = {name: value for name, value in now["queue"].items() if name not in before["queue"]}
    before["queue"] |= added
    changed = queue.differs(asked)
    if dry or not (changed or known is None or added):
        return changed, before
    # Written down first, so that a host that is left in between can be restored.
    schedulers = sorted({*(known or {}).get("schedulers", []), asked["scheduler"]})
    note(record, {"disk": wanted["disk"], "before": before, "schedulers": schedulers})
    try:
        queue.set(asked)
    except (OSError, ValueError):
        queue.set(now)
        if known is None:
            record.unlink()
        raise
    return changed, before


def absent(wanted, dry):
    """Restores what was before; returns whether that changed anything, and what was before."""
    record = Path(wanted["record"])
    if not record.exists():
        return False, {}
    known = json.loads(record.read_text())
    if not dry:
        if (SYS_BLOCK / known["disk"]).is_dir():
            Queue(known["disk"]).restore(known["before"], known.get("schedulers"))
        record.unlink()
    return True, known["before"]


def note(record, content):
    """Writes a record that is whole on the disk, or what was there before."""
    record.parent.mkdir(parents=True, exist_ok=True)
    aside = record.with_name(record.name + ".partial")
    with aside.open("w") as file:
        file.write(json.dumps(content, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    aside.replace(record)


class Queue:
    """The request queue of a whole disk."""

    def __init__(self, disk):
        """Takes the disk's name.

        Raises:
            ValueError: it has no queue.
        """
        self.folder = SYS_BLOCK / disk / "queue"
        if not re.fullmatch(r"[\w!-]+", disk) or not (self.folder / "scheduler").exists():
            raise ValueError(f"{disk} has no scheduler to choose: name a whole disk")
        self.disk = disk

    def read(self, file):
        """The text of a file; None if it is not there, or this disk has no such thing."""
        try:
            return (self.folder / file).read_text().strip()
        except OSError:
            return None

    def write(self, file, value):
        """Writes a file if it says otherwise, and reads it back.

        Raises:
            ValueError: the kernel refuses the value, or makes another of it.
        """
        found = self.scheduler if file == "scheduler" else lambda: self.read(file)
        if found() == value:
            return
        try:
            (self.folder / file).write_text(value)
        except OSError as error:
            raise ValueError(f"{self.disk}: {file} cannot be {value}: {os.strerror(error.errno)}") from error
        if found() != value:
            raise ValueError(f"{self.disk}: the kernel makes {found()} of {file}={value}: ask for that")

    def scheduler(self):
        """The scheduler that is selected."""
        text = self.read("scheduler") or ""
        return text.partition("[")[2].partition("]")[0] or text

    def check(self, asked):
        """Whether this kernel has what is asked for, as far as can be known before it is set.

        Raises:
            ValueError: it has not.
        """
        offered = [word.strip("[]") for word in (self.read("scheduler") or "").split()]
        if asked["scheduler"] not in offered:
            there = ", ".join(offered)
            raise ValueError(
                f"{self.disk}: scheduler {asked['scheduler']} is not in this kernel (there are {there})"
            )
        for name in [*asked["iosched"], *asked["queue"]]:
            if not re.fullmatch(r"\w+", name) or name == "scheduler":
                raise ValueError(f"{name} is no name of a tunable")
        if asked["scheduler"] == self.scheduler():
            self.known(asked["iosched"], "iosched/")
        self.known(asked["queue"], "")

    def known(self, names, folder):
        """Whether there is a file of each name.

        Raises:
            ValueError: there is not.
        """
        for name in names:
            if self.read(folder + name) is None:
                there = sorted(file.name for file in (self.folder / folder).glob("*") if file.is_file())
                raise ValueError(f"{self.disk} has no {folder}{name}; there are {', '.join(there)}")

    def look(self, names):
        """What is now, of the scheduler, all its tunables, and what else is asked for or follows it."""
        values = {name: self.read(name) for name in sorted({*names, *FOLLOW})}
        return {
            "scheduler": self.scheduler(),
            "iosched": {
                file.name: value
                for file in sorted((self.folder / "iosched").glob("*"))
                if (value := self.read(f"iosched/{file.name}")) is not None
            },
            "queue": {name: value for name, value in values.items() if value is not None},
        }

    def differs(self, asked):
        """Whether anything is not as it is asked for."""
        return (
            self.scheduler() != asked["scheduler"]
            or any(self.read(f"iosched/{name}") != value for name, value in asked["iosched"].items())
            or any(self.read(name) != value for name, value in asked["queue"].items())
        )

    def restore(self, before, ours):
        """Restores what was before, with all tags of the driver.

        Raises:
            ValueError: somebody else has chosen a scheduler since, who is not `ours`; nothing was touched.
        """
        now = self.scheduler()
        if ours is not None and now not in [*ours, before["scheduler"]]:
            raise ValueError(
                f"{self.disk}: somebody has set scheduler {now} since: its queue is left. "
                "Set what is to be there, then remove the record"
            )
        tags = self.folder.parent / "mq/0/nr_tags"
        if before["scheduler"] != "none" and "none" in [*(ours or []), now] and tags.exists():
            # Tags that were set without a scheduler stay with the next, and nr_requests does not show them.
            # A number that the kernel believes to have does nothing: hence a detour.
            self.write("scheduler", "none")
            most = int(tags.read_text())
            for number in (most - 1, most):
                (self.folder / "nr_requests").write_text(str(number))
        self.set(before)

    def set(self, asked):
        """Sets the scheduler, then what it would have changed."""
        self.write("scheduler", asked["scheduler"])
        self.known(asked["iosched"], "iosched/")
        for name, value in asked["iosched"].items():
            self.write(f"iosched/{name}", value)
        for name, value in asked["queue"].items():
            self.write(name, value)


if __name__ == "__main__":
    main()
