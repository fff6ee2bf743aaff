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
from support import PATIENCE_S, ROOT

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
queue, cgroup, hosts = _load("modules/weir_queue"), _load("modules/weir_cgroup"), _load("filter/hosts")


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
    with tarfile.open(tmp_path / f"weir-storage-{version}.tar.gz") as archive:
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


def test_limits_go_where_the_controllers_are():
    mounts = (
        "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
        "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
        "cgroup /sys/fs/cgroup/blkio cgroup rw,blkio 0 0\n"
    )
    wanted = {"memory_mib": 1, "weight": 200, "disks": {"8:0": {"read_bytes_per_s": 5, "writes_per_s": 6}}}
    one = cgroup.trees(mounts, lambda top: [])
    assert one["two"] == "/sys/fs/cgroup/unified"
    blkio = "/sys/fs/cgroup/blkio"
    assert cgroup.settings(wanted, one) == {
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", ""): ("1048576", "-1"),
        (blkio, "blkio.bfq.weight|blkio.weight", "default"): ("200", "100"),
        (blkio, "blkio.throttle.read_bps_device", "8:0"): ("5", "0"),
        (blkio, "blkio.throttle.write_iops_device", "8:0"): ("6", "0"),
    }
    two = cgroup.trees(mounts.splitlines()[0], lambda top: ["memory", "io"])
    values = {file: value for (_, file, _), (value, _) in cgroup.settings(wanted, two).items()}
    assert values == {
        "memory.max": "1048576",
        "io.weight|io.bfq.weight": "200",
        "io.max": "rbps=5 wbps=max riops=max wiops=6",
    }
    with pytest.raises(ValueError, match="no controller of memory"):
        cgroup.settings(wanted, cgroup.trees(mounts.splitlines()[0], lambda top: []))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "../x"}, "its name"),
        ({"memory_mib": -1}, "memory_mib"),
        ({"weight": 1001}, "weight"),
        ({"disks": {"sda": {}}}, "no number of a disk"),
        ({"disks": {"8:0": {"rbps": 1}}}, "no limit rbps"),
        ({"disks": {"8:0": {"reads_per_s": 0}}}, "at least 1"),
    ],
)
def test_a_group_that_cannot_be_is_refused(fields, why):
    fine = {"name": "own", "memory_mib": 0, "weight": 0, "disks": {}}
    cgroup.check(fine)
    with pytest.raises(ValueError, match=why):
        cgroup.check(fine | fields)


def test_limits_of_disks_are_told_by_their_numbers():
    looked = [{"number": "8:0", "item": {"path": "/dev/disk/by-id/x", "reads_per_s": 5}}]
    assert hosts.disk_limits(looked) == {"8:0": {"reads_per_s": 5}}


@pytest.fixture
def fake_disk(tmp_path, monkeypatch):
    """A disk of files: its kernel shows all schedulers, and gives each of them its tunables anew."""
    folder = tmp_path / "sda/queue"
    (folder / "iosched").mkdir(parents=True)
    tunables = {"none": {}, "mq-deadline": {"read_expire": "500"}, "bfq": {"low_latency": "1"}}
    write_text = Path.write_text

    def write(path, text, *arguments, **options):
        if path == folder / "scheduler":
            if text not in tunables:
                raise OSError(22, "Invalid argument")
            for file in (folder / "iosched").iterdir():
                file.unlink()
            for name, value in tunables[text].items():
                write_text(folder / "iosched" / name, value)
            text = " ".join(f"[{name}]" if name == text else name for name in tunables)
        if path == folder / "read_ahead_kb" and text == "7":
            text = "4"
        return write_text(path, text, *arguments, **options)

    monkeypatch.setattr(queue.Path, "write_text", write)
    monkeypatch.setattr(queue, "SYS_BLOCK", tmp_path)
    (folder / "nr_requests").write_text("256")
    (folder / "read_ahead_kb").write_text("128")
    (folder / "scheduler").write_text("mq-deadline")
    (folder / "iosched/read_expire").write_text("400")
    return folder, tmp_path / "record/sda.json"


def _asked(record, **fields):
    return {"disk": "sda", "scheduler": "", "tunables": {}, "queue": {}, "record": str(record)} | fields


def test_a_queue_is_set_and_restored(fake_disk):
    folder, record = fake_disk
    wanted = _asked(record, scheduler="bfq", tunables={"low_latency": 0}, queue={"read_ahead_kb": 64})
    assert queue.present(wanted, True)[0] and "[mq-deadline]" in (folder / "scheduler").read_text()
    assert queue.present(wanted, False)[0] and not queue.present(wanted, False)[0]
    assert "[bfq]" in (folder / "scheduler").read_text()
    assert (folder / "iosched/low_latency").read_text() == "0"
    # Another wish does not change what was before.
    assert queue.present(_asked(record, scheduler="none"), False)[0]
    assert json.loads(record.read_text())["before"]["scheduler"] == "mq-deadline"
    assert queue.absent({"record": str(record)}, False)[0] and not record.exists()
    assert "[mq-deadline]" in (folder / "scheduler").read_text()
    assert (folder / "iosched/read_expire").read_text() == "400"
    assert (folder / "read_ahead_kb").read_text() == "128"
    assert queue.absent({"record": str(record)}, False) == (False, {})


def test_tags_of_the_driver_are_restored_under_a_scheduler(fake_disk):
    folder, record = fake_disk
    (folder.parent / "mq/0").mkdir(parents=True)
    (folder.parent / "mq/0/nr_tags").write_text("128")
    assert queue.present(_asked(record, scheduler="none", queue={"nr_requests": 4}), False)[0]
    assert queue.present(_asked(record, scheduler="bfq"), False)[0]
    written = []
    write = queue.Path.write_text

    def note(path, text, *arguments, **options):
        written.append((path.name, text))
        return write(path, text, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue.Path, "write_text", note)
        assert queue.absent({"record": str(record)}, False)[0]
    tags = [
        ("scheduler", "none"),
        ("nr_requests", "127"),
        ("nr_requests", "128"),
        ("scheduler", "mq-deadline"),
    ]
    assert written[:4] == tags
    assert (folder / "nr_requests").read_text() == "256"


def test_a_scheduler_that_somebody_else_has_set_since_is_left(fake_disk):
    folder, record = fake_disk
    assert queue.present(_asked(record, scheduler="bfq"), False)[0]
    (folder / "scheduler").write_text("none")
    with pytest.raises(ValueError, match="somebody has set scheduler none since"):
        queue.absent({"record": str(record)}, False)
    assert "[none]" in (folder / "scheduler").read_text() and record.exists()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"scheduler": "adios"}, "adios is not in this kernel"),
        ({"tunables": {"no_such": 1}}, "has no iosched/no_such; there are read_expire"),
        ({"scheduler": "bfq", "tunables": {"read_expire": 1}}, "has no iosched/read_expire"),
        ({"queue": {"../x": 1}}, "no name of a tunable"),
        ({"scheduler": "bfq", "queue": {"read_ahead_kb": 7}}, "makes 4 of read_ahead_kb=7"),
        ({"disk": "sdb"}, "no scheduler to choose"),
    ],
)
def test_a_queue_that_cannot_be_is_refused_and_left_as_it_was(fake_disk, fields, why):
    folder, record = fake_disk
    with pytest.raises(ValueError, match=why):
        queue.present(_asked(record, **fields), False)
    assert "[mq-deadline]" in (folder / "scheduler").read_text() and not record.exists()
    assert (folder / "iosched/read_expire").read_text() == "400"
    assert (folder / "read_ahead_kb").read_text() == "128"


def test_what_a_kernel_could_load_is_read_from_its_list(monkeypatch):
    text = "kernel/block/bfq.ko.xz:\nkernel/block/kyber-iosched.ko: kernel/x.ko\n"
    monkeypatch.setattr(modules.Path, "read_text", lambda path, **_: text)
    assert modules.loadable() == {"bfq", "kyber_iosched"}
    monkeypatch.setattr(modules.Path, "read_text", lambda path, **_: (_ for _ in ()).throw(OSError()))
    assert modules.loadable() == set()
