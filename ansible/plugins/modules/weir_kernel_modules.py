"""Module `weir_kernel_modules`: kernel modules, recorded when loaded, and unloaded by that record."""

import json
import os
import subprocess
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_kernel_modules
author: The weir developers
short_description: Load kernel modules
description:
  - Loads the modules that this kernel has and that are not loaded, and records them. Modules that are built
    in or missing are only returned. C(absent) unloads the recorded modules and no others.
options:
  names:
    description: The modules, each followed by its parameters, such as C(null_blk nr_devices=0).
    type: list
    elements: str
    default: []
  record:
    description: File that records the loaded modules.
    type: path
    required: true
  state:
    description: Whether the modules are loaded.
    type: str
    choices: [present, absent]
    default: present
"""

RETURN = """
loaded: {description: Modules that were loaded or unloaded., type: list, returned: always}
not_loadable: {description: "Modules that are built in or missing.", type: list, returned: always}
"""


def main():
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "default": []},
            "record": {"type": "path", "required": True},
            "state": {"choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    record = Path(module.params["record"])
    try:
        ours = json.loads(record.read_text()) if record.exists() else []
        if module.params["state"] == "absent":
            if record.exists() and not module.check_mode:
                for name in reversed(ours):
                    done = modprobe("--remove", name)
                    if done.returncode != 0:
                        module.warn(f"{name} stays loaded: {done.stderr.strip()}")
                record.unlink()
            module.exit_json(changed=bool(ours), loaded=ours, not_loadable=[])
        found = loadable()
        entries = [text.split() for text in module.params["names"] if text.split()]
        todo = [words for words in entries if plain(words[0]) in found and not is_loaded(words[0])]
        for words in [] if module.check_mode else todo:
            # Recorded first, so that a module is unloaded after an interruption, too.
            ours.append(words[0])
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(json.dumps(ours) + "\n")
            done = modprobe(*words)
            if done.returncode != 0:
                module.fail_json(msg=f"{words[0]} cannot be loaded: {done.stderr.strip()}")
        module.exit_json(
            changed=bool(todo),
            loaded=[words[0] for words in todo],
            not_loadable=[words[0] for words in entries if plain(words[0]) not in found],
        )
    except OSError as error:
        module.fail_json(msg=f"{error.filename}: {error.strerror}")


def modprobe(*words):
    """Calls the program of that name."""
    return subprocess.run(["modprobe", *words], capture_output=True, text=True, check=False)


def plain(name):
    """A module's name as files have it: both - and _ are in use."""
    return name.replace("-", "_")


def is_loaded(name):
    """Whether a module is loaded."""
    return Path("/sys/module", plain(name)).is_dir()


def loadable():
    """Names of the modules that this kernel could load."""
    try:
        text = Path(f"/lib/modules/{os.uname().release}/modules.dep").read_text(encoding="utf-8")
    except OSError:
        return set()
    return {plain(Path(line.split(":")[0]).name.split(".")[0]) for line in text.splitlines()}


if __name__ == "__main__":
    main()
