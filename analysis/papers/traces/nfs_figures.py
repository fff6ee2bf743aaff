"""Figures: a bursty file server: Shenoy Fig. 6."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from papers.traces import paper, series
from papers.traces.nfs import CACHE_MIB, REAL_NAME, WINDOWS_S, Load, Nfs, paper_distribution
from weir import plots
from weir.binary_cache import NOT_AT_HAND

#: Smallest share drawn: one window of the 2,000.
LEAST = 5e-4


@plots.style()
def rates(nfs: Nfs) -> Figure:
    """Shenoy Fig. 6a: rate over windows of a second, by its mean, and the real one's below."""
    figure, axes = plots.panels(2, 1, 4.0)
    _rate(axes[0], nfs.loads[0], 0, "(a) synthetic, seed 1")
    plots.reference(axes[0], paper.NFS_KB_S, line="--", label="paper: mean")
    peak = paper.NFS_KB_S * paper.NFS_PEAK_TO_MEAN
    plots.reference(axes[0], peak, label="paper: busiest second")
    axes[0].legend(ncols=2, loc="upper right", bbox_to_anchor=(1, 1.22))
    if nfs.real is None:
        axes[1].set_title(NOT_AT_HAND, loc="left")
        axes[1].set_axis_off()
    else:
        _rate(axes[1], nfs.real, 1, f"real: {REAL_NAME}, behind an LRU cache of {CACHE_MIB} MB")
    axes[1].set_xlabel("time (s)")
    plots.note(figure, "Means over windows of 1 s. KB = 1024 bytes.")
    return figure


@plots.style()
def distribution(nfs: Nfs) -> Figure:
    """Shenoy Fig. 6b: the share of windows whose load is above a share of the busiest one's."""
    figure, (axis,) = plots.panels(1, 1, 3.0)
    for at, window_s in enumerate(WINDOWS_S):
        loads = np.concatenate([(x := load.over(window_s)) / x.max() for load in nfs.loads])
        plots.steps_above(axis, loads, f"synthetic, windows of {window_s} s", at)
    if nfs.real is not None:
        plots.steps_above(axis, nfs.real.over(1) / nfs.real.over(1).max(), f"real: {REAL_NAME}, 1 s", 3)
    levels = paper_distribution()
    points = [level for _, level, _ in levels], [share for *_, share in levels]
    look = {"linestyle": "none", "marker": plots.marker(1), "color": plots.PRINTED, "zorder": 4}
    axis.plot(*points, label="paper: of its Fig. 16", **look)
    axis.set_yscale("log")
    axis.set_ylim(LEAST, 1.05)
    axis.set_xlim(0, 1)
    axis.yaxis.set_major_formatter(FuncFormatter(plots.plain))
    axis.set_xlabel("load (share of the busiest window's)")
    axis.set_ylabel("share of windows above")
    figure.legend(loc="outside right center")
    absent = f" {NOT_AT_HAND.capitalize()}." if nfs.real is None else ""
    plots.note(figure, f"(b) All {len(nfs.loads)} seeds together, each by its own busiest window.{absent}")
    return figure


def _rate(axis: Axes, load: Load, colour: int, title: str) -> None:
    axis.plot(load.bytes_per_s / series.KB, color=plots.colour(colour), linewidth=0.6)
    axis.set_title(title, loc="left")
    axis.set_ylabel("rate (KB/s)")
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.set_ylim(bottom=0)
    axis.margins(x=0)
