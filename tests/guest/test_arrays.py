"""Another kernel, in a guest: disks of the inventory striped by md, and the collectors.

    make test-guest

The guest is Debian's cloud kernel with the programs of this host, under software emulation: function and
order are shown here, not speed.
"""

import json

import polars as pl
import pytest
from machine import HERE, run
from support import WEIR, weir

pytestmark = pytest.mark.guest

PROGRAMS = ("busybox", "mdadm", "mkfs.ext4", "blkid", "wipefs", str(WEIR))
MODULES = ("virtio_pci", "virtio_blk", "ext4", "raid0")
STUDY = """\
name: arrays
question: Does a striped array of listed disks work?
testbed: device
seed: 7
repetitions: 2
warmup_s: 0.5
duration_s: 4
storage: {profile: hdd-7200, heads: 2, size_mib: 160}
classes:
  text: {workload: poisson-text, clients: 20}
factors:
  architecture: [integrated]
hold: {filesystem: ext4, scheduler: mq-deadline, read_ahead_kib: 64}
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the guest left."""
    folder = tmp_path_factory.mktemp("guest")
    study = folder / "arrays.yml"
    study.write_text(STUDY)
    plan = weir("plan", study, "--json").stdout
    (folder / "plan.json").write_text(plan)
    (folder / "ids").write_text("".join(run["id"] + "\n" for run in json.loads(plan)["runs"]))
    members = [{"path": f"/dev/disk/by-id/virtio-{name}"} for name in "ab"]
    (folder / "testbed.json").write_text(json.dumps({"devices": {"shared": {"array": {"members": members}}}}))
    files = [folder / name for name in ("plan.json", "ids", "testbed.json")]
    return run(folder, HERE / "arrays.init", MODULES, PROGRAMS, files, disks=("a", "b"))


def test_the_collectors_load_and_record(results):
    """This test will look at what the block collector recorded of a dd, in both modes."""
    log = (results / "collect.log").read_text()
    assert "bpf full: " in log and "bpf lean: " in log, log
    for name in ("block", "lean"):
        assert pl.read_parquet(results / f"{name}.parquet")["size_bytes"].sum() >= 8 * 65536, log


def test_a_run_on_an_array(results):
    """This test will look at what a whole run recorded: requests, both members, the verdict."""
    log = (results / "whole.log").read_text()
    outcome = json.loads((results / "whole.json").read_text() or "{}")
    assert outcome, log
    folder = results / outcome["id"]
    rules = {r["rule"]: r for r in json.loads((folder / "verdict.json").read_text())["rules"]}
    # An emulated processor may be late; everything else has to be as on a real one.
    for rule in ("R-PLANNED", "R-ERRORS", "R-LOSS", "R-CACHED", "R-STATE"):
        assert rules[rule]["status"] == "valid", rules[rule]
    requests = pl.read_parquet(folder / "requests.parquet")
    assert requests.height > 40 and requests["completed_ns"].null_count() == 0
    block = pl.read_parquet(folder / "block.parquet").filter(pl.col("op") == "read")
    by_disk = dict(block.group_by("device").agg(pl.col("size_bytes").sum()).rows())
    assert sorted(by_disk) == ["vda", "vdb"]
    # Stripe units of 64 KiB of a whole file system fall on both alike.
    assert min(by_disk.values()) > 0.3 * sum(by_disk.values())
    disks = json.loads((folder / "host.json").read_text())["devices"]
    assert len(disks) == 2


@pytest.mark.parametrize("which", ["whole", "killed"])
def test_nothing_is_left(results, which):
    """This test will look for arrays, signatures, mounts and journals of a run that ended or was killed."""
    if which == "killed":
        log = (results / "killed.log").read_text()
        assert "weir-shared" in (results / "arrays-killed.txt").read_text(), log
    left = (results / f"left-{which}.txt").read_text()
    assert left.split("\n")[:4] == ["arrays: ", "signatures: ", "mounts: 0", "journals: "], left
