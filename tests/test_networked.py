"""Studies on network file systems, the test network, and hosts that are namespaces."""

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from support import ROOT, weir

STUDY = """\
name: networked
question: Does a web site fare the same on file systems of the network?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: 1
capture: optional
storage: {profile: hdd-7200, heads: 2, size_mib: 128}
classes:
  web:
    workload: zipf-web
    with: {files.count: 60}
    clients: 10
factors:
  filesystem: [ext4, moosefs, glusterfs-direct]
hold:
  scheduler: mq-deadline
  buffered: true
  server_memory_mib: 48
"""
SERVED = """\
name: networked
question: Does a site find the files of the run before it?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: 1
capture: optional
storage: {{profile: hdd-7200, heads: 2, size_mib: 128}}
classes:
  documents: {{workload: zipf-web, with: {{files.count: 60}}, clients: 4, through: web}}
services:
  web: {{service: nginx, port: {port}}}
factors:
  variant:
    quick: {{classes.documents.think_ms: 0}}
    slow: {{classes.documents.think_ms: 5}}
hold: {{filesystem: moosefs, buffered: true}}
"""
GIVEN = """\
name: given
question: Does a run keep to its own folder?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: 1
storage: {profile: hdd-7200, heads: 1, size_mib: 128}
classes:
  web: {workload: zipf-web, with: {files.count: 20}, clients: 5}
factors:
  load: [0.5, 1]
hold: {filesystem: mounted, buffered: true}
"""
PROGRAMS = ("mfsmaster", "mfschunkserver", "mfsmount", "glusterfsd", "glusterfs", "ip")


def _missing(*programs):
    return [name for name in programs if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]


def _play(bench, text):
    file = bench.folder / "networked.yml"
    file.write_text(text)
    # Servers run as users of their own.
    bench.folder.chmod(0o755)
    # Another study on this machine may have the usual names.
    name = f"t{os.getpid()}"
    return bench.play(file, "--skip-tags", "report", "-e", f"test_network_name={name}"), name


def test_a_study_on_three_file_systems(bench):
    """This test will carry out one run each on ext4, MooseFS and GlusterFS, and look at what was carried."""
    if missing := _missing(*PROGRAMS):
        pytest.skip(f"not installed: {', '.join(missing)}")
    (code, log), name = _play(bench, STUDY)
    assert code == 0, log
    runs = bench.run_folders("networked")
    assert len(runs) == 3
    for folder in runs.values():
        settings = json.loads((folder / "run.json").read_text())["settings"]
        observed = json.loads((folder / "observed.json").read_text())
        rules = {rule["rule"]: rule for rule in json.loads((folder / "verdict.json").read_text())["rules"]}
        for rule in ("R-PLANNED", "R-ERRORS", "R-STATE"):
            assert rules[rule]["status"] == "valid", (settings["filesystem"], rules[rule])
        if settings["filesystem"] == "ext4":
            assert observed["network"] == {} and rules["R-NETWORK"]["status"] == "skipped"
            continue
        assert rules["R-NETWORK"]["status"] == "valid", rules["R-NETWORK"]
        assert sorted(observed["network"]) == ["client", "server-0", "server-1"]
        # What was read came from the servers, whose disks were read for it.
        assert observed["network"]["client"]["received_bytes"] > 100_000
        assert observed["device_read_bytes"] > 0
        assert any("server-0" in process for process in observed["cpu"])
        # The servers' memory is limited as well: so much for files, besides what their programs have.
        servers = observed["memory"]["servers"]
        assert len(servers) == 2 and all("server-" in name for name in servers)
        for memory in servers.values():
            assert memory["limit_bytes"] >= 48 << 20 and memory["used_bytes"] <= memory["limit_bytes"]
    assert bench.leftovers() == []
    left = [path.name for path in Path("/run/netns").glob(f"weir-{name}-*")]
    assert left == [] and not (bench.state / "network.json").exists()


@pytest.mark.cluster
def test_files_behind_a_web_server_are_written_once(bench):
    """This test will have two runs ask for the same files, each of which compares every answer."""
    if missing := _missing("mfsmaster", "mfschunkserver", "mfsmount", "ip", "nginx"):
        pytest.skip(f"not installed: {', '.join(missing)}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (code, log), _ = _play(bench, SERVED.format(port=port))
    assert code == 0, log
    written = []
    for folder in bench.run_folders("networked").values():
        rules = {rule["rule"]: rule for rule in json.loads((folder / "verdict.json").read_text())["rules"]}
        (asked,) = json.loads((folder / "observed.json").read_text())["web"]["classes"]
        assert asked["answered"] == asked["requests"] > 0 and asked["failed"] == 0
        written.append(rules["R-NETWORK"]["status"])
    assert sorted(written) == ["skipped", "valid"]
    assert bench.leftovers() == []


@pytest.fixture
def given(bench):
    """A folder on which something is mounted that the harness did not mount, with a file of somebody's."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    point = bench.folder / "given"
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "somebody's", point], check=True)
    (point / "theirs").write_text("stays")
    yield point
    subprocess.run(["umount", point], check=True)


@pytest.mark.cluster
def test_a_file_system_that_is_there_already_keeps_what_it_has(bench, given):
    """This test will carry out runs on a mount of its own, which they neither make nor unmount."""
    file = bench.folder / "given.yml"
    file.write_text(GIVEN)
    code, log = bench.play(
        file, "--skip-tags", "report", "-e", json.dumps({"weir_mounts": {"mounted": str(given)}})
    )
    assert code == 0, log
    runs = bench.run_folders("given")
    assert len(runs) == 2
    for folder in runs.values():
        rules = {rule["rule"]: rule for rule in json.loads((folder / "verdict.json").read_text())["rules"]}
        for rule in ("R-PLANNED", "R-ERRORS", "R-STATE"):
            assert rules[rule]["status"] == "valid", rules[rule]
        assert rules["R-CACHED"]["status"] == "skipped", rules["R-CACHED"]
        assert json.loads((folder / "host.json").read_text())["file_systems"][str(given)]["kind"] == "tmpfs"
    assert [path.name for path in given.iterdir()] == ["theirs"]
    assert (given / "theirs").read_text() == "stays"


@pytest.mark.cluster
def test_a_file_system_that_is_nowhere_is_refused(bench, given):
    """This test will name no mount, and then a folder on which nothing is mounted."""
    file = bench.folder / "given.yml"
    file.write_text(GIVEN)
    code, log = bench.play(file, "--skip-tags", "report")
    assert code == 2 and "weir_mounts" in log, log
    plain = bench.folder / "plain"
    plain.mkdir()
    code, log = bench.play(
        file, "--skip-tags", "report", "-e", json.dumps({"weir_mounts": {"mounted": str(plain)}})
    )
    assert code != 0 and f"{plain}: nothing is mounted there" in log, log
    assert list(plain.iterdir()) == []


def test_classes_apart_on_one_network_file_system_are_refused(dry_bench):
    """This test will check a study whose classes are to have devices of their own."""
    file = dry_bench.folder / "networked.yml"
    file.write_text(STUDY + "  architecture: partitioned\n")
    done = weir("check", file)
    assert done.returncode == 2
    assert "moosefs with `architecture: partitioned`" in done.stderr + done.stdout
    file.write_text(STUDY)
    assert weir("check", file).returncode == 0


def test_namespaces_are_hosts(dry_bench):
    """This test brings up two hosts, run a command of Ansible on each, and have `weir clean` end them."""
    if os.geteuid() != 0 or _missing("ip"):
        pytest.skip("needs root and ip (package iproute2)")
    name = f"n{os.getpid()}"
    up = weir("network", "up", "one,two", "--name", name, "--state", dry_bench.state, "--json")
    assert up.returncode == 0, up.stderr
    try:
        hosts = {Path(host["namespace"]).name: host["address"] for host in json.loads(up.stdout)["hosts"]}
        common = {
            "ansible_connection": "netns",
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        }
        inventory = dry_bench.folder / "hosts.json"
        inventory.write_text(json.dumps({"all": {"hosts": {host: {} for host in hosts}, "vars": common}}))
        playbook = dry_bench.folder / "who.yml"
        task = {"ansible.builtin.command": "ip -brief address show dev eth0", "register": "shown"}
        said = {"ansible.builtin.debug": {"msg": "HAS {{ inventory_hostname }} {{ shown.stdout }}"}}
        play = [{"hosts": "all", "gather_facts": False, "tasks": [task, said]}]
        playbook.write_text(json.dumps(play))
        dry_bench.command = lambda _, *arguments: [
            ROOT / ".venv/bin/ansible-playbook", "-i", inventory, playbook, *arguments
        ]  # fmt: skip
        code, log = dry_bench.play("", ANSIBLE_STDOUT_CALLBACK="default")
        assert code == 0, log
        for host, address in hosts.items():
            line = next(line for line in log.splitlines() if f"HAS {host}" in line)
            assert address in line
    finally:
        clean = weir("clean", "--state", dry_bench.state)
    assert clean.returncode == 0 and f"network namespace weir-{name}-one" in clean.stdout, clean
    assert not any(Path("/run/netns", host).exists() for host in hosts)
