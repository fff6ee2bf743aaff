"""Figures: what chapter 6 calculates: Figs. 6.2 to 6.4, and sections 6.4.2 and 7.3."""

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.clockwise import CLAIMS
from papers.clockwise.admission import Curve
from papers.clockwise.sets import FACTORS, Crosstalk
from papers.clockwise.streams import in_turn, rate_mb_s
from papers.clockwise.timelines import BEST_EFFORT
from weir import plots

LATE = plots.PALETTE[3]


@plots.style()
def timelines(panels: dict[str, pl.DataFrame]) -> Figure:
    """Figs. 6.2, 6.3 and section 6.4.2: when requests are asked for, served and due."""
    rows = sum(table["stream"].n_unique() for table in panels.values())
    ratios = [table["stream"].n_unique() + 1.5 for table in panels.values()]
    figure, axes = plots.panels(len(panels), 1, 0.32 * rows + 0.75 * len(panels), height_ratios=ratios)
    for axis, letter, (title, table) in zip(axes, "abcdef", panels.items(), strict=False):
        _timeline(axis, table)
        axis.set_title(f"({letter}) {title}", loc="left")
    axes[-1].set_xlabel("Time (ms)")
    words = "Bars: service; orange: late, or late because of it. Up arrows: asked for; lines down: due."
    plots.note(figure, words)
    return figure


def _timeline(axis: Axes, table: pl.DataFrame) -> None:
    names = sorted(table["stream"].unique(), key=lambda name: (name == BEST_EFFORT, name))
    served = table.drop_nulls("done_ms")
    end = 1.06 * float(served["done_ms"].max() or 1.0)
    for row in table.filter(pl.col("asked_ms") < end).iter_rows(named=True):
        y = len(names) - 1 - names.index(row["stream"])
        axis.plot(row["asked_ms"], y - 0.32, marker="^", color="#222222", markersize=4, clip_on=False)
        if row["due_ms"] is not None and row["due_ms"] < end:
            axis.plot([row["due_ms"]] * 2, [y - 0.42, y + 0.42], color="#222222", linewidth=1.2)
        if row["done_ms"] is not None:
            colour = LATE if (row["late_ms"] or 0) > 0 else plots.PALETTE[0]
            width = row["done_ms"] - row["begun_ms"]
            axis.barh(
                y, width, left=row["begun_ms"], height=0.5, color=colour, edgecolor="white", linewidth=0.6
            )
    axis.set_yticks(range(len(names)), list(reversed(names)))
    axis.set_ylim(-0.6, len(names) - 0.4)
    axis.set_xlim(-0.01 * end, end)
    axis.grid(visible=False)


def delta_l(found: dict[str, Curve]) -> Figure:
    """Fig. 6.4."""
    lines = {}
    for name in [*(name for name in found if name != "random"), "random"]:
        for nth, kind in enumerate(found[name].kinds):
            own = {"marker": "", "linestyle": ":"} if nth else {"linestyle": "-"}
            first = name if found[name].kinds[0] == "all disks" else f"{name}: {found[name].kinds[0]}"
            x, y = zip(*((x, v.delta_l_ms / 1e3) for x, v in found[name].of(kind)), strict=True)
            lines["", f"{name}: {kind}" if nth else first] = plots.Curve(x, y, like=first, more=own)
    ring = {"marker": "o", "markersize": 9, "fillstyle": "none", "color": "#222222", "linestyle": "none"}
    ids = ("B-F6.13 0", "B-F6.4 end memory", "B-F6.4 end rotation")
    slack_ms, *ends = (CLAIMS.register[id].paper for id in ids)
    lines["", "24 pairs in the thesis"] = plots.Curve([rate_mb_s(in_turn(24))], [slack_ms / 1e3], more=ring)
    return plots.curves(
        lines, "Real-time load (MB/s)", "deltaL (s)", at=ends, xlim=(0, 19), ylim=(0, 3.2), height=3.4,
        note="Dotted: where the thesis says that curves end. `random` is not in its figure.",
    )  # fmt: skip


def crosstalk(found: Crosstalk) -> Figure:
    """Section 7.3."""
    means = {
        ("", name): plots.Curve(FACTORS, [np.mean(found.missed[name, factor]) for factor in FACTORS])
        for name in ("EDF", "LST", "deltaL")
    }
    figure = plots.curves(
        means, "Requests of the generator, times its contract", "Deadlines of others missed",
        note="Means of ten runs of 20 s, about 1,000 requests of behaving streams each.",
    )  # fmt: skip
    figure.axes[0].set_yscale("symlog", linthresh=1)
    figure.axes[0].set_ylim(bottom=-0.1)
    figure.axes[0].yaxis.set_major_formatter(plots.plain)
    return figure
