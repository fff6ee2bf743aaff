"""Module `weir_cgroup`: a control group with limits, made by `weir cgroup`."""

import json
import shutil

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_cgroup
author: The weir developers
short_description: Create a control group with limits
description:
  - Calls C(weir cgroup). It creates C(weir/NAME) in the tree of each controller that it needs and sets the
    limits. Version 1 (memory, blkio) is used where that has the controllers. C(absent) removes the group.
  - A group that another program made is refused.
options:
  name:
    description: Name of the group below C(weir/).
    type: str
    required: true
  memory_mib:
    description: Maximum memory, page cache included. 0 is no limit.
    type: int
    default: 0
  weight:
    description: Weight for disks with the scheduler bfq or a cost model. 0 keeps the present weight.
    type: int
    default: 0
  disks:
    description:
      - Limits by disk. A list, each entry with the C(path) of its disk; or a dictionary by the number of the
        disk, C(MAJOR:MINOR).
      - Limits are C(read_bytes_per_s), C(write_bytes_per_s), C(reads_per_s) and C(writes_per_s).
    type: raw
    default: []
  record:
    description: File that records the group.
    type: path
    required: true
  binary:
    description: The weir binary on the host.
    type: path
    default: weir
  state:
    description: Whether the group exists. A group that contains a process is not removed.
    type: str
    choices: [present, absent]
    default: present
"""

RETURN = """
folders: {description: Folders of the group. A program joins by cgroup.procs., type: list, returned: always}
before: {description: Limits before this task by file., type: dict, returned: always}
after: {description: Limits after this task by file., type: dict, returned: always}
"""

#: Options that the command reads as JSON.
FIELDS = ("name", "memory_mib", "weight", "disks")


def main():
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"required": True},
            "memory_mib": {"type": "int", "default": 0},
            "weight": {"type": "int", "default": 0},
            "disks": {"type": "raw", "default": []},
            "record": {"type": "path", "required": True},
            "binary": {"type": "path", "default": "weir"},
            "state": {"choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    if not shutil.which(wanted["binary"]):
        module.fail_json(
            msg=f"binary: {wanted['binary']} is not on this host. Install it: role devices, install.yml"
        )
    action = "set" if wanted["state"] == "present" else "remove"
    check = ["--check"] if module.check_mode else []
    code, said, problem = module.run_command(
        [wanted["binary"], "cgroup", action, "--record", wanted["record"], "--diff", *check],
        data=json.dumps({field: wanted[field] for field in FIELDS}),
    )
    if code != 0:
        module.fail_json(msg=problem.strip().removeprefix("error: "), rc=code)
    module.exit_json(**json.loads(said))


if __name__ == "__main__":
    main()
