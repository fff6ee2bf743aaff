"""Disks that the inventory lists: which are used, and which are refused."""

import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest
from support import WEIR, wait_for, weir


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
        # Another test may have a disk there by now.
        with contextlib.suppress(OSError):
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


class Runs:
    """Runs of a tiny study by the binary alone, on devices of a test bed that a test writes."""

    def __init__(self, bench, **fields):
        self.bench = bench
        self.plan = bench.folder / "plan.json"
        self.plan.write_text(weir("plan", bench.study(schedulers="[mq-deadline]", **fields), "--json").stdout)
        (self.run,) = json.loads(self.plan.read_text())["runs"]

    def command(self, **devices):
        testbed = self.bench.folder / "testbed.json"
        testbed.write_text(json.dumps({"devices": devices}))
        places = ("--results", self.bench.results / "tiny", "--state", self.bench.state)
        return ("run", self.plan, "--id", self.run["id"], "--testbed", testbed, *places)

    def carry_out(self, **devices):
        """Carries the run out to its end."""
        return weir(*self.command(**devices))

    def kill(self, when, **devices):
        """Kills the run with -9 as soon as `when` holds."""
        log = self.bench.folder / "killed"
        with log.open("w") as file:
            process = subprocess.Popen([WEIR, *map(str, self.command(**devices))], stdout=file, stderr=file)
        wait_for(lambda: when() or process.poll() is not None, "the moment to kill")
        assert process.poll() is None, log.read_text()
        process.kill()
        process.wait()


def _listed(path, **flags):
    return {"disk": {"path": str(path)} | flags}


def _sha256(disk):
    return subprocess.run(["sha256sum", disk], capture_output=True, text=True, check=True).stdout.split()[0]


def test_a_disk_with_data_is_refused_unless_they_may_be_lost(bench, disk):
    """This test will put a file system on a listed disk, and try to use it with and without permission."""
    subprocess.run(["mkfs.ext4", "-q", "-F", disk], check=True)
    before = _sha256(disk)
    runs = Runs(bench)
    for flags, words in (
        ({}, ["is not blank: it carries ext4", f"overwrite: {disk.name}"]),
        ({"overwrite": "S3Z9NB0K"}, ["does not name", disk.name]),
        ({"overwrite_signature": True}, ["weir device show"]),
    ):
        refused = runs.carry_out(shared=_listed(disk, **flags))
        assert refused.returncode == 2
        assert all(word in refused.stderr for word in words), refused.stderr
        assert _sha256(disk) == before
    assert bench.run_folders() == {}

    allowed = runs.carry_out(shared=_listed(disk, overwrite=disk.name))
    # 3 is a run that was carried out and is invalid: a busy machine may have been late.
    assert allowed.returncode in (0, 3), allowed.stdout + allowed.stderr
    assert list(bench.run_folders()) == [runs.run["id"]]
    assert weir("device", "check", disk).returncode == 0, "it was given back blank"


def _end_of(disk):
    with disk.open("rb", buffering=0) as file:
        file.seek(-4096, os.SEEK_END)
        return file.read(4096)


def test_a_raw_disk_is_given_back_blank(bench, disk):
    """This test will carry out a run without a file system on a listed disk, and one that is killed."""
    runs = Runs(bench, filesystem="raw")
    done = runs.carry_out(shared=_listed(disk))
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert weir("device", "check", disk).returncode == 0
    (folder,) = bench.run_folders().values()
    shutil.rmtree(folder)
    runs.kill(lambda: b"weir: a run writes" in _end_of(disk), shared=_listed(disk))
    assert weir("device", "check", disk).returncode == 2
    cleaned = weir("clean", "--state", bench.state)
    assert cleaned.returncode == 0, cleaned.stderr
    assert weir("device", "check", disk).returncode == 0


def _is_mounted(bench):
    return str(bench.state / "mnt") in Path("/proc/mounts").read_text()


def _unmount(bench):
    """Unmounts what a killed run mounted; the kernel may take a moment to close the files of the run."""
    for _ in range(50):
        done = subprocess.run(["umount", bench.state / "mnt/shared"], capture_output=True, text=True)
        if done.returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError(done.stderr)


def test_what_a_killed_run_made_is_taken_away_and_nothing_else(bench, disk):
    """This test will kill -9 runs on a listed disk, and make a file system there before weir clean."""
    runs = Runs(bench)
    runs.kill(lambda: _is_mounted(bench), shared=_listed(disk))
    cleaned = weir("clean", "--state", bench.state)
    assert cleaned.returncode == 0, cleaned.stderr
    assert weir("device", "check", disk).returncode == 0

    runs.kill(lambda: _is_mounted(bench), shared=_listed(disk))
    _unmount(bench)
    subprocess.run(["mkfs.xfs", "-q", "-f", disk], check=True)
    before = _sha256(disk)
    left = weir("clean", "--state", bench.state)
    assert left.returncode == 1 and "which this weir did not make" in left.stderr, left.stderr
    assert _sha256(disk) == before
    # It was said; what is not weir's stays for good, and is in nobody's way.
    assert weir("clean", "--state", bench.state).returncode == 0
    assert _sha256(disk) == before
    refused = runs.carry_out(shared=_listed(disk))
    assert refused.returncode == 2 and "carries xfs" in refused.stderr
    assert _sha256(disk) == before


def test_the_next_run_leaves_what_somebody_made_too(bench, disk):
    """This test will have the next run, in place of weir clean, find a file system that it did not make."""
    runs = Runs(bench)
    runs.kill(lambda: _is_mounted(bench), shared=_listed(disk))
    _unmount(bench)
    subprocess.run(["mkfs.xfs", "-q", "-f", disk], check=True)
    before = _sha256(disk)
    refused = runs.carry_out(shared=_listed(disk, overwrite=disk.name))
    assert refused.returncode == 1 and "were left as they are" in refused.stderr, refused.stderr
    assert _sha256(disk) == before


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


def test_two_links_to_one_disk_are_refused(bench, disk):
    """This test will list one disk as two devices, by two links."""
    second = disk.with_name(f"{disk.name}-again")
    second.symlink_to(disk.resolve())
    try:
        study = bench.folder / "two.yml"
        study.write_text(TWO)
        planned = weir("plan", study, "--json")
        assert planned.returncode == 0, planned.stderr
        (bench.folder / "two.json").write_text(planned.stdout)
        (run,) = json.loads(planned.stdout)["runs"]
        testbed = bench.folder / "testbed.json"
        testbed.write_text(json.dumps({"devices": {"text": _listed(disk), "video": _listed(second)}}))
        places = ("--results", bench.results / "two", "--state", bench.state)
        refused = weir("run", bench.folder / "two.json", "--id", run["id"], "--testbed", testbed, *places)
    finally:
        second.unlink()
    assert refused.returncode == 2 and "are one disk" in refused.stderr, refused.stderr
    assert weir("device", "check", disk).returncode == 0


def test_another_image_on_the_device_of_a_server_is_refused(bench):
    """This test will detach the loop device of a running weir serve, and attach an image of its own there."""
    spec = bench.folder / "shared.yml"
    spec.write_text("name: shared\nprofile: hdd-7200\nheads: 2\nsize_mib: 128\n")
    devices = bench.state / "devices"
    served = weir("serve", spec, "--background", "--state", devices)
    assert served.returncode == 0, served.stderr
    state = devices / "shared.json"
    node = json.loads(state.read_text())["device"]["path"]
    image = bench.folder / "precious.img"
    with image.open("wb") as file:
        file.truncate(300 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    before = _sha256(image)
    subprocess.run(["losetup", "--detach", node], check=True)
    subprocess.run(["losetup", node, image], check=True)
    try:
        refused = Runs(bench).carry_out(shared={"modelled": {"state": str(state)}})
        assert refused.returncode == 2 and "not the device of its server" in refused.stderr, refused.stderr
    finally:
        subprocess.run(["losetup", "--detach", node], check=True)
        weir("serve", "--down", state)
    assert _sha256(image) == before and bench.run_folders() == {}


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
    assert code != 0 and ("mdadm" in said or "RAID level raid0" in said), log
    assert _signature(disk) == "" and not bench.results.exists()


def test_a_name_that_may_move_is_refused(bench, disk):
    """This test will list a disk by its kernel name."""
    code, log = _play(bench, disk.resolve())
    assert code != 0
    assert "use its name below /dev/disk/by-id" in " ".join(log.split())
    assert not bench.state.exists()


def test_a_disk_that_is_not_there_is_refused(bench):
    """This test will list a disk that does not exist."""
    code, log = _play(bench, "/dev/disk/by-id/weir-test-nonesuch")
    assert code != 0
    assert "missing: /dev/disk/by-id/weir-test-nonesuch" in " ".join(log.split())
    assert not bench.state.exists()
