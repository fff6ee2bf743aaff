"""Module `weir_claim`: claim of one playbook on a folder, taken and released atomically."""

import fcntl
import json
import os
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_claim
author: The weir developers
short_description: Claim a folder for a playbook
description:
  - Writes a file that names the playbook's process. If several playbooks claim a folder at the same time, one
    gets it and the others are refused. A claim of a dead process is replaced.
  - Missing folders above the file are created. Nothing else is changed.
options:
  file:
    description: The file of the claim.
    type: path
    required: true
  owner:
    description:
      - The process (C(boot_id), C(pid), C(started_ticks)), as the lookup P(controller#lookup) returns it, and
        its C(study).
    type: dict
    required: true
  dead:
    description: A claim that may be replaced, because its process is known to be dead.
    type: dict
    default: {}
  here:
    description: Whether the owner's process runs on this machine, so that it can be checked.
    type: bool
    default: false
  take_over:
    description: Whether a claim of a process on another machine is replaced.
    type: bool
    default: false
  state:
    description: C(present) claims the folder, C(absent) releases it. Claims of other playbooks stay.
    type: str
    choices: [present, absent]
    default: present
"""

RETURN = """
owner: {description: Process that has the folder now., type: dict, returned: always}
"""

#: What names a process for good.
IDENTITY = ("boot_id", "pid", "started_ticks")


class Refused(Exception):
    """Another playbook has the folder."""


def main():
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "file": {"type": "path", "required": True},
            "owner": {"type": "dict", "required": True},
            "dead": {"type": "dict", "default": {}},
            "here": {"type": "bool", "default": False},
            "take_over": {"type": "bool", "default": False},
            "state": {"choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    file, owner = Path(wanted["file"]), wanted["owner"]

    def free(found):
        return (
            same_process(found, owner)
            or (bool(wanted["dead"]) and same_process(found, wanted["dead"]))
            or (wanted["here"] and found.get("boot_id") == owner["boot_id"] and not alive(found))
            or (wanted["take_over"] and found.get("boot_id") != owner["boot_id"])
        )

    try:
        if wanted["state"] == "absent":
            changed = same_process(read(file), owner) if module.check_mode else give_up(file, owner)
        elif module.check_mode:
            changed = look(file, free) != owner
        else:
            changed = take(file, owner, free)
    except Refused as refused:
        module.fail_json(msg=str(refused))
    except OSError as error:
        module.fail_json(msg=f"{error.filename}: cannot be claimed ({error.strerror}): check its permissions")
    module.exit_json(changed=changed, owner=read(file))


def take(file, owner, free):
    """Writes the claim; returns whether it was not there.

    Args:
        file: the file of the claim.
        owner: who claims.
        free: whether a claim that is found may be replaced.

    Raises:
        Refused: another has it.
    """
    file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    handle, mine = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as written:
            written.write(json.dumps(owner))
        while True:
            try:
                # Unlike a rename it fails where a claim is there.
                os.link(mine, file)
                return True
            except FileExistsError:
                pass
            with held(file) as found:
                if found is None:
                    continue
                if found == owner:
                    return False
                if not free(found):
                    raise refusal(file, found)
                os.replace(mine, file)
                return True
    finally:
        if os.path.lexists(mine):
            os.unlink(mine)


def give_up(file, owner):
    """Removes the claim if it is the owner's; returns whether it was."""
    with held(file) as found:
        if found is None or not same_process(found, owner):
            return False
        os.unlink(file)
        return True


def look(file, free):
    """Who has the folder, where it may be claimed.

    Raises:
        Refused: another has it.
    """
    found = read(file)
    if found and not free(found):
        raise refusal(file, found)
    return found


class held:
    """What a claim says, which nobody replaces or removes meanwhile; None if it is gone or was replaced."""

    def __init__(self, file):
        self._file, self._descriptor = file, None

    def __enter__(self):
        try:
            self._descriptor = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            named, mine = os.lstat(self._file), os.fstat(self._descriptor)
        except FileNotFoundError:
            return None
        if (named.st_dev, named.st_ino) != (mine.st_dev, mine.st_ino):
            return None
        return read(self._file)

    def __exit__(self, *_):
        if self._descriptor is not None:
            os.close(self._descriptor)


def refusal(file, found):
    """Who has it, and what to do."""
    study, pid = found.get("study", "?"), found.get("pid", "?")
    return Refused(
        f"{file} says that study {study} (process {pid}) is being carried out in this folder: wait for it. "
        "If it is another machine's and has died, say -e weir_take_over=true"
    )


def read(file):
    """What a claim says; nothing if it is not there or was not written by this module."""
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def same_process(one, other):
    """Whether two claims are of one process."""
    return all(one.get(part) == other.get(part) for part in IDENTITY)


def alive(owner):
    """Whether the process of a claim of this machine runs. A zombie is dead, and so is a pid used again."""
    try:
        stat = Path(f"/proc/{owner['pid']}/stat").read_text(encoding="utf-8", errors="replace")
    except (OSError, KeyError):
        return False
    # proc(5): field 3 is the state, field 22 the start time.
    fields = stat.rpartition(")")[2].split()
    return fields[0] not in "ZX" and int(fields[19]) == owner.get("started_ticks")


if __name__ == "__main__":
    main()
