"""Small sets of streams on a device whose requests take just as long as they say (6.4, 7.3).

The device is a flash device of one channel on which a sector takes a ms, so that a request of c sectors costs
c ms; the scheduler and everything else are those of every study.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from papers.clockwise.source import SECTOR_BYTES
from weir.binary_cache import BinaryCache

#: A flash device that moves a sector in a ms, and does nothing else.
DEVICE = {
    "kind": "ssd",
    "description": "a sector takes a ms",
    "channels": 1,
    "page_kib": 4,
    "read_latency_us": 0,
    "write_latency_us": 0,
    "channel_mb_s": SECTOR_BYTES / 1e3,
    "command_overhead_us": 0,
}
DEVICE_MIB = 64
FILE_BYTES = 4 * 2**20
BEST_EFFORT = "best effort"
#: A recorded stream begins with its first request, so each has one at time 0; all else is so much later, a
#: multiple of every period here, when nothing is left of it.
LEAD_MS = 20_000


@dataclass(frozen=True)
class Stream:
    """A stream: its contract in ms (none of best effort), and when it asks for requests that cost so much."""

    name: str
    cost_ms: int
    asks_ms: Sequence[float]
    period_ms: float | None = None


def served(binary: BinaryCache, scheduler: str, streams: Sequence[Stream], span_ms: float) -> pl.DataFrame:
    """One row per request: `stream`, `asked_ms`, `begun_ms`, `done_ms`, `due_ms` and `late_ms`.

    `due_ms` is a period after the release, which is when it was asked for or when the one before was due;
    null of best effort. Requests that were not served in `span_ms` have none of the later columns.

    Raises:
        InputError: the scheduler refuses the contracts, or is unknown.
    """
    key = ["timelines", scheduler, f"{span_ms} {LEAD_MS}", *(repr(s) for s in streams), json.dumps(DEVICE)]
    path = binary.made(
        key, ".parquet", lambda out: _run(binary, scheduler, streams, span_ms).write_parquet(out)
    )
    return pl.read_parquet(path)


def _run(binary: BinaryCache, scheduler: str, streams: Sequence[Stream], span_ms: float) -> pl.DataFrame:
    with tempfile.TemporaryDirectory(dir=binary.cache, prefix=".timelines-") as name:
        folder = Path(name)
        (folder / "device.yml").write_text(json.dumps(DEVICE), encoding="utf-8")
        document = {
            "name": "timelines",
            "question": "When is each request served?",
            "testbed": "simulator",
            "seed": 1,
            "repetitions": 1,
            "warmup_s": 0,
            "duration_s": (LEAD_MS + span_ms) / 1e3,
            "records": "requests",
            "storage": {"profile": str(folder / "device.yml"), "heads": 1, "size_mib": DEVICE_MIB},
            "classes": {_slug(s.name): _class(folder, s) for s in streams},
            "factors": {"scheduler": [scheduler]},
        }
        (folder / "timelines.yml").write_text(json.dumps(document), encoding="utf-8")
        binary.output("simulate", folder / "timelines.yml", "--out", folder / "out", accepted=(0, 3))
        (found,) = (folder / "out").glob("timelines/*/requests.parquet")
        rows = pl.read_parquet(found, columns=["class", "intended_ns", "served_ns", "completed_ns"])
    return _told(rows, streams, span_ms)


def _class(folder: Path, stream: Stream) -> dict[str, object]:
    path = folder / f"{_slug(stream.name)}.csv"
    # The last one is never reached: a recording that ends would go round.
    times = [0.0, *(LEAD_MS + at for at in stream.asks_ms), 1e9]
    lines = [f"{at / 1e3:.9f},R,0,{stream.cost_ms * SECTOR_BYTES}" for at in times]
    path.write_text("\n".join(["time,op,offset,size", *lines]) + "\n", encoding="utf-8")
    columns = {"header": "yes", "time": "time", "op": "op", "reads": "R", "offset": "offset", "size": "size"}
    found: dict[str, object] = {
        "workload": "random-4k",
        "clients": 1,
        "stripe_unit_kib": FILE_BYTES // 1024,
        "with": {
            "arrivals": {"recorded": {"path": str(path), "format": "csv", "options": columns}},
            "files": {"count": 1, "size": {"fixed": {"bytes": FILE_BYTES}}},
            "sizes": "recorded",
            "access": "recorded",
            "alignment_bytes": SECTOR_BYTES,
        },
    }
    if stream.period_ms is None:
        return found | {"wants": "interactive"}
    return found | {
        "wants": "real_time",
        "contract": {"cost_ms": stream.cost_ms, "period_ms": stream.period_ms},
    }


def _told(rows: pl.DataFrame, streams: Sequence[Stream], span_ms: float) -> pl.DataFrame:
    parts = []
    for stream in streams:
        own = rows.filter(pl.col("class").cast(pl.String) == _slug(stream.name)).sort("intended_ns")
        own = own.filter(pl.col("intended_ns") >= LEAD_MS * 1_000_000)
        asked = own["intended_ns"].to_numpy() / 1e6 - LEAD_MS
        due = np.full(len(asked), np.nan)
        last = -np.inf
        for at, ms in enumerate(asked):
            if stream.period_ms is not None:
                last = due[at] = max(ms, last) + stream.period_ms
        parts.append(
            pl.DataFrame(
                {
                    "stream": [stream.name] * len(asked),
                    "asked_ms": asked,
                    "begun_ms": own["served_ns"].cast(pl.Float64) / 1e6 - LEAD_MS,
                    "done_ms": own["completed_ns"].cast(pl.Float64) / 1e6 - LEAD_MS,
                    "due_ms": pl.Series(due).fill_nan(None),
                }
            )
        )
    table = pl.concat(parts).with_columns(
        (pl.col("done_ms") - pl.col("due_ms")).clip(lower_bound=0).alias("late_ms")
    )
    return table.filter(pl.col("asked_ms") < span_ms).sort("begun_ms", "asked_ms")


def _slug(name: str) -> str:
    return name.replace(" ", "-")


def misses(table: pl.DataFrame) -> int:
    """Requests of contracts that were late; to the nearest us, for times are rounded to ns on the way."""
    return int((table["late_ms"].fill_null(0) > 1e-3).sum())
