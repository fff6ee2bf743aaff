"""Labels of metrics: name, unit, range, and the format of numbers."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Label:
    """A metric's name on an axis.

    Attributes:
        text: what it is.
        unit: its unit; empty for a plain number.
        bounds: its range, to which intervals are cut.
    """

    text: str
    unit: str = ""
    bounds: tuple[float, float] = (0.0, math.inf)

    @property
    def axis(self) -> str:
        """The axis title."""
        return f"{self.text} ({self.unit})" if self.unit else self.text

    @property
    def method(self) -> Literal["t", "log-t"]:
        """The interval that fits: of quantities above 0 that of their logarithms, else Student's t."""
        return "log-t" if self.bounds == (0.0, math.inf) else "t"


#: Mark of the end of an interval that was cut at a limit of the quantity.
CUT = "*"
#: What stands in place of a quantile that rests on too few responses.
DASH = "\N{EN DASH}"
_SHARE = (0.0, 1.0)
LABELS = {
    "response_mean_ms": Label("Mean response time", "ms"),
    "response_p50_ms": Label("Median response time", "ms"),
    "response_p90_ms": Label("90th percentile of response time", "ms"),
    "response_p95_ms": Label("95th percentile of response time", "ms"),
    "response_p99_ms": Label("99th percentile of response time", "ms"),
    "response_p999_ms": Label("99.9th percentile of response time", "ms"),
    "response_max_ms": Label("Longest response time", "ms"),
    "effective_requests": Label("Independent responses that the mean is worth"),
    "drift_ratio": Label("Response at the end of the run relative to its start"),
    "drift_p": Label("Probability of such a drift without any", "", _SHARE),
    "response_p95_beyond": Label("Independent responses beyond the 95th percentile"),
    "response_p99_beyond": Label("Independent responses beyond the 99th percentile"),
    "response_p999_beyond": Label("Independent responses beyond the 99.9th percentile"),
    "queueing_mean_ms": Label("Mean queueing delay", "ms"),
    "service_mean_ms": Label("Mean service time", "ms"),
    "deadline_miss_share": Label("Deadlines missed", "share", _SHARE),
    "offered_mb_s": Label("Offered load", "MB/s"),
    "throughput_mb_s": Label("Throughput", "MB/s"),
    "throughput_share": Label("Share of the throughput", "", _SHARE),
    "requests_per_s": Label("Requests completed", "1/s"),
    "jain_clients": Label("Jain's index over clients", "", _SHARE),
    "jain_classes": Label("Jain's index over classes", "", _SHARE),
    "within_objective_share": Label("Requests within the objective", "share", _SHARE),
    "share_error": Label("Error against the reservation", "share", (-1.0, math.inf)),
    "utilisation": Label("Utilisation", "share", _SHARE),
    "work_conservation": Label("Work conservation", "share", _SHARE),
}


#: Labels of schedulers by name, from the binary's registry (`make reference`).
SCHEDULERS = {
    entry["name"]: entry["label"]
    for entry in json.loads((Path(__file__).parent / "schedulers.json").read_text(encoding="utf-8"))
}


def scheduler_label(name: str) -> str:
    """The label of a scheduler; one that is not in the registry is called by its name."""
    return SCHEDULERS.get(name, name)


def label(metric: str) -> Label:
    """The label of a metric; the column's name if there is none."""
    return LABELS.get(metric) or Label(metric.replace("_", " "), bounds=(-math.inf, math.inf))


def number(value: float | None) -> str:
    """A number with three significant digits, n/a for no value (None, NaN), `unbounded` for infinity."""
    if value is None or math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "unbounded"
    if value == 0:
        return "0"
    # Rounded first: 9.996 is 10.0, which has fewer decimals.
    rounded = float(f"{value:.3g}")
    digits = max(2 - math.floor(math.log10(abs(rounded))), 0)
    return f"{value:.{min(digits, 6)}f}"


def with_interval(estimate: float | None, low: float | None, high: float | None, note: str = "") -> str:
    """An estimate with its interval, such as `12.3 [11.0, 13.6]`; without one, the estimate alone.

    An end that the interval's note calls cut has a star: `0.01 [0*, 0.03]`.
    """
    text = number(estimate)
    if low is None or high is None:
        return text
    low_text, high_text = (number(end) + CUT * is_cut(end, note) for end in (low, high))
    return f"{text} [{low_text}, {high_text}]"


def is_cut(end: float | None, note: str) -> bool:
    """Whether the end of an interval is a limit of the quantity, by the interval's note."""
    return end is not None and cut_at(end) in note.split(", ")


def cut_at(bound: float) -> str:
    """The note of an interval that was cut at a limit of the quantity."""
    return f"cut at {bound:g}"


def objective_text(objective: dict[str, Any] | None) -> str:
    """The objective of a class in words."""
    objective = objective or {}
    if "response_ms" in objective:
        q, at_most = objective["response_ms"]["quantile"], objective["response_ms"]["at_most"]
        return f"{q:.4g} quantile of response time at most {at_most:g} ms"
    if "deadline_miss_share" in objective:
        return f"at most {objective['deadline_miss_share']:.4g} of deadlines missed"
    if "rate_mb_s" in objective:
        return f"at least {objective['rate_mb_s']:g} MB/s"
    if "share" in objective:
        return f"at least {objective['share']:.4g} of all bytes"
    return "none"
