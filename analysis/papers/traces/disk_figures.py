"""Figures: the disks' load: Bosch Figs. 3.4-3.6."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from papers.traces import paper, series
from papers.traces.disks import FIGURES, SEEDS, Cello
from weir import plots
from weir.binary_cache import NOT_AT_HAND


@plots.style()
def hours(cello: Cello) -> Figure:
    """Bosch Fig. 3.4: mean and maximum load per hour, of eight disks, and a real one."""
    figure, axes = plots.panels(3, 3, 5.6)
    at = np.arange(24)
    for disk, axis in enumerate(axes[:8]):
        _mean_and_max(axis, at, cello.hours[disk], 0)
        plots.reference(axis, paper.HOUR_PEAKS[disk].requests, line="--", label="paper: busiest hour")
        axis.set_title(f"CELLO disk {disk}, synthetic", loc="left")
    _real_panel(axes[8], cello, at, 0, by_hour=True)
    for axis in axes:
        axis.set_xticks(range(0, 25, 6))
        axis.set_xlim(0, 24)
    _finish(figure, axes, paper.HOUR_PEAKS, 10, "time of day (h)", "I/Os per hour")
    return figure


@plots.style()
def minutes(cello: Cello, which: str) -> Figure:
    """Bosch Fig. 3.5 or 3.6: mean and maximum load per minute by day, of four disks, and a real one."""
    figure, axes = plots.panels(2, 3, 4.2)
    begin, end = paper.WORK_HOURS
    at = begin + np.arange((end - begin) * 60) / 60
    for disk, axis in zip(FIGURES[which], axes, strict=False):
        _mean_and_max(axis, at, cello.work_minutes[disk], 0)
        plots.reference(axis, paper.MINUTE_PEAKS[disk].requests, line="--", label="paper: busiest minute")
        label = f"{paper.SERVED_PER_MINUTE:,} served at most"
        plots.reference(axis, paper.SERVED_PER_MINUTE, label=label, color=plots.colour(3))
        axis.set_title(f"CELLO disk {disk}, synthetic", loc="left")
    _real_panel(axes[4], cello, at, list(FIGURES).index(which), by_hour=False)
    for axis in axes:
        axis.set_xticks(range(begin, end + 1, 3))
        axis.set_xlim(begin, end)
    axes[5].set_axis_off()
    _finish(figure, axes, paper.MINUTE_PEAKS, 1, "time of day (h)", "I/Os per minute", legend=axes[5])
    return figure


def _real_panel(axis: Axes, cello: Cello, at: np.ndarray, disk: int, *, by_hour: bool) -> None:
    axis.set_title(f"HPLAJW disk {disk}, real", loc="left")
    if cello.real is None:
        axis.text(0.5, 0.5, NOT_AT_HAND, transform=axis.transAxes, ha="center", color="#666666", fontsize=8)
        return
    begin, end = (60 * hour for hour in paper.WORK_HOURS)
    days = cello.real.minutes[disk]
    if by_hour:
        _mean_and_max(axis, at, series.by_hour(days), 1)
    else:
        # A few days of a quiet disk jump between 0 and more: wide lines would be one surface.
        _mean_and_max(axis, at, days[:, begin:end], 1, width=0.5)


def _mean_and_max(axis: Axes, at: np.ndarray, days: np.ndarray, colour: int, width: float = 1.2) -> None:
    look = {"where": "post", "color": plots.colour(colour)}
    edge = np.append(at, 2 * at[-1] - at[-2])
    top, mean = days.max(axis=0), days.mean(axis=0)
    thin = {"linewidth": width / 2, "alpha": 0.65, "label": "max"}
    axis.step(edge, np.append(top, top[-1]), **thin, **look)
    axis.step(edge, np.append(mean, mean[-1]), linewidth=width, label="mean", **look)


def _finish(
    figure: Figure,
    axes: list[Axes],
    peaks: tuple[paper.Peak, ...],
    linear_to: float,
    x: str,
    y: str,
    legend: Axes | None = None,
) -> None:
    top = max(peak.requests for peak in peaks)
    for axis in axes:
        # One scale for disks whose loads are a hundred times apart; linear at the foot, where 0 is.
        axis.set_yscale("symlog", linthresh=linear_to, linscale=0.5)
        axis.set_ylim(0, 2 * top)
        axis.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=linear_to))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    plots.axis_titles(axes, x, y)
    if legend is None:
        plots.legend(figure, axes[0], 3, loc="outside upper right")
    else:
        legend.legend(*axes[0].get_legend_handles_labels(), loc="center")
    plots.note(figure, f"Synthetic: {len(SEEDS)} days of one kind, June 1st, 1992. Real: one week.")
