"""Disks that the inventory lists: which are used, and which are refused."""

import json
import subprocess
from pathlib import Path

import polars as pl
import pytest
from support import weir


@pytest.fixture
def disk(bench):
    """A blank disk of 512 MiB with a stable name: a loop device that this test makes and takes away."""
    image = bench.folder / "disk.img"
    with image.open("wb") as file:
        file.truncate(512 << 20)
    made = subprocess.run(
        ["losetup", "--find", "--show", "--direct-io=on", image], capture_output=True, text=True, check=True
    )
    node = made.stdout.strip()
    folder = Path("/dev/disk/by-id")
    had_folder = folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    name = folder / f"weir-test-{bench.folder.name}"
    name.symlink_to(node)
    yield name
    name.unlink()
    if not had_folder:
        folder.rmdir()
    subprocess.run(["losetup", "--detach", node], check=True)
    image.unlink()


def _play(bench, path, **flags):
    disks = json.dumps({"weir_devices": {"shared": {"path": str(path)} | flags}})
    return bench.play(bench.study(schedulers="[mq-deadline]"), "--skip-tags", "report,verdicts", "-e", disks)


def _signature(disk):
    found = subprocess.run(["blkid", "--probe", disk], capture_output=True, text=True, check=False)
    return found.stdout


def test_a_blank_disk_is_used_and_left_blank(bench, disk):
    """This test will carry out a run on a listed disk, and look for a signature afterwards."""
    code, log = _play(bench, disk)
    assert code == 0, log
    (folder,) = bench.run_folders().values()
    # Whether it was in time is for a quiet machine; here all that was asked has to be answered.
    requests = pl.read_parquet(folder / "requests.parquet")
    assert requests.height > 0 and requests["completed_ns"].null_count() == 0
    assert _signature(disk) == ""
    assert not list((bench.state / "devices").glob("*.json"))


def test_a_disk_with_data_is_refused_unless_they_may_be_lost(bench, disk):
    """This test will put a file system on a listed disk, and try to use it with and without the flag."""
    subprocess.run(["mkfs.ext4", "-q", "-F", disk], check=True)
    before = _signature(disk)
    assert "ext4" in before
    plan = bench.folder / "plan.json"
    plan.write_text(weir("plan", bench.study(schedulers="[mq-deadline]"), "--json").stdout)
    (run,) = json.loads(plan.read_text())["runs"]

    def carry_out(**flags):
        testbed = bench.folder / "testbed.json"
        testbed.write_text(json.dumps({"devices": {"shared": {"disk": {"path": str(disk)} | flags}}}))
        places = ("--testbed", testbed, "--results", bench.results / "tiny", "--state", bench.state)
        return weir("run", plan, "--id", run["id"], *places)

    refused = carry_out()
    assert refused.returncode == 2
    assert "overwrite_signature" in refused.stderr and "carries data" in refused.stderr
    assert _signature(disk) == before
    assert bench.run_folders() == {}

    allowed = carry_out(overwrite_signature=True)
    # 3 is a run that was carried out and is invalid: a busy machine may have been late.
    assert allowed.returncode in (0, 3), allowed.stdout + allowed.stderr
    assert list(bench.run_folders()) == [run["id"]]


TWO = """\
name: two
question: Does the machinery work?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: 1
storage: {profile: hdd-7200, heads: 2, size_mib: 128}
classes:
  text: {workload: poisson-text, clients: 20, with: {files.count: 20}}
  video: {workload: poisson-text, clients: 20, with: {files.count: 20}}
factors: {scheduler: [none]}
hold: {architecture: partitioned, filesystem: raw}
"""


@pytest.mark.parametrize("names", ["links of one node", "nodes of one file"])
def test_two_names_of_one_disk_are_not_two_devices(bench, disk, names):
    """This test will list one disk as two devices by two links, and by two loop devices of one image."""
    other, node = disk.parent / f"{disk.name}-other", None
    if names == "links of one node":
        other.symlink_to(disk.resolve())
    else:
        image = Path("/sys/block", disk.resolve().name, "loop/backing_file").read_text().strip()
        attach = ["losetup", "--find", "--show", image]
        node = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
        other.symlink_to(node)
    try:
        study = bench.folder / "two.yml"
        study.write_text(TWO)
        disks = {"weir_devices": {"text": {"path": str(disk)}, "video": {"path": str(other)}}}
        code, log = bench.play(study, "-e", json.dumps(disks))
        assert code != 0 and "of text and video are one disk" in " ".join(log.split()), log
        assert _signature(disk) == "" and not bench.results.exists() and not bench.state.exists()
    finally:
        other.unlink()
        if node:
            subprocess.run(["losetup", "--detach", node], check=True)


def test_an_array_is_refused_where_the_kernel_has_none(bench, disk):
    """This test will ask for two disks to be striped on a kernel without md, and look at the disk."""
    mdstat = Path("/proc/mdstat")
    if mdstat.exists() and "raid0" in mdstat.read_text():
        pytest.skip("this kernel can stripe disks: tests/guest shows it at work")
    disks = json.dumps({"weir_devices": {"shared": {"members": [{"path": str(disk)}, {"path": str(disk)}]}}})
    code, log = bench.play(bench.study(schedulers="[mq-deadline]"), "-e", disks)
    said = " ".join(log.split())
    assert code != 0 and ("mdadm" in said or "RAID 0 (md)" in said), log
    assert _signature(disk) == "" and not bench.results.exists()


def test_a_name_that_may_move_is_refused(bench, disk):
    """This test will list a disk by its kernel name."""
    code, log = _play(bench, disk.resolve())
    assert code != 0
    assert "by its name below /dev/disk/by-id" in " ".join(log.split())
    assert not bench.state.exists()


def test_a_disk_that_is_not_there_is_refused(bench):
    """This test will list a disk that does not exist."""
    code, log = _play(bench, "/dev/disk/by-id/weir-test-nonesuch")
    assert code != 0
    assert "not there: /dev/disk/by-id/weir-test-nonesuch" in " ".join(log.split())
    assert not bench.state.exists()
