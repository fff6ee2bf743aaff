"""Figures: both testbeds: quantiles against each other, tails, and the parts of their difference."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from papers.virtual_vs_real.results import LIVE, PARTS, VIRTUAL, cell, pairs
from weir import plots
from weir.load import Study
from weir.plots import Curve
from weir.statistics import mean_interval
from weir.tables import is_sample, response_ms, scan_requests

#: Shares of requests at which tails are drawn, from the fastest to the slowest.
SHARES = np.concatenate([np.linspace(0.01, 0.98, 98), np.linspace(0.981, 0.999, 19)])
#: Letters of a cell's name on one line.
CELL_LETTERS = 34


def against(table: pl.DataFrame) -> Figure:
    """Each quantile of each cell, class and repetition: live over virtual, on logarithmic axes.

    Args:
        table: quantiles of one or more studies.
    """
    low = 0.8 * float(min(table["live_ms"].min(), table["virtual_ms"].min()))
    high = 1.25 * float(max(table["live_ms"].max(), table["virtual_ms"].max()))
    equal = Curve([low, high], [low, high], more={"color": plots.PRINTED, "marker": "", "linestyle": ":"})
    lines = {}
    for (quantile, name), rows in sorted(table.group_by("quantile", "class", maintain_order=True)):
        points = {"linestyle": "none", "alpha": 0.7}
        lines[str(quantile), str(name)] = Curve(rows["virtual_ms"], rows["live_ms"], more=points)
    figure = plots.curves(
        lines | {(quantile, ""): equal for quantile, _ in lines}, "Virtual time (ms)", "Live (ms)",
        share="xy", xlim=(low, high), ylim=(low, high), height=3.2,
        note="A point: a cell and class in one repetition. Dotted: equal.",
    )  # fmt: skip
    plots.log_y(figure.axes)
    for axis in figure.axes:
        plots.log_x(axis)
        axis.set_aspect("equal")
    return figure


def tails(study: Study, app_class: str) -> Figure | None:
    """Distributions of response time of a class, by cell, on both testbeds; None if there are none."""
    found: dict[tuple[str, str], list[Curve]] = {}
    words = {VIRTUAL: "virtual time", LIVE: "live"}
    for live, virtual in pairs(study):
        name = cell(live)
        # A name on one line.
        short = name if len(name) <= CELL_LETTERS else name[: CELL_LETTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"
        for run in (virtual, live):
            wanted = (pl.col("class") == app_class) & is_sample(run)
            rows = scan_requests(run).filter(wanted).with_columns(response_ms()).collect()["response_ms"]
            if rows.len():
                # The same definition as the metric: a value that was observed.
                rank = np.ceil(SHARES * rows.len() - 1e-9).astype(int) - 1
                x = np.maximum(np.sort(rows.to_numpy())[rank], 1e-3)
                curve = Curve(x, SHARES, more={"linewidth": 0.9})
                found.setdefault((short, words[run.testbed]), []).append(curve)
    found = {key: of for key, of in found.items() if all((key[0], word) in found for word in words.values())}
    if not found:
        return None
    figure = plots.curves(
        found, f"Response of {app_class} (ms)", "Share answered", columns=min(3, len(found) // 2), share="xy",
        note="A line: one repetition.",
    )  # fmt: skip
    for axis in figure.axes:
        plots.log_x(axis)
    return figure


def parts(table: pl.DataFrame) -> Figure:
    """Mean difference of response time, live minus virtual, by cell and class, for each part.

    Args:
        table: what `results.parts` gives.
    """
    found = {
        (f"{name[:CELL_LETTERS]}: {app_class}", f"{words} (ms)"): mean_interval(rows[column].to_list())
        for (name, app_class), rows in table.group_by("cell", "class", maintain_order=True)
        for column, words in PARTS.items()
    }
    figure = plots.points(
        plots.tabled(found, "cell", "part"), x="cell", col="part", across=True,
        note="Means over repetitions with 95 % t intervals. Scales differ from panel to panel.",
    )  # fmt: skip
    for axis in figure.axes:
        plots.reference(axis, 0, across=False, line="-")
    return figure
