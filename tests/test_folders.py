"""Folders of users: what weir has not marked is left as it is, by every command."""

import os
import shutil

import pytest
from support import weir

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: services and test networks")
HOSTS = ("--on", "10.1.0.1", "--for", "10.1.0.2", "--address", "10.1.0.1")


def _listed(folder):
    """All that lies below a folder, with what files hold."""
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture
def photos(tmp_path):
    """A folder with files, which must hold the same ones in the end."""
    folder = tmp_path / "photos"
    (folder / "2024").mkdir(parents=True)
    (folder / "2024/a.jpg").write_text("precious")
    (folder / "notes.txt").write_text("mine")
    before = _listed(folder)
    yield folder
    assert _listed(folder) == before


@ROOT_ONLY
def test_a_cluster_is_not_brought_up_on_a_folder_with_files(photos, tmp_path):
    """This test will bring up a test network, and ask for MooseFS on an empty folder and one with files."""
    state, empty = tmp_path / "state", tmp_path / "empty"
    empty.mkdir()
    name = f"fo{os.getpid()}"
    up = weir(
        "network",
        "up",
        "client,server-0,server-1",
        "--name",
        name,
        "--subnet",
        "10.93.9.0/24",
        "--state",
        state,
    )
    if up.returncode:
        pytest.skip(f"no test network: {up.stderr}")
    try:
        refused = weir("cluster", "up", "moosefs", "--data", f"{empty},{photos}", "--state", state)
        assert refused.returncode == 2 and "is not empty" in refused.stderr, refused
        assert not (state / "clusters").exists() and not list(empty.iterdir())
        assert weir("cluster", "down", "moosefs", "--state", state).returncode == 0
    finally:
        assert weir("clean", "--state", state).returncode == 0


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ("photos", "is not empty"),
        ("photos/notes.txt", "is no folder"),
        ("nonesuch", "Make it"),
        ("state/mnt", "lies in the state"),
    ],
)
def test_a_server_is_not_started_on_what_is_no_empty_folder(photos, tmp_path, data, word):
    state = tmp_path / "state"
    if data.startswith("state"):
        (tmp_path / data).mkdir(parents=True)
        (state / "journal").mkdir()
    # A relative path is one of the folder that the command is called in.
    refused = weir("cluster", "serve", "moosefs", *HOSTS, "--data", data, "--state", "state", cwd=tmp_path)
    assert refused.returncode == 2 and word in refused.stderr, refused
    assert not (state / "clusters").exists()
    for command in (("cluster", "down", "moosefs"), ("clean",)):
        assert weir(*command, "--state", state).returncode == 0


def test_a_copy_is_put_back_only_into_a_folder_that_weir_marked(photos, tmp_path):
    state, copy, database = (tmp_path / name for name in ("state", "copy", "database"))
    kept = weir("service", "snapshot", photos, copy, "--state", state)
    assert kept.returncode == 0, kept.stderr
    refused = weir("service", "restore", copy, photos, "--state", state)
    assert refused.returncode == 2 and "no marker" in refused.stderr, refused
    assert not state.exists()
    assert weir("service", "restore", copy, database, "--state", state).returncode == 0
    assert _listed(database / "data") == _listed(copy)
    (database / "data/notes.txt").write_text("changed")
    assert weir("service", "restore", copy, database, "--state", state).returncode == 0
    assert _listed(database / "data") == _listed(copy)
    # Another state folder's is not this one's to replace.
    other = weir("service", "restore", copy, database, "--state", tmp_path / "other")
    assert other.returncode == 2 and "no marker" in other.stderr, other


@ROOT_ONLY
@pytest.mark.skipif(not shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"), reason="needs nginx")
def test_what_is_refused_leaves_no_mark(photos, tmp_path):
    state, data = tmp_path / "state", tmp_path / "data"
    data.mkdir()
    refused = weir(
        *("service", "start", "nginx", "--root", photos, "--data", data, "--port", "1", "--memory-mib", "64"),
        *("--set", "wrokers=1", "--state", state),
    )
    assert refused.returncode == 2 and "wrokers" in refused.stderr, refused
    assert not list(data.iterdir()) and not state.exists()


def test_clean_removes_only_kept_data_that_weir_marked(photos, tmp_path):
    state = tmp_path / "state"
    (state / "snapshots").mkdir(parents=True)
    theirs = state / "snapshots/photos"
    shutil.copytree(photos, theirs)
    done = weir("clean", "--snapshots", "--state", state)
    assert done.returncode == 1 and "snapshots/photos: left as it is" in done.stderr, done
    assert _listed(theirs) == _listed(photos)


@pytest.mark.parametrize(
    "command",
    [
        ("clean",),
        ("clean", "--snapshots"),
        ("cluster", "down", "moosefs"),
        ("cluster", "serve", "moosefs", *HOSTS),
        ("service", "stop", "nginx"),
        ("service", "restore", ".", "nonesuch"),
        ("controllers", "--move"),
        pytest.param(("network", "up", "a,b"), marks=ROOT_ONLY),
        pytest.param(("service", "start", "nginx", "--port", "1"), marks=ROOT_ONLY),
    ],
)
def test_a_folder_with_other_files_is_no_state_folder(photos, tmp_path, command):
    for state, cwd in ((photos, tmp_path), (".", photos), ("../photos", photos), ("photos", tmp_path)):
        refused = weir(*command, "--state", state, cwd=cwd)
        assert refused.returncode == 2 and "is no state folder of weir" in refused.stderr, refused
        assert f"{photos}: " in refused.stderr and "notes.txt" in refused.stderr, refused


def test_a_device_is_not_served_from_a_folder_with_other_files(photos, tmp_path):
    spec = tmp_path / "disk.yml"
    spec.write_text('{name: disk, profile: "null", heads: 1, size_mib: 64}')
    for extra in ((), ("--background",)):
        refused = weir("serve", spec, "--state", photos, *extra)
        assert refused.returncode == 2 and "is no state folder" in refused.stderr, refused
        assert not (photos / "disk.log").exists()


def test_a_state_folder_that_all_may_write_is_refused(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o777)
    refused = weir("clean", "--state", state)
    assert refused.returncode == 2 and f"chmod o-w {state}" in refused.stderr, refused


def test_what_a_playbook_writes_first_makes_a_state_folder(tmp_path):
    state = tmp_path / "state"
    (state / "specs").mkdir(parents=True)
    (state / "owner.json").write_text("{}")
    (state / "testbed.json").write_text("{}")
    assert weir("clean", "--state", state).returncode == 0
    assert (state / "owner.json").exists()
