"""Lookup `controller`: the process that carries out this playbook, and whether it still lives."""

import multiprocessing
import os
from pathlib import Path

from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: controller
author: The weir developers
short_description: The ansible-playbook process
description:
  - Returns C(boot_id), C(pid), C(started_ticks) of the ansible-playbook process, which name it for good, and
    C(alive). A task's worker outlives a playbook that was killed, and would go on with the items of its loop.
options: {}
"""


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, **kwargs):
        """Returns a list of one dictionary."""
        parent = multiprocessing.parent_process()
        pid = parent.pid if parent else os.getpid()
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        # A worker whose playbook died has been given another parent.
        alive = parent is None or os.getppid() == pid
        return [{"boot_id": boot_id, "pid": pid, "started_ticks": started_ticks(pid), "alive": alive}]


def started_ticks(pid):
    """When a process started, in clock ticks since boot; None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Field 22 of proc(5); the name in field 2 may hold blanks, but ends with the last parenthesis.
    return int(stat.rpartition(")")[2].split()[19])
