"""Connection `netns`: a network namespace of this machine as a host."""

import shlex
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as LocalConnection

DOCUMENTATION = """
name: netns
author: The weir developers
short_description: Tasks in a network namespace of this machine
description:
  - As P(ansible.builtin.local#connection), but every command is in a network namespace, such as a host of the
    test network. Files, mounts and processes are this machine's. (ip netns exec would unshare the mounts,
    too. What a task mounted would be seen nowhere else.)
options:
  namespace:
    description: The namespace, by its name below /run/netns.
    type: str
    default: inventory_hostname
    vars:
      - name: inventory_hostname
      - name: ansible_host
      - name: weir_namespace
  become_success_timeout:
    description: Number of seconds to wait for become to succeed.
    type: int
    default: 10
    vars:
      - name: ansible_local_become_success_timeout
  become_strip_preamble:
    description: Whether what become prints is taken off.
    type: bool
    default: true
    vars:
      - name: ansible_local_become_strip_preamble
extends_documentation_fragment:
  - connection_pipelining
"""


class Connection(LocalConnection):
    """See DOCUMENTATION."""

    transport = "netns"

    def exec_command(self, cmd, in_data=None, sudoable=True):
        """Runs a command of the shell in the namespace; returns exit code, output and errors."""
        path = Path("/run/netns") / self.get_option("namespace")
        if not path.exists():
            raise AnsibleConnectionFailure(f"{path}: no such namespace; bring it up: weir network up")
        inside = f"nsenter --net={shlex.quote(str(path))} /bin/sh -c {shlex.quote(cmd)}"
        done = super().exec_command(inside, in_data=in_data, sudoable=sudoable)
        # As ssh has it where a host goes down: what the command did is not known then.
        if done[0] != 0 and not path.exists():
            raise AnsibleConnectionFailure(f"{path}: the namespace was taken down while a command ran in it")
        return done
