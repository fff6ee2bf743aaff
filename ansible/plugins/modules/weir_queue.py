"""Module `weir_queue`: I/O scheduler and queue settings of a disk, set by `weir queue`."""

import json
import shutil

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_queue
author: The weir developers
short_description: Set the I/O scheduler and queue settings of a disk
description:
  - Calls C(weir queue). It records the former settings, sets the new ones, and reads them back.
  - If the kernel refuses a value, the former settings are restored.
options:
  disk:
    description: Name of the disk below C(/sys/block). Not needed to restore it.
    type: str
    default: ""
  scheduler:
    description: The scheduler. Empty keeps the present one.
    type: str
    default: ""
  tunables:
    description: Tunables of the scheduler by name, as in C(/sys/block/DISK/queue/iosched).
    type: dict
    default: {}
  queue:
    description: Settings by name, as in C(/sys/block/DISK/queue), such as C(read_ahead_kb).
    type: dict
    default: {}
  record:
    description: File that records the former settings.
    type: path
    required: true
  binary:
    description: The weir binary on the host.
    type: path
    default: weir
  state:
    description: C(present) sets the values, C(absent) restores the former ones.
    type: str
    choices: [present, absent]
    default: present
"""

RETURN = """
before: {description: Settings before the first change., type: dict, returned: always}
after: {description: Settings after this task., type: dict, returned: always}
"""

#: Options that the command reads as JSON.
FIELDS = ("disk", "scheduler", "tunables", "queue")


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
    action = "set" if wanted["state"] == "present" else "restore"
    check = ["--check"] if module.check_mode else []
    code, said, problem = module.run_command(
        [wanted["binary"], "queue", action, "--record", wanted["record"], "--diff", *check],
        data=json.dumps({field: wanted[field] for field in FIELDS}),
    )
    if code != 0:
        module.fail_json(msg=problem.strip().removeprefix("error: "), rc=code)
    module.exit_json(**json.loads(said))


if __name__ == "__main__":
    main()
