"""Figures of a trace: load over time, distributions, burstiness over scales, reuse.

Each takes the document of `weir trace stat --json` and returns title, caption and figure, or None where the
trace does not say enough.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from weir import plots

Drawn = tuple[str, str, Figure]
_SECOND_NS = 1e9
#: The line of a model beside what the trace has.
_MODEL = {"color": plots.PRINTED, "linewidth": 0.9, "linestyle": "--"}


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
    figure, axes = plots.panels(2, 1, 3.4)
    for axis, counts, words in ((axes[0], requests, "requests / s"), (axes[1], data / 2**20, "MiB / s")):
        axis.fill_between(
            begin_s[:-1] / scale, counts[:-1] / window_s, step="post", color=plots.colour(0), linewidth=0
        )
        axis.set_ylabel(words)
        axis.set_ylim(bottom=0)
        axis.margins(x=0)
    axes[1].set_xlabel(f"time since the first request ({unit})")
    axes[0].tick_params(labelbottom=False)
    return "Load over time", f"Means over windows of {_plain_time(window_s)}.", figure


def distributions(document: dict[str, Any]) -> Drawn | None:
    """Sizes and times between arrivals."""
    sizes = [(n, document[f"{n}_size_bytes"]) for n in ("read", "write") if document[f"{n}_size_bytes"]]
    gap = document["arrivals"]["gap_ns"]
    if not sizes:
        return None
    figure, axes = plots.panels(1, 2 if gap else 1, 2.6)
    for place, (name, found) in enumerate(sizes):
        _cdf(axes[0], found, 1024, place, f"{name}s")
    axes[0].set_xlabel("size (KiB)")
    axes[0].set_ylabel("share that is smaller")
    plots.legend_above(axes[0])
    text = "Cumulative distributions"
    if gap:
        _cdf(axes[1], gap, 1e6, 0, "trace")
        _exponential(axes[1], gap)
        axes[1].set_xlabel("time between arrivals (ms)")
        plots.legend_above(axes[1])
        text += "; dashed: an exponential distribution of the same mean"
    return "Sizes and arrivals", f"{text}.", figure


def burstiness(document: dict[str, Any]) -> Drawn | None:
    """Index of dispersion and wavelet energy over scales."""
    scales = [s for s in document["burstiness"]["scales"] if s["windows"] >= 8]
    if len(scales) < 3:
        return None
    windows_s = [s["window_ns"] / _SECOND_NS for s in scales]
    figure, axes = plots.panels(1, 2, 2.6)
    plots.line(axes[0], windows_s, [s["dispersion"] for s in scales], "", 0)
    plots.reference(axes[0], 1, line="--", label="Poisson")
    axes[0].set_ylabel("index of dispersion")
    _scales(axes[0])
    plots.legend_above(axes[0])
    waves = [(w, s["wavelet_energy"]) for w, s in zip(windows_s, scales, strict=True) if s["wavelet_energy"]]
    plots.line(axes[1], *zip(*waves, strict=True), "energy", 1, linestyle="-")
    for estimate in document["burstiness"]["hurst"]:
        if estimate["method"].startswith("Haar"):
            _slope(axes[1], dict(waves), estimate)
    axes[1].set_ylabel("Haar wavelet energy")
    _scales(axes[1])
    plots.legend_above(axes[1])
    text = (
        "Arrivals in windows of growing length, at scales with at least 8 windows. A flat line on the left "
        "is a process whose bursts do not grow with the scale; the slope on the right gives the Hurst "
        "parameter."
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
    figure, axes = plots.panels(1, 1, 2.6)
    units = [point["units"] * scale for point in curve]
    plots.line(axes[0], units, [p["ratio"] for p in curve], "", 0, markersize=3)
    cold = working["distinct"] / working["accesses"]
    plots.reference(axes[0], cold, line="--", label="first accesses")
    axes[0].set_ylim(0, 1)
    axes[0].set_xlabel("cache (MiB)" if unit_bytes else "cache (objects of equal size)")
    axes[0].set_ylabel("miss ratio")
    plots.log_x(axes[0])
    plots.legend_above(axes[0])
    text = (
        "Of an LRU cache by its size, exact, from the reuse distances; no cache misses less than the first "
        "accesses."
    )
    return "Reuse", text, figure


def service(document: dict[str, Any]) -> Drawn | None:
    """Times and queues that the trace recorded."""
    times = document["times"]
    waits = [(n, times[f]) for n, f in (("queueing", "queueing_ns"), ("response", "response_ns")) if times[f]]
    queue = times["queue_length"]
    if not waits and not queue:
        return None
    figure, axes = plots.panels(1, bool(waits) + bool(queue), 2.6)
    if waits:
        for place, (name, found) in enumerate(waits):
            _cdf(axes[0], found, 1e6, place, name)
        axes[0].set_xlabel("time (ms)")
        plots.legend_above(axes[0])
    if queue:
        _cdf(axes[-1], queue, 1, 2, "queue")
        axes[-1].set_xlabel("queue length found")
    axes[0].set_ylabel("share that is smaller")
    return "Service as it was recorded", "Cumulative distributions.", figure


#: In the order of the page.
ALL = (load, distributions, burstiness, reuse, service)


def _cdf(axis: Axes, found: dict[str, Any], scale: float, place: int, words: str) -> None:
    points = [(x / scale, share) for x, share in found["cdf"] if x > 0]
    # All the rest is between the last but one and the largest.
    lowest = (max(found["min"], 1) / scale, 0.0)
    points = [lowest] + [p for p in points if 0 < p[1] < 1] + [(max(found["max"], 1) / scale, 1.0)]
    plots.line(axis, *zip(*points, strict=True), words, place, marker="", linewidth=1.3)
    axis.set_ylim(0, 1.02)
    plots.log_x(axis)


def _exponential(axis: Axes, gap: dict[str, Any]) -> None:
    mean = gap["mean"] / 1e6
    low, high = axis.get_xlim()
    if mean > 0:
        x = np.geomspace(max(low, 1e-6), high, 200)
        axis.plot(x, -np.expm1(-x / mean), label="exponential", **_MODEL)
        axis.set_xlim(low, high)


def _slope(axis: Axes, waves: dict[float, float], estimate: dict[str, Any]) -> None:
    inside = {w: e for w, e in waves.items() if estimate["from_ns"] <= w * _SECOND_NS <= estimate["to_ns"]}
    if len(inside) < 2:
        return
    slope = 2 * estimate["estimate"] - 1
    x = np.asarray(sorted(inside))
    logs = np.log([inside[w] for w in x]) - slope * np.log(x)
    axis.plot(x, np.exp(np.median(logs)) * x**slope, label=f"H = {estimate['estimate']:.2f}", **_MODEL)


def _scales(axis: Axes) -> None:
    axis.set_xlabel("window (s)")
    plots.log_x(axis)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(plots.plain)
    axis.yaxis.set_minor_locator(NullLocator())


def _time_unit(span_s: float) -> tuple[float, str]:
    for scale, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if span_s >= 2 * scale:
            return scale, unit
    return 1, "s"


def _plain_time(seconds: float) -> str:
    scale, unit = _time_unit(seconds)
    return f"{seconds / scale:.4g} {unit}"
