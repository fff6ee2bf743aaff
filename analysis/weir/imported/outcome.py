"""What another program's files say about one run: figures, a histogram, or every request of each class."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from weir import metrics
from weir.derive import QUANTILES

#: Which part of a request's life its response time is, by fio's words.
MEASURES = {
    "lat": "from submission to completion",
    "clat": "completion latency: from the hand-over to the kernel to completion",
    "slat": "submission latency: how long the hand-over to the kernel took",
    "block": "from queueing, or from issue where that was not recorded, to completion at the block layer",
    "operation": "from the call of one read or write to its return",
}


@dataclass(frozen=True)
class Histogram:
    """Counts of response times in bins.

    Attributes:
        value_ns: the value that the program gives for each bin, ascending.
        requests: number of requests of each bin.
        width: width of a bin relative to its lower end, at most.
    """

    value_ns: tuple[float, ...]
    requests: tuple[int, ...]
    width: float

    @classmethod
    def of(cls, counts: dict[float, int], width: float) -> "Histogram":
        """A histogram of counts by value, in any order; empty bins are left out."""
        kept = sorted((value, count) for value, count in counts.items() if count)
        return cls(tuple(value for value, _ in kept), tuple(count for _, count in kept), width)

    @property
    def n(self) -> int:
        """Number of requests."""
        return sum(self.requests)

    def quantile_ns(self, q: float) -> float | None:
        """The q-quantile, within half a bin: by rank, as `metrics.quantile`; None of too few requests."""
        if not has_quantile(self.n, q):
            return None
        upto = np.cumsum(self.requests)
        return self.value_ns[int(np.searchsorted(upto, metrics.rank(self.n, q), side="right"))]


def has_quantile(n: int, q: float) -> bool:
    """Whether so many values have a q-quantile that is not merely their maximum."""
    return n > 0 and (q == 1 or n * (1 - q) >= 1 - 1e-9)


@dataclass(frozen=True)
class ClassOutcome:
    """One application class of a run: what its summary says, or all its requests.

    Attributes:
        name: the class.
        workload: what was asked for, in words of the program.
        clients: processes or threads that sent requests; 0 if unknown.
        engine: the program that sent or recorded the requests.
        figures: metrics of a class, as `weir.derive` names them; empty where there is a table of requests.
        histogram: its response times; None if the program kept none.
        medium: the device or file that it went to; empty if unknown.
        rate_per_s: the limit that each client kept to; None if there is none, or it is unknown.
    """

    name: str
    workload: str
    clients: int
    engine: str
    figures: dict[str, Any] = field(default_factory=dict)
    histogram: Histogram | None = None
    medium: str = ""
    rate_per_s: float | None = None


@dataclass(frozen=True)
class Outcome:
    """One run of another program.

    Attributes:
        files: the files it was read from.
        program: name and version of the program, such as `fio 3.33`.
        form: name of the format.
        measure: a name of `MEASURES`.
        classes: its classes.
        duration_s: length of the measured interval.
        began_s: when it began, in seconds since 1970; None if unknown.
        unknown: what the files do not tell, one sentence each.
        broken: why the run may not be used; empty if the program reported no error.
        requests: the requests of all classes, as in `requests.parquet`; None where there are none.
    """

    files: tuple[Path, ...]
    program: str
    form: str
    measure: str
    classes: tuple[ClassOutcome, ...]
    duration_s: float
    began_s: float | None = None
    unknown: tuple[str, ...] = ()
    broken: str = ""
    requests: pa.Table | None = None


def figures(
    *,
    requests: int,
    mean_ns: float | None,
    max_ns: float | None,
    quantiles_ns: dict[str, float | None],
    size_bytes: float,
    seconds: float,
    completed: float | None = None,
) -> dict[str, Any]:
    """The metrics of a class from a summary. What a summary cannot tell is None.

    Args:
        requests: number of response times.
        mean_ns: their mean; None if unknown.
        max_ns: the longest; None if unknown.
        quantiles_ns: by name, as `derive.QUANTILES`.
        size_bytes: bytes that were transferred.
        seconds: in this time.
        completed: requests that completed in this time; `requests` if None.
    """
    milliseconds = {name: _ms(quantiles_ns.get(name)) for name in QUANTILES}
    return {
        "requests": requests,
        "failed": 0,
        "unfinished": 0,
        "response_mean_ms": _ms(mean_ns),
        **{f"response_{name}_ms": value for name, value in milliseconds.items()},
        "response_max_ms": _ms(max_ns),
        "queueing_mean_ms": None,
        "service_mean_ms": None,
        "deadlines": 0,
        "deadline_miss_share": None,
        "offered_mb_s": None,
        "throughput_mb_s": size_bytes / 1e6 / seconds if seconds > 0 else None,
        "requests_per_s": (requests if completed is None else completed) / seconds if seconds > 0 else None,
    }


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None or not math.isfinite(value_ns) else value_ns / 1e6
