"""A study whose device is ruled by weir's own policies: live, and in virtual time by the same file."""

import contextlib
import json
import threading

import polars as pl
import pytest
from support import simulate, weir

STUDY = """\
name: {name}
question: Do policies rule a block device as they rule virtual disks?
testbed: {testbed}
seed: 11
repetitions: 1
warmup_s: 0.2
duration_s: 1.5
capture: none
storage: {{profile: hdd-7200, heads: 2, size_mib: 128}}
classes:
  text: {{workload: poisson-text, clients: 60, weight: 2}}
  video: {{workload: mpeg-vbr, clients: 20, with: {{files.count: 4}}}}
factors:
  scheduler: ["{first}", cello]
"""
FIRST = "scan-edf batch_ms=20"


@contextlib.contextmanager
def ruled(folder, state, text):
    """The plan of a study, and how to carry out a run of it on a device that is served for it."""
    study = folder / "live.yml"
    study.write_text(text)
    planned = weir("plan", study, "--json")
    assert planned.returncode == 0, planned.stderr
    plan = json.loads(planned.stdout)
    (folder / "plan.json").write_text(json.dumps(plan))
    (device,) = plan["devices"]
    assert device.pop("live") is True
    spec = folder / "shared.yml"
    spec.write_text(json.dumps(device | {"live": {"policy": "fcfs"}}))
    begun = weir("serve", spec, "--state", state, "--background")
    assert begun.returncode == 0, begun.stderr
    testbed = {"devices": {"shared": {"modelled": {"state": str(state / "shared.json")}}}}
    (folder / "testbed.json").write_text(json.dumps(testbed))

    def carry_out(run, results="results"):
        done = weir(
            *("run", folder / "plan.json", "--id", run["id"], "--testbed", folder / "testbed.json"),
            *("--results", folder / results, "--state", folder / "runs"),
        )
        assert done.returncode in (0, 3), done.stderr
        return folder / results / run["id"]

    try:
        yield plan, carry_out
    finally:
        assert weir("serve", "--down-all", state).returncode == 0


@pytest.fixture(scope="module")
def live(shared_bench):
    """The plan of the study, its file, and how to carry out a run on a served device."""
    text = STUDY.format(name="live", testbed="device", first=FIRST)
    with ruled(shared_bench.folder, shared_bench.state, text) as (plan, carry_out):
        yield plan, shared_bench.folder, carry_out


def rule(folder, name):
    verdict = json.loads((folder / "verdict.json").read_text())
    return next(ruling for ruling in verdict["rules"] if ruling["rule"] == name)


def by_scheduler(runs):
    return {run["settings"]["scheduler"]: run for run in runs}


def test_the_same_file_is_answered_live_and_in_virtual_time(live):
    """This test will carry out a run under each of two policies, on a block device and simulated."""
    plan, folder, carry_out = live
    simulated = simulate(folder, STUDY.format(name="virtual", testbed="simulator", first=FIRST))
    assert simulated.returncode == 0, simulated.stderr
    virtual = json.loads(weir("plan", folder / "virtual.yml", "--json").stdout)
    virtual = by_scheduler(virtual["runs"])
    for scheduler, run in by_scheduler(plan["runs"]).items():
        done = carry_out(run)
        kept = rule(done, "R-POLICY")
        assert kept["status"] == "valid" and scheduler in kept["reason"], kept
        assert rule(done, "R-STATE")["status"] == "valid", rule(done, "R-STATE")
        # On a busy machine it may be broken, but it is always known.
        assert 0 < rule(done, "R-WAY")["value"] < 1000, rule(done, "R-WAY")
        in_force = json.loads((done / "observed.json").read_text())["live"]["shared"]
        found = in_force["found"]
        assert (found["policy"], found["queue_depth"]) == (scheduler, 1)
        assert in_force["began_with_run"] is True
        text, video = found["classes"]
        assert (text["name"], text["weight"], video["name"]) == ("text", 2.0, "video")
        assert (video["wants"], video["deadline_ms"], video["rest"]) == ("real_time", 1000.0, True)
        rows = pl.read_parquet(done / "requests.parquet")
        counted = {one["name"]: one["requests"] for one in in_force["stats"]["classes"]}
        assert counted == dict(rows.group_by("class").len().iter_rows())
        # The same requests, at the same times; nearly the same answers.
        other = pl.read_parquet(folder / "results/virtual" / virtual[scheduler]["id"] / "requests.parquet")
        asked = [table["intended_ns"].sort().to_list() for table in (rows, other)]
        assert asked[0] == asked[1]
        assert rows["size_bytes"].sum() == other["size_bytes"].sum()
        median = [(table["completed_ns"] - table["intended_ns"]).median() for table in (rows, other)]
        # Never sooner; and by how much later is known only of a machine that had its processors.
        in_time = all(rule(done, name)["status"] != "invalid" for name in ("R-LATE", "R-MODEL", "R-WAY"))
        assert median[0] / median[1] > 0.7, (scheduler, median)
        assert median[0] / median[1] < 1.5 or not in_time, (scheduler, median)


def test_a_policy_that_somebody_changed_makes_the_run_invalid(live):
    """This test will put another policy in place while a run is under way."""
    plan, folder, carry_out = live
    state = folder / "state"
    # Whatever the run before had: what is seen of this policy is then of the run's own requests.
    assert weir("class", "policy", "fcfs", "--state", state).returncode == 0
    run = by_scheduler(plan["runs"])[FIRST]
    done = []
    worker = threading.Thread(target=lambda: done.append(carry_out(run, "meddled")))
    worker.start()
    while worker.is_alive():
        top = json.loads(weir("top", "--once", "--json", "--state", state).stdout or "{}")
        if top.get("policy") == FIRST and any(one["requests"] for one in top["classes"]):
            assert weir("class", "policy", "sfq", "--state", state).returncode == 0
            break
    worker.join()
    broken = rule(done[0], "R-POLICY")
    assert broken["status"] == "invalid", broken
    assert "wrong scheduler at the end (found sfq" in broken["reason"], broken


def test_classes_on_a_file_system_are_told_by_where_their_files_lie(shared_bench):
    """This test will carry out runs of two classes on one ext4 and one xfs."""
    folder, state = shared_bench.folder / "files", shared_bench.folder / "files-state"
    folder.mkdir()
    text = STUDY.format(name="live", testbed="device", first="fcfs")
    text = text.replace(", cello]", "]\n  filesystem: [ext4, xfs]").replace("size_mib: 128", "size_mib: 384")
    with ruled(folder, state, text) as (plan, carry_out):
        for run in plan["runs"]:
            filesystem = run["settings"]["filesystem"]
            done = carry_out(run)
            assert rule(done, "R-POLICY")["status"] == "valid", rule(done, "R-POLICY")
            in_force = json.loads((done / "observed.json").read_text())["live"]["shared"]
            text, video = in_force["found"]["classes"]
            assert text["extents_bytes"] and video["extents_bytes"] and video["rest"] is True
            rows = pl.read_parquet(done / "requests.parquet")
            asked = dict(rows.group_by("class").agg(pl.col("size_bytes").sum()).iter_rows())
            served = {one["name"]: one["bytes"] for one in in_force["stats"]["classes"]}
            # Requests are direct. The last class also has the file system's own, which are few.
            assert served["text"] == asked["text"], filesystem
            assert asked["video"] <= served["video"] < 1.2 * asked["video"], filesystem


def test_a_device_without_policies_and_an_unknown_policy_are_refused(live):
    """This test will ask for a policy where no server stands, and for one that does not exist."""
    plan, folder, _ = live
    study = folder / "wrong.yml"
    study.write_text(STUDY.format(name="wrong", testbed="device", first="scan-efd"))
    refused = weir("plan", study)
    assert refused.returncode == 2, refused.stderr
    assert "wrong.yml" in refused.stderr and "did you mean `scan-edf`" in refused.stderr, refused.stderr
    spec = folder / "plain.yml"
    spec.write_text('{name: plain, profile: "null", heads: 2, size_mib: 256}')
    assert weir("serve", spec, "--state", folder / "plain", "--background").returncode == 0
    try:
        bed = {"devices": {"shared": {"modelled": {"state": str(folder / "plain/plain.json")}}}}
        (folder / "plain.json").write_text(json.dumps(bed))
        refused = weir(
            *("run", folder / "plan.json", "--id", plan["runs"][0]["id"]),
            *("--testbed", folder / "plain.json", "--results", folder / "none", "--state", folder / "runs"),
        )
        assert refused.returncode == 2, refused.stderr
        assert "`shared`" in refused.stderr and "needs a block server with `live`" in refused.stderr
        assert not any((folder / "none").glob("[!.]*"))
    finally:
        assert weir("serve", "--down-all", folder / "plain").returncode == 0


def test_writes_reach_a_disk_that_the_run_has_claimed(live):
    """The run holds the disk exclusively: its own replayer is no other program."""
    _, folder, _ = live
    text = STUDY.format(name="written", testbed="device", first=FIRST)
    text = text.replace("{workload: poisson-text,", "{workload: poisson-text, with: {read_share: 0.5},")
    (folder / "written.yml").write_text(text)
    plan = json.loads(weir("plan", folder / "written.yml", "--json").stdout)
    (folder / "written.json").write_text(json.dumps(plan))
    (run, _) = plan["runs"]
    done = weir(
        *("run", folder / "written.json", "--id", run["id"], "--testbed", folder / "testbed.json"),
        *("--results", folder / "results", "--state", folder / "runs"),
    )
    assert done.returncode in (0, 3), done.stderr
    rows = pl.read_parquet(folder / "results" / run["id"] / "requests.parquet")
    writes = rows.filter((pl.col("op") == "write") & (pl.col("status") == 0))
    assert writes.height > 20 and writes["completed_ns"].null_count() == 0
