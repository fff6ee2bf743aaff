"""`weir replay` from end to end: as recorded, repeated, paused, and with dependencies."""

import json
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest
from support import weir


@pytest.fixture
def disk(tmp_path):
    """A file of 4 MiB."""
    path = tmp_path / "disk"
    path.write_bytes(bytes(4 << 20))
    return path


@pytest.fixture
def recorded(tmp_path):
    """A closed loop of 40 requests in 0.4 s: 8 ms of response time and 2 ms of think time each."""
    lines = ["time,response,offset,size,op"]
    for n in range(40):
        lines.append(f"{n * 0.010:.3f},0.008,{n % 8 * 4096},4096,r")
    table = tmp_path / "t.csv"
    table.write_text("\n".join(lines) + "\n")
    out = tmp_path / "t.parquet"
    options = [f"--option={key}={key}" for key in ("time", "response", "offset", "size", "op")]
    done = weir("trace", "convert", table, "--format", "csv", "--to", "parquet", "--out", out,
                "--option=header=yes", "--option=reads=r", *options)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


def replay(stream, disk, out, *options):
    """The rows of a replay and its fidelity."""
    done = weir("replay", stream, "--target", disk, "--out", out, "--json", *options)
    assert done.returncode == 0, done.stderr
    return pl.read_parquet(out).sort("request"), json.loads(done.stdout)


def test_a_replay_has_a_certificate(recorded, disk, tmp_path):
    rows, fidelity = replay(recorded, disk, tmp_path / "out.parquet")
    assert rows.height == 40 and rows["status"].to_list() == [0] * 40
    certificate = fidelity["certificate"]
    assert certificate["asked_per_s"] == pytest.approx(100, rel=0.01)
    assert certificate["kept_per_s"] == pytest.approx(100, rel=0.5)
    assert certificate["limit_p99_ns"] == 100_000
    assert fidelity["submission"]["rings"] == 1
    text = weir("replay", recorded, "--target", disk, "--out", tmp_path / "again.parquet").stdout
    assert "certificate: 100/s asked" in text and "submission: 1 io_uring" in text


def test_a_stream_is_repeated_with_other_addresses(recorded, disk, tmp_path):
    options = ("--loop", 2, "--shift-bytes", 1 << 20)
    rows, _ = replay(recorded, disk, tmp_path / "out.parquet", *options)
    assert rows["request"].to_list() == list(range(80))
    first, second = rows[:40], rows[40:]
    assert (second["intended_ns"] - first["intended_ns"]).unique().to_list() == [400_000_000]
    assert (second["offset"] - first["offset"]).unique().to_list() == [1 << 20]
    rows, _ = replay(recorded, disk, tmp_path / "more.parquet", "--loop-for", 0.5)
    assert rows.height == 50


def test_a_stream_is_paused(recorded, disk, tmp_path):
    rows, _ = replay(recorded, disk, tmp_path / "out.parquet", "--pause", "0.1:0.25")
    gaps = rows["intended_ns"].diff().drop_nulls()
    assert gaps.unique().sort().to_list() == [10_000_000, 260_000_000]
    assert gaps.arg_max() == 9


def test_dependencies_make_a_fast_device_faster(recorded, disk, tmp_path):
    rows, fidelity = replay(recorded, disk, tmp_path / "out.parquet", "--dependencies", 5)
    think = rows["intended_ns"][1:] - rows["completed_ns"][:-1]
    assert think.unique().to_list() == [2_000_000]
    assert fidelity["max_in_flight"] == 1
    # The median: a stall of the disk may well make the whole longer than the recording.
    assert rows["intended_ns"].diff().drop_nulls().median() < 10_000_000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--loop", 0), "must be above 0"),
        (("--shift-bytes", 512), "give one of them"),
        (("--pause", "1"), "write AT:FOR"),
        (("--pause", "1:-2"), "number of seconds"),
        (("--dependencies", "nan"), "from 0 to 3600000"),
        (("--dependencies", 1, "--rings", 2), "leave it out"),
        (("--as", "issued"), "does not say when requests were issued"),
        (("--rings", 0), "1..=64"),
        (("--poll", "maybe"), "write yes or no"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(recorded, disk, tmp_path, options, says):
    out = tmp_path / "out.parquet"
    done = weir("replay", recorded, "--target", disk, "--out", out, *options)
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr
    assert not out.exists()


def test_dependencies_need_completions(disk, tmp_path):
    stream = tmp_path / "s.parquet"
    table = tmp_path / "t.csv"
    table.write_text("time,offset,size\n0,0,4096\n1,4096,4096\n")
    options = [f"--option={key}={key}" for key in ("time", "offset", "size")]
    weir("trace", "convert", table, "--format", "csv", "--to", "parquet", "--out", stream,
         "--option=header=yes", *options)  # fmt: skip
    done = weir("replay", stream, "--target", disk, "--out", tmp_path / "o", "--dependencies", 1)
    assert done.returncode == 2 and "has no completions" in done.stderr


MIXED = """\
time,offset,size,op
0,0,4096,w
0.01,4096,4096,write_fua
0.02,0,0,flush
0.03,16384,8192,discard
0.04,32768,4096,z
0.05,0,4096,r
"""


@pytest.fixture
def mixed(tmp_path):
    """Six requests, one of each operation."""
    table, out = tmp_path / "m.csv", tmp_path / "m.parquet"
    table.write_text(MIXED)
    options = [f"--option={key}={key}" for key in ("time", "offset", "size", "op")]
    done = weir("trace", "convert", table, "--format", "csv", "--to", "parquet", "--out", out,
                "--option=header=yes", *options)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return out


OPS = ["write", "write_fua", "flush", "discard", "write_zeroes", "read"]


def assert_changed(before, after):
    """Written are the first two blocks; discarded and zeroed bytes are 0, all others as they were."""
    assert after[:4096] != before[:4096] and after[4096:8192] != before[4096:8192]
    gone = [*range(16384, 24576), *range(32768, 36864)]
    assert not any(after[at] for at in gone)
    kept = set(range(8192, len(before))) - set(gone)
    assert all(before[at] == after[at] for at in kept)


def test_all_operations_reach_a_file(mixed, tmp_path):
    path, before = tmp_path / "disk", b"\xaa" * (1 << 18)
    path.write_bytes(before)
    rows, _ = replay(mixed, path, tmp_path / "out.parquet", "--allow-writes")
    assert rows["op"].to_list() == OPS
    assert rows["status"].to_list() == [0] * 6 and rows["completed_ns"].null_count() == 0
    assert rows["size_bytes"].to_list() == [4096, 4096, 0, 8192, 4096, 4096]
    assert_changed(before, path.read_bytes())
    # The discarded range is a hole.
    assert path.stat().st_blocks * 512 <= len(before) - 8192
    # Not without permission.
    done = weir("replay", mixed, "--target", path, "--out", tmp_path / "no.parquet")
    assert done.returncode == 2 and "writing was not allowed" in done.stderr


def counted(disk):
    """Reads, writes, discards and flushes of the kernel's statistics of a block device."""
    fields = Path(f"/sys/block/{Path(disk).name}/stat").read_text().split()
    return [int(fields[at]) for at in (0, 4, 11, 15)]


@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")
def test_all_operations_reach_a_block_device(mixed, tmp_path):
    path, before = tmp_path / "backing", b"\xaa" * (1 << 20)
    path.write_bytes(before)
    command = ["losetup", "--find", "--show", "--direct-io=on", path]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no loop device: {made.stderr}")
    disk = made.stdout.strip()
    try:
        start = counted(disk)
        rows, _ = replay(mixed, disk, tmp_path / "out.parquet", "--allow-writes")
        assert rows["status"].to_list() == [0] * 6, rows.select("op", "status")
        reads, writes, discards, flushes = (now - was for now, was in zip(counted(disk), start, strict=True))
        # Zeroing and an empty flush count as writes.
        assert (reads, writes, discards) == (1, 4, 1)
        # Without forced unit access in the device, its write is followed by a flush. One flush of the device
        # serves all requests that wait for one, so a stalled write may share that of the empty flush.
        has_fua = Path(f"/sys/block/{Path(disk).name}/queue/fua").read_text().strip() == "1"
        shared = rows["completed_ns"][1] >= rows["submitted_ns"][2]
        assert flushes in ({1} if has_fua else {1, 2} if shared else {2})
        with open(disk, "rb") as device:
            assert_changed(before, device.read())
        # A device takes whole blocks.
        pl.read_parquet(mixed).with_columns(
            offset=pl.when(pl.col("op") == "discard").then(100).otherwise(pl.col("offset"))
        ).write_parquet(tmp_path / "odd.parquet")
        done = weir(
            "replay", tmp_path / "odd.parquet", "--target", disk, "--out", tmp_path / "no", "--allow-writes"
        )
        assert done.returncode == 2
    finally:
        subprocess.run(["losetup", "--detach", disk], check=True)


def test_what_cannot_be_polled_for_is_refused(recorded, mixed, disk, tmp_path):
    """This test will ask for IOPOLL with flushes in the stream, and on a disk without a polling queue."""
    out = tmp_path / "out.parquet"
    options = ("--target", disk, "--out", out, "--allow-writes", "--poll-completions")
    done = weir("replay", mixed, *options, "yes")
    assert done.returncode == 2 and "3 flushes, discards or zeroings" in done.stderr, done.stderr
    if all(queue.read_text() == "0\n" for queue in Path("/sys/block").glob("*/queue/io_poll")):
        done = weir("replay", recorded, *options, "yes")
        assert done.returncode == 2 and f"{disk}: its completions cannot be polled for" in done.stderr
    assert not out.exists() and disk.read_bytes() == bytes(4 << 20)
    done = weir("replay", recorded, *options, "no", "--json")
    assert done.returncode == 0 and not json.loads(done.stdout)["submission"]["poll_completions"]


STUDY = """\
name: {name}
question: How are requests handed to the kernel?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: 1
capture: optional
storage: {{profile: "null", heads: 1, size_mib: 64}}
classes:
  text:
    workload: poisson-text
    with:
      arrivals.poisson.rate_per_s: {rate}
      files.count: 8
      sizes: {{drawn: {{fixed: {{bytes: 4096}}}}}}
    clients: 100
factors: {{scheduler: [none]}}
hold: {{filesystem: raw, architecture: partitioned, queue_depth: 64}}
"""


def test_a_run_chooses_as_a_replay_does(bench):
    """Buffers are registered where the study's rate is high, before the capture begins."""
    submissions = {}
    for name, rate in (("slow", 5), ("fast", 200)):
        study = bench.folder / f"{name}.yml"
        study.write_text(STUDY.format(name=name, rate=rate))
        code, told = bench.play(study)
        assert code == 0, told
        (run,) = bench.run_folders(name).values()
        replayed = json.loads((run / "observed.json").read_text())["replay"]
        assert replayed["completed"] == replayed["planned"] == pytest.approx(100 * rate * 1.2, rel=0.2)
        submissions[name] = replayed["submission"]
    assert not submissions["slow"]["fixed_buffers"] and submissions["fast"]["fixed_buffers"]
    assert all(0 < one["nothing_ns"] < 10**6 for one in submissions.values())
