"""Drawings of contracts of best effort: Figs. 6.12 to 6.14."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from papers.clockwise.qos import SETTINGS, Contracts
from papers.clockwise.results import disk, shown_disks
from weir import plots


@plots.style()
def contracts(found: Contracts) -> Figure:
    """Figs. 6.12 and 6.13: disk 5 in the busiest period, of the first repetition."""
    plain = found.minutes["qos-0"][0]
    period = plain.period()
    minutes = plain.from_min + np.arange(period.start, period.stop)
    figure, axes = plots.panels(3, 1, 5.2, sharex=True)
    axes[0].step(minutes, plain.requests[period] / 60, where="post", color=plots.colour(0), linewidth=1.1)
    every = plain.all_requests[period] / 60
    axes[0].step(minutes, every, where="post", color=plots.colour(1), linewidth=1.1, linestyle="--")
    own = plain.requests[period] / 60
    for values, colour, words in ((every, plots.colour(1), "all disks"), (own, plots.colour(0), "disk 5")):
        axes[0].text(minutes[-1] + 1.2, values[-1], words, color=colour, fontsize=7, va="center")
    axes[0].axhspan(20, 40, color=plots.PRINTED, alpha=0.15, linewidth=0)
    axes[0].set_ylabel("I/Os per second")
    axes[0].set_ylim(bottom=0)
    for axis, column, words in (
        (axes[1], "mean_ms", "Mean latency (s)"),
        (axes[2], "max_ms", "Longest (s)"),
    ):
        for at, (key, label) in enumerate(SETTINGS.items()):
            values = getattr(found.minutes[key][0], column)[period] / 1e3
            plots.line(axis, minutes, values, f"contract of {label}", at, markevery=(at, 3))
        plots.log_y([axis])
        axis.set_ylabel(words)
    axes[2].set_xlabel("Time of day (min)")
    plots.letters(axes, ["requests (Fig. 6.12)", "mean by minute (Fig. 6.13)", "longest by minute"])
    plots.legend(figure, axes[1])
    words = "First repetition. Grey: 20 to 40 I/Os per second, for which the thesis makes its contracts."
    plots.note(figure, words)
    return figure


@plots.style()
def crosstalk(rows: pl.DataFrame) -> Figure:
    """Fig. 6.14."""
    disks = shown_disks(rows)
    figure, axes = plots.panels(2, 4, 4.2, sharex=True, sharey=True)
    for axis, at in zip(axes, disks, strict=False):
        for look, (kind, label) in enumerate((("rt", "RT: with a contract"), ("bef", "BEF: without"))):
            part = rows.filter((pl.col("kind") == kind) & pl.col(disk(at)).is_finite())
            own = part.group_by("factor").agg(pl.col(disk(at)).mean()).sort("factor")
            plots.line(axis, own["factor"], own[disk(at)], label, look)
        axis.axhspan(25, 51, color=plots.PRINTED, alpha=0.15, linewidth=0)
        axis.set_title(f"CELLO disk {at}", loc="left")
    plots.hide(axes[len(disks) :])
    plots.log_y(axes[:1])
    plots.axis_titles(axes, "Requests of the stream, times its contract", "Mean latency (ms)")
    plots.legend(figure, axes[0])
    plots.note(figure, "Means over repetitions. Grey: 25 to 51 ms, where the thesis's latencies settle.")
    return figure
