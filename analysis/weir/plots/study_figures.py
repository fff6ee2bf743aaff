"""The figures of a study. Each returns a matplotlib figure; `weir.style.save` writes it.

Every figure shows the runs beside the estimate, gives axes with units, and says below what its bars are
and of how many repetitions. A group of one repetition has no bar. The tables that are drawn hold valid
runs only.
"""

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from weir import plots
from weir.labels import label
from weir.load import Level, Study
from weir.plots import factors
from weir.plots.layout import place
from weir.statistics import compare, summarise
from weir.study import cell_label
from weir.tables import scan_measured

#: Points of a distribution's line: more than a printed page resolves.
TAIL_POINTS = 160
#: Characters of a row's name on one line: about a third of a figure's width.
ROW_CHARS = 38


@plots.style()
def intervals(
    study: Study,
    table: pl.DataFrame,
    metric: str,
    *,
    limit: float | None = None,
    x: str | None = None,
) -> Figure:
    """A metric by the study's factors: runs as small points, their mean, and its interval.

    Args:
        study: the study.
        table: one row per run (of one class, or of the runs as a whole).
        metric: the column to factors.
        limit: the objective's limit, drawn as a line.
        x: the factor along the axis; chosen from the study's if None.

    Raises:
        ValueError: no row has a value of the metric.
    """
    table, layout = place(study, table.drop_nulls(metric), x)
    if table.is_empty():
        raise ValueError(f"no run has a value of {metric}")
    summary = summarise(table, metric, layout.factors, bounds=label(metric).bounds)
    places = factors.Places.of(study, table, layout)
    figure, axes = _grid(places)
    for r, row in enumerate(places.rows):
        for c, col in enumerate(places.cols):
            axis = axes[r * len(places.cols) + c]
            for hue in places.hues:
                group = {layout.row: row, layout.col: col, layout.hue: hue}
                factors.draw_runs(axis, factors.only(table, group), metric, places, hue)
                factors.draw_estimates(axis, factors.only(summary, group), places, hue)
            if limit is not None:
                factors.draw_limit(axis, limit)
            factors.name_levels(axis, places)
            axis.set_title(factors.panel_title(layout, row, col))
        axes[r * len(places.cols)].set_ylabel(label(metric).axis.replace(" of ", "\nof "))
    factors.scale_values(axes, table[metric].to_list(), limit)
    factors.group_legend(figure, places, limit)
    plots.note(figure, "Small points: runs; " + factors.interval_caption(summary, "bars"))
    return figure


@plots.style()
def ratios(
    study: Study,
    table: pl.DataFrame,
    metric: str,
    factor: str,
    baseline: Level | None = None,
    *,
    as_difference: bool = False,
) -> Figure:
    """Each level of a factor against a baseline level, paired by block, with the interval of the ratio.

    Args:
        study: the study.
        table: one row per run and class.
        metric: the column to compare.
        factor: the factor whose levels are compared.
        baseline: the level that they are compared with; the plan's first if None.
        as_difference: draw differences, for a metric that may be zero.

    Raises:
        ValueError: no pair of runs can be compared.
    """
    baseline = study.factors[factor][0] if baseline is None else baseline
    others = [name for name in study.varied if name != factor]
    result = compare(table, metric, factor, baseline, ["class", *others], as_difference=as_difference)
    if result.is_empty():
        raise ValueError(f"no pair of runs to compare {metric} by {factor}")
    levels = result[factor].unique(maintain_order=True).to_list()
    names = [factor, *others] if len(levels) > 1 or not others else others
    cells = result.select(names).unique(maintain_order=True).rows()
    classes = [c.name for c in study.classes if c.name in set(result["class"])]
    texts = _row_texts(cells, names)
    figure, axes = plots.panels(1, len(classes), 1.0 + 0.2 * _lines(texts), sharex=True, sharey=True)
    for axis, name in zip(axes, classes, strict=True):
        of_class = result.filter(pl.col("class") == name)
        for y, cell in enumerate(cells):
            for found in factors.only(of_class, dict(zip(names, cell, strict=True))).iter_rows(named=True):
                factors.draw_row(axis, found, y)
        axis.axvline(0 if as_difference else 1, color="#333333", linewidth=0.9)
        axis.grid(axis="x")
        axis.grid(visible=False, axis="y")
        axis.set_title(name)
    axes[0].set_yticks(range(len(cells)), texts)
    axes[0].set_ylim(len(cells) - 0.4, -0.6)
    if not as_difference:
        plots.log_x(axes[0])
    first, *_, base = factors.level_texts([*levels, baseline])
    what = first if len(levels) == 1 else f"each {factor}"
    relation = "minus" if as_difference else "relative to"
    unit = f" ({label(metric).unit})" if as_difference and label(metric).unit else ""
    text = f"{label(metric).text}{unit}: {what} {relation} {base}"
    figure.supxlabel(text)
    caption = factors.interval_caption(result, "bars", unit="pair")
    plots.note(figure, f"Runs are paired by block; {caption}")
    return figure


def _grid(places: factors.Places) -> tuple[Figure, list[Axes]]:
    rows, columns = len(places.rows), len(places.cols)
    return plots.panels(rows, columns, 1.0 + 2.1 * rows, sharex=True, sharey=True)


def _row_texts(cells: list[tuple[Level, ...]], names: list[str]) -> list[str]:
    """Names of cells for rows, without settings that all cells have; long names on several lines."""
    columns = list(zip(*cells, strict=True))
    for i, column in enumerate(columns):
        if all(isinstance(level, str) for level in column):
            columns[i] = factors.level_texts(list(column))
    shown = zip(*columns, strict=True) if columns else cells
    labels = [cell_label(dict(zip(names, cell, strict=True)), names) for cell in shown]
    return [factors.on_lines(text, ROW_CHARS) for text in labels]


def _lines(texts: list[str]) -> float:
    """Height of rows with these names, in rows; a second line takes less than a row."""
    return sum(1 + 0.7 * text.count("\n") for text in texts)


@plots.style()
def tail(study: Study, class_name: str) -> Figure:
    """The share of one class's requests that took longer than t, one line per run.

    Raises:
        ValueError: the class has no request in a valid run.
        InputError: a request table is damaged.
    """
    columns = ["run", "response_ms", *study.varied]
    requests = scan_measured(study.valid_runs).filter(pl.col("class") == class_name)
    table, layout = place(study, requests.select(columns).collect())
    if table.is_empty():
        raise ValueError(f"class {class_name} has no measured request in a valid run")
    places = factors.Places.of(study, table, layout)
    figure, axes = _grid(places)
    for r, row in enumerate(places.rows):
        for c, col in enumerate(places.cols):
            axis = axes[r * len(places.cols) + c]
            for i, x in enumerate(places.xs):
                for j, hue in enumerate(places.hues):
                    look = {"color": plots.colour(i), "linestyle": plots.line_style(j)}
                    group = {layout.row: row, layout.col: col, layout.x: x, layout.hue: hue}
                    runs = factors.only(table, group).group_by("run", maintain_order=True)
                    for _, of_run in runs:
                        t, above = exceedance(of_run["response_ms"].to_numpy())
                        axis.step(t, above, where="post", linewidth=0.9, alpha=0.75, **look)
            axis.set_title(factors.panel_title(layout, row, col))
            axis.grid(axis="both")
        axes[r * len(places.cols)].set_ylabel("Share of requests\nthat took longer")
    axes[0].set_yscale("log")
    for axis in axes:
        plots.log_x(axis)
        axis.yaxis.set_major_formatter(FuncFormatter(plots.plain))
    figure.supxlabel("Response time (ms)")
    factors.line_legend(figure, places)
    plots.note(figure, f"One line per run, n = {table['run'].n_unique()} runs; no interval.")
    return figure


def exceedance(response_ms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and the share of requests that took longer than each.

    Ranks are spaced by the logarithm of what remains, so that the tail has as many points as the body.
    Infinite responses have no time, but keep the share from falling to zero.
    """
    values = np.sort(response_ms)
    n = values.size
    remaining = np.geomspace(0.995, 1e-5, TAIL_POINTS)
    ranks = np.unique(np.clip(np.floor((1 - remaining) * n).astype(int), 0, n - 1))
    t, above = values[ranks], 1 - (ranks + 1) / n
    drawn = np.isfinite(t) & (above > 0)
    return t[drawn], above[drawn]


@plots.style()
def split(study: Study, table: pl.DataFrame) -> Figure:
    """Mean queueing delay and mean service time, stacked, with the interval of each.

    Args:
        study: the study.
        table: one row per run with `queueing_mean_ms` and `service_mean_ms`.

    Raises:
        ValueError: no run has both.
    """
    parts = ("queueing_mean_ms", "service_mean_ms")
    table = table.drop_nulls(parts) if set(parts) <= set(table.columns) else table.clear()
    if table.is_empty():
        raise ValueError("no run has a queueing delay and a service time")
    names = list(study.varied)
    queueing, service = (summarise(table, part, names, bounds=label(part).bounds) for part in parts)
    cells = queueing.select(names).rows() if names else [()]
    texts = _row_texts(cells, names)
    figure, (axis,) = plots.panels(1, 1, 0.9 + 0.22 * _lines(texts))
    start = np.zeros(len(cells))
    for i, (part, summary) in enumerate(zip(parts, (queueing, service), strict=True)):
        length = summary["estimate"].to_numpy()
        look = {"color": plots.colour(i), "alpha": 0.85, "edgecolor": "white", "label": label(part).text}
        axis.barh(range(len(cells)), length, left=start, height=0.7, **look)
        for y, found in enumerate(summary.iter_rows(named=True)):
            if found["low"] is not None:
                # The two lines of a bar stand apart where they overlap in time.
                level = y + (-0.13, 0.13)[i]
                ends = [start[y] + found["low"], start[y] + found["high"]]
                axis.plot(ends, [level, level], color="#222222", linewidth=1)
        start = start + length
    plots.name_rows(axis, texts)
    axis.set_xlabel("Mean time per request (ms)")
    figure.legend(loc="outside upper right", ncols=2)
    caption = factors.interval_caption(queueing, "black lines")
    plots.note(figure, "Queueing delay, then service time; " + caption)
    return figure
