"""`weir collect --by`: latencies by process, control group, device and operation."""

import json
import os
import subprocess

import pytest
from support import weir

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="recording needs root")


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    path = tmp_path_factory.mktemp("disk") / "backing"
    path.write_bytes(b"\xaa" * (8 << 20))
    command = ["losetup", "--find", "--show", "--direct-io=on", path]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no loop device: {made.stderr}")
    yield made.stdout.strip()
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


def collected(disk, by, *options):
    """The report of a recording of two dd: 100 reads of 4 KiB and 20 writes of 64 KiB."""
    script = (
        f"dd if={disk} of=/dev/null bs=4k count=100 iflag=direct status=none && "
        f"dd if=/dev/zero of={disk} bs=64k count=20 oflag=direct conv=notrunc status=none"
    )
    done = weir("collect", "--device", disk, "--by", by, *options, "--", "sh", "-c", script)
    if "cannot" in done.stderr and "BPF" in done.stderr and done.returncode != 0:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("by", ["process", "cgroup", "device", "op"])
def test_groups_have_the_requests_of_the_programs(disk, by):
    groups = json.loads(collected(disk, by, "--json"))["by"]
    named = {group["name"]: group for group in groups}
    # Opening a device may read more, such as its partition table.
    assert sum(group["requests"] for group in groups) >= 120
    if by == "process":
        dd = [group for name, group in named.items() if name.startswith("dd (")]
        assert sorted((g["requests"], g["bytes"]) for g in dd) == [(20, 20 * 65536), (100, 100 * 4096)]
    if by == "device":
        assert list(named) == [disk.removeprefix("/dev/")]
    if by == "op":
        assert named["write"]["bytes"] == 20 * 65536 and named["read"]["requests"] >= 100
    if by == "cgroup":
        assert "not known" not in named, named
    for group in groups:
        times = group["service_us"]
        assert 0 < times["p50"] <= times["p99"] <= times["max"] and group["failed"] == 0
        assert times["mean"] <= times["max"]


def test_the_table_is_for_people(disk, tmp_path):
    text = collected(disk, "op", "--out", tmp_path / "block.parquet")
    lines = [line.split() for line in text.splitlines()]
    assert ["write", "20", "1.3", "0"] in [words[:4] for words in lines]
    assert (tmp_path / "block.parquet").exists()


def test_what_cannot_be_is_refused(tmp_path):
    done = weir("collect", "--by", "process", "--duration", 1, "--files", "--pid", os.getpid())
    assert done.returncode == 2
    assert weir("collect", "--by", "nobody", "--device", "sda").returncode == 2
