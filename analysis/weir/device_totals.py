"""Counts, sums and distributions of the requests of one block device of a run, added part by part.

Memory does not grow with the number of requests, but with the number of moments at which the device became
idle: at most 16 bytes for each.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weir.class_totals import Columns, Mean
from weir.distribution import Distribution
from weir.load import Run

Times = NDArray[np.int64]


class Union:
    """Intervals `[start, end)` of time, cut to a window: their total length, and that of their union.

    Attributes:
        total_ns: the sum of their lengths.
    """

    def __init__(self, window_ns: tuple[int, int]) -> None:
        self._window = window_ns
        self.total_ns = 0
        # Disjoint and sorted.
        self._start = self._end = np.empty(0, np.int64)

    @property
    def covered_ns(self) -> int:
        """The time that at least one interval covers."""
        return int((self._end - self._start).sum())

    def add(self, start: Times, end: Times) -> None:
        """Adds intervals in any order."""
        start, end = np.clip(start, *self._window), np.clip(end, *self._window)
        self.total_ns += int((end - start).sum())
        start, end = start[(kept := end > start)], end[kept]
        if start.size == 0:
            return
        # What ends before these begin stays as it is.
        at = int(np.searchsorted(self._end, start.min()))
        start, end = np.concatenate([self._start[at:], start]), np.concatenate([self._end[at:], end])
        order = np.argsort(start, kind="stable")
        start, reached = start[order], np.maximum.accumulate(end[order])
        first = np.concatenate([[True], start[1:] > reached[:-1]])
        last = np.concatenate([first[1:], [True]])
        self._start = np.concatenate([self._start[:at], start[first]])
        self._end = np.concatenate([self._end[:at], reached[last]])


def columns(run: Run) -> list[pl.Expr]:
    """What `DeviceTotals` needs of the columns of `block.parquet`."""
    low, high = run.window_ns
    # Where a source did not see the queueing, the request is there from the first time that it did see.
    there = pl.coalesce("queued_ns", "inserted_ns", "issued_ns")
    queued, issued, completed = (pl.col(name) for name in ("queued_ns", "issued_ns", "completed_ns"))
    seen = there.is_not_null() & issued.is_not_null() & completed.is_not_null()
    return [
        # Hosts call their disks alike.
        pl.concat_str(["host", "device"], separator=":", ignore_nulls=True).alias("device"),
        pl.col("size_bytes").cast(pl.Float64),
        *(time.fill_null(0) for time in (queued, issued, completed)),
        there.fill_null(0).alias("there_ns"),
        seen.alias("seen"),
        (seen & (queued >= low) & (queued < high)).fill_null(value=False).alias("split"),
        (seen & (completed >= low) & (completed < high)).fill_null(value=False).alias("in_window"),
        completed.is_null().alias("lost"),
        (pl.col("status") != 0).alias("failed"),
    ]


def queueing_ms() -> pl.Expr:
    """Queueing delay of a request of `columns` in ms."""
    return (pl.col("issued_ns") - pl.col("queued_ns")) / 1e6


def service_ms() -> pl.Expr:
    """Service time of a request of `columns` in ms."""
    return (pl.col("completed_ns") - pl.col("issued_ns")) / 1e6


class DeviceTotals:
    """Totals of one device.

    Attributes:
        requests: all requests.
        lost: those that were not seen to complete.
        failed: those with an error.
        completed: those completed in the measured interval.
        completed_bytes: their bytes.
        queueing: queueing delays in ms of those queued in the measured interval.
        service: their service times in ms.
        queueing_mean: mean of `queueing`.
        service_mean: mean of `service`.
        busy: from issue to completion.
        present: from the first time seen to completion.
        waiting_ns: sum of the times from the first time seen to issue, within the measured interval.
    """

    def __init__(self, run: Run) -> None:
        self.requests = self.lost = self.failed = self.completed = 0
        self.completed_bytes = 0.0
        self.queueing, self.service = Distribution(), Distribution()
        self.queueing_mean, self.service_mean = Mean(), Mean()
        self.busy, self.present = Union(run.window_ns), Union(run.window_ns)
        self.waiting_ns, self._window = 0, run.window_ns

    def add(self, rows: Columns) -> None:
        """Adds requests, in any order."""
        self.requests += rows["lost"].size
        self.lost += int(np.count_nonzero(rows["lost"]))
        self.failed += int(np.count_nonzero(rows["failed"]))
        self.completed += int(np.count_nonzero(rows["in_window"]))
        self.completed_bytes += float(rows["size_bytes"][rows["in_window"]].sum())
        split = rows["split"]
        for first, then, values, mean in (
            ("queued_ns", "issued_ns", self.queueing, self.queueing_mean),
            ("issued_ns", "completed_ns", self.service, self.service_mean),
        ):
            took = (rows[then][split] - rows[first][split]) / 1e6
            values.add(took)
            mean.add(took)
        there, issued, completed = (
            rows[name][rows["seen"]] for name in ("there_ns", "issued_ns", "completed_ns")
        )
        self.busy.add(issued, completed)
        self.present.add(there, completed)
        self.waiting_ns += int((np.clip(issued, *self._window) - np.clip(there, *self._window)).sum())
