"""Figures: a bursty file server: Shenoy Fig. 6."""

import numpy as np
from matplotlib.figure import Figure

from papers.traces import paper, series
from papers.traces.nfs import CACHE_MIB, REAL_NAME, WINDOWS_S, Load, Nfs, paper_distribution
from weir import plots
from weir.binary_cache import NOT_AT_HAND
from weir.plots import Curve

#: Smallest share drawn: one window of the 2,000.
LEAST = 5e-4


def rates(nfs: Nfs) -> Figure:
    """Shenoy Fig. 6a: rate over windows of a second, by its mean, and the real one's below."""
    synthetic = "(a) synthetic, seed 1"
    real = NOT_AT_HAND if nfs.real is None else f"real: {REAL_NAME}, behind an LRU cache of {CACHE_MIB} MB"
    return plots.curves(
        {
            (synthetic, ""): _rate(nfs.loads[0]),
            (real, ""): [] if nfs.real is None else _rate(nfs.real),
        },
        ["time (s)"] * 2, "rate (KB/s)", columns=1,
        level={synthetic: (paper.NFS_KB_S, paper.NFS_KB_S * paper.NFS_PEAK_TO_MEAN)},
        note="Means over windows of 1 s. KB = 1024 bytes. Dotted: the paper's mean and busiest second.",
    )  # fmt: skip


def distribution(nfs: Nfs) -> Figure:
    """Shenoy Fig. 6b: the share of windows whose load is above a share of the busiest one's."""
    lines = {}
    for window_s in WINDOWS_S:
        loads = np.concatenate([(x := load.over(window_s)) / x.max() for load in nfs.loads])
        lines["", f"synthetic, windows of {window_s} s"] = Curve.shares(loads, above=True)
    if nfs.real is not None:
        real = nfs.real.over(1) / nfs.real.over(1).max()
        lines["", f"real: {REAL_NAME}, 1 s"] = Curve.shares(real, above=True)
    _, levels, shares = zip(*paper_distribution(), strict=True)
    printed = {"linestyle": "none", "color": plots.PRINTED, "zorder": 4}
    lines["", "paper: of its Fig. 16"] = Curve(levels, shares, more=printed)
    absent = f" {NOT_AT_HAND.capitalize()}." if nfs.real is None else ""
    figure = plots.curves(
        lines, "load (share of the busiest window's)", "share of windows above", xlim=(0, 1), ylim=None,
        note=f"(b) All {len(nfs.loads)} seeds together, each by its own busiest window.{absent}",
    )  # fmt: skip
    plots.log_y(figure.axes)
    figure.axes[0].set_ylim(LEAST, 1.05)
    return figure


def _rate(load: Load) -> Curve:
    rate = load.bytes_per_s / series.KB
    return Curve(range(len(rate)), rate, more={"linewidth": 0.6})
