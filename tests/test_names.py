"""Names that mean nothing are refused: on the command line, in the inventory and in the Makefile."""

import json
import os
import subprocess

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.manager import VariableManager
from jinja2 import Template
from support import ROOT, load_plugin, weir

names, inventory = load_plugin("callback/weir_names"), load_plugin("filter/names")
STUDY = ROOT / "ansible/playbooks/study.yml"


def _manager(tmp_path, content=None, **extra):
    """A variable manager with an inventory of its own and variables of the command line."""
    file = tmp_path / "hosts.json"
    file.write_text(json.dumps(content or {"all": {"hosts": {"storage1": {}, "storage2": {}}}}))
    loader = DataLoader()
    loader.set_basedir(str(ROOT / "ansible"))
    manager = VariableManager(loader=loader, inventory=InventoryManager(loader=loader, sources=[str(file)]))
    manager._extra_vars = extra
    return manager


@pytest.mark.parametrize(
    ("arguments", "extra", "said"),
    [
        ({"tags": ["reprot"]}, {}, "--tags reprot: no task has this tag, did you mean `report`?"),
        (
            {"skip_tags": ["simulat"]},
            {},
            "--skip-tags simulat: no task has this tag, did you mean `simulate`?",
        ),
        (
            {"subset": "storage1,storag2"},
            {},
            "--limit storag2: no host or group of the inventory, did you mean",
        ),
        ({"subset": "!client"}, {}, "--limit !client: no host or group of the inventory"),
        ({"inventory": ["ansible/inventories/localhst.yml"]}, {}, "did you mean `localhost.yml`?"),
        ({"inventory": ["nosuch.yml"]}, {}, "-i nosuch.yml: there is no such inventory"),
        ({}, {"weir_attempt": "3"}, "-e weir_attempt: unknown variable, did you mean `weir_attempts`?"),
        ({}, {"stduy": "quick"}, "-e stduy: unknown variable, did you mean `study`?"),
        ({}, {"fs_ext4_pont": "/x"}, "-e fs_ext4_pont: unknown variable, did you mean `fs_ext4_point`?"),
        ({}, {"study": "quikc"}, "-e study=quikc: unknown study, did you mean `quick`?"),
        ({}, {"study": "data-centre"}, "-e study=data-centre: unknown study, did you mean `data-center`?"),
        ({}, {"weir_keep_going": "maybe"}, "-e weir_keep_going is 'maybe', expected yes or no"),
        ({}, {"weir_attempts": "x"}, "-e weir_attempts is 'x', expected a whole number"),
        ({}, {"weir_devices": "text"}, "-e weir_devices is 'text', expected a mapping"),
    ],
)
def test_what_the_command_line_says_wrongly_is_told(tmp_path, arguments, extra, said):
    manager = _manager(tmp_path, **({"study": "quick"} | extra))
    found = names.command_line_problems(STUDY, arguments, manager)
    assert len(found) == 1 and said in found[0], found


def test_what_the_command_line_says_rightly_is_let_through(tmp_path):
    arguments = {
        "tags": ["report", "always"],
        "skip_tags": ["verdicts"],
        "subset": "storage*,!storage2",
        "inventory": ["a,b", str(ROOT / "ansible/inventories/localhost.yml")],
    }
    extra = {
        "study": "data-center",
        "weir_retry_invalid": True,
        "weir_attempts": "3",
        "weir_keep_going": "no",
        "weir_state": "/run/x",
        "ansible_become": "true",
        "simulate_jobs": 2,
    }
    assert names.command_line_problems(STUDY, arguments, _manager(tmp_path, **extra)) == []
    for study in ("", "studies/quick.yml", "mine.yml", "{{ other }}"):
        assert names.study_problems(study, ROOT / "studies") == []


PLAYBOOKS = sorted((ROOT / "ansible/playbooks").glob("*.yml"))
ALIASES = sorted(file for file in (ROOT / "ansible").glob("*.yml") if file.stem != "galaxy")


@pytest.mark.parametrize("playbook", PLAYBOOKS + ALIASES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_what_a_playbook_reads_is_found_in_it(playbook):
    """This test will read every playbook; those that begin with hosts name what their first comment says."""
    read = names.names_read_by(playbook)
    standalone = {"use", "state"}
    wanted = {"study": {"study"}, "standalone": standalone, "own_work": standalone} | {
        "hosts": {"kind"},
        "prepare_hosts": {"state"},
    }
    assert wanted.get(playbook.stem, set()) <= read
    if playbook.stem == "file_systems":
        assert {"file_system", "state"} <= read


def test_an_alias_has_the_tags_and_variables_of_its_playbook():
    assert [file.stem for file in ALIASES] == [
        "file_systems",
        "hosts",
        "hosts_down",
        "own_work",
        "prepare_hosts",
        "study",
    ]
    for alias in ALIASES:
        playbook = ROOT / "ansible/playbooks" / alias.name.replace("own_work", "standalone")
        assert names.tags_of(alias) == names.tags_of(playbook)
        assert names.names_read_by(alias) == names.names_read_by(playbook)
    assert {"preflight", "runs", "cleanup", "report"} <= names.tags_of(STUDY)


@pytest.mark.parametrize(
    ("host", "group", "said"),
    [
        ({"weir_device": {}}, {}, "storage1: unknown variable weir_device, did you mean `weir_devices`?"),
        ({"weir_nonsense": 1}, {}, "storage1: unknown variable weir_nonsense"),
        ({"fs_lustre_stripe_cuont": 2}, {}, "did you mean `fs_lustre_stripe_count`?"),
        ({"weir_observed": "/dev/sdb"}, {}, "weir_observed is '/dev/sdb', expected a list"),
        ({}, {"weir_mounts": {"lustre": "/x"}}, "group some: weir_mounts has no effect on storage1"),
        ({}, {"weir_mount": {"lustre": "/x"}}, "unknown variable weir_mount, did you mean `weir_mounts`?"),
    ],
)
def test_a_variable_of_the_inventory_that_means_nothing_is_told(tmp_path, host, group, said):
    content = {"all": {"children": {"some": {"hosts": {"storage1": host}, "vars": group}}}}
    manager = _manager(tmp_path, content)
    found = names.inventory_problems(manager, manager._inventory)
    assert len(found) == 1 and said in found[0], found


@pytest.mark.parametrize(
    ("variables", "port"),
    [({}, "7420"), ({"weir_coordination_port": 7500}, "7500"), ({"weir_meeting_port": 7600}, "7600")],
)
def test_the_coordination_port_has_a_former_name(tmp_path, variables, port):
    manager = _manager(tmp_path, {"all": {"hosts": {"storage1": variables}}})
    assert names.inventory_problems(manager, manager._inventory) == []
    found = manager.get_vars(host=manager._inventory.get_host("storage1"))
    context = yaml.safe_load((ROOT / "ansible/group_vars/all.yml").read_text()) | found
    context |= {"hostvars": {"storage1": {"weir_address": "host"}}}
    context |= {"joint_runs_chosen": {"clients": ["storage1"]}}
    role = yaml.safe_load((ROOT / "ansible/roles/joint_runs/vars/main.yml").read_text())
    assert Template(role["joint_runs_meet"][1]).render(context) == f"host:{port}"


def test_variables_of_ones_own_are_let_through(tmp_path):
    own = {
        "cluster_rack": 3,
        "http_port": 80,
        "weir_devices": "{{ mine }}",
        "mine": {},
        "ansible_host": "10.0.0.1",
    }
    manager = _manager(
        tmp_path, {"all": {"hosts": {"storage1": own}, "vars": {"weir_mounts": {}, "rack": 1}}}
    )
    assert names.inventory_problems(manager, manager._inventory) == []


@pytest.mark.parametrize(
    "file", sorted((ROOT / "ansible/inventories").glob("*.yml")), ids=lambda file: file.stem
)
def test_the_inventories_that_are_shipped_are_let_through(file):
    loader = DataLoader()
    manager = VariableManager(loader=loader, inventory=InventoryManager(loader=loader, sources=[str(file)]))
    assert names.inventory_problems(manager, manager._inventory) == []


@pytest.fixture(scope="module")
def planned():
    """The plan of a study of two classes, apart and together, and the file systems that there are."""
    plan = json.loads(weir("plan", "kernel-schedulers", "--json").stdout)
    return plan, json.loads(weir("list", "filesystems", "--json").stdout)


DISK = {"path": "/dev/disk/by-id/x"}
EMPTY = {
    "weir_devices": {},
    "weir_devices_unused": [],
    "weir_mounts": {},
    "weir_filesystem_servers": {},
    "weir_observed": [],
    "weir_kernel_devices": [],
    "weir_kernels": {},
    "weir_kernel_boot": "",
}
KERNEL = {"package": "linux-image-amd64"}


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"weir_devices": {"texts": DISK}},
            "`texts` is no device of study kernel-schedulers, did you mean `text`?",
        ),
        (
            {"weir_devices": {"text": DISK}, "weir_devices_unused": ["texts"]},
            "`texts` is not in weir_devices",
        ),
        ({"weir_devices": {"text": {"pth": "/dev/x"}}}, "text: unknown field `pth`, did you mean `path`?"),
        ({"weir_devices": {"text": {}}}, "text: has no path or members"),
        ({"weir_devices": {"text": "/dev/sdb"}}, "text is '/dev/sdb', expected a mapping"),
        ({"weir_devices": {"text": {"path": 7}}}, "text: path is 7, expected a path below /dev/disk/by-id"),
        ({"weir_devices": {"text": DISK | {"overwrite": 12}}}, "overwrite is 12, expected the disk's serial"),
        ({"weir_devices": {"text": DISK | {"overwrite_signature": True}}}, "use `overwrite: SERIAL`"),
        ({"weir_devices": {"shared": {"members": [{"phat": "/dev/x"}]}}}, "members[0]: unknown field `phat`"),
        (
            {"weir_devices": {"shared": {"members": DISK}}},
            "members is {'path': '/dev/disk/by-id/x'}, expected a list",
        ),
        ({"weir_devices": {"shared": {"members": [], "path": "/dev/x"}}}, "shared: unknown field `path`"),
        ({"weir_mounts": {"lustr": "/mnt"}}, "`lustr` is no file system of studies, did you mean `lustre`?"),
        ({"weir_mounts": {"lustre": "mnt"}}, "lustre is 'mnt', expected its mount point"),
        (
            {"weir_filesystem_servers": {"lustre": ["oss"]}},
            "lustre: `oss` is no host of the inventory, did you mean",
        ),
        ({"weir_filesystem_servers": {"luster": []}}, "`luster` is no file system of studies"),
        ({"weir_observed": ["sdb"]}, "weir_observed: 'sdb', expected a disk's path below /dev"),
        (
            {"weir_kernel_devices": [{"kind": "null_blk", "siez_mib": 1}]},
            "unknown field `siez_mib`, did you mean",
        ),
        (
            {"weir_kernel_devices": [{"kind": "nullblk"}]},
            "kind is 'nullblk', expected null_blk or scsi_debug",
        ),
        ({"weir_kernel_devices": [{"index": 0}]}, "weir_kernel_devices[0]: has no kind"),
        (
            {"weir_kernel_boot": "grab"},
            "weir_kernel_boot is 'grab', did you mean `grub`?, expected qemu, grub",
        ),
        ({"weir_kernels": {"a/b": KERNEL}}, "weir_kernels: a/b: a name has 1 to 40 letters"),
        ({"weir_kernels": {6.12: KERNEL}}, "weir_kernels: 6.12: is a number: write it in quotes"),
        ({"weir_kernels": {"a": {}}}, "weir_kernels: a: has no source, expected one of package, deb, image"),
        ({"weir_kernels": {"a": KERNEL | {"deb": "/x.deb"}}}, "a: has package and deb, expected one of"),
        (
            {"weir_kernels": {"a": KERNEL | {"relaese": "x"}}},
            "unknown field `relaese`, did you mean `release`?",
        ),
        ({"weir_kernels": {"a": {"package": "x; rm"}}}, "a: package is 'x; rm', expected a name such as"),
        ({"weir_kernels": {"a": {"deb": "x.deb"}}}, "a: deb is 'x.deb', expected an absolute path"),
        (
            {"weir_kernels": {"a": KERNEL}, "weir_kernel_boot": "kexec"},
            "a: has package, but weir installs no kernel on a host that it boots by kexec: install it",
        ),
    ],
)
def test_what_the_inventory_says_wrongly_is_told(planned, variables, said):
    groups = {"all": ["storage1", "oss1"]}
    found = inventory.inventory_problems({"storage1": EMPTY | variables}, *planned, groups)
    assert len(found) == 1 and found[0].startswith("storage1: ") and said in found[0], found


def test_what_the_inventory_says_rightly_is_let_through(planned):
    said = EMPTY | {
        "weir_devices": {
            "text": DISK | {"overwrite": "SN1"},
            "shared": {"members": [DISK, DISK]},
            "other": DISK,
        },
        "weir_devices_unused": ["other"],
        "weir_mounts": {"lustre": "/mnt/lustre", "mounted": "/mnt/x"},
        "weir_filesystem_servers": {"lustre": ["oss1"]},
        "weir_observed": ["/dev/loop3"],
        "weir_kernel_devices": [{"kind": "null_blk", "index": 0, "size_mib": 256}],
        "weir_kernel_boot": "qemu",
        "weir_kernels": {
            "stable": KERNEL,
            "6.18+mine": KERNEL | {"release": "bookworm-backports"},
            "deb": {"deb": "/root/linux-image-6.18.0~rc1_amd64.deb"},
            "image": {"image": "/root/bzImage", "modules": "/root/lib/modules"},
        },
    }
    assert inventory.inventory_problems({"a": said}, *planned, {"all": ["a", "oss1"]}) == []
    # Disks of servers are none of the study's.
    server = EMPTY | {
        "weir_devices": {"lustre-ost": DISK, "moosefs": DISK},
        "fs_lustre_targets": [{"device": "lustre-ost"}],
    }
    assert inventory.inventory_problems({"a": server}, *planned, {"all": ["a"]}) == []
    watched = EMPTY | {"weir_devices": {"ost": DISK}}
    assert inventory.inventory_problems({"a": watched}, *planned, {"all": ["a"], "weir_servers": ["a"]}) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tags", "reprot"), "did you mean `report`?"),
        (("-e", "weir_attempt=3"), "did you mean `weir_attempts`?"),
        (("-i", "nosuch.yml"), "nosuch.yml: there is no such inventory"),
        (
            ("-e", '{"weir_devices": {"shred": {"path": "/dev/disk/by-id/x"}}}', "--tags", "report"),
            "did you mean `shared`?",
        ),
    ],
)
def test_the_playbook_refuses_before_anything_is_touched(dry_bench, arguments, said):
    code, log = dry_bench.play(dry_bench.study(), *arguments)
    assert code == 2 and said in " ".join(log.split()), log
    assert not dry_bench.state.exists() and not dry_bench.results.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("study", "RETRY=yes"), "RETRY=yes: say RETRY=invalid, or leave it out"),
        (("study", "ATTEMPTS=x"), "ATTEMPTS=x: give a whole number of 1 or more"),
        (("study", "HOSTS=qemuu"), "HOSTS=qemuu: unknown value, did you mean `qemu`?"),
        (("study", "ATTEMPTS=0"), "ATTEMPTS=0: give a whole number of 1 or more"),
        (("study", "STUDY=quikc"), "STUDY=quikc: unknown study, did you mean `quick`?"),
        (("report", "STUDY=quikc"), "STUDY=quikc: unknown study, did you mean `quick`?"),
        (("figures", "STUDY=data-centre"), "STUDY=data-centre: unknown study, did you mean `data-center`?"),
        (("study", "STDUY=quick"), "STDUY: unknown variable, did you mean `STUDY`?"),
        (("study", "ATEMPTS=3"), "ATEMPTS: unknown variable, did you mean `ATTEMPTS`?"),
        (("study", "STUDY=a'; touch /tmp/x; '"), "STUDY: has a quote"),
        (("hosts", "KIND=netsn"), "KIND=netsn: unknown kind, did you mean `netns`?"),
        (("hosts", "N=two"), "N=two: give a whole number of 1 or more"),
        (("capacity",), "CLASS: capacity needs it: the class whose clients are counted"),
        (("capacity", "STUDY=quikc", "CLASS=text"), "STUDY=quikc: unknown study, did you mean `quick`?"),
        (("variation", "STUDY=quikc"), "STUDY=quikc: unknown study, did you mean `quick`?"),
        (("molecule", "ROLE=ngnix"), "ROLE=ngnix: unknown role, did you mean `nginx`?"),
    ],
)
def test_make_refuses_what_it_is_told_wrongly(arguments, said):
    done = _make(*arguments)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("study",),
        ("study", "STUDY=data-center", "RETRY=invalid", "ATTEMPTS=3", "ANSIBLE_ARGS=-i my.yml -e x=y"),
        ("study", "STUDY=studies/quick.yml", "CARGO_BUILD_JOBS=1", "WEIR_PATIENCE_S=3"),
        ("hosts", "KIND=ssh", "HOSTS=root@a,root@b:2222"),
        ("study", "HOSTS=qemu", "N=1"),
        ("figures",),
        ("capacity", "CLASS=video", "CAPACITY_ARGS=--with text=0,10 --json"),
        ("help",),
    ],
)
def test_make_takes_what_it_is_told_rightly(arguments):
    done = _make(*arguments)
    assert done.returncode == 0, done.stderr


def _make(*arguments):
    """What make would do, without doing it. The makefile is that of the project, and so are its studies."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", "--dry-run", *arguments],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
