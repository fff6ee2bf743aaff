"""Test `weir_living`: whether the playbook that claimed a host may still be at work there."""

from pathlib import Path

DOCUMENTATION = """
name: weir_living
author: The weir developers
short_description: Whether the owner of a host's state folder may be alive
description:
  - True for a process of this machine that runs, and for any process of another machine, of which nothing
    can be known from here. The process that asks is not its own rival.
options:
  _input:
    description: What owner.json says (C(boot_id), C(pid), C(started_ticks)), or nothing.
    type: dict
    required: true
  me:
    description: What the lookup P(controller#lookup) says.
    type: dict
    required: true
"""


def living(owner, me):
    """See DOCUMENTATION."""
    if not owner:
        return False
    if owner["boot_id"] != me["boot_id"]:
        return True
    if owner["pid"] == me["pid"]:
        return False
    try:
        stat = Path(f"/proc/{owner['pid']}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    fields = stat.rpartition(")")[2].split()
    # A zombie is dead.
    return fields[0] not in "ZX" and int(fields[19]) == owner["started_ticks"]


class TestModule:
    """Tests of this plugin, for Ansible."""

    def tests(self):
        """The tests by name."""
        return {"weir_living": living}
