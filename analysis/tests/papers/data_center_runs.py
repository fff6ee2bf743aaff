"""Small studies of the shared data center as the data plane writes them.

Each class answers at a fixed rate, a little more in one repetition than in another; nothing is measured.
"""

import bisect
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

WARMUP_S, DURATION_S = 1.0, 4.0
#: How much faster the second repetition is.
STEADY = 0.0005


@dataclass
class Cell:
    """One run of a study: requests of each class in a second, and what else is observed."""

    levels: dict
    per_s: dict[str, float]
    kib: float = 8
    slow: float = 0.0
    network_bytes_by_served: float | None = None
    read_by_served: float = 0.0
    response_ms: float | None = None
    operations_us: dict[str, float] = field(default_factory=dict)
    pages: pl.DataFrame | None = None
    hot: tuple[str, ...] = ()


def write_study(
    results: Path, name: str, cells: list[Cell], repetitions: int = 2, capture: bool = True
) -> Path:
    """Writes a study and returns its folder."""
    path = results / f"data-center-{name}"
    runs = []
    for repetition in range(repetitions):
        for cell in cells:
            run_id = f"run-{len(runs)}"
            counts = {one: 0 if rate == 0 else 8 for one, rate in cell.per_s.items()}
            run = {
                "format": 1, "id": run_id, "study": path.name, "question": "Which?", "testbed": "device",
                "cell": json.dumps(cell.levels), "levels": cell.levels, "repetition": repetition,
                "block": repetition, "order": len(runs), "seed": 1, "warmup_s": WARMUP_S,
                "duration_s": DURATION_S, "settings": {},
                "classes": [
                    {"name": one, "workload": "w", "clients": clients, "engine": "web"}
                    for one, clients in counts.items()
                ],
            }  # fmt: skip
            runs.append(run)
            _write_run(path / run_id, run, cell, repetition, capture)
    factors: dict[str, list] = {}
    for run in runs:
        for factor, level in run["levels"].items():
            known = factors.setdefault(factor, [])
            known.extend([] if level in known else [level])
    plan = {
        "format": 1, "study": path.name, "question": "Which?", "description": "", "seed": 1,
        "repetitions": repetitions, "factors": factors, "devices": [], "runs": runs, "estimate_s": 1,
    }  # fmt: skip
    (path / "plan.json").write_text(json.dumps(plan))
    return path


def _write_run(folder: Path, run: dict, cell: Cell, repetition: int, capture: bool) -> None:
    folder.mkdir(parents=True)
    frames = [_operations(cell)] if cell.operations_us else []
    for name, rate in cell.per_s.items():
        if rate and not cell.operations_us:
            frames.append(_requests(cell, name, rate * (1 + STEADY * repetition)))
    requests = pl.concat(frames).sort("intended_ns").with_row_index("request")
    _frame(requests, "device", "op").write_parquet(folder / "requests.parquet")
    served = int(requests["size_bytes"].sum())
    read = int(served * cell.read_by_served)
    network = {}
    if cell.network_bytes_by_served is not None:
        one_way = int(served * cell.network_bytes_by_served / 2)
        network = {"client": {"received_bytes": one_way, "sent_bytes": one_way}}
    observed = {
        "network": network, "device_read_bytes": read,
        "hot": {"web": {name: {"measured_share": 0.25} for name in cell.hot}},
        "web": {"lateness": {"p99_ns": 7_000_000}}, "memory": None, "residency": {},
        "cpu": {name: {"user_ns": 10**8, "system_ns": 10**9} for name in ("driver", "run.web")},
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "observed.json").write_text(json.dumps(observed))
    (folder / "verdict.json").write_text(json.dumps({"format": 1, "status": "valid", "rules": []}))
    if capture:
        _block(read).write_parquet(folder / "block.parquet")
    if cell.pages is not None:
        cell.pages.write_parquet(folder / "pages.parquet")


def _requests(cell: Cell, name: str, rate: float) -> pl.DataFrame:
    n = round(rate * (WARMUP_S + DURATION_S))
    intended = np.round(np.arange(n) / rate * 1e9).astype(np.int64)
    quick = cell.response_ms or 1.0
    took = np.where(np.arange(n) % 100 < 100 * cell.slow, 20.0, quick)
    completed = intended + np.round(took * 1e6).astype(np.int64)
    return _of(name, intended, completed, round(cell.kib * 1024))


def _operations(cell: Cell) -> pl.DataFrame:
    frames = []
    for name, us in cell.operations_us.items():
        intended = np.arange(64, dtype=np.int64) * 10**7 + 2 * 10**9
        took = us * 1e3 * (1 + 0.02 * np.sin(np.arange(64)))
        frames.append(_of(name, intended, intended + np.round(took).astype(np.int64), 4096))
    return pl.concat(frames)


def _of(name: str, intended: np.ndarray, completed: np.ndarray, size_bytes: int) -> pl.DataFrame:
    n = intended.size
    empty = pl.Series([None] * n, dtype=pl.Int64)
    return pl.DataFrame(
        {
            "class": [name] * n, "client": pl.Series(np.arange(n) % 8, dtype=pl.UInt32),
            "device": ["shared"] * n, "op": ["read"] * n, "offset": pl.Series([0] * n, dtype=pl.UInt64),
            "size_bytes": pl.Series([size_bytes] * n, dtype=pl.UInt64), "intended_ns": intended,
            "submitted_ns": intended, "completed_ns": completed, "deadline_ns": empty, "served_ns": empty,
            "status": pl.Series([0] * n, dtype=pl.Int32), "warmup": intended < WARMUP_S * 1e9,
        }
    )  # fmt: skip


def _block(read: int) -> pl.DataFrame:
    """What was read, in equal parts over the run."""
    n = 100
    at = np.linspace(0, (WARMUP_S + DURATION_S) * 1e9, n, endpoint=False).astype(np.int64)
    frame = pl.DataFrame(
        {
            "device": ["loop0"] * n, "sector": pl.Series(range(n), dtype=pl.UInt64),
            "size_bytes": pl.Series([read // n] * n, dtype=pl.UInt32), "op": ["read"] * n, "queued_ns": at,
            "inserted_ns": at, "issued_ns": at, "completed_ns": at,
            "status": pl.Series([0] * n, dtype=pl.Int32),
        }
    )  # fmt: skip
    return _frame(frame, "device", "op")


def _frame(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    known = [name for name in (*names, "class") if name in frame.columns]
    return frame.with_columns(pl.col(known).cast(pl.Categorical))


def walk(transitions: dict[str, dict[str, float]], clients: int, pages: int, seed: int) -> pl.DataFrame:
    """The pages of clients that walk over a table of transitions from the home page."""
    rng = np.random.default_rng(seed)
    rows = []
    upto = {page: (list(row), np.cumsum(list(row.values())).tolist()) for page, row in transitions.items()}
    for client in range(clients):
        page = "HOME"
        for at, drawn in enumerate(rng.uniform(size=pages).tolist()):
            rows.append((client, page, at))
            following, sums = upto[page]
            page = following[min(bisect.bisect(sums, drawn), len(sums) - 1)]
    frame = pl.DataFrame(rows, ["client", "page", "at"], orient="row")
    ns = (pl.col("at") * int((WARMUP_S + DURATION_S) * 1e9) // pages).cast(pl.Int64)
    return frame.select(
        pl.int_range(pl.len(), dtype=pl.UInt64).alias("request"),
        pl.lit("shoppers").cast(pl.Categorical).alias("class"),
        pl.col("client").cast(pl.UInt32),
        pl.col("page").cast(pl.Categorical),
        ns.alias("intended_ns"),
        ns.alias("submitted_ns"),
        (ns + 1000).alias("completed_ns"),
        pl.lit(100, pl.UInt64).alias("size_bytes"),
        pl.lit(200, pl.UInt16).alias("http_status"),
        pl.lit(0, pl.Int32).alias("status"),
        (ns < int(WARMUP_S * 1e9)).alias("warmup"),
    )
