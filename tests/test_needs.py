"""`weir plan --needs` (what runs need of a host) and `--shards` (simulated runs by host)."""

import json

import pytest
from support import load_plugin, weir

study = load_plugin("filter/study")
TINY = """\
name: {name}
question: What do these runs need?
testbed: device
seed: 1
repetitions: 1
warmup_s: 0.5
duration_s: 1
capture: {capture}
storage: {{profile: hdd-7200, heads: 1, size_mib: 64}}
classes:
  text: {{workload: poisson-text, with: {{files.count: 10}}, clients: 2}}
factors: {factors}
"""


@pytest.fixture(scope="module")
def plan():
    return _plan("quick")


def _plan(name, *arguments):
    done = weir("plan", name, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _needs(name, runs=None, disks=None, mounts=None):
    """Needs of these runs of a study, or of all, on a host with these disks and mounts."""
    (bed,) = study.testbeds({"a": {"weir_devices": disks or {}, "weir_mounts": mounts or {}}})
    ids = [] if runs is None else ["--id", ",".join(run["id"] for run in runs)]
    done = weir("plan", name, "--needs", "--devices", "/dev/stdin", *ids, stdin=bed["testbed"])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _study(folder, name, factors, capture="none"):
    file = folder / f"{name}.yml"
    file.write_text(TINY.format(name=name, factors=factors, capture=capture))
    return file


def _commands(needs):
    return {command["name"]: command["package"] for command in needs["commands"]}


def _kernel(needs, kind):
    return {part["name"]: part["module"] for part in needs["kernel"] if part["kind"] == kind}


def test_needs_are_those_of_the_given_runs(plan):
    needs = _needs("quick")
    measured = [run for run in plan["runs"] if run["testbed"] == "device"]
    assert needs["runs"] == len(measured)
    assert _commands(needs) == {
        "blkid": "util-linux",
        "fusermount3": "fuse3",
        "losetup": "mount",
        "mkfs.ext4": "e2fsprogs",
        "mkfs.xfs": "xfsprogs",
        "wipefs": "util-linux",
    }
    assert _kernel(needs, "scheduler") == {"mq-deadline": "mq-deadline-iosched", "none": None}
    assert _kernel(needs, "file_system") == {"ext4": "ext4", "xfs": "xfs"}
    assert _kernel(needs, "device_node") == {"fuse": "fuse", "loop-control": "loop"}
    assert [device["name"] for device in needs["modelled"]] == ["shared", "text", "video"]
    assert needs["modelled"] == sorted(plan["devices"], key=lambda device: device["name"])
    # Two disks of 384 MiB, once as one array and once as two devices.
    assert needs["memory_bytes"] == 1536 << 20
    integrated = [run for run in measured if run["settings"]["architecture"] == "integrated"]
    assert [device["name"] for device in _needs("quick", integrated)["modelled"]] == ["shared"]
    assert _needs("quick", [])["runs"] == 0 and _needs("quick", [])["commands"] == []


def test_an_unknown_run_is_refused():
    done = weir("plan", "quick", "--needs", "--id", "0123456789ab")
    assert done.returncode == 2 and "--id 0123456789ab: study quick has no such run" in done.stderr


def test_simulated_runs_need_nothing():
    needs = _needs("hds-alone")
    assert needs["runs"] == 0 and not needs["kernel"] and needs["memory_bytes"] == 0


def test_hot_files_need_memory():
    runs = [run for run in _plan("data-center-hybrid")["runs"] if run["levels"]["variant"].endswith("hot")]
    plain = [run for run in _plan("data-center-hybrid")["runs"] if "plain" in run["levels"]["variant"]]
    more = _needs("data-center-hybrid", runs[:1])["memory_bytes"]
    assert more == _needs("data-center-hybrid", plain[:1])["memory_bytes"] + (16 << 20)


def test_a_listed_disk_is_not_modelled():
    disks = {"shared": {"path": "/dev/disk/by-id/x"}, "unused": {"path": "/dev/disk/by-id/y"}}
    needs = _needs("quick", disks=disks)
    assert needs["disks"] == ["/dev/disk/by-id/x"]
    assert [device["name"] for device in needs["modelled"]] == ["text", "video"]
    files = study.device_files(needs["modelled"], disks, "/s")
    devices = json.loads(files["/s/testbed.json"])["devices"]
    assert devices["shared"] == {"disk": {"path": "/dev/disk/by-id/x"}}
    assert devices["text"] == {"modelled": {"state": "/s/devices/text.json"}}
    assert json.loads(files["/s/specs/text.yml"])["profile"] == "hdd-7200"


def test_an_array_of_listed_disks(plan):
    disks = {name: {"path": f"/dev/disk/by-id/{name}"} for name in ("text", "video")}
    disks["shared"] = {"members": [disks["video"], disks["text"] | {"overwrite": "text"}]}
    needs = _needs("quick", disks=disks)
    # A run uses either the array or the two disks.
    assert needs["disks"] == ["/dev/disk/by-id/text", "/dev/disk/by-id/video"]
    assert needs["used_twice"] == [] and len(needs["used_together"]) == 2
    assert all(pair["paths"] == needs["disks"] for pair in needs["used_together"])
    assert needs["arrays"] and _commands(needs)["mdadm"] == "mdadm" and needs["modelled"] == []
    assert _kernel(needs, "raid") == {"raid0": "raid0"} and _kernel(needs, "device_node") == {}
    devices = json.loads(study.device_files([], disks, "/s")["/s/testbed.json"])["devices"]
    assert devices["shared"]["array"]["members"] == [
        {"path": "/dev/disk/by-id/video"},
        {"path": "/dev/disk/by-id/text", "overwrite": "text"},
    ]


def test_a_disk_that_one_run_would_use_twice_is_named():
    x, y = {"path": "/dev/disk/by-id/x"}, {"path": "/dev/disk/by-id/y"}
    twice = _needs("quick", disks={"text": x, "video": x})
    assert twice["used_twice"] == ["/dev/disk/by-id/x of text and video"] and twice["used_together"] == []
    # Two names, which may lead to one disk.
    for disks, names in (
        ({"text": x, "video": y}, "text and video"),
        ({"shared": {"members": [x, y]}}, "shared"),
    ):
        needs = _needs("quick", disks=disks)
        assert needs["used_twice"] == []
        problem = f"/dev/disk/by-id/x and /dev/disk/by-id/y of {names} are one disk"
        assert needs["used_together"] == [{"paths": [x["path"], y["path"]], "problem": problem}]
    # A run uses either the array or the two disks, and runs that are done use nothing.
    apart = _needs("quick", disks={"text": x, "shared": {"members": [x, y]}})
    assert apart["used_twice"] == [] and [pair["paths"] for pair in apart["used_together"]] == [
        [x["path"], y["path"]]
    ]
    assert _needs("quick", [], disks={"text": x, "video": x})["used_twice"] == []


def test_limits_of_control_groups_are_needed(plan):
    assert not _needs("quick")["cgroups"] and _needs("isolation-fairness")["cgroups"]


def test_a_mounted_network_file_system_needs_no_cluster(tmp_path):
    factors = "{filesystem: [moosefs, moosefs-direct]}"
    file, given = _study(tmp_path, "networked", factors), {"moosefs": "/mnt/x"}
    runs = {run["settings"]["filesystem"]: run for run in _plan(file)["runs"]}
    own = _needs(file)
    assert (own["clusters"], own["mounted"]) == (["moosefs"], []) and own["modelled"]
    assert own["servers"] == len(runs["moosefs"]["devices"])
    assert {"ip", "nsenter", "mkfs.ext4"} <= _commands(own).keys()
    both = _needs(file, mounts=given)
    assert (both["clusters"], both["servers"]) == (["moosefs"], own["servers"])
    assert both["mounted"] == ["moosefs"]
    # The file systems that this host would start by itself.
    assert own["cluster_file_systems"] == ["moosefs", "moosefs-direct"]
    assert both["cluster_file_systems"] == ["moosefs-direct"]
    alone = _needs(file, [runs["moosefs"]], mounts=given)
    assert (alone["clusters"], alone["servers"], alone["modelled"]) == ([], 0, [])
    assert not _kernel(alone, "scheduler") and "mkfs.ext4" not in _commands(alone)


def test_a_file_system_in_memory_needs_memory_and_no_device():
    runs = [run for run in _plan("file-systems")["runs"] if run["settings"]["filesystem"] == "tmpfs"]
    needs = _needs("file-systems", runs)
    assert needs["modelled"] == [] and needs["memory_bytes"] == 2048 << 20
    assert _commands(needs)["fio"] == "fio"


def test_a_device_with_policies_serves_runs_without_one():
    runs = _plan("isolation-priority")["runs"]
    live = next(run for run in runs if run.get("live"))
    plain = [run for run in runs if not run["devices"][0].get("live")]
    bfq = next(run for run in plain if run["settings"]["scheduler"].startswith("bfq "))
    needs = _needs("isolation-priority", [live, bfq])
    # The kernel has no scheduler in front of a policy of weir.
    assert _kernel(needs, "scheduler") == {"bfq": "bfq", "none": None}
    assert needs["modelled"] == live["devices"] and live["devices"][0]["live"]
    assert _needs("isolation-priority", [bfq])["modelled"] == bfq["devices"]
    # In either order.
    first = min(plain, key=lambda run: run["order"])
    assert _needs("isolation-priority", [first, live])["modelled"] == live["devices"]


def test_capture_that_is_required_needs_bpf(tmp_path):
    for capture, needed in (("none", False), ("optional", False), ("required", True)):
        file = _study(tmp_path, f"capture-{capture}", "{scheduler: [none]}", capture)
        assert _needs(file)["bpf"] is needed


@pytest.mark.parametrize("listed", [{}, {"path": "/dev/x", "members": []}, {"members": ["/dev/x"]}])
def test_what_is_neither_a_disk_nor_an_array_is_refused(listed):
    text = json.dumps({"devices": {"shared": listed}})
    done = weir("plan", "quick", "--needs", "--devices", "/dev/stdin", stdin=text)
    assert done.returncode == 2 and "/dev/stdin" in done.stderr


@pytest.mark.parametrize("name", ["quick", "wijayaratne-example"])
def test_shards_divide_the_simulated_runs(name):
    runs = [run for run in _plan(name)["runs"] if run["testbed"] != "device"]
    shards = _plan(name, "--shards", "3")["shards"]
    for part, ids in enumerate(shards):
        assert ids == [run["id"] for run in runs if run["order"] % 3 == part]
    assert sum(map(len, shards)) == len(runs) > 0


def test_a_shard_is_what_simulate_carries_out(tmp_path):
    shards = _plan("hds-alone", "--shards", "20")["shards"]
    done = weir("simulate", "hds-alone", "--shard", "7/20", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    found = {path.parent.name for path in (tmp_path / "hds-alone").glob("*/verdict.json")}
    assert found == set(shards[6]) and len(found) > 1


def test_missing_runs_keep_their_shard(tmp_path):
    whole = _plan("hds-alone", "--shards", "4")["shards"]
    assert weir("simulate", "hds-alone", "--shard", "1/20", "--out", tmp_path).returncode == 0
    left = _plan("hds-alone", "--shards", "4", "--missing", tmp_path)["shards"]
    done = set(_plan("hds-alone", "--shards", "20")["shards"][0])
    assert left == [[id for id in ids if id not in done] for ids in whole]


@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_a_number_of_shards_that_means_nothing_is_refused(number):
    assert weir("plan", "hds-alone", "--json", f"--shards={number}").returncode == 2
