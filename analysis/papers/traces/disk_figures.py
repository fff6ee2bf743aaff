"""Figures: the disks' load: Bosch Figs. 3.4-3.6."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from papers.traces import paper, series
from papers.traces.disks import FIGURES, SEEDS, Cello
from weir import plots
from weir.binary_cache import NOT_AT_HAND
from weir.plots import Curve

Lines = dict[tuple[str, str], Curve | list[Curve]]


def hours(cello: Cello) -> Figure:
    """Bosch Fig. 3.4: mean and maximum load per hour, of eight disks, and a real one."""
    at = np.arange(24)
    lines, level = {}, {}
    for disk in range(8):
        lines |= _mean_and_max(_synthetic(disk), at, cello.hours[disk])
        level[_synthetic(disk)] = [paper.HOUR_PEAKS[disk].requests]
    real = None if cello.real is None else series.by_hour(cello.real.minutes[0])
    lines |= _mean_and_max("HPLAJW disk 0, real", at, real)
    return _drawn(lines, level, "I/Os per hour", "the paper's busiest hour", paper.HOUR_PEAKS, 10, (0, 24))


def minutes(cello: Cello, which: str) -> Figure:
    """Bosch Fig. 3.5 or 3.6: mean and maximum load per minute by day, of four disks, and a real one."""
    begin, end = paper.WORK_HOURS
    at = begin + np.arange((end - begin) * 60) / 60
    lines, level = {}, {}
    for disk in FIGURES[which]:
        lines |= _mean_and_max(_synthetic(disk), at, cello.work_minutes[disk])
        level[_synthetic(disk)] = (paper.MINUTE_PEAKS[disk].requests, paper.SERVED_PER_MINUTE)
    disk = list(FIGURES).index(which)
    real = None if cello.real is None else cello.real.minutes[disk][:, 60 * begin : 60 * end]
    # A few days of a quiet disk jump between 0 and more: wide lines would be one surface.
    lines |= _mean_and_max(f"HPLAJW disk {disk}, real", at, real, 0.5)
    words = f"the paper's busiest minute, and {paper.SERVED_PER_MINUTE:,} served at most"
    return _drawn(lines, level, "I/Os per minute", words, paper.MINUTE_PEAKS, 1, (begin, end))


def _synthetic(disk: int) -> str:
    return f"CELLO disk {disk}, synthetic"


def _mean_and_max(panel: str, at: np.ndarray, days: np.ndarray | None, width: float = 1.2) -> Lines:
    if days is None:
        return {(panel, ""): []}
    edge = np.append(at, 2 * at[-1] - at[-2])
    found = {}
    for name, values, thin in (("max", days.max(axis=0), 0.5), ("mean", days.mean(axis=0), 1)):
        more = {"drawstyle": "steps-post", "marker": "", "linewidth": width * thin, "linestyle": "-"}
        found[panel, name] = Curve(edge, np.append(values, values[-1]), more=more)
    return found


def _drawn(
    lines: Lines,
    level: dict[str, object],
    y: str,
    dotted: str,
    peaks: tuple[paper.Peak, ...],
    linear_to: float,
    xlim: tuple[int, int],
) -> Figure:
    figure = plots.curves(
        lines, "time of day (h)", y, columns=3, share="xy", level=level, xlim=xlim, ylim=None,
        absent=NOT_AT_HAND,
        note=f"Synthetic: {len(SEEDS)} days of one kind, June 1st, 1992. Real: one week. Dotted: {dotted}.",
    )  # fmt: skip
    # One scale for disks whose loads are a hundred times apart; linear at the foot, where 0 is.
    for axis in figure.axes:
        axis.set_yscale("symlog", linthresh=linear_to, linscale=0.5)
        axis.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=linear_to))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    figure.axes[0].set_ylim(0, 2 * max(peak.requests for peak in peaks))
    figure.axes[0].set_xticks(range(xlim[0], xlim[1] + 1, 6 if xlim[0] == 0 else 3))
    return figure
