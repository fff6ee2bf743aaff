"""Hosts that are folders of stubs, for roles whose software is not here."""

import contextlib
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from support import PATIENCE_S, ROOT

STUB = ROOT / "tests/stubs/parallel_fs.py"


def _load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: The module, as functions.
daemon = _load(ROOT / "ansible/plugins/modules/weir_daemon.py")
stub = _load(STUB)


@dataclass
class Play:
    """What one playbook said and did."""

    code: int
    raw: bytes
    commands: list

    @property
    def output(self):
        return self.raw.decode(errors="replace")

    @property
    def changed(self):
        """How many tasks changed something, by host."""
        return {
            host: int(count)
            for host, count in re.findall(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)", self.output, re.M)
        }

    def did(self, host=None):
        """Commands that change something, as lines, of one host or of all."""
        return [
            " ".join(entry["argv"])
            for entry in self.commands
            if not entry["reads"] and host in (None, entry["host"])
        ]

    def at(self, beginning):
        """When the command that begins so was given, among all."""
        found = [number for number, line in enumerate(self.did()) if line.startswith(beginning)]
        assert len(found) == 1, (beginning, self.did())
        return found[0]


class Bed:
    """Hosts that are folders: programs, state, and all paths of a role below HOST."""

    def __init__(self, folder, role, hosts, **common):
        self.folder, self.role = folder, role
        self.log = folder / "log.jsonl"
        inventory = {}
        for number, (name, variables) in enumerate(hosts.items()):
            host = folder / name
            (host / "bin").mkdir(parents=True)
            for program in stub.NAMES:
                (host / "bin" / program).symlink_to(STUB)
            address = f"127.0.0.{number + 2}"
            (host / "address").write_text(address)
            inventory[name] = {"lab_address": address, "bed": str(host)} | variables
        variables = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "weir_root": str(folder),
            "weir_devices": {},
            f"{role}_install": "preinstalled",
            f"{role}_prefix": "{{ bed }}/bin",
            f"{role}_system_prefix": "{{ bed }}/bin",
            f"{role}_point": "{{ bed }}/mnt",
        }
        self.inventory = {"all": {"vars": variables | common, "hosts": inventory}}

    def play(self, *arguments, tasks_from="main", hosts="all", **variables):
        """Carries out the role on the hosts."""
        (self.folder / "hosts.json").write_text(json.dumps(self.inventory))
        include = {"name": self.role, "tasks_from": tasks_from}
        task = {"name": "Carry out the role", "ansible.builtin.include_role": include}
        book = [{"name": "A play", "hosts": hosts, "gather_facts": False, "tasks": [task]}]
        (self.folder / "play.json").write_text(json.dumps(book))
        before = len(self.lines())
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        settings = {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
            "ANSIBLE_NOCOLOR": "1",
        }
        done = subprocess.run(
            [
                Path(sys.executable).parent / "ansible-playbook",
                *("-i", self.folder / "hosts.json", self.folder / "play.json"),
                *("-e", json.dumps(variables), *arguments),
            ],
            cwd=self.folder,
            env=clean | settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
        return Play(done.returncode, done.stdout, [json.loads(line) for line in self.lines()[before:]])

    def lines(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def state(self, host, kind, content):
        """What a stub is to know beforehand."""
        (self.folder / host / "stub").mkdir(exist_ok=True)
        (self.folder / host / "stub" / f"{kind}.json").write_text(json.dumps(content))

    def alive(self):
        """The servers that run, as HOST/NAME."""
        notes = sorted(self.folder.glob("*/run/*.json"))
        return [f"{note.parent.parent.name}/{note.stem}" for note in notes if daemon.living(note)]

    def close(self):
        """Ends what a failed test left, by the notes of the role."""
        for note in self.folder.glob("*/run/*.json"):
            if pid := daemon.living(note):
                daemon.stop(pid, note, 5)


@contextlib.contextmanager
def bed(*arguments, **variables):
    made = Bed(*arguments, **variables)
    try:
        yield made
    finally:
        made.close()


def free_ports(count):
    """TCP ports that nobody listens at, each another."""
    with contextlib.ExitStack() as held:
        servers = [held.enter_context(socket.create_server(("127.0.0.2", 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in servers]


def free_port():
    """One such port."""
    return free_ports(1)[0]
