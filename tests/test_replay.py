"""`weir replay` from end to end: as recorded, repeated, paused, and with dependencies."""

import json

import polars as pl
import pytest
from support import weir

S = 10**9


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
    assert rows["completed_ns"].max() < 0.39 * S


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
