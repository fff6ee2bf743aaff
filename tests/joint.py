"""Hosts of one run: as processes of this machine, or as namespaces that a playbook works on."""

import json
import os
import secrets
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from support import PATIENCE_S, ROOT, WEIR, weir

STUDY = """\
name: together
question: Do two clients fare as one?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: {duration_s}
capture: optional
hosts: {{clients: 2, lost: {lost}}}
storage: {{profile: hdd-7200, heads: 1, size_mib: 128}}
classes:
  text: {{workload: poisson-text, with: {{files.count: 30}}, clients: 20}}
  records: {{workload: random-4k, with: {{files.size: {{fixed: {{bytes: 4194304}}}}}}, clients: 2}}
factors:
  load: {loads}
hold: {{filesystem: mounted, buffered: {buffered}}}
"""


def study(folder, duration_s=1, lost="stop", loads="[1]", buffered="true"):
    """Writes the study; returns its file."""
    file = folder / "together.yml"
    file.write_text(STUDY.format(duration_s=duration_s, lost=lost, loads=loads, buffered=buffered))
    return file


def mount_tmpfs(point):
    """A file system that all hosts of a test see."""
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "shared", point], check=True)


def rules(folder):
    """The rulings of a run, by rule."""
    return {rule["rule"]: rule for rule in json.loads((folder / "verdict.json").read_text())["rules"]}


def begun_run(results, host, run="*"):
    """Id of a run whose requests a host sends, else None. The job file is written seconds earlier."""
    for log in results.glob(f".{run}.{host}.partial/logs/fio-records/issue.0.log"):
        if log.stat().st_size:
            return log.relative_to(results).parts[0].split(".")[1]
    return None


@dataclass
class Party:
    """Processes of this machine as the hosts of one run."""

    folder: Path
    point: Path
    clients: tuple = ("a", "b")
    servers: tuple = ()
    #: Where the first client listens.
    address: str = "127.0.0.1"
    processes: dict = field(default_factory=dict)

    def __post_init__(self):
        self.token = self.folder / "token"
        with os.fdopen(os.open(self.token, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(secrets.token_hex(24))
        self.testbed = self.folder / "testbed.json"
        self.testbed.write_text(json.dumps({"devices": {}, "mounts": {"mounted": str(self.point)}}))
        self.plan = self.folder / "plan.json"
        self.port = 20000 + os.getpid() % 10000

    @property
    def hosts(self):
        """All of them, clients first."""
        return (*self.clients, *self.servers)

    def write_plan(self, file):
        """Plans the study; returns its one run."""
        planned = weir("plan", file, "--json")
        assert planned.returncode == 0, planned.stderr
        self.plan.write_text(planned.stdout)
        (run,) = json.loads(planned.stdout)["runs"]
        return run

    def results(self, host):
        """A host's own results."""
        return self.folder / f"results-{host}"

    def command(self, host, run, token=None):
        """What a host is told."""
        role = "run" if host in self.clients else "observe"
        words = [WEIR, role, self.plan, "--id", run["id"], "--results", self.results(host)]
        words += ["--state", self.folder / f"state-{host}", "--json", "--host", host]
        words += ["--meet", f"{self.address}:{self.port}", "--token", token or self.token]
        words += ["--clients", ",".join(self.clients)]
        if self.servers:
            words += ["--servers", ",".join(self.servers)]
        if role == "run":
            words += ["--testbed", self.testbed]
        return words

    def start(self, host, run, before=(), token=None):
        """Starts a host's part, behind the words of another command if there are any."""
        self.processes[host] = subprocess.Popen(
            [*before, *self.command(host, run, token)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self.processes[host]

    def finish(self):
        """Waits for all; returns code, output and errors by host."""
        done = {}
        for host, process in self.processes.items():
            out, errors = process.communicate(timeout=PATIENCE_S)
            done[host] = (process.returncode, out, errors)
        return done

    def begun(self, host, run):
        """Whether a host's requests are on their way."""
        return begun_run(self.results(host), host, run["id"]) is not None

    def gather(self, run):
        """Moves all parts to one place, as fetching them does; returns that folder of results."""
        whole = self.folder / "results"
        parts = whole / f".{run['id']}.parts"
        parts.mkdir(parents=True)
        for host in self.hosts:
            part = self.results(host) / f".{run['id']}.parts" / host
            if part.exists():
                part.rename(parts / host)
        return whole

    def join(self, run):
        """Puts the parts together."""
        places = ("--hosts", ",".join(self.hosts), "--results", self.folder / "results", "--json")
        return weir("join", self.plan, "--id", run["id"], *places)

    def close(self):
        """Ends what a failed test left."""
        for host, process in self.processes.items():
            if process.poll() is None:
                process.kill()
                process.wait()
            weir("clean", "--state", self.folder / f"state-{host}")


class Lab:
    """Namespaces as hosts, with their inventory, and the playbook on them."""

    def __init__(self, bench, clients, servers=()):
        self.bench = bench
        self.name = f"j{os.getpid()}"
        self.short = (*clients, *servers)
        up = weir(
            "network", "up", ",".join(self.short), "--name", self.name, "--state", bench.state, "--json"
        )
        assert up.returncode == 0, up.stderr
        found = {Path(host["namespace"]).name: host["address"] for host in json.loads(up.stdout)["hosts"]}
        self.addresses = found
        self.clients = [self.full(name) for name in clients]
        self.servers = [self.full(name) for name in servers]
        self.variables = {}

    def full(self, name):
        """A host's name in the inventory."""
        return f"weir-{self.name}-{name}"

    def state(self, name):
        """A host's state folder."""
        return self.bench.folder / f"state-{name}"

    def write(self, **of_hosts):
        """Writes the inventory; returns its file."""
        folder = self.bench.folder

        def entry(name):
            own = {"weir_address": self.addresses[name], "weir_state": str(self.state(name))}
            own |= {"weir_host_folder": str(folder / f"host-{name}"), "weir_results": str(self.bench.results)}
            return own | self.variables | of_hosts.get(name, {})

        common = {
            "ansible_connection": "netns",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        }
        groups = {"weir_clients": self.clients, "weir_servers": self.servers}
        children = {
            group: {"hosts": {name: entry(name) for name in names}} for group, names in groups.items()
        }
        file = folder / "inventory.json"
        file.write_text(json.dumps({"all": {"vars": common, "children": children}}))
        return file

    def use(self, inventory):
        """Has the bench's playbooks work on these hosts."""
        playbook = [
            ROOT / ".venv/bin/ansible-playbook",
            ROOT / "ansible/playbooks/study.yml",
            "-i",
            inventory,
        ]
        self.bench.command = lambda study, *more: [*playbook, "-e", json.dumps({"study": str(study)}), *more]

    def close(self):
        """Takes the namespaces down."""
        for name in self.addresses:
            weir("clean", "--state", self.state(name))
        weir("clean", "--state", self.bench.state)


def unmount(point):
    """Takes a mount of a test away; whoever still uses it has a moment."""
    for _ in range(20):
        if subprocess.run(["umount", point], check=False, capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", point], check=True)


def missing(*programs):
    """Those programs that are not installed."""
    return [name for name in programs if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
