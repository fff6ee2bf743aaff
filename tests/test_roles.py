"""The roles: each says what it is for and what it takes, and is tried out by a scenario."""

import importlib.util
import json
import os
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml
from ansible.module_utils import basic
from support import PATIENCE_S, ROOT, weir

ROLES = sorted(path.name for path in (ROOT / "ansible/roles").iterdir() if path.is_dir())
SCENARIOS = sorted(path.parent for path in (ROOT / "ansible").glob("**/molecule/*/molecule.yml"))
#: Their software is nowhere to be had: test_parallel_fs.py plays them on stubs.
ON_STUBS = {"fs_beegfs", "fs_lustre", "fs_orangefs"}
#: It takes several hosts: test_joint_playbook.py plays it.
ON_HOSTS = {"joint_runs"}
MOLECULE = ROOT / ".venv/bin/molecule"


def _load(name):
    file = ROOT / f"ansible/plugins/{name}.py"
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


disk, modules = _load("modules/weir_disk"), _load("modules/weir_kernel_modules")
queue, cgroup = _load("modules/weir_queue"), _load("modules/weir_cgroup")


def _host_vars(scenario):
    content = yaml.safe_load((scenario / "molecule.yml").read_text())
    return content["provisioner"]["inventory"]["host_vars"]["localhost"]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_says_what_it_is_for_and_what_it_takes(role):
    folder = ROOT / "ansible/roles" / role
    readme = (folder / "README.md").read_text()
    assert readme.startswith(f"# {role}: ") and "meta/argument_specs.yml" in readme
    specs = yaml.safe_load((folder / "meta/argument_specs.yml").read_text())["argument_specs"]
    assert specs and all(entry["short_description"] and "options" in entry for entry in specs.values())
    main = specs.get("main", {}).get("options") or {}
    defaults = folder / "defaults/main.yml"
    known = (yaml.safe_load(defaults.read_text()) or {}) if defaults.exists() else {}
    # What has a default is described, in whichever entry.
    described = set(main).union(*(entry["options"] or {} for entry in specs.values()))
    assert set(known) <= described


@pytest.mark.parametrize("role", sorted(set(ROLES) - ON_STUBS - ON_HOSTS))
def test_a_role_has_a_scenario(role):
    own = [scenario for scenario in SCENARIOS if scenario.name == role]
    shared = [s for s in SCENARIOS if role in _host_vars(s).get("molecule_roles", [])]
    assert len(own + shared) == 1
    assert (own + shared)[0].joinpath("verify.yml").is_file()


@pytest.mark.parametrize("folder", SCENARIOS, ids=lambda folder: folder.name)
def test_a_scenario_is_of_a_role_and_can_be_taken_back(folder):
    scenario, variables = folder.name, _host_vars(folder)
    assert folder.parent.parent.name in (scenario, "ansible")
    assert scenario in ROLES or set(variables["molecule_roles"]) <= set(ROLES)
    defaults = ROOT / f"ansible/roles/{scenario}/defaults/main.yml"
    state = f"{scenario}_state"
    # Of some roles it is a folder.
    if defaults.exists() and (yaml.safe_load(defaults.read_text()) or {}).get(state) == "present":
        assert variables[state] == "{{ molecule_state }}"


def test_the_collection_can_be_built(tmp_path):
    """This test will build the collection without a network; it has the version of the binary."""
    done = subprocess.run(
        [
            MOLECULE.with_name("ansible-galaxy"),
            "collection",
            "build",
            ROOT / "ansible",
            "--output-path",
            tmp_path,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    with tarfile.open(tmp_path / f"weir-qos-{version}.tar.gz") as archive:
        names = archive.getnames()
    assert {"playbooks/study.yml", "tasks/one_study.yml", "plugins/modules/weir_host.py"} <= set(names)
    assert {f"roles/{role}/meta/argument_specs.yml" for role in ROLES} <= set(names)
    assert not [name for name in names if "molecule" in name]


@pytest.mark.roles
@pytest.mark.parametrize("scenario", ["fs_tmpfs", "scheduler"])
def test_a_quick_scenario(scenario):
    """This test will mount a tmpfs, and attach a loop device and set its scheduler; all is taken back."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if not Path("/dev/loop-control").exists():
        pytest.skip("needs loop devices")
    done = subprocess.run(
        [MOLECULE, "--base-config", "molecule/config.yml", "test", "--scenario-name", scenario],
        cwd=ROOT / "ansible",
        env=os.environ
        | {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "MOLECULE_GLOB": "{roles/*/,}molecule/*/molecule.yml",
            "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "SKIPPED" not in done.stdout


def test_a_disk_is_listed_by_a_name_that_does_not_move(tmp_path):
    (tmp_path / "link").symlink_to("/dev/null")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    for path, why in (
        ("/dev/null", "another disk after a reboot"),
        (tmp_path / "absent", "is not there"),
        (tmp_path / "link", "/dev/null, which is no disk"),
        (tmp_path / "dangling", "which is no disk"),
    ):
        with pytest.raises(ValueError, match=why):
            disk.look(str(path))
    assert disk.unescape(r"/mnt/a\040b\134") == "/mnt/a b\\"


@pytest.fixture
def module(tmp_path, monkeypatch, capsys):
    """Runs a module in this process with a binary that writes down its arguments and its standard input."""

    def run(module, answer, code=0, **options):
        (tmp_path / "argv").unlink(missing_ok=True)
        binary = tmp_path / "weir"
        binary.write_text(
            f'#!/bin/sh\necho "$@" >{tmp_path}/argv\ncat >{tmp_path}/stdin\n{answer}\nexit {code}\n'
        )
        binary.chmod(0o755)
        check = options.pop("check", False)
        arguments = {"binary": str(binary), "_ansible_check_mode": check} | options
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())
        monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy")
        with pytest.raises(SystemExit):
            module.main()
        said = json.loads(capsys.readouterr().out)
        argv = (tmp_path / "argv").read_text() if (tmp_path / "argv").exists() else ""
        stdin = (tmp_path / "stdin").read_text() if argv else "null"
        return said, argv.split(), json.loads(stdin)

    return run


def test_a_queue_is_set_and_restored_by_the_binary(module):
    answer = (
        """echo '{"changed": true, "before": {"scheduler": "none"}, "diff": {"before": {}, "after": {}}}'"""
    )
    fields = {
        "disk": "sda",
        "scheduler": "bfq",
        "tunables": {"low_latency": 0},
        "queue": {"read_ahead_kb": 64},
    }
    said, argv, stdin = module(queue, answer, record="/r/sda.json", **fields)
    assert argv == ["queue", "set", "--record", "/r/sda.json", "--diff"] and stdin == fields
    assert said["changed"] and said["before"] == {"scheduler": "none"} and "diff" in said
    _, argv, _ = module(queue, answer, record="/r/sda.json", state="absent", check=True)
    assert argv == ["queue", "restore", "--record", "/r/sda.json", "--diff", "--check"]


@pytest.mark.parametrize(
    "disks", [[{"path": "/dev/disk/by-id/x", "reads_per_s": 5}], {"8:0": {"reads_per_s": 5}}]
)
def test_a_group_is_made_and_removed_by_the_binary(module, disks):
    answer = """echo '{"changed": false, "folders": ["/c/weir/own"]}'"""
    said, argv, stdin = module(cgroup, answer, record="/r/own.json", name="own", memory_mib=64, disks=disks)
    assert argv == ["cgroup", "set", "--record", "/r/own.json", "--diff"]
    assert stdin == {"name": "own", "memory_mib": 64, "weight": 0, "disks": disks}
    assert said["folders"] == ["/c/weir/own"] and not said["changed"]
    _, argv, _ = module(cgroup, answer, record="/r/own.json", name="own", state="absent")
    assert argv[:2] == ["cgroup", "remove"]


def test_what_the_binary_refuses_is_the_message_of_the_module(module):
    said, _, _ = module(queue, "echo 'error: sda: scheduler: no' >&2", code=2, record="/r", disk="sda")
    assert said["failed"] and said["msg"] == "sda: scheduler: no" and said["rc"] == 2
    said, argv, _ = module(cgroup, "", record="/r", name="own", binary="/nonexistent/weir")
    assert "/nonexistent/weir is not on this host" in said["msg"] and not argv


@pytest.mark.parametrize(
    ("command", "stdin", "why"),
    [
        (("queue", "set"), '{"disk": "no-such-disk"}', "has no I/O scheduler"),
        (("queue", "set"), '{"disk": "sda", "sheduler": "bfq"}', "sheduler"),
        (("cgroup", "set"), '{"name": "../x"}', "is no name of a group"),
        (("cgroup", "set"), '{"name": "own", "weight": 1001}', "weight: 1001 is too large"),
        (("cgroup", "set"), "{", "stdin"),
    ],
)
def test_the_binary_refuses_settings_and_writes_no_record(tmp_path, command, stdin, why):
    record = tmp_path / "record.json"
    done = weir(*command, "--record", record, stdin=stdin)
    assert done.returncode == 2 and why in done.stderr, done.stderr
    assert not record.exists()


@pytest.mark.parametrize("command", [("queue", "restore"), ("cgroup", "remove")])
def test_without_a_record_nothing_is_restored(tmp_path, command):
    done = weir(*command, "--record", tmp_path / "record.json", "--diff")
    assert done.returncode == 0, done.stderr
    assert not json.loads(done.stdout)["changed"]


def test_what_a_kernel_could_load_is_read_from_its_list(monkeypatch):
    text = "kernel/block/bfq.ko.xz:\nkernel/block/kyber-iosched.ko: kernel/x.ko\n"
    monkeypatch.setattr(modules.Path, "read_text", lambda path, **_: text)
    assert modules.loadable() == {"bfq", "kyber_iosched"}
    monkeypatch.setattr(modules.Path, "read_text", lambda path, **_: (_ for _ in ()).throw(OSError()))
    assert modules.loadable() == set()
