"""Figures: contracts of best effort: Figs. 6.12 to 6.14."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from papers.clockwise import CLAIMS
from papers.clockwise.qos import SETTINGS, Contracts
from papers.clockwise.results import disk, shown_disks
from weir import plots


def contracts(found: Contracts) -> Figure:
    """Figs. 6.12 and 6.13: disk 5 in the busiest period, of the first repetition."""
    plain = found.minutes["qos-0"][0]
    period = plain.period()
    minutes = plain.from_min + np.arange(period.start, period.stop)
    first, steps = "(a) requests (Fig. 6.12)", {"drawstyle": "steps-post", "marker": ""}
    parts = {"(b) mean by minute (Fig. 6.13)": "mean_ms", "(c) longest by minute": "max_ms"}
    lines = {
        (first, "disk 5"): plots.Curve(minutes, plain.requests[period] / 60, more=steps),
        (first, "all disks"): plots.Curve(minutes, plain.all_requests[period] / 60, more=steps),
    } | {
        (panel, f"contract of {label}"): plots.Curve(
            minutes, getattr(found.minutes[key][0], column)[period] / 1e3
        )
        for panel, column in parts.items()
        for key, label in SETTINGS.items()
    }
    figure = plots.curves(
        lines, "Time of day (min)", ("I/Os per second", "Mean latency (s)", "Longest (s)"), columns=1,
        share="x", ylim=None,
        note="First repetition. Grey: 20 to 40 I/Os per second, for which the thesis makes its contracts.",
    )  # fmt: skip
    figure.axes[0].axhspan(*CLAIMS.register["B-F6.12"].limits, color=plots.PRINTED, alpha=0.15, linewidth=0)
    figure.axes[0].set_ylim(bottom=0)
    plots.log_y(figure.axes[1:])
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
    settled = CLAIMS.register["B-F6.14 plateau"].limits
    for axis in figure.axes:
        axis.axhspan(*settled, color=plots.PRINTED, alpha=0.15, linewidth=0)
    return figure
