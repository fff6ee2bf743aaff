"""Lazy access to the request tables of runs, each row beside the levels of its run.

Only the columns that a query names are read, and only when it is collected.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
from pyarrow import parquet

from weir.errors import InputError
from weir.load import RUN_AGAIN, Run

#: Columns of `requests.parquet` that are computed with, and whether they hold names, integers or truths.
REQUEST_COLUMNS = {
    "request": "integer",
    "class": "name",
    "client": "integer",
    "op": "name",
    "offset": "integer",
    "size_bytes": "integer",
    "intended_ns": "integer",
    "submitted_ns": "integer",
    "completed_ns": "integer",
    "deadline_ns": "integer",
    "served_ns": "integer",
    "status": "integer",
    "warmup": "truth",
}
#: The same for `block.parquet`.
BLOCK_COLUMNS = {
    "device": "name",
    "sector": "integer",
    "size_bytes": "integer",
    "op": "name",
    "queued_ns": "integer",
    "inserted_ns": "integer",
    "issued_ns": "integer",
    "completed_ns": "integer",
    "status": "integer",
}
#: Rows that are read at once.
ROWS_AT_ONCE = 2**19
_IMPORT_REQUESTS = (
    "import files with every request into another study: latency logs of fio (write_lat_log), or text of "
    "blkparse or biosnoop"
)
_KEEP_REQUESTS = "remove `records: summary` from the study and run it again"
#: Column of both, of runs that several hosts carried out together; null in others.
HOST = "host"


def scan_requests(run: Run) -> pl.LazyFrame:
    """`requests.parquet` of one run: every request, warm-up included, names as strings.

    Raises:
        InputError: the table is absent, cut short, or of another kind.
    """
    path = run.path / "requests.parquet"
    if not path.exists() and (run.path / "summary.json").exists():
        remedy = _IMPORT_REQUESTS if run.imported else _KEEP_REQUESTS
        raise InputError(path, "is absent: only a summary of this run was kept", remedy)
    return scan_table(path, REQUEST_COLUMNS)


def scan_block(run: Run) -> pl.LazyFrame | None:
    """`block.parquet` of one run, or None where there is none (a simulator, or no capture).

    Raises:
        InputError: the table is cut short or of another kind.
    """
    path = run.path / "block.parquet"
    return scan_table(path, BLOCK_COLUMNS) if path.exists() else None


def in_windows(frame: pl.LazyFrame, path: Path, time: str) -> Iterator[pl.LazyFrame]:
    """A table in windows of time of about `ROWS_AT_ONCE` rows each, first the earliest; one of a small table.

    Only the row groups are read that have rows of the window: their statistics say which. In a table that is
    roughly in order of time, each row group is read once or twice.

    Args:
        frame: the table, not yet filtered.
        path: its file.
        time: a column of integers without nulls.
    """
    edges = _edges(path, time)
    for low, high in zip([None, *edges], [*edges, None], strict=True):
        within = [pl.col(time) >= low] if low is not None else []
        within += [pl.col(time) < high] if high is not None else []
        yield frame.filter(*within) if within else frame


def in_parts(frame: pl.LazyFrame) -> Iterator[pl.LazyFrame]:
    """A table in parts of `ROWS_AT_ONCE` rows, in its own order."""
    rows = frame.select(pl.len()).collect().item()
    for first in range(0, max(rows, 1), ROWS_AT_ONCE):
        yield frame.slice(first, ROWS_AT_ONCE)


def _edges(path: Path, time: str) -> list[int]:
    """The times at which windows of in-between rows end; times of a row group count as evenly spread."""
    metadata = parquet.read_metadata(path)
    windows = -(-metadata.num_rows // ROWS_AT_ONCE)
    if windows < 2:
        return []
    column = metadata.schema.names.index(time)
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    known = [(group.column(column).statistics, group.num_rows) for group in groups]
    if any(statistics is None or not statistics.has_min_max for statistics, _ in known):
        return []
    start = np.array([float(statistics.min) for statistics, _ in known])
    end = np.array([float(statistics.max) + 1 for statistics, _ in known])
    density = np.array([rows for _, rows in known]) / (end - start)
    at = np.concatenate([start, end])
    order = np.argsort(at, kind="stable")
    at, density = at[order], np.cumsum(np.concatenate([density, -density])[order])
    rows = np.concatenate([[0.0], np.cumsum(density[:-1] * np.diff(at))])
    wanted = np.arange(1, windows) / windows * rows[-1]
    return sorted({int(edge) for edge in np.interp(wanted, rows, at)})


def scan_measured(runs: Iterable[Run]) -> pl.LazyFrame:
    """The measured requests of many runs, with `run`, `repetition`, `block` and one column per factor.

    Which those are `is_sample` says. Adds `response_ms`: completed minus intended, infinite where the
    request failed or never completed.

    Raises:
        InputError: as `scan_requests`; also if there is no run.
    """
    frames = []
    for run in runs:
        identity = {"run": run.id, "repetition": run.repetition, "block": run.block, **run.levels}
        frames.append(
            scan_requests(run)
            .filter(is_sample(run))
            .with_columns(response_ms(), *(pl.lit(value).alias(name) for name, value in identity.items()))
        )
    if not frames:
        raise InputError("results", "no valid run to read", "run the study first: make study")
    return pl.concat(frames, how="vertical_relaxed")


def is_sample(run: Run) -> pl.Expr:
    """Whether a request is one whose response is measured.

    In an open loop: one that was due in the measured interval, however late it was answered. In a closed
    loop: one that was answered in it (fio gives whatever a client has in flight when time is up the time of
    the last of it), or due in it and never answered.
    """
    low, high = run.window_ns
    closed = [c.name for c in run.classes if c.engine == "fio"]
    if not closed:
        return ~pl.col("warmup")
    answered = (pl.col("completed_ns") >= low) & (pl.col("completed_ns") < high)
    return (
        pl.when(pl.col("class").cast(pl.String).is_in(closed) & pl.col("completed_ns").is_not_null())
        .then(answered)
        .otherwise(~pl.col("warmup"))
    )


def response_ms() -> pl.Expr:
    """Response time in ms: completed minus intended (never from submission: that omits the wait to be sent).

    Infinite where the request failed or was never seen to complete: it took longer than anyone waited.
    """
    served = pl.col("completed_ns").is_not_null() & (pl.col("status") == 0)
    elapsed_ms = (pl.col("completed_ns") - pl.col("intended_ns")) / 1e6
    return pl.when(served).then(elapsed_ms).otherwise(float("inf")).alias("response_ms")


def scan_table(path: Path, columns: dict[str, str]) -> pl.LazyFrame:
    """Columns of a table of a run, checked by name and kind (`name`, `integer` or `truth`), names as strings.

    Raises:
        InputError: the table is absent, cut short, or of another kind.
    """
    try:
        frame = pl.scan_parquet(path)
        schema = frame.collect_schema()
    except FileNotFoundError:
        raise InputError(path, "there is no such file", RUN_AGAIN) from None
    except PermissionError as error:
        raise InputError(path, "cannot be read (permission denied)", "check its permissions") from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(path, f"is cut short or is not Parquet ({reason})", RUN_AGAIN) from error
    for name, kind in columns.items():
        if name not in schema:
            found = ", ".join(schema.names())
            raise InputError(path, f"column `{name}` is missing (found: {found})", "is this another table?")
        if not _is_kind(schema[name], kind):
            raise InputError(
                path, f"column `{name}` is {schema[name]}, not {kind}", "was it written by another version?"
            )
    names = [name for name, kind in columns.items() if kind == "name"]
    host = pl.col(HOST).cast(pl.String) if HOST in schema else pl.lit(None, pl.String).alias(HOST)
    return frame.select(*columns, host).with_columns(pl.col(names).cast(pl.String))


def _is_kind(dtype: pl.DataType, kind: str) -> bool:
    if kind == "name":
        return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)
    if kind == "truth":
        return isinstance(dtype, pl.Boolean)
    return dtype.is_integer()
