"""Module `weir_files`: several small text files in one task, each replaced atomically."""

import os
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_files
author: The weir developers
short_description: Write or remove small text files
description:
  - Each file is written under a temporary name and renamed. A file with the desired text is kept.
    Missing folders are created.
  - It replaces several M(ansible.builtin.copy), each of which starts Python on the host three times.
options:
  content:
    description: The text of each file, by path.
    type: dict
    default: {}
  absent:
    description: Files to remove.
    type: list
    elements: path
    default: []
  private:
    description: Whether only root may read the files and enter the folders that are created for them.
    type: bool
    default: false
"""

RETURN = """
written: {description: Files that were written., type: list, returned: always}
removed: {description: Files that were removed., type: list, returned: always}
"""


def main():
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "content": {"type": "dict", "default": {}},
            "absent": {"type": "list", "elements": "path", "default": []},
            "private": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    private = module.params["private"]
    written = [path for path, text in module.params["content"].items() if read(path) != text]
    removed = [path for path in module.params["absent"] if os.path.lexists(path)]
    if not module.check_mode:
        try:
            for path in written:
                write(Path(path), module.params["content"][path], private)
            for path in removed:
                os.remove(path)
        except OSError as error:
            module.fail_json(
                msg=f"{error.filename}: cannot be written ({error.strerror}): make room, or check its rights"
            )
    module.exit_json(changed=bool(written or removed), written=written, removed=removed)


def read(path):
    """A file's text; None if there is none."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return None


def write(path, text, private):
    """Writes a file under a temporary name beside it and renames it."""
    path.parent.mkdir(mode=0o700 if private else 0o755, parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(partial, 0o600 if private else 0o644)
        os.rename(partial, path)
    except OSError:
        os.unlink(partial)
        raise


if __name__ == "__main__":
    main()
