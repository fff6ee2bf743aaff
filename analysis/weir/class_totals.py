"""Counts, sums and distributions of the requests of one class of a run, added window by window.

Memory does not grow with the number of requests: see `weir.distribution` and `weir.series`. The metrics made
of them are in `weir.derive`.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weir import metrics
from weir.load import AppClass, Run
from weir.series import Series
from weir.tables import is_sample, response_ms

#: The interval in which arrivals are counted for burstiness.
BURST_INTERVAL_MS = 100
#: Columns of one class's requests.
Columns = Mapping[str, NDArray]


class Mean:
    """Mean of values that are added in parts; None without a value."""

    def __init__(self) -> None:
        self._sum, self.n = 0.0, 0

    def add(self, values: NDArray[np.float64]) -> None:
        """Adds values, infinity allowed."""
        self._sum += float(values.sum())
        self.n += values.size

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return self._sum / self.n if self.n else None


def columns(run: Run) -> list[pl.Expr]:
    """What `ClassTotals` needs of the columns of `requests.parquet`; `class` is a number, null if unknown."""
    low, high = run.measured_ns
    completed = pl.col("completed_ns")
    ok = (pl.col("status") == 0) & completed.is_not_null()
    served = ok & pl.col("served_ns").is_not_null()
    has_deadline = pl.col("deadline_ns").is_not_null()
    waited, took = pl.col("served_ns") - pl.col("intended_ns"), completed - pl.col("served_ns")
    names = pl.Enum([c.name for c in run.classes])
    return [
        pl.col("class").cast(names, strict=False).to_physical(),
        pl.col("client"),
        pl.col("size_bytes").cast(pl.Float64),
        pl.col("intended_ns"),
        response_ms(),
        is_sample(run).alias("sample"),
        (~pl.col("warmup")).alias("measured"),
        (ok & (completed >= low) & (completed < high)).fill_null(value=False).alias("in_window"),
        (pl.col("status") != 0).alias("failed"),
        completed.is_null().alias("unfinished"),
        has_deadline.alias("has_deadline"),
        (has_deadline & ~(ok & (completed <= pl.col("deadline_ns"))).fill_null(value=False)).alias("late"),
        served.alias("served"),
        pl.when(served).then(waited).otherwise(0).alias("queueing_ns"),
        pl.when(served).then(took).otherwise(0).alias("service_ns"),
    ]


def only(rows: Columns, kept: NDArray[np.bool_]) -> Columns:
    """The rows that are kept."""
    if kept.all():
        return rows
    # Faster by place than by truths, which processors predict badly.
    places = np.flatnonzero(kept)
    return {name: values.take(places) for name, values in rows.items()}


class ClassTotals:
    """Totals of one class.

    Attributes:
        requests: requests whose response is measured (`tables.is_sample`); of these:
        failed: those with an error.
        unfinished: those that never completed.
        deadlines: those with a deadline.
        late: those that missed it.
        within: those that took at most the limit of the class's objective.
        queueing: mean queueing delay in ms, where known.
        service: mean service time in ms, where known.
        response: mean response in ms.
        series: their responses in the order of asking.
        offered: bytes of the requests asked in the measured interval.
        completed: requests completed in the measured interval.
        completed_by_client: their bytes by client; a client that was starved has 0.
        arrivals: requests asked in each whole `BURST_INTERVAL_MS` of the measured interval.
    """

    def __init__(self, run: Run, app_class: AppClass) -> None:
        self._window = run.measured_ns
        promise = (app_class.objective or {}).get("response_ms")
        self._limit = None if promise is None else float(promise["at_most"])
        self.requests = self.failed = self.unfinished = self.deadlines = self.late = self.within = 0
        self.queueing, self.service, self.response, self.series = Mean(), Mean(), Mean(), Series()
        self.offered, self.completed = 0.0, 0
        self.completed_by_client = np.zeros(app_class.clients)
        self.arrivals: NDArray[np.float64] = metrics.counts([], BURST_INTERVAL_MS * 1_000_000, self._window)

    def add(self, rows: Columns) -> None:
        """Adds the requests of a window of intended time, later than the windows before, in any order."""
        measured, in_window = rows["measured"], rows["in_window"]
        self.offered += float(rows["size_bytes"][measured].sum())
        intended = rows["intended_ns"][measured]
        self.arrivals += metrics.counts(intended, BURST_INTERVAL_MS * 1_000_000, self._window)
        self.completed += int(np.count_nonzero(in_window))
        size, client = rows["size_bytes"][in_window], rows["client"][in_window]
        by_client = np.bincount(client, weights=size, minlength=self.completed_by_client.size)
        # Without a request its counts are integers.
        by_client = by_client.astype(float)
        by_client[: self.completed_by_client.size] += self.completed_by_client
        self.completed_by_client = by_client
        self._add_sample(only(rows, rows["sample"]))

    def _add_sample(self, rows: Columns) -> None:
        response, intended = rows["response_ms"], rows["intended_ns"]
        self.requests += response.size
        self.failed += int(np.count_nonzero(rows["failed"]))
        self.unfinished += int(np.count_nonzero(rows["unfinished"]))
        self.deadlines += int(np.count_nonzero(rows["has_deadline"]))
        self.late += int(np.count_nonzero(rows["late"]))
        if self._limit is not None:
            self.within += int(np.count_nonzero(response <= self._limit))
        self.queueing.add(rows["queueing_ns"][rows["served"]] / 1e6)
        self.service.add(rows["service_ns"][rows["served"]] / 1e6)
        if (intended[1:] < intended[:-1]).any():
            # Requests of one instant keep the order of the table: autocorrelation depends on it.
            response = response[np.argsort(intended, kind="stable")]
        self.response.add(response)
        self.series.add(response)
