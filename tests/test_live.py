"""A server with a policy, from the command line: NBD alone, which needs nothing of the kernel."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from support import wait_for, weir

SPEC = 'name: disk\nprofile: "null"\nsize_mib: 16\n'
CLASSES = "classes:\n  - {name: video, wants: real_time, range_mib: [0, 8], deadline_ms: 50}\n"
NBD = ("--export", "nbd")
WITHOUT_UBLK = pytest.mark.skipif(Path("/dev/ublk-control").exists(), reason="this kernel has ublk")


@pytest.fixture
def files(tmp_path):
    spec, classes = tmp_path / "disk.yml", tmp_path / "classes.yml"
    spec.write_text(SPEC)
    classes.write_text(CLASSES)
    return spec, classes


@pytest.fixture
def state(files, dry_bench):
    """The state folder of a running server."""
    spec, classes = files
    folder = dry_bench.folder
    begun = weir(
        "serve", spec, "--policy", "sfq", "--classes", classes, *NBD, "--state", folder, "--background"
    )
    assert begun.returncode == 0, begun.stderr
    assert "nbd+unix:///" in begun.stdout
    yield folder
    down = weir("serve", "--down-all", folder)
    assert down.returncode == 0, down.stderr
    assert not list(folder.glob("disk.[jns]*"))


def test_classes_change_while_it_runs(state):
    def live():
        top = weir("top", "--once", "--json", "--state", state)
        assert top.returncode == 0, top.stderr
        return json.loads(top.stdout)

    assert [one["name"] for one in live()["classes"]] == ["video", "other"]
    assert weir("class", "set", "{name: text, weight: 2}", "--state", state).returncode == 0
    assert weir("class", "policy", "hds root_kb_s=5000", "--state", state).returncode == 0
    now = live()
    assert now["policy"] == "hds root_kb_s=5000"
    assert [one["name"] for one in now["classes"]] == ["video", "text"]
    assert weir("class", "remove", "video", "--state", state).returncode == 0
    listed = json.loads(weir("class", "list", "--state", state).stdout)
    assert [one["name"] for one in listed] == ["text"]
    # What is refused changes nothing.
    for wrong, word in [
        (("set", "{name: text, weight: -1}"), "weight"),
        (("set", "{name: text, wieght: 1}"), "wieght"),
        (("remove", "nobody"), "nobody"),
        (("policy", "fcsf"), "fcfs"),
    ]:
        refused = weir("class", *wrong, "--state", state)
        assert refused.returncode == 2 and word in refused.stderr, refused.stderr
    assert live()["policy"] == "hds root_kb_s=5000"


def test_figures_are_for_people_and_for_prometheus(state):
    table = weir("top", "--once", "--state", state).stdout
    assert "video" in table and "misses" in table and "head 0" in table
    shown = weir("exporter", "--state", state)
    assert shown.returncode == 0, shown.stderr
    assert 'weir_class_requests_total{class="video",server="disk"} 0.0\n' in shown.stdout
    assert 'weir_server_up{server="disk"} 1.0\n' in shown.stdout
    assert wait_for(lambda: (state / "disk.sock").exists(), "the socket")
    assert (state / "disk.sock").stat().st_mode & 0o777 == 0o600
    assert (state / "disk.nbd").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not shutil.which("nbdinfo"), reason="needs nbdinfo and nbdcopy (package libnbd-bin)")
def test_a_client_of_another_project_finds_the_exports(state, tmp_path):
    def uri(export):
        return f"nbd+unix:///{export}?socket={state / 'disk.nbd'}"

    listed = subprocess.run(
        ["nbdinfo", "--list", "--json", uri("")], capture_output=True, text=True, check=True, timeout=60
    )
    told = json.loads(listed.stdout)
    assert told["protocol"] == "newstyle-fixed", told
    exports = {export["export-name"]: export for export in told["exports"]}
    assert {name: one["export-size"] for name, one in exports.items()} == {"disk": 16 << 20, "video": 8 << 20}
    for one in exports.values():
        assert one["can_flush"] and one["can_fua"] and one["can_trim"] and one["can_zero"], one
        assert one["can_multi_conn"] and not one["is_read_only"], one
    given, back = tmp_path / "given", tmp_path / "back"
    given.write_bytes(random.Random(7).randbytes(8 << 20))
    for pair in ((given, uri("video")), (uri("video"), back)):
        subprocess.run(["nbdcopy", "--", *pair], check=True, timeout=60)
    assert back.read_bytes() == given.read_bytes()
    # The part of a class is the beginning of the whole.
    subprocess.run(["nbdcopy", "--", uri(""), back], check=True, timeout=60)
    assert back.read_bytes() == given.read_bytes() + bytes(8 << 20)


def test_exactly_the_devices_of_the_specs_are_served(dry_bench):
    folder = dry_bench.folder

    def spec(name, size_mib):
        file = folder / f"{name}.yml"
        live = "{policy: fcfs, exports: [nbd]}"
        file.write_text(f'name: {name}\nprofile: "null"\nsize_mib: {size_mib}\nlive: {live}\n')
        return file

    def exactly(*specs):
        done = weir("serve", "--state", folder / "devices", "--json", "--exactly", *specs)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    one, two = spec("one", 16), spec("two", 16)
    try:
        started = {"changed": True, "kept": [], "stopped": [], "started": ["one", "two"]}
        assert exactly(one, two) == started
        kept = {"changed": False, "kept": ["one", "two"], "stopped": [], "started": []}
        assert exactly(one, two) == kept
        # Each run sets a policy of its own.
        policy = ("class", "policy", "sfq", "--server", "one", "--state", folder / "devices")
        assert weir(*policy).returncode == 0
        assert exactly(one, spec("two", 32)) == {
            "changed": True,
            "kept": ["one"],
            "stopped": ["two"],
            "started": ["two"],
        }
        refused = weir("serve", "--state", folder / "devices", "--exactly", one, one)
        assert refused.returncode == 2 and "one.yml: name: another spec" in refused.stderr, refused.stderr
        stopped = exactly()
        assert stopped["changed"] and sorted(stopped["stopped"]) == ["one", "two"]
        assert not exactly()["changed"]
    finally:
        weir("serve", "--down-all", folder / "devices")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--policy", "fcsf"), "did you mean `fcfs`"),
        (("--policy", "fcfs deep=1"), "no setting `deep`"),
        (("--queue-depth", "2"), "--policy"),
        (("--policy", "fcfs", "--queue-depth", "0"), "live.queue_depth"),
        (("--policy", "fcfs", "--target", "/nowhere"), "/nowhere"),
        (("--policy", "fcfs", "--export", "loop,ublk"), "Keep one of them"),
        pytest.param(("--policy", "fcfs", "--export", "ublk"), "modprobe ublk_drv", marks=WITHOUT_UBLK),
        (("--policy", "fcfs", "--partitioned"), "live."),
    ],
)
def test_what_cannot_be_is_refused_by_name(files, tmp_path, options, word):
    refused = weir("serve", files[0], *options, "--state", tmp_path / "state")
    assert refused.returncode == 2 and word in refused.stderr, refused.stderr
    assert not (tmp_path / "state").exists()


def test_a_file_of_classes_is_refused_with_its_line(files, tmp_path):
    spec, classes = files
    classes.write_text("classes:\n  - {name: video}\n  - {name: text, wants: much}\n")
    refused = weir("serve", spec, "--policy", "sfq", "--classes", classes, "--state", tmp_path / "state")
    assert refused.returncode == 2, refused.stderr
    assert "classes.yml:3" in refused.stderr and "wants" in refused.stderr, refused.stderr


def test_a_server_without_a_policy_has_no_classes(dry_bench):
    top = weir("top", "--once", "--state", dry_bench.folder)
    assert top.returncode == 2 and "--state" in top.stderr
