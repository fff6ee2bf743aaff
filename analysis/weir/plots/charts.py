"""Charts of estimates by the columns of a table: intervals, ratios, heat maps, time lines, stacked parts.

seaborn draws; estimates and intervals are those of `weir.statistics`. A table is one of polars or pandas with
a row per run (`repetition` tells runs of one cell apart). An infinite value is never left out: it has a mark
at the panel's edge and the word "unbounded".
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from weir.labels import DASH, is_cut, label, number
from weir.load import Level
from weir.plots import axes as panels
from weir.plots import facets
from weir.plots.axes import note as write_note
from weir.plots.axes import unbounded
from weir.plots.facets import GROUP_WIDTH, Facets, Place, Table, centre
from weir.plots.palette import Look, look_of
from weir.plots.style import on_lines, style
from weir.statistics import compare, fitted, summarise
from weir.study import cell_label

#: The part of a figure's width that names of rows take at most.
_ROW_PART = 0.33
#: A part of a row's name that is no longer is not broken.
_SHORT_PART = 24
#: Stacked parts have room for intervals up to this multiple of the longest bar.
_WIDEST = 2.0
#: Text on light cells.
_ON_CELL = "#1f1f1f"
_NO_BREAK = "\N{NO-BREAK SPACE}"


@style()
def intervals(
    table: Table,
    metric: str | Sequence[str],
    *,
    x: Place = None,
    hue: Place = None,
    col: Place = None,
    row: Place = None,
    order: Mapping[str, Sequence[Level]] | None = None,
    words: Mapping[object, str] | None = None,
    bounds: tuple[float, float] | None = None,
    limit: float | None = None,
    scaled: bool | None = None,
    joined: bool | None = None,
    runs: bool = True,
    sharey: bool = True,
    fit: bool = False,
    shown: str | None = None,
    height: float | None = None,
    note: str = "",
) -> Figure:
    """A metric by factors: its estimate over repetitions with the interval, and runs as small points.

    An interval that is cut at a limit of the quantity has a triangle at that end.

    Args:
        table: one row per run (of one class, or of the runs as a whole).
        metric: the column to draw; of several, each has panels and an axis of its own.
        x: the column along the axis; one axis of numbers if its levels are numbers.
        hue: the column in colours; of several columns, the levels are joined.
        col: the column in columns of panels.
        row: the column in rows of panels.
        order: levels by column, in the order of the figure.
        words: what columns, levels and metrics are called.
        bounds: the range of the metric, to which intervals are cut; by default that of its label.
        limit: the objective's limit, drawn as a line.
        scaled: whether the axis is one of numbers; by default if the levels are.
        joined: whether lines join the estimates; by default if the axis is one of numbers.
        runs: draw the runs.
        sharey: whether panels share the y axis.
        fit: estimand and interval that fit the metric (`statistics.fitted`), instead of means of runs with t
            intervals. `bounds` are then those of its label.
        shown: a column of truths, alike in all rows of a cell; a cell without has a dash in place of numbers.
        height: of the figure without legend and note, in inches.
        note: what else there is to say below the figure.

    Raises:
        ValueError: no row has a value of the metric, or a cell has several rows of one repetition.
    """
    table, words = facets.as_polars(table), words or {}
    metrics = [metric] if isinstance(metric, str) else list(metric)
    single = len(metrics) == 1
    if not single:
        index = [name for name in table.columns if name not in metrics]
        table = table.unpivot(metrics, index=index, variable_name=facets.METRIC, value_name="value")
        col, order = facets.METRIC, dict(order or {}) | {facets.METRIC: metrics}
    value = metrics[0] if single else "value"
    at = Facets.of(table.drop_nulls(value), x=x, hue=hue, col=col, row=row, order=order, words=words)
    if at.table.is_empty():
        raise ValueError(f"no run has a value of {', '.join(metrics)}")
    summary, dashes = _estimates(at, value, bounds or label(metrics[0]).bounds, fit=fit, shown=shown)
    drawn = at.table if shown is None else at.table.filter(shown)
    scaled = at.scaled if scaled is None else scaled
    joined = scaled if joined is None else joined
    figure = facets.grid(at, height=height, sharey=sharey and single)
    rows, columns = panels.grid_shape(figure.axes)
    inches, tall = 0.66 * figure.get_figwidth() / columns, 0.6 * figure.get_figheight() / rows
    for axis, of_row, of_col in at.panels(figure):
        panel = at.only(drawn, of_row, of_col)
        if runs:
            _draw_runs(axis, panel, value, at, scaled)
        _draw_estimates(axis, at.only(summary, of_row, of_col), at, scaled, joined)
        for found in at.only(dashes, of_row, of_col).to_dicts():
            panels.dash(axis, *_place(at, found, scaled, joined))
        if limit is not None:
            facets.draw_limit(axis, limit)
        facets.name_levels(axis, at, scaled, inches)
        axis.set_ylabel(facets.metric_title(str(of_col) if not single else value, words, tall))
        if not (single and sharey):
            facets.scale_values([axis], panel[value].to_list(), limit)
        if single and not axis.get_subplotspec().is_first_col():
            axis.set_ylabel("")
    if single and sharey:
        # In decades, the ends of intervals have their place too.
        ends = [*summary["low"], *summary["high"]] if fit else []
        facets.scale_values(figure.axes, [*drawn[value], *ends], limit)
    facets.label_lowest(figure)
    facets.group_legend(figure, at, limit, lines=joined)
    points = "Small points: runs; bars" if runs else "Bars"
    caption = facets.interval_caption(summary, points) if summary.height else ""
    write_note(figure, " ".join(filter(None, (caption, note))))
    return figure


@style()
def ratios(
    table: Table,
    metric: str,
    factor: str,
    baseline: Level,
    *,
    by: Sequence[str] = (),
    col: str | None = "class",
    order: Mapping[str, Sequence[Level]] | None = None,
    as_difference: bool = False,
    note: str = "",
) -> Figure:
    """Each level of a factor against a baseline level, paired by block, with the interval of the ratio.

    Args:
        table: one row per run and class.
        metric: the column to compare.
        factor: the factor whose levels are compared.
        baseline: the level that they are compared with.
        by: the other factors: a row for each cell.
        col: the column in columns of panels.
        order: levels by column, in the order of the figure.
        as_difference: draw differences, for a metric that may be zero.
        note: what else there is to say below the figure.

    Raises:
        ValueError: no pair of runs can be compared.
    """
    table = facets.as_polars(table)
    cell = [*([col] if col else []), *by]
    result = compare(table, metric, factor, baseline, cell, as_difference=as_difference)
    if not result["n"].sum():
        raise ValueError(f"no pair of runs to compare {metric} by {factor}")
    levels = result[factor].unique(maintain_order=True).to_list()
    names = [factor, *by] if len(levels) > 1 or not by else list(by)
    cells = result.select(names).unique(maintain_order=True).rows()
    at = Facets.of(result, col=col, order=order)
    texts = row_texts(cells, names)
    figure = facets.grid(at, height=1.0 + _height(texts, 0.2))
    for axis, of_row, of_col in at.panels(figure):
        axis.set_title(str(of_col))
        rows = _rows(at.only(result, of_row, of_col), cells, names)
        _draw_rows(axis, rows, -math.inf if as_difference else 0)
        axis.axvline(0 if as_difference else 1, color="#333333", linewidth=0.9)
        panels.name_rows(axis, texts)
        is_first = axis.get_subplotspec().is_first_col()
        axis.tick_params(left=is_first, labelleft=is_first)
        axis.set(xlabel="", ylabel="")
    if not as_difference:
        panels.log_x(figure.axes[0])
    head, *_, base = facets.level_texts([*levels, baseline])
    what = head if len(levels) == 1 else f"each {factor}"
    relation = "minus" if as_difference else "relative to"
    unit = f" ({label(metric).unit})" if as_difference and label(metric).unit else ""
    text = f"{label(metric).text}{unit}: {what} {relation} {base}"
    size = mpl.rcParams["axes.labelsize"]
    figure.suptitle(on_lines(text, size, figure.get_figwidth()), fontsize=size, x=0.01, ha="left")
    caption = facets.interval_caption(result, "bars", unit="pair")
    write_note(figure, " ".join(filter(None, (f"Runs are paired by block; {caption}", note))))
    return figure


@style()
def heat_map(
    table: Table,
    metric: str,
    *,
    x: str,
    y: str,
    col: Place = None,
    row: Place = None,
    order: Mapping[str, Sequence[Level]] | None = None,
    words: Mapping[object, str] | None = None,
    bounds: tuple[float, float] | None = None,
    height: float | None = None,
    fit: bool = False,
    shown: str | None = None,
    note: str = "",
) -> Figure:
    """A metric by two factors: the estimate over repetitions as a colour and a number.

    Args:
        table: one row per run.
        metric: the column to draw.
        x: the column along the x axis.
        y: the column along the y axis.
        col: the column in columns of panels.
        row: the column in rows of panels.
        order: levels by column, in the order of the figure.
        words: what columns, levels and the metric are called.
        bounds: the range of the metric.
        height: of the figure without note, in inches.
        fit: as of `intervals`.
        shown: as of `intervals`; a cell that is not shown is grey.
        note: what else there is to say below the figure.

    Raises:
        ValueError: no row has a value of the metric.
    """
    words = words or {}
    kept = facets.as_polars(table).drop_nulls(metric)
    at = Facets.of(kept, x=x, hue=y, col=col, row=row, order=order, words=words)
    if at.table.is_empty():
        raise ValueError(f"no run has a value of {metric}")
    summary, dashes = _estimates(at, metric, bounds or label(metric).bounds, fit=fit, shown=shown)
    known = [v for v in summary["estimate"].to_list() if math.isfinite(v)]
    scale = (LogNorm if facets.is_wide(known) else Normalize)(min(known, default=0), max(known, default=1))
    figure = facets.grid(at, height=height)
    figure_columns = panels.grid_shape(figure.axes)[1]
    small = mpl.rcParams["legend.fontsize"] - 1
    for axis, of_row, of_col in at.panels(figure):
        panel = at.only(summary, of_row, of_col)
        found = dict(zip(panel.select(x, y).rows(), panel["estimate"].to_list(), strict=True))
        cells = [[found.get((a, b), math.nan) for a in at.levels[x]] for b in at.levels[y]]
        texts = [["" if math.isnan(v) else number(v) for v in line] for line in cells]
        values = pd.DataFrame(cells, index=at.texts(y), columns=at.texts(x))
        sns.heatmap(
            # An infinite value has no colour: its cell is grey, and its text says so.
            values.replace([math.inf, -math.inf], math.nan),
            annot=pd.DataFrame(texts),
            fmt="",
            cmap="crest",
            norm=scale,
            # The norm decides; without limits of its own seaborn warns of a panel without a number.
            vmin=scale.vmin,
            vmax=scale.vmax,
            linewidths=1,
            annot_kws={"fontsize": small},
            cbar=False,
            ax=axis,
        )
        axis.set_facecolor("#e6e6e6")
        for text in axis.texts:
            # A cell keeps its colour on a dark page, and so does its number.
            if text.get_color() == ".15":
                text.set_color(_ON_CELL)
        marks = {key: panels.UNBOUNDED for key, v in found.items() if math.isinf(v)}
        marks |= dict.fromkeys(at.only(dashes, of_row, of_col).select(x, y).rows(), DASH)
        for (a, b), mark in marks.items():
            place = at.levels[x].index(a) + 0.5, at.levels[y].index(b) + 0.5
            axis.text(*place, mark, ha="center", va="center", fontsize=small, color=_ON_CELL)
        facets.name_levels(axis, at, False, 0.66 * figure.get_figwidth() / figure_columns, cells=True)
        axis.tick_params(length=0)
        axis.tick_params(axis="y", labelrotation=0)
        axis.grid(visible=False)
        axis.set_ylabel(at.called(y) if axis.get_subplotspec().is_first_col() else "")
    facets.label_lowest(figure)
    both = pl.concat([summary, dashes]).drop_nulls("estimate")
    low, high = both["n"].min(), both["n"].max()
    n = f"{low}" if low == high else f"{low} to {high}"
    of = " or ".join(both["estimand"].unique(maintain_order=True))
    text = f"{facets.metric_title(metric, words, 99)}: {of}, n = {n} repetitions."
    write_note(figure, " ".join(filter(None, (text, note))))
    return figure


@style()
def timeline(
    table: Table,
    value: str,
    *,
    time: str = "time_s",
    hue: Place = None,
    col: Place = None,
    row: Place = None,
    order: Mapping[str, Sequence[Level]] | None = None,
    words: Mapping[object, str] | None = None,
    bounds: tuple[float, float] | None = None,
    height: float | None = None,
    note: str = "",
) -> Figure:
    """A value over time: the mean over repetitions at each time, and its interval as a shade.

    Args:
        table: one row per run and time.
        value: the column to draw.
        time: the column of times.
        hue: the column in colours.
        col: the column in columns of panels.
        row: the column in rows of panels.
        order: levels by column, in the order of the figure.
        words: what columns, levels and the value are called.
        bounds: the range of the value.
        height: of the figure without legend and note, in inches.
        note: what else there is to say below the figure.

    Raises:
        ValueError: there is no value, or a time has several rows of one repetition.
    """
    words = words or {}
    at = Facets.of(
        facets.as_polars(table).drop_nulls(value), hue=hue, col=col, row=row, order=order, words=words
    )
    if at.table.is_empty():
        raise ValueError(f"no run has a value of {value}")
    summary = summarise(at.table, value, [time, *at.factors], bounds=bounds or label(value).bounds)
    figure = facets.grid(at, height=height)
    for axis, of_row, of_col in at.panels(figure):
        panel = at.only(summary, of_row, of_col)
        for level in at.levels[at.hue]:
            look = at.look[at.hue][str(level)]
            own = facets.only(panel, {at.hue: level})
            data = facets.triples(own.sort(time))
            if len(data):
                # Sorting would mix an estimate with the ends of its interval.
                sns.lineplot(
                    data, sort=False, x=time, y="value", estimator=facets.first, errorbar=facets.ends,
                    color=look.color, linestyle=look.linestyle, linewidth=1.2,
                    err_kws={"linewidth": 0}, ax=axis,
                )  # fmt: skip
            for found in own.to_dicts():
                if math.isinf(found["estimate"]):
                    unbounded(axis, float(found[time]), look.color)
                _mark_cuts(axis, float(found[time]), found, look.color)
        axis.set_xlabel(words.get(time, "Time (s)"))
        first = axis.get_subplotspec().is_first_col()
        axis.set_ylabel(facets.metric_title(value, words, 2.0) if first else "")
        axis.margins(x=0)
    facets.scale_values(figure.axes, at.table[value].to_list(), None)
    facets.label_lowest(figure)
    facets.group_legend(figure, at, None, points=False, lines=True)
    write_note(
        figure, " ".join(filter(None, (facets.interval_caption(summary, "Lines: means; shades"), note)))
    )
    return figure


@style()
def split(
    table: Table,
    parts: Sequence[str] = ("queueing_mean_ms", "service_mean_ms"),
    *,
    by: Sequence[str] = (),
    fit: bool = False,
) -> Figure:
    """Parts of a time, stacked, with the interval of each.

    Args:
        table: one row per run with a column for each part.
        parts: the columns, in the order of the stack; the last title names the unit of all.
        by: the factors: a row for each cell.
        fit: as of `intervals`.

    Raises:
        ValueError: no run has all parts.
    """
    table, by = facets.as_polars(table), list(by)
    table = table.drop_nulls(parts) if set(parts) <= set(table.columns) else table.clear()
    if table.is_empty():
        raise ValueError(f"no run has a value of {' and '.join(parts)}")
    found = [
        fitted(table, part, by) if fit else summarise(table, part, by, bounds=label(part).bounds)
        for part in parts
    ]
    cells = found[0].select(by).rows() if by else [()]
    texts = row_texts(cells, by)
    figure, (axis,) = panels.panels(1, 1, 0.75 + _height(texts, 0.22))
    start = np.zeros(len(cells))
    # A wide interval of one cell must not hide the bars of all others.
    lengths = [one["estimate"].to_numpy() for one in found]
    total = np.sum([np.where(np.isfinite(length), length, 0) for length in lengths], axis=0)
    right, outside = _WIDEST * float(total.max()), ""
    for i, (part, summary) in enumerate(zip(parts, found, strict=True)):
        length = summary["estimate"].to_numpy()
        bounded = np.where(np.isfinite(length), length, 0)
        color = look_of(part).color
        axis.barh(range(len(cells)), bounded, left=start, height=0.7, color=color, label=label(part).text)
        for y, one in enumerate(summary.iter_rows(named=True)):
            if one["low"] is not None:
                # The lines of a bar's parts stand apart where they overlap in time.
                level = y + 0.26 * (i - (len(parts) - 1) / 2)
                reach = [start[y] + one["low"], start[y] + one["high"]]
                axis.plot(np.minimum(reach, right), [level, level], color="#222222", linewidth=1)
                for end, at, low in zip(("low", "high"), reach, (True, False), strict=True):
                    if at > right:
                        axis.plot(right, level, marker=r"$\rightarrow$", color="#222222", clip_on=False)
                        outside = " Arrows: intervals that end outside the figure."
                    elif is_cut(one[end], one["note"]):
                        panels.cut(axis, level, at, "#222222", low=low, across=True)
            elif math.isinf(one["estimate"]):
                unbounded(axis, y, color, across=True)
        start = start + bounded
    panels.name_rows(axis, texts)
    axis.set_xlim(0, right if outside else None)
    axis.set_xlabel("Mean time per request (ms)")
    panels.legend(figure, axis, len(parts), loc="outside upper right")
    order = ", then ".join(label(part).text.removeprefix("Mean ") for part in parts)
    caption = facets.interval_caption(pl.concat(found), "black lines")
    write_note(figure, f"{order.capitalize()}; {caption}{outside}")
    return figure


def row_texts(cells: Sequence[tuple[Level, ...]], names: Sequence[str]) -> list[str]:
    """Names of cells for rows, without settings that all cells have; long names on several lines."""
    columns = list(zip(*cells, strict=True))
    for i, column in enumerate(columns):
        if all(isinstance(level, str) for level in column):
            columns[i] = facets.level_texts(list(column))
    shown = zip(*columns, strict=True) if columns else cells
    texts = [cell_label(dict(zip(names, cell, strict=True)), names) for cell in shown]
    inches = _ROW_PART * panels.width_inch()
    size = mpl.rcParams["ytick.labelsize"]
    return [on_lines(_unbroken(text), size, inches).replace(_NO_BREAK, " ") for text in texts]


def _unbroken(text: str) -> str:
    """A cell's name whose short parts, such as `load 0.5`, stay on one line."""
    parts = text.split(", ")
    return ", ".join(part.replace(" ", _NO_BREAK) if len(part) <= _SHORT_PART else part for part in parts)


def _draw_runs(axis: Axes, runs: pl.DataFrame, metric: str, at: Facets, scaled: bool) -> None:
    """One small point per run, beside its estimate; runs whose value is infinite have no point."""
    hues = at.levels[at.hue]
    aside = 0.0 if scaled else 0.24 * GROUP_WIDTH / len(hues)
    place = pl.col(at.x).cast(pl.Float64) if scaled and at.x else facets.text_column(runs, at.x)
    for hue in hues:
        data = facets.finite(
            facets.only(runs, {at.hue: hue}).select(place.alias("x"), pl.col(metric).alias("y")), "y"
        )
        if data.empty:
            continue
        there = len(axis.collections)
        sns.stripplot(
            data, x="x", y="y", order=None if scaled else list(map(str, at.levels[at.x])),
            native_scale=scaled, jitter=False, size=2.8, alpha=0.5, linewidth=0,
            color=at.look[at.hue][str(hue)].color, ax=axis, clip_on=False,
        )  # fmt: skip
        shift = 0.0 if scaled else centre(at, at.levels[at.x][0], hue, scaled=False) + aside
        for drawn in axis.collections[there:]:
            offsets = np.asarray(drawn.get_offsets())
            drawn.set_offsets(offsets + np.array([shift, 0]) if len(offsets) else offsets)


def _draw_estimates(axis: Axes, summary: pl.DataFrame, at: Facets, scaled: bool, joined: bool) -> None:
    """Estimates with their intervals; an infinite one is a mark at the upper edge."""
    hues = list(map(str, at.levels[at.hue]))
    place = pl.col(at.x).cast(pl.Float64) if scaled and at.x else facets.text_column(summary, at.x)
    shown = summary.with_columns(place.alias("_x"), facets.text_column(summary, at.hue).alias("_hue"))
    data = facets.triples(shown)
    look = [at.look[at.hue][hue] for hue in hues]
    if len(data):
        sns.pointplot(
            data, x="_x", y="value", hue="_hue", hue_order=hues, native_scale=scaled,
            order=None if scaled else list(map(str, at.levels[at.x])),
            dodge=False if scaled or joined or len(hues) == 1 else GROUP_WIDTH * (len(hues) - 1) / len(hues),
            palette=dict(zip(hues, (one.color for one in look), strict=True)),
            markers=[one.marker for one in look],
            linestyles=[one.linestyle if joined else "none" for one in look],
            estimator=facets.first, errorbar=facets.ends, err_kws={"linewidth": 1.2}, linewidth=1.1,
            markersize=5, markeredgecolor="white", markeredgewidth=0.5, zorder=4, legend=False, ax=axis,
        )  # fmt: skip
    marks: list[float] = []
    for found in summary.to_dicts():
        place, color = _place(at, found, scaled, joined)
        if math.isinf(found["estimate"]):
            unbounded(axis, place, color, nth=marks.count(place))
            marks.append(place)
        _mark_cuts(axis, place, found, color)


def _mark_cuts(axis: Axes, place: float, found: dict[str, Any], color: str) -> None:
    for end in ("low", "high"):
        if is_cut(found[end], found["note"]):
            panels.cut(axis, place, found[end], color, low=end == "low")


def _place(at: Facets, found: dict[str, Any], scaled: bool, joined: bool) -> tuple[float, str]:
    """Where an estimate stands along the axis, and its colour."""
    x, hue = (found[name] if name else at.levels[None][0] for name in (at.x, at.hue))
    place = at.levels[at.x].index(x) if joined and not scaled else centre(at, x, hue, scaled=scaled)
    return float(place), at.look[at.hue][str(hue)].color


def _estimates(
    at: Facets, value: str, bounds: tuple[float, float], *, fit: bool, shown: str | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The estimates to draw, and those that have a dash instead."""
    if fit:
        summary = fitted(at.table, value, at.factors)
    else:
        summary = summarise(at.table, value, at.factors, bounds=bounds)
    if shown is None:
        return summary, summary.clear()
    hidden = at.table.filter(~pl.col(shown))
    if not at.factors:
        return (summary.clear(), summary) if hidden.height else (summary, summary.clear())
    cells = hidden.select(at.factors).unique()
    kept, dashes = (summary.join(cells, on=at.factors, how=how, nulls_equal=True) for how in ("anti", "semi"))
    return kept, dashes


def _rows(result: pl.DataFrame, cells: Sequence[tuple[Level, ...]], names: Sequence[str]) -> pl.DataFrame:
    """The estimates with the row of their cell, as text for an axis of categories."""
    return result.with_columns(pl.Series("_y", [cells.index(cell) for cell in result.select(names).rows()]))


def _draw_rows(axis: Axes, rows: pl.DataFrame, no_ratio: float) -> None:
    """Comparisons, one a row; `no_ratio` is the estimate of one whose baseline is unbounded."""
    look = Look.at(0)
    data = facets.triples(rows.filter(pl.col("estimate") != no_ratio))
    if len(data):
        sns.pointplot(
            data, x="value", y="_y", orient="y", native_scale=True, linestyle="none", color=look.color,
            marker="o", markersize=4.5, estimator=facets.first, errorbar=facets.ends,
            err_kws={"linewidth": 1.4}, zorder=4, legend=False, ax=axis,
        )  # fmt: skip
    for y, estimate in rows.select("_y", "estimate").rows():
        if estimate is None:
            own = {"transform": axis.get_yaxis_transform(), "ha": "center", "va": "center"}
            axis.text(0.5, y, "no comparison", fontsize=mpl.rcParams["legend.fontsize"] - 1.5, **own)
        elif estimate == no_ratio:
            unbounded(axis, y, look.color, across=True, text=f"baseline {panels.UNBOUNDED}", low=True)
        elif math.isinf(estimate):
            unbounded(axis, y, look.color, across=True)


def _height(texts: Sequence[str], inches: float) -> float:
    """Height of rows with these names; a second line takes less than a row."""
    return inches * mpl.rcParams["ytick.labelsize"] / 8 * sum(1 + 0.7 * text.count("\n") for text in texts)
