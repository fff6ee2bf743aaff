"""Test hosts that are network namespaces: up, again, down; and file systems of several of them."""

import json
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
import yaml
from support import PATIENCE_S, ROOT, weir

ANSIBLE = ROOT / "ansible"
PROGRAMS = ("mfsmaster", "mfschunkserver", "mfsmount", "glusterfsd", "glusterfs")
STUDY = """\
name: shared
question: Does a web site fare the same on file systems of other hosts?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: 1
storage: {profile: hdd-7200, heads: 1, size_mib: 128}
classes:
  web: {workload: zipf-web, with: {files.count: 40}, clients: 5}
factors:
  filesystem: [moosefs, glusterfs]
hold: {buffered: true}
"""


def _lacking(*programs):
    places = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    return [name for name in programs if not shutil.which(name, path=places)]


class Hosts:
    """A test bed of its own: its name, its addresses and all of its folders are its own."""

    def __init__(self, folder, count):
        self.folder, self.name, self.kind = folder, f"h{os.getpid()}", "netns"
        self.inventory = folder / "bed/inventory.yml"
        self.variables = {
            "hosts_netns_count": count,
            "hosts_netns_name": self.name,
            "hosts_netns_subnet": "10.92.7.0/24",
            "hosts_netns_state": str(folder / "state"),
            "hosts_netns_folder": str(folder / "hosts"),
            "test_hosts_folder": str(folder / "bed"),
            "test_hosts_state": str(folder / "state"),
            "weir_results": str(folder / "results"),
        }

    def play(self, playbook, *arguments, on_hosts=False, **variables):
        """Carries out a playbook; returns exit code, output, and how much it changed, by host."""
        inventory = self.inventory if on_hosts else ANSIBLE / "inventories/localhost.yml"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        if playbook == "hosts.yml":
            variables["kind"] = self.kind
        done = subprocess.run(
            [
                ROOT / ".venv/bin/ansible-playbook",
                *(
                    "-i",
                    inventory,
                    ANSIBLE / "playbooks" / playbook,
                    "-e",
                    json.dumps(self.variables | variables),
                ),
                *arguments,
            ],
            cwd=ROOT,
            env=clean
            | {
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_STDOUT_CALLBACK": "default",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        changed = re.findall(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)", done.stdout, re.M)
        # A playbook for hosts checks the inventory on this machine first.
        here = {"localhost"} if on_hosts else set()
        return done.returncode, done.stdout, {host: int(count) for host, count in changed if host not in here}

    def namespaces(self):
        """Those that bear its name."""
        return sorted(path.name for path in Path("/run/netns").glob(f"weir-{self.name}-*"))

    def left(self):
        """Namespaces, folders, mounts and processes that are left of it."""
        mark = str(self.folder)
        mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if mark in line]
        folders = [str(path) for path in (self.folder / "hosts").glob("*")]
        processes = list((self.folder / "state").rglob("processes/*"))
        return self.namespaces() + mounts + folders + processes + list(self.inventory.parent.glob("*.yml"))

    def close(self):
        """Ends what a failed test left."""
        for state in [*sorted((self.folder / "state/hosts").glob("*"), reverse=True), self.folder / "state"]:
            weir("clean", "--state", state)


@pytest.fixture
def make_hosts(tmp_path_factory):
    """Test beds, and nothing of them afterwards."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if lacking := _lacking("ip", "nsenter"):
        pytest.skip(f"needs {', '.join(lacking)}")
    folder = Path(f"/run/weir-test-hosts-{os.getpid()}")
    folder.mkdir(mode=0o755)
    made = []

    def make(count):
        made.append(Hosts(folder, count))
        return made[-1]

    yield make
    for hosts in made:
        hosts.close()
    if not any(str(folder) in line for line in Path("/proc/mounts").read_text().splitlines()):
        shutil.rmtree(folder)


def test_namespaces_are_brought_up_once_and_taken_down(make_hosts):
    """This test will make two namespaces, ask for them again and for others, and take them down."""
    hosts = make_hosts(2)
    code, log, changed = hosts.play("hosts.yml", hosts_netns_rate_mbit=200)
    assert code == 0 and changed["localhost"] > 0, log
    names = [f"weir-{hosts.name}-host-{number}" for number in (0, 1)]
    assert hosts.namespaces() == [f"weir-{hosts.name}-bridge", *names]
    written = yaml.safe_load(hosts.inventory.read_text())["all"]
    assert list(written["hosts"]) == names
    assert written["children"] == {
        "servers": {"hosts": {names[0]: {}}},
        "clients": {"hosts": {names[1]: {}}},
    }
    folders = [written["hosts"][name][key] for name in names for key in ("weir_state", "weir_host_folder")]
    assert len(set(folders)) == 4 and hosts.inventory.stat().st_mode & 0o777 == 0o600

    code, log, changed = hosts.play("hosts.yml", hosts_netns_rate_mbit=200)
    assert code == 0 and changed == {"localhost": 0}, log
    code, log, _ = hosts.play("hosts.yml", hosts_netns_count=3)
    assert code != 0 and "N=3: 2 hosts are up, at 200 Mbit/s: run make hosts-down" in log, log

    code, log, changed = hosts.play("hosts_down.yml")
    assert code == 0 and changed["localhost"] > 0, log
    assert hosts.left() == []


@pytest.mark.roles
def test_file_systems_of_three_servers_carry_a_study(make_hosts):
    """This test will bring up MooseFS and GlusterFS on four namespaces, and run a study on both."""
    if lacking := _lacking(*PROGRAMS):
        pytest.skip(f"needs {', '.join(lacking)}")
    hosts = make_hosts(4)
    code, log, _ = hosts.play("hosts.yml")
    assert code == 0, log
    client = f"weir-{hosts.name}-host-3"
    for name in ("moosefs", "glusterfs"):
        code, log, changed = hosts.play("file_systems.yml", "-e", f"file_system={name}", on_hosts=True)
        assert code == 0 and all(count > 0 for count in changed.values()) and len(changed) == 4, log
        code, log, changed = hosts.play("file_systems.yml", "-e", f"file_system={name}", on_hosts=True)
        assert code == 0 and not any(changed.values()), log
    mounts = {name: f"{hosts.folder}/hosts/host-3/mnt/weir-{name}" for name in ("moosefs", "glusterfs")}
    own = yaml.safe_load((hosts.inventory.parent / f"host_vars/{client}.yml").read_text())
    assert own == {"weir_mounts": mounts}

    study = hosts.folder / "shared.yml"
    study.write_text(STUDY)
    asked = ("-e", f"study={study}", "--skip-tags", "report")
    code, log, _ = hosts.play("study.yml", *asked, on_hosts=True)
    assert code != 0 and "is mounted on another host" in log and "(--limit clients)" in log, log
    code, log, _ = hosts.play("study.yml", *asked, "--limit", "clients", on_hosts=True)
    assert code == 0, log
    found = {}
    for folder in (hosts.folder / "results/shared").iterdir():
        if (folder / "verdict.json").exists():
            verdict = json.loads((folder / "verdict.json").read_text())
            status = {rule["rule"]: rule["status"] for rule in verdict["rules"]}
            assert all(status[rule] == "valid" for rule in ("R-PLANNED", "R-ERRORS", "R-STATE")), verdict
            where = json.loads((folder / "host.json").read_text())["file_systems"]
            found |= {path: entry["kind"] for path, entry in where.items()}
    assert found == {mounts["moosefs"]: "fuse.mfs", mounts["glusterfs"]: "fuse.glusterfs"}
    # Runs have left nothing there, and the file systems stay.
    assert [os.listdir(point) for point in mounts.values()] == [[], []]

    for name in ("moosefs", "glusterfs"):
        arguments = ("-e", f"file_system={name}", "-e", "state=absent")
        code, log, changed = hosts.play("file_systems.yml", *arguments, on_hosts=True)
        assert code == 0 and all(changed.values()), log
        code, log, changed = hosts.play("file_systems.yml", *arguments, on_hosts=True)
        assert code == 0 and not any(changed.values()), log
    assert not (hosts.inventory.parent / f"host_vars/{client}.yml").exists()
    code, log, _ = hosts.play("hosts_down.yml")
    assert code == 0, log
    assert hosts.left() == []


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def sshd(tmp_path):
    """An ssh daemon on loopback with keys of its own: its port, and how a client gets in."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if _lacking("sshd", "ssh", "ssh-keygen"):
        pytest.skip("needs openssh-server")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    port = _free_port()
    settings = {
        "ListenAddress": "127.0.0.1",
        "Port": port,
        "HostKey": tmp_path / "host",
        "AuthorizedKeysFile": tmp_path / "user.pub",
        "PidFile": "none",
        "UsePAM": "no",
        "StrictModes": "no",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "prohibit-password",
    }
    file = tmp_path / "sshd_config"
    file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    # Where it goes to lose its privileges; empty, and there after a boot with systemd.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    known = tmp_path / "known_hosts"
    program = shutil.which("sshd", path="/usr/sbin:/sbin")
    with (tmp_path / "sshd.log").open("w") as log:
        daemon = subprocess.Popen([program, "-D", "-e", "-f", file], stderr=log)
    yield port, f"-i {tmp_path / 'user'} -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile={known}"
    daemon.terminate()
    daemon.wait()


@pytest.mark.roles
def test_a_listed_host_is_reached_over_ssh(sshd, make_hosts):
    """This test will carry out a study over ssh, with a daemon of its own on loopback."""
    port, arguments = sshd
    hosts = make_hosts(1)
    hosts.kind = "ssh"
    hosts.variables |= {
        "hosts_ssh_hosts": f"root@127.0.0.1:{port}",
        "hosts_ssh_args": arguments,
        "weir_state": str(hosts.folder / "state"),
        "weir_host_folder": str(hosts.folder / "hosts"),
    }
    code, log, changed = hosts.play("hosts.yml")
    assert code == 0 and changed["localhost"] > 0, log
    written = yaml.safe_load(hosts.inventory.read_text())["all"]["hosts"]
    assert [host["ansible_port"] for host in written.values()] == [port]

    study = hosts.folder / "overssh.yml"
    study.write_text(
        STUDY.replace("[moosefs, glusterfs]", "[ext4, tmpfs]").replace("name: shared", "name: overssh")
    )
    code, log, _ = hosts.play("study.yml", "--skip-tags", "report", on_hosts=True, study=str(study))
    assert code == 0, log
    # The program went there, and came not from here.
    assert (hosts.folder / "hosts/bin").is_dir()
    assert len(list((hosts.folder / "results/overssh").glob("*/requests.parquet"))) == 2

    code, log, _ = hosts.play(
        "hosts.yml",
        hosts_ssh_hosts=f"root@127.0.0.1:{_free_port()}",
        test_hosts_folder=str(hosts.folder / "other"),
    )
    assert code != 0 and "Connection refused" in log, log
    code, log, _ = hosts.play("hosts_down.yml")
    assert code == 0 and not hosts.inventory.exists(), log
