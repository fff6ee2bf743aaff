"""Figures: contracts of best effort: Figs. 6.12 to 6.14."""

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


def crosstalk(rows: pl.DataFrame) -> Figure:
    """Fig. 6.14."""
    disks = [disk(at) for at in shown_disks(rows)]
    kept = rows.filter(pl.col("kind").is_in(["rt", "bef"]))
    table = kept.unpivot(disks, index=["repetition", "kind", "factor"], variable_name="disk", value_name="ms")
    words = {
        "rt": "RT: with a contract", "bef": "BEF: without", "ms": "Mean latency (ms)",
        "factor": "Requests, times the contract",
    } | {disk(at): f"CELLO disk {at}" for at in shown_disks(rows)}  # fmt: skip
    figure = plots.intervals(
        table, "ms", x="factor", hue="kind", col="disk", order={"kind": ["rt", "bef"], "disk": disks},
        words=words, runs=False, note="Grey: 25 to 51 ms, where the thesis's latencies settle.",
    )  # fmt: skip
    for axis in figure.axes:
        axis.axhspan(25, 51, color=plots.PRINTED, alpha=0.15, linewidth=0)
    return figure
