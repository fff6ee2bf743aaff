"""Hosts that are lost: in the beginning, in the middle, and what is dealt out to the others."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from support import PATIENCE_S, ROOT, wait_for, weir

from weir.plan import read_plan

SPEC = importlib.util.spec_from_file_location("assignment", ROOT / "ansible/plugins/filter/assignment.py")
assignment = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(assignment)

SIMULATED = """\
name: lost
question: Is what a host that is lost had to do done by the others?
testbed: simulator
seed: 3
repetitions: 6
warmup_s: 1
duration_s: {duration_s}
storage: {{profile: hdd-7200, heads: 2, size_mib: 512}}
classes:
  text: {{workload: poisson-text, clients: 40}}
factors: {{scheduler: [fcfs, scan]}}
"""
#: Nothing below the files, so that the hosts share no device.
MEASURED = """\
name: lost
question: Are the blocks of a host that was lost named, and carried out by the same command?
testbed: device
seed: 3
repetitions: 4
warmup_s: 0.1
duration_s: 2
capture: none
storage: {profile: hdd-7200, heads: 1, size_mib: 64}
classes:
  text: {workload: poisson-text, with: {files.count: 20}, clients: 10}
hold: {filesystem: tmpfs}
factors: {load: [1]}
"""


def runs(blocks, *, of=1, testbed="device"):
    return [
        {"id": f"{block}-{n}", "block": block, "testbed": testbed, "order": block * of + n}
        for block in range(blocks)
        for n in range(of)
    ]


def test_blocks_go_round_and_stay_with_whoever_began_them(tmp_path):
    planned = runs(5, of=2)
    first = assignment.assign_blocks(planned, planned, ["a", "b"], tmp_path)
    assert first == {"hosts": {"0": "a", "1": "b", "2": "a", "3": "b", "4": "a"}, "waiting": {}}
    (tmp_path / "blocks.json").write_text(json.dumps(first["hosts"]))
    # Block 0 is half done, 1 and 3 were not begun, 2 and 4 are whole.
    missing = [run for run in planned if run["block"] in (1, 3) or run["id"] == "0-1"]
    assert assignment.assign_blocks(missing, planned, ["b"], tmp_path) == {
        "hosts": {"1": "b", "3": "b"},
        "waiting": {"0": "a"},
    }
    assert assignment.assign_blocks(missing, planned, ["b"], tmp_path, move=True)["hosts"]["0"] == "b"
    assert assignment.assign_blocks(missing, planned, ["b", "a"], tmp_path)["hosts"] == {
        "0": "a",
        "1": "a",
        "3": "b",
    }


def test_lost_blocks_are_named_as_people_count_them(tmp_path):
    planned = runs(4)
    deal = {"hosts": {"0": "a", "1": "b", "3": "b"}, "waiting": {"2": "c"}}
    lost, waiting = assignment.lost_blocks(deal, ["a"], planned, tmp_path)
    assert lost.startswith("b was lost: blocks 2 and 4 were not carried out")
    assert waiting.startswith("c cannot be reached, where block 3 was begun")
    # What was fetched before is not lost.
    for run in ("1-0", "3-0"):
        (tmp_path / run).mkdir()
    assert assignment.lost_blocks(deal | {"waiting": {}}, ["a"], planned, tmp_path) == []


def test_what_is_simulated_is_dealt_out_again_until_nobody_is_lost():
    deal = {"a": ["0-0", "3-0", "6-0"], "b": ["1-0", "4-0"], "c": ["2-0", "5-0"]}
    assert assignment.reassign_runs(deal, ["a", "b", "c"]) == {}
    again = assignment.reassign_runs(deal, ["b", "c"])
    assert again == {"b": ["0-0", "6-0"], "c": ["3-0"]}
    assert assignment.reassign_runs(again, ["c"]) == {"c": ["0-0", "6-0"]}
    assert assignment.reassign_runs(deal, []) == {}
    # A host that had nothing to do is no loss.
    assert assignment.reassign_runs({"a": [], "b": ["0-0"]}, ["b"]) == {}


class Namespaces:
    """Hosts that are network namespaces of this machine, each with folders of its own."""

    def __init__(self, bench, *names):
        self.bench = bench
        self.lab = bench.folder / "lab"
        bench.folder.chmod(0o755)
        label = f"l{os.getpid()}"
        up = weir("network", "up", ",".join(names), "--name", label, "--state", self.lab, "--json")
        assert up.returncode == 0, up.stderr
        self.names = [f"weir-{label}-{name}" for name in names]
        self.states = {name: bench.folder / "s" / name for name in self.names}
        own = {
            name: {"weir_state": str(self.states[name]), "weir_host_folder": str(bench.folder / "h" / name)}
            for name in self.names
        }
        common = {
            "ansible_connection": "netns",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        }
        self.inventory = bench.folder / "hosts.json"
        self.inventory.write_text(json.dumps({"all": {"hosts": own, "vars": common}}))

    def command(self, study, *arguments):
        """The command line of the playbook; each host keeps its state to itself."""
        variables = {"study": str(study), "weir_results": str(self.bench.results)}
        playbook = ROOT / ".venv/bin/ansible-playbook"
        options = ("--skip-tags", "report", "-e", json.dumps(variables))
        return [playbook, "-i", self.inventory, ROOT / "ansible/playbooks/study.yml", *options, *arguments]

    def processes(self, name, words):
        """Pids in a namespace whose command line has these words."""
        listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
        found = []
        for pid in map(int, listed.stdout.split()):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            except OSError:
                continue
            if words in line and str(self.bench.folder) in line:
                found.append(pid)
        return found

    def lose(self, name, words=None):
        """Takes a host away, in the middle of a command of it that has these words."""
        pids = words and wait_for(lambda: self.processes(name, words), f"{words} on {name}", PATIENCE_S)
        subprocess.run(["ip", "netns", "delete", name], check=True)
        for pid in pids or []:
            os.kill(pid, signal.SIGKILL)

    def close(self):
        for state in (*self.states.values(), self.lab):
            assert weir("clean", "--state", state).returncode == 0


@pytest.fixture
def namespaces(bench):
    if os.geteuid() != 0 or not shutil.which("ip", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        pytest.skip("needs root and ip (package iproute2)")
    made = Namespaces(bench, "a", "b", "c")
    bench.command = made.command
    yield made
    made.close()


def planned(bench):
    return {run["id"]: run for run in read_plan(bench.results / "lost/plan.json")["runs"]}


@pytest.mark.cluster
def test_what_lost_hosts_had_to_simulate_is_done_by_the_last(bench, namespaces):
    """This test takes one host away before the study, and one while it simulates: nothing is missing."""
    file = bench.folder / "lost.yml"
    # Long enough to be met in the middle.
    file.write_text(SIMULATED.format(duration_s=4000))
    first, second, third = namespaces.names
    namespaces.lose(first)
    playbook = bench.start(file)
    namespaces.lose(second, "simulate")
    code, log = playbook.wait(180), bench.log.read_text()
    # Ansible's word for hosts that it could not reach.
    assert code == 4, log
    assert f"{second}: lost; 6 simulated runs are made on {third}" in log
    assert sorted(bench.run_folders("lost")) == sorted(planned(bench)) and len(planned(bench)) == 12
    # The outcome is that of one machine.
    weir("simulate", file, "--out", bench.folder / "alone")
    for run, folder in bench.run_folders("lost").items():
        alone = bench.folder / "alone/lost" / run
        assert (folder / "summary.json").read_bytes() == (alone / "summary.json").read_bytes()
    assert not list(bench.folder.glob("h/*/results/lost/.rest*"))


@pytest.mark.cluster
def test_blocks_of_a_host_lost_in_the_middle_are_named_and_resumed(bench, namespaces):
    """This test takes a host away while it measures, and gives the same command again."""
    file = bench.folder / "lost.yml"
    file.write_text(MEASURED)
    first, second, third = namespaces.names
    playbook = bench.start(file)
    namespaces.lose(second, " run ")
    code, log = playbook.wait(180), " ".join(bench.log.read_text().split())
    assert code != 0 and f"{second} was lost: block 2 was not carried out" in log, log
    # The others had their turn: 1 and 4 are the first host's, 3 the third's.
    blocks = {
        json.loads((folder / "run.json").read_text())["block"]
        for folder in bench.run_folders("lost").values()
    }
    assert blocks == {0, 2, 3}
    before = {
        run: (folder / "run.json").stat().st_mtime_ns for run, folder in bench.run_folders("lost").items()
    }
    code, log = bench.play(file)
    assert code == 4, log
    assert sorted(bench.run_folders("lost")) == sorted(planned(bench))
    assert all(
        (bench.results / "lost" / run / "run.json").stat().st_mtime_ns == at for run, at in before.items()
    )
    told = json.loads((bench.results / "lost/blocks.json").read_text())
    assert told == {"0": first, "1": first, "2": third, "3": first}
