"""Completions that are polled for (IOPOLL), in a guest whose disk has a polling queue.

    make test-guest

Under software emulation: function is shown here, not speed.
"""

import json

import polars as pl
import pytest
from machine import HERE, run
from support import WEIR, weir

pytestmark = pytest.mark.guest

#: 400 requests in 2 s, half of them writes.
REQUESTS = 400


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the guest left."""
    folder = tmp_path_factory.mktemp("guest")
    lines = ["time,offset,size,op"]
    lines += [f"{n * 0.005:.3f},{n % 64 * 4096},4096,{'rw'[n % 2]}" for n in range(REQUESTS)]
    table = folder / "t.csv"
    table.write_text("\n".join(lines) + "\n")
    options = [f"--option={key}={key}" for key in ("time", "offset", "size", "op")]
    stream = folder / "t.parquet"
    done = weir("trace", "convert", table, "--format", "csv", "--to", "parquet", "--out", stream,
                "--option=header=yes", "--option=reads=r", *options)  # fmt: skip
    assert done.returncode == 0, done.stderr
    modules = ("virtio_pci", "virtio_blk")
    return run(folder, HERE / "polling.init", modules, ("busybox", str(WEIR)), [stream], disks=("a",))


@pytest.mark.parametrize("way", ["yes", "no"])
def test_all_requests_complete(results, way):
    assert (results / "io_poll.txt").read_text() == "1\n"
    rows = pl.read_parquet(results / f"{way}.parquet")
    assert rows.height == REQUESTS and rows["status"].to_list() == [0] * REQUESTS
    assert (rows["completed_ns"] > rows["submitted_ns"]).all()
    fidelity = json.loads((results / f"{way}.json").read_text())
    assert fidelity["submission"]["poll_completions"] == (way == "yes")
    assert fidelity["unfinished"] == 0


def test_polled_requests_interrupt_nobody(results):
    """This test will compare the kernel's own count of interrupts of the disk."""
    polled, interrupted = (int((results / f"{way}.interrupts").read_text()) for way in ("yes", "no"))
    assert polled <= REQUESTS // 20 < REQUESTS // 2 <= interrupted, (polled, interrupted)


def test_a_file_in_memory_is_refused(results):
    log = (results / "file.log").read_text()
    assert (results / "file.rc").read_text() == "2\n", log
    assert "/tmp/file: its completions cannot be polled for" in log and "--poll-completions" in log
    assert not (results / "file.parquet").exists()
