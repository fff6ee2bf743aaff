"""Recordings of other programs: fio's latency logs, text of blkparse, biosnoop and biosnoop.bt.

`weir trace convert` reads every request of all but the last, which has no operation, position or size: its
delays, in whole ms, become a histogram.
"""

import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyarrow import parquet

from weir import locate
from weir.derive import QUANTILES
from weir.errors import InputError
from weir.imported import text
from weir.imported.outcome import ClassOutcome, Histogram, Outcome, figures

#: `PREFIX_lat.N.log` and the like: logs of jobs N of one call of fio.
LOG = re.compile(r"(?P<prefix>.+)_(?P<measure>lat|clat|slat)\.(?P<job>\d+)\.log")
#: Other logs of fio, and why they are not read.
OTHER_LOG = re.compile(r".+_(bw|iops|clat_hist)\.\d+\.log")
BPFTRACE_HEADER = "TIME(ms) DISK COMM PID LAT(ms)"
#: Formats of `weir trace` that record the block layer, and their programs.
_PROGRAMS = {"blkparse": "blktrace (blkparse)", "biosnoop": "biosnoop"}


def fio_logs(paths: list[Path]) -> Outcome:
    """The latency logs of one call of fio, one for each of its jobs."""
    found = [LOG.fullmatch(path.name) for path in paths]
    measure, prefix = found[0]["measure"], found[0]["prefix"]
    tables = []
    for path, match in zip(paths, found, strict=True):
        rows, _, schema = _converted(path, "fio-log")
        tables.append(rows.with_columns(client=pl.lit(int(match["job"]) - 1, pl.UInt32)))
    # All began at once: fio counts from the start of each job.
    unknown = (
        "completions have a resolution of 1 ms (response times 1 ns)",
        "the class has the name of the logs: logs do not name the job",
    )
    clients = len(paths)
    about = {
        "measure": measure,
        "program": "fio",
        "form": "fio latency log",
        "engine": "fio",
        "unknown": unknown,
    }
    return _outcome(paths, pl.concat(tables), schema, prefix, clients, about)


def block_requests(path: Path, form: str) -> Outcome:
    """Requests at the block layer, from text of blkparse or biosnoop."""
    rows, notes, schema = _converted(path, form)
    devices = rows["device"].unique().to_list()
    if len(devices) > 1:
        listed = ", ".join(sorted(map(str, devices))[:8])
        raise InputError(path, f"has requests of several disks ({listed})", "keep the lines of one disk")
    open_ended = rows["completed_ns"].null_count()
    unknown = [f"{open_ended} requests without a recorded completion are left out"] if open_ended else []
    unknown += notes
    rows = rows.filter(pl.col("completed_ns").is_not_null())
    about = {"measure": "block", "program": _PROGRAMS[form], "form": f"text of {form}", "engine": "recorded"}
    return _outcome([path], rows, schema, "", 0, about | {"unknown": tuple(unknown)})


def bpftrace(path: Path) -> Outcome:
    """Delays that biosnoop.bt printed: whole ms, rounded down, from queueing to completion."""
    counts: dict[float, int] = {}
    disks: Counter[str] = Counter()
    times: list[int] = []
    is_table = False
    for number, line in enumerate(text.read(path).splitlines(), 1):
        if " ".join(line.split()) == BPFTRACE_HEADER:
            is_table = True
            continue
        match = re.fullmatch(r"([0-9]{1,15})\s+(\S+)\s+(.*\S)\s+([0-9]+)\s+([0-9]{1,12})\s*", line)
        if not is_table or not line.strip():
            continue
        if match is None:
            problem = f"line {number} is {line[:48]!r}, not {BPFTRACE_HEADER}"
            raise InputError(path, problem, "remove what biosnoop.bt did not print")
        times.append(int(match[1]))
        disks[match[2]] += 1
        # The middle of the millisecond.
        value_ns = (int(match[5]) + 0.5) * 1e6
        counts[value_ns] = counts.get(value_ns, 0) + 1
    if not times:
        raise InputError(path, "has no request", "record while requests are sent")
    if len(disks) > 1:
        listed = ", ".join(sorted(disks)[:8])
        raise InputError(path, f"has requests of several disks ({listed})", "keep the lines of one disk")
    # A bin is one ms wide, so the shortest delays are the least certain.
    histogram = Histogram.of(counts, 1.0)
    seconds = max((max(times) - min(times)) / 1e3, 1e-3)
    values = figures(
        requests=histogram.n,
        mean_ns=None,
        max_ns=None,
        quantiles_ns={name: histogram.quantile_ns(q) for name, q in QUANTILES.items()},
        size_bytes=0,
        seconds=seconds,
    )
    # Sizes were not recorded: bytes are unknown, not 0.
    values["throughput_mb_s"] = None
    unknown = (
        "biosnoop.bt prints whole ms, rounded down: a quantile is within 0.5 ms, no mean, no maximum",
        "biosnoop.bt prints neither operation nor size: no throughput, reads and writes are one class",
    )
    one = ClassOutcome("requests", "recorded", 0, "recorded", values, histogram, next(iter(disks)))
    return Outcome(
        (path,), "bpftrace (biosnoop.bt)", "text of biosnoop.bt", "block", (one,), seconds, None, unknown
    )


def _converted(path: Path, form: str) -> tuple[pl.DataFrame, list[str], pa.Schema]:
    """The rows of `requests.parquet` that `weir trace convert` makes, and what it noted."""
    with tempfile.TemporaryDirectory(prefix="weir-import-") as folder:
        out = Path(folder) / "requests.parquet"
        command = [str(locate.binary()), "trace", "convert", str(path), "--format", form, "--sort"]
        command += ["--to", "parquet", "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().removeprefix("error: ").removeprefix(f"{path}:")
            problem = re.sub(r"^(\d+): ", r"line \1: ", said) or "cannot be read"
            raise InputError(path, problem, f"weir trace stat --format {form} {path} reads it alone")
        said = (line.strip() for line in done.stdout.splitlines())
        notes = [line.removeprefix("noted: ") for line in said if line.startswith("noted: ")]
        table = parquet.read_table(out)
        return (
            pl.from_arrow(table),
            [note for note in notes if "without a completion" not in note],
            table.schema,
        )


def _outcome(
    paths: list[Path], rows: pl.DataFrame, schema: pa.Schema, prefix: str, clients: int, about: dict[str, Any]
) -> Outcome:
    """The outcome with these requests: one class for each operation, the first submission at time 0."""
    if rows.is_empty():
        raise InputError(paths[0], "has no completed request", "record while requests are sent")
    names = rows["op"].cast(pl.String).unique().sort().to_list()
    titles = {op: prefix if prefix and len(names) == 1 else f"{prefix}-{op}".strip("-") for op in names}
    first = rows["intended_ns"].min()
    times = ("intended_ns", "submitted_ns", "completed_ns", "served_ns")
    rows = rows.sort("intended_ns").with_columns(
        pl.col("op").cast(pl.String).replace_strict(titles).alias("class"),
        pl.int_range(pl.len(), dtype=pl.UInt64).alias("request"),
        *(pl.col(name) - first for name in times),
    )
    medium = str(rows["device"][0] or "") if about["engine"] == "recorded" else ""
    classes = tuple(
        ClassOutcome(title, "recorded requests", clients, about["engine"], medium=medium)
        for title in titles.values()
    )
    # One ns after the last completion: the end of the interval is not in it.
    duration_s = (int(rows["completed_ns"].max()) + 1) / 1e9
    table = rows.select(schema.names).to_arrow().cast(schema)
    kinds = {name: about[name] for name in ("program", "form", "measure", "unknown")}
    return Outcome(tuple(paths), classes=classes, duration_s=duration_s, requests=table, **kinds)
