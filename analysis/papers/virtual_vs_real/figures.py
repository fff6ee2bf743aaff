"""Figures: both testbeds: quantiles against each other, tails, and the parts of their difference."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from papers.virtual_vs_real.results import LIVE, PARTS, VIRTUAL, cell, pairs
from weir import plots
from weir.load import Study
from weir.statistics import mean_interval
from weir.tables import is_sample, response_ms, scan_requests

#: Shares of requests at which tails are drawn, from the fastest to the slowest.
SHARES = np.concatenate([np.linspace(0.01, 0.98, 98), np.linspace(0.981, 0.999, 19)])
#: Letters of a cell's name on one line.
CELL_LETTERS = 34


@plots.style()
def against(table: pl.DataFrame) -> Figure:
    """Each quantile of each cell, class and repetition: live over virtual, on logarithmic axes.

    Args:
        table: quantiles of one or more studies.
    """
    classes = sorted(table["class"].unique())
    named = sorted(table["quantile"].unique())
    low = 0.8 * float(min(table["live_ms"].min(), table["virtual_ms"].min()))
    high = 1.25 * float(max(table["live_ms"].max(), table["virtual_ms"].max()))
    figure, axes = plots.panels(1, len(named), 3.2, sharex=True, sharey=True)
    for axis, quantile in zip(axes, named, strict=True):
        axis.plot([low, high], [low, high], color=plots.PRINTED, linewidth=0.8, linestyle=":")
        for at, name in enumerate(classes):
            rows = table.filter((pl.col("class") == name) & (pl.col("quantile") == quantile))
            plots.line(axis, rows["virtual_ms"], rows["live_ms"], name, at, linestyle="none", alpha=0.7)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlim(low, high)
        axis.set_ylim(low, high)
        axis.set_aspect("equal")
        plots.log_x(axis)
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(FuncFormatter(plots.plain))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_title(quantile, loc="left")
        axis.set_xlabel("Virtual time (ms)")
    axes[0].set_ylabel("Live (ms)")
    plots.legend(figure, axes[0], 5)
    plots.note(figure, "A point: a cell and class in one repetition. Dotted: equal.")
    return figure


@plots.style()
def tails(study: Study, app_class: str) -> Figure | None:
    """Distributions of response time of a class, by cell, on both testbeds; None if there are none."""
    found: dict[str, dict[str, list[np.ndarray]]] = {}
    for live, virtual in pairs(study):
        of_cell = found.setdefault(cell(live), {LIVE: [], VIRTUAL: []})
        for run in (live, virtual):
            wanted = (pl.col("class") == app_class) & is_sample(run)
            rows = scan_requests(run).filter(wanted).with_columns(response_ms()).collect()["response_ms"]
            if rows.len():
                of_cell[run.testbed].append(np.sort(rows.to_numpy()))
    found = {name: of for name, of in found.items() if of[LIVE] and of[VIRTUAL]}
    if not found:
        return None
    columns = min(3, len(found))
    rows_of = -(-len(found) // columns)
    figure, axes = plots.panels(rows_of, columns, 0.8 + 1.9 * rows_of, sharex=True, sharey=True)
    for axis, (name, of) in zip(axes, found.items(), strict=False):
        for at, (testbed, words) in enumerate([(VIRTUAL, "virtual time"), (LIVE, "live")]):
            for number, sorted_ms in enumerate(of[testbed]):
                # The same definition as the metric: a value that was observed.
                rank = np.ceil(SHARES * sorted_ms.size - 1e-9).astype(int) - 1
                name_once = words if number == 0 else None
                x = np.maximum(sorted_ms[rank], 1e-3)
                plots.line(axis, x, SHARES, name_once, at, marker="", linewidth=0.9)
        axis.set_xscale("log")
        plots.log_x(axis)
        short = name if len(name) <= CELL_LETTERS else name[: CELL_LETTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"
        axis.set_title(short, loc="left")
    plots.hide(axes[len(found) :])
    for axis in axes[-columns:]:
        axis.set_xlabel(f"Response of {app_class} (ms)")
    for axis in axes[::columns]:
        axis.set_ylabel("Share answered")
    plots.legend(figure, axes[0], 2)
    plots.note(figure, "A line: one repetition.")
    return figure


@plots.style()
def parts(table: pl.DataFrame) -> Figure:
    """Mean difference of response time, live minus virtual, by cell and class: bars for each part.

    Args:
        table: what `results.parts` gives.
    """
    keys = table.select("cell", "class").unique(maintain_order=True).rows()
    figure, axes = plots.panels(1, len(PARTS), 1.1 + 0.24 * len(keys), sharey=True)
    for at, (axis, (column, words)) in enumerate(zip(axes, PARTS.items(), strict=True)):
        for y, (name, app_class) in enumerate(keys):
            rows = table.filter((pl.col("cell") == name) & (pl.col("class") == app_class))
            found = mean_interval(rows[column].to_list())
            axis.barh(y, found.estimate, color=plots.colour(at), height=0.65)
            plots.interval_bar(axis, y, found, across=True, color=plots.PRINTED)
        plots.reference(axis, 0, across=False, line="-")
        axis.set_title(_broken(words), loc="left")
        axis.set_xlabel("ms")
        plots.name_rows(axis, [f"{name[:CELL_LETTERS]}: {app_class}" for name, app_class in keys])
    plots.note(figure, "Means over repetitions with 95 % t intervals. Scales differ from panel to panel.")
    return figure


def _broken(words: str, letters: int = 17) -> str:
    lines = [""]
    for word in words.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > letters:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
