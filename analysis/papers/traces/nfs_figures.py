"""Drawings of a bursty file server: Shenoy Fig. 6."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from papers.traces import paper, series
from papers.traces.nfs import CACHE_MIB, REAL_NAME, WINDOWS_S, Load, Nfs, paper_distribution
from papers.traces.video_figures import PRINTED
from weir.binary_cache import NOT_AT_HAND
from weir.plots import draw
from weir.plots.style import LINES, MARKERS, PALETTE, WIDTH_INCH, style

#: Smallest share drawn: one window of the 2,000.
LEAST = 5e-4


def rates(nfs: Nfs) -> Figure:
    """Shenoy Fig. 6a: rate over windows of a second, by its mean, and the real one's below."""
    with style():
        figure = Figure(figsize=(WIDTH_INCH, 4.0), layout="constrained")
        axes = list(figure.subplots(2, 1))
        _rate(axes[0], nfs.loads[0], 0, "(a) synthetic, seed 1")
        axes[0].axhline(
            paper.NFS_KB_S, color=PRINTED, linewidth=0.9, linestyle=(0, (4, 2)), label="paper: mean"
        )
        peak = paper.NFS_KB_S * paper.NFS_PEAK_TO_MEAN
        axes[0].axhline(peak, color=PRINTED, linewidth=0.9, linestyle=":", label="paper: busiest second")
        axes[0].legend(frameon=False, ncols=2, loc="upper right", bbox_to_anchor=(1, 1.22))
        if nfs.real is None:
            axes[1].set_title(NOT_AT_HAND, loc="left")
            axes[1].set_axis_off()
        else:
            _rate(axes[1], nfs.real, 1, f"real: {REAL_NAME}, behind an LRU cache of {CACHE_MIB} MB")
        axes[1].set_xlabel("time (s)")
        draw.note(figure, "Means over windows of 1 s. KB = 1024 bytes.")
    return figure


def distribution(nfs: Nfs) -> Figure:
    """Shenoy Fig. 6b: the share of windows whose load is above a share of the busiest one's."""
    with style():
        figure = Figure(figsize=(WIDTH_INCH, 3.0), layout="constrained")
        axis = figure.subplots()
        for at, window_s in enumerate(WINDOWS_S):
            loads = np.concatenate([(x := load.over(window_s)) / x.max() for load in nfs.loads])
            _above(axis, loads, at, f"synthetic, windows of {window_s} s")
        if nfs.real is not None:
            _above(axis, nfs.real.over(1) / nfs.real.over(1).max(), 3, f"real: {REAL_NAME}, 1 s")
        levels = paper_distribution()
        axis.plot(
            [level for _, level, _ in levels], [share for *_, share in levels], linestyle="none",
            marker=MARKERS[1], color=PRINTED, label="paper: of its Fig. 16", zorder=4,
        )  # fmt: skip
        axis.set_yscale("log")
        axis.set_ylim(LEAST, 1.05)
        axis.set_xlim(0, 1)
        axis.yaxis.set_major_formatter(FuncFormatter(draw.plain))
        axis.set_xlabel("load (share of the busiest window's)")
        axis.set_ylabel("share of windows above")
        figure.legend(loc="outside right center", frameon=False)
        absent = f" {NOT_AT_HAND.capitalize()}." if nfs.real is None else ""
        draw.note(figure, f"(b) All {len(nfs.loads)} seeds together, each by its own busiest window.{absent}")
    return figure


def _rate(axis: Axes, load: Load, colour: int, title: str) -> None:
    axis.plot(load.bytes_per_s / series.KB, color=PALETTE[colour], linewidth=0.6)
    axis.set_title(title, loc="left")
    axis.set_ylabel("rate (KB/s)")
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.set_ylim(bottom=0)
    axis.margins(x=0)


def _above(axis: Axes, loads: np.ndarray, at: int, label: str) -> None:
    value = np.sort(loads)
    share = 1 - np.arange(1, len(value) + 1) / len(value)
    # No window is above the busiest, of which each seed has one: the curve ends before them.
    value, share = value[value < 1], share[value < 1]
    look = {"color": PALETTE[at], "linestyle": LINES[at % len(LINES)], "linewidth": 1.2}
    axis.step(value, share, where="post", label=label, **look)
