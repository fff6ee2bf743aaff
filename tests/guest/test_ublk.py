"""Another kernel, in a guest: live servers as block devices of ublk, which Debian has in backports.

    make test-guest

Under software emulation: function and order are shown here, not speed.
"""

import json

import pytest
from machine import HERE, run
from support import WEIR

pytestmark = pytest.mark.guest

PROGRAMS = ("busybox", "fio", "mkfs.ext4", "losetup", "umount", str(WEIR))
MODULES = ("virtio_pci", "virtio_blk", "ext4", "fuse", "loop", "ublk_drv")
FAST = "name: fast\nprofile: 'null'\nsize_mib: 64\n"
KEPT = "name: kept\nprofile: hdd-15k\nsize_mib: 64\nbacking: /tmp/disk.img\n"
DISK = "name: disk\nprofile: hdd-7200\nsize_mib: 256\n"
CLASSES = "classes:\n  - {name: video, wants: real_time, size_mib: 16}\n  - {name: text, size_mib: 32}\n"


TEXTS = (("fast.yml", FAST), ("disk.yml", DISK), ("kept.yml", KEPT), ("classes.yml", CLASSES))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the guest left."""
    folder = tmp_path_factory.mktemp("guest")
    files = []
    for name, text in TEXTS:
        (folder / name).write_text(text)
        files.append(folder / name)
    return run(folder, HERE / "ublk.init", MODULES, PROGRAMS, files, kernel="backports", timeout_s=600)


def test_what_is_written_is_read(results):
    """This test will look at fio's own checks of data of all sizes, and at files on ext4."""
    log = (results / "script.log").read_text()
    assert (results / "verify.rc").read_text() == "0\n", log
    (job,) = json.loads((results / "verify.json").read_text())["jobs"]
    assert job["error"] == 0 and job["write"]["total_ios"] == job["read"]["total_ios"] > 50
    assert (results / "files.txt").read_text() == "same\n", log


def test_the_queue_is_as_the_spec_says(results):
    """This test will look at the settings that the kernel shows."""
    seen = (results / "queue.txt").read_text()
    assert seen.startswith("scheduler: [none] ") and f"sectors: {64 << 11}" in seen, seen
    assert "rotational: 0 write_cache: write back fua: 1" in seen, seen
    state = json.loads((results / "serve.json").read_text())
    assert state["device"]["path"].startswith("/dev/ublkb") and state["nbd"], state


def test_each_class_has_a_device_of_its_own(results):
    """This test will compare the devices of a partitioned server with what was written to each."""
    state = json.loads((results / "partitioned.json").read_text())
    assert [of["class"] for of in state["class_devices"]] == ["video", "text"], state
    assert (results / "sizes.txt").read_text().split() == [str(mib << 11) for mib in (16, 32)]
    classes = {c["name"]: c for c in json.loads((results / "stats.json").read_text())["classes"]}
    assert classes["video"]["requests"] >= 1 and classes["text"]["requests"] >= 2, classes


def test_a_disk_takes_a_disks_time(results):
    """This test will compare the mean response of one request at a time with seek and rotation."""
    (job,) = json.loads((results / "disk.json").read_text())["jobs"]
    mean_ms = job["read"]["clat_ns"]["mean"] / 1e6
    assert job["error"] == 0 and 4 < mean_ms < 40, mean_ms


@pytest.mark.parametrize("how", ["down", "term", "killed", "kept"])
def test_nothing_is_left(results, how):
    """This test will look for devices, mounts, servers and state files after each kind of end."""
    left = (results / f"left-{how}.txt").read_text()
    assert left == "devices: 0\nmounts: 0\nservers: 0\nstates: 0\n", left
    if how == "killed":
        said = (results / "killed.txt").read_text()
        assert said.count("under load") == 6 and said.count("removed /dev/ublkb") == 6, said


def test_no_acknowledged_write_is_lost(results):
    """This test will look at fio's search, after each kill, for the writes that it was told were done."""
    said = (results / "kept.txt").read_text()
    assert said.count(".state") == 5 * 8 and said.count("verified: 0") == 5, said
    for turn in range(1, 6):
        # fio warns of several writers first, whatever their places.
        _, brace, document = (results / f"kept-{turn}.json").read_text().partition("{")
        jobs = json.loads(brace + document)["jobs"]
        assert len(jobs) == 8 and not any(job["error"] for job in jobs), jobs
        assert sum(job["read"]["total_ios"] for job in jobs) > 20


def test_the_kernel_complains_of_nothing(results):
    """This test will look into the kernel's log, and print the rates for whoever reads the output."""
    assert (results / "kernel.txt").read_text() == ""
    rates = {}
    for name in ("ublk-1", "ublk-2", "loop-1", "loop-2"):
        (job,) = json.loads((results / f"rate-{name}.json").read_text())["jobs"]
        assert job["error"] == 0 and job["read"]["total_ios"] > 100
        rates[name] = round(job["read"]["iops"])
    print("4 KiB reads a second, emulated:", rates)
