"""Figures of a trace: load over time, distributions, burstiness over scales, reuse.

Each takes the document of `weir trace stat --json` and returns title, caption and figure, or None where the
trace does not say enough.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from weir.plots import axes as panels
from weir.plots.curves import Curve, curves
from weir.plots.palette import PRINTED

Drawn = tuple[str, str, Figure]
_SECOND_NS = 1e9
_SHARE = "share that is smaller"
#: The line of a model beside what the trace has.
_MODEL = {"color": PRINTED, "linewidth": 0.9, "linestyle": "--", "marker": ""}


def load(document: dict[str, Any]) -> Drawn | None:
    """Requests and data over time."""
    course = document["load"]
    requests, data = np.asarray(course["requests"]), np.asarray(course["bytes"])
    # The last window is not whole.
    if len(requests) < 3:
        return None
    window_s = course["window_ns"] / _SECOND_NS
    begin_s = np.arange(len(requests)) * window_s
    scale, unit = _time_unit(begin_s[-1])
    lines = {}
    for panel, counts in (("requests", requests), ("data", data / 2**20)):
        rate = np.append(counts[:-1], counts[-2]) / window_s
        steps = {"drawstyle": "steps-post", "marker": "", "linewidth": 0.6}
        lines[panel, ""] = Curve(begin_s / scale, rate, np.zeros(len(rate)), rate, more=steps)
    x, y = f"time since the first request ({unit})", ("requests / s", "MiB / s")
    figure = curves(lines, x, y, columns=1, share="x")
    return "Load over time", f"Means over windows of {_plain_time(window_s)}.", figure


def distributions(document: dict[str, Any]) -> Drawn | None:
    """Sizes and times between arrivals."""
    sizes = {f"{n}s": found for n in ("read", "write") if (found := document[f"{n}_size_bytes"])}
    gap = document["arrivals"]["gap_ns"]
    if not sizes:
        return None
    lines = {("sizes", name): _cdf(found, 1024) for name, found in sizes.items()}
    text = "Cumulative distributions"
    if gap:
        lines["arrivals", "trace"] = _cdf(gap, 1e6)
        mean = gap["mean"] / 1e6
        if mean > 0:
            ends = (max(lines["arrivals", "trace"].x[at], 1e-6) for at in (0, -1))
            x = np.geomspace(*ends, 200)
            lines["arrivals", "exponential"] = Curve(x, -np.expm1(-x / mean), more=_MODEL)
        text += "; dashed: an exponential distribution of the same mean"
    titles = ["size (KiB)", "time between arrivals (ms)"][: 1 + bool(gap)]
    return "Sizes and arrivals", f"{text}.", _logarithmic(curves(lines, titles, _SHARE, ylim=(0, 1.02)))


def burstiness(document: dict[str, Any]) -> Drawn | None:
    """Index of dispersion and wavelet energy over scales."""
    scales = [s for s in document["burstiness"]["scales"] if s["windows"] >= 8]
    if len(scales) < 3:
        return None
    windows_s = [s["window_ns"] / _SECOND_NS for s in scales]
    waves = {w: e for w, s in zip(windows_s, scales, strict=True) if (e := s["wavelet_energy"])}
    lines = {
        ("dispersion", ""): Curve(windows_s, [s["dispersion"] for s in scales]),
        ("wavelets", "energy"): Curve(list(waves), list(waves.values())),
    }
    for estimate in document["burstiness"]["hurst"]:
        inside = [w for w in waves if estimate["from_ns"] <= w * _SECOND_NS <= estimate["to_ns"]]
        if estimate["method"].startswith("Haar") and len(inside) > 1:
            slope = 2 * estimate["estimate"] - 1
            x = np.sort(inside)
            level = np.median(np.log([waves[w] for w in x]) - slope * np.log(x))
            name = f"H = {estimate['estimate']:.2f}"
            lines["wavelets", name] = Curve(x, np.exp(level) * x**slope, more=_MODEL)
    titles = ("index of dispersion", "Haar wavelet energy")
    figure = _logarithmic(curves(lines, "window (s)", titles, level={"dispersion": [1]}, ylim=None))
    panels.log_y(figure.axes)
    text = (
        "Arrivals in windows of growing length, at scales with at least 8 windows. A flat line on the left "
        "is a process whose bursts do not grow with the scale (dotted: Poisson); the slope on the right "
        "gives the Hurst parameter."
    )
    return "Burstiness over scales", text, figure


def reuse(document: dict[str, Any]) -> Drawn | None:
    """Miss ratio of LRU caches, from the reuse distances."""
    working = document["working_set"]
    curve = working["lru"]
    if len(curve) < 3:
        return None
    unit_bytes = working["unit_bytes"]
    scale = unit_bytes / 2**20 if unit_bytes else 1
    ratios = Curve([point["units"] * scale for point in curve], [point["ratio"] for point in curve])
    x = "cache (MiB)" if unit_bytes else "cache (objects of equal size)"
    cold = working["distinct"] / working["accesses"]
    figure = curves({("", ""): ratios}, x, "miss ratio", level=[cold], ylim=(0, 1))
    text = (
        "Of an LRU cache by its size, exact, from the reuse distances; no cache misses less than the first "
        "accesses (dotted)."
    )
    return "Reuse", text, _logarithmic(figure)


def service(document: dict[str, Any]) -> Drawn | None:
    """Times and queues that the trace recorded."""
    times = document["times"]
    waits = {n: found for n in ("queueing", "response") if (found := times[f"{n}_ns"])}
    lines = {("times", name): _cdf(found, 1e6) for name, found in waits.items()}
    if times["queue_length"]:
        lines["queue", ""] = _cdf(times["queue_length"], 1)
    if not lines:
        return None
    titles = ["time (ms)"] * bool(waits) + ["queue length found"] * bool(times["queue_length"])
    figure = _logarithmic(curves(lines, titles, _SHARE, ylim=(0, 1.02)))
    return "Service as it was recorded", "Cumulative distributions.", figure


#: In the order of the page.
ALL = (load, distributions, burstiness, reuse, service)


def _cdf(found: dict[str, Any], scale: float) -> Curve:
    points = [(x / scale, share) for x, share in found["cdf"] if x > 0]
    # All the rest is between the last but one and the largest.
    lowest = (max(found["min"], 1) / scale, 0.0)
    points = [lowest] + [p for p in points if 0 < p[1] < 1] + [(max(found["max"], 1) / scale, 1.0)]
    return Curve(*zip(*points, strict=True), more={"marker": "", "linestyle": "-"})


def _logarithmic(figure: Figure) -> Figure:
    for axis in figure.axes:
        panels.log_x(axis)
    return figure


def _time_unit(span_s: float) -> tuple[float, str]:
    for scale, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if span_s >= 2 * scale:
            return scale, unit
    return 1, "s"


def _plain_time(seconds: float) -> str:
    scale, unit = _time_unit(seconds)
    return f"{seconds / scale:.4g} {unit}"
