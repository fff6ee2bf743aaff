"""The figures of a study. Each returns a matplotlib figure; `weir.style.save` writes it.

Every figure shows the runs beside the estimate, gives axes with units, and says below what its bars are and of
how many repetitions. A group of one repetition has no bar. Invalid runs are not in the tables that are drawn.
"""

import math

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from weir.labels import label
from weir.layout import Layout, is_numeric, levels_of, place
from weir.load import Level, Study
from weir.statistics import CONFIDENCE, compare, summarise
from weir.style import LINES, MARKERS, PALETTE, WIDTH_INCH, style
from weir.tables import scan_measured

#: A positive axis whose largest value is this many times its smallest is drawn in decades.
LOG_RATIO = 30
#: Points of a distribution's line: more than a printed page resolves.
TAIL_POINTS = 300


def intervals(
    study: Study,
    table: pl.DataFrame,
    metric: str,
    *,
    title: str | None = None,
    limit: float | None = None,
    x: str | None = None,
) -> Figure:
    """A metric by the study's factors: runs as small points, their mean, and its interval.

    Args:
        study: the study.
        table: one row per run (of one class, or of the runs as a whole).
        metric: the column to draw.
        title: the figure's title; none if None.
        limit: the objective's limit, drawn as a line.
        x: the factor along the axis; chosen from the study's if None.

    Raises:
        ValueError: no row has a value of the metric.
    """
    table, layout = place(study, table.drop_nulls(metric), x)
    if table.is_empty():
        raise ValueError(f"no run has a value of {metric}")
    summary = summarise(table, metric, layout.factors, bounds=label(metric).bounds)
    rows, cols = levels_of(study, table, layout.row), levels_of(study, table, layout.col)
    hues, xs = levels_of(study, table, layout.hue), levels_of(study, table, layout.x)
    with style():
        figure, axes = _panels(len(rows), len(cols))
        for r, row in enumerate(rows):
            for c, col in enumerate(cols):
                panel = {layout.row: row, layout.col: col}
                for h, hue in enumerate(hues):
                    group = panel | {layout.hue: hue}
                    offset = 0.0 if len(hues) == 1 else (h - (len(hues) - 1) / 2) * 0.6 / len(hues)
                    _draw_group(
                        axes[r, c],
                        _only(table, group),
                        _only(summary, group),
                        metric,
                        layout.x,
                        xs,
                        offset,
                        h,
                    )
                if limit is not None:
                    axes[r, c].axhline(limit, color="#333333", linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
                _name_axis(axes[r, c], layout.x, xs)
                axes[r, c].set_title(_panel_title(layout, row, col))
        _scale(axes, table[metric].to_list(), limit)
        _mark_unbounded(axes, summary, layout, rows, cols, hues, xs)
        for r in range(len(rows)):
            axes[r, 0].set_ylabel(_wrapped(label(metric).axis))
        _legend(figure, layout.hue, hues, limit)
        _caption(figure, summary, "Small points are runs")
        if title:
            figure.suptitle(title, fontsize=10, fontweight="bold", x=0.01, ha="left")
    return figure


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
    if baseline is None:
        baseline = study.factors[factor][0]
    others = [name for name in study.varied if name != factor]
    result = compare(table, metric, factor, baseline, ["class", *others], as_difference=as_difference)
    if result.is_empty():
        raise ValueError(f"no pair of runs to compare {metric} by {factor}")
    classes = [c.name for c in study.classes if c.name in result["class"].unique().to_list()]
    several = result[factor].n_unique() > 1
    names = [*others, factor] if several or not others else others
    cells = result.select(names).unique(maintain_order=True).rows()
    heading = f"{', '.join(names)}"
    with style():
        height = 1.1 + 0.2 * len(cells)
        figure, axes = _panels(1, len(classes), height=height, sharex=not as_difference)
        for position, name in enumerate(classes):
            axis = axes[0, position]
            of_class = result.filter(pl.col("class") == name)
            for y, cell in enumerate(cells):
                found = _only(of_class, dict(zip(names, cell, strict=True)))
                if found.height:
                    _draw_estimate(axis, found.row(0, named=True), y)
            axis.axvline(0 if as_difference else 1, color="#333333", linewidth=0.9)
            axis.set_yticks(range(len(cells)), [", ".join(_level(v) for v in cell) for cell in cells])
            axis.set_ylim(len(cells) - 0.4, -0.6)
            axis.grid(axis="x")
            axis.grid(visible=False, axis="y")
            axis.set_title(name)
            if not as_difference:
                axis.set_xscale("log")
                axis.xaxis.set_major_formatter(FuncFormatter(_plain))
                axis.xaxis.set_minor_formatter(
                    FuncFormatter(_plain) if _narrow(axis) else FuncFormatter(_nothing)
                )
        axes[0, 0].set_ylabel(heading)
        kind = "minus" if as_difference else "relative to"
        level = next(iter(result[factor].unique())) if not several else "each level"
        figure.supxlabel(f"{label(metric).text}: {level} {kind} {baseline}", fontsize=9)
        _caption(figure, result, "Pairs share a block; the vertical line is no difference", gap=0.32)
    return figure


def tail(study: Study, class_name: str) -> Figure:
    """The share of one class's requests that took longer than t, one line per run.

    Raises:
        ValueError: the class has no request in a valid run.
        InputError: a request table is damaged.
    """
    columns = ["run", "response_ms", *study.varied]
    frame = scan_measured(study.valid_runs).filter(pl.col("class") == class_name).select(columns)
    # Evenly spaced ranks in the body would hide the tail, so ranks are spaced by the logarithm of what remains.
    remaining = np.geomspace(1, 1e-5, TAIL_POINTS)
    table = frame.collect()
    if table.is_empty():
        raise ValueError(f"class {class_name} has no measured request in a valid run")
    table, layout = place(study, table)
    rows, cols = levels_of(study, table, layout.row), levels_of(study, table, layout.col)
    with style():
        figure, axes = _panels(len(rows), len(cols))
        for r, row in enumerate(rows):
            for c, col in enumerate(cols):
                axis = axes[r, c]
                for i, hue in enumerate(levels_of(study, table, layout.x)):
                    for j, kind in enumerate(levels_of(study, table, layout.hue)):
                        group = {layout.row: row, layout.col: col, layout.x: hue, layout.hue: kind}
                        for _, of_run in _only(table, group).group_by("run", maintain_order=True):
                            t, above = _exceedance(of_run["response_ms"].to_numpy(), remaining)
                            axis.step(
                                t, above, where="post", linewidth=0.9, alpha=0.75,
                                color=PALETTE[i % len(PALETTE)], linestyle=LINES[j % len(LINES)],
                            )  # fmt: skip
                axis.set_yscale("log")
                axis.set_xscale("log")
                axis.xaxis.set_major_formatter(FuncFormatter(_plain))
                axis.yaxis.set_major_formatter(FuncFormatter(_plain))
                axis.set_title(_panel_title(layout, row, col))
                axis.grid(axis="both")
        for r in range(len(rows)):
            axes[r, 0].set_ylabel("Share of requests\nthat took longer")
        figure.supxlabel("Response time (ms)", fontsize=9)
        _line_legend(figure, study, table, layout)
        runs = table["run"].n_unique()
        _note(
            figure,
            f"One line per run ({runs} runs); a line that ends above the axis ends at its longest response.",
        )
    return figure


def split(study: Study, table: pl.DataFrame) -> Figure:
    """Where the time went: mean queueing delay and mean service time, stacked, with the interval of each.

    Args:
        study: the study.
        table: one row per run with `queueing_mean_ms` and `service_mean_ms`.

    Raises:
        ValueError: no run has both.
    """
    parts = ["queueing_mean_ms", "service_mean_ms"]
    table = table.drop_nulls(parts)
    if table.is_empty():
        raise ValueError("no run has a queueing delay and a service time")
    names = list(study.varied)
    summaries = [summarise(table, part, names, bounds=label(part).bounds) for part in parts]
    cells = summaries[0].select(names).rows() if names else [()]
    with style():
        figure, axes = _panels(1, 1, height=0.9 + 0.24 * len(cells))
        axis = axes[0, 0]
        for position, (part, summary) in enumerate(zip(parts, summaries, strict=True)):
            values = np.array(summary["estimate"].to_list())
            before = np.zeros(len(cells)) if position == 0 else np.array(summaries[0]["estimate"].to_list())
            axis.barh(
                range(len(cells)), values, left=before, height=0.66, color=PALETTE[position], alpha=0.85,
                label=label(part).text, edgecolor="white",
            )  # fmt: skip
            for y, found in enumerate(summary.iter_rows(named=True)):
                if found["low"] is not None:
                    shift, y_bar = before[y], y + (-0.12 if position == 0 else 0.12)
                    axis.plot(
                        [found["low"] + shift, found["high"] + shift],
                        [y_bar, y_bar],
                        color="#222222",
                        linewidth=1,
                    )
        axis.set_yticks(
            range(len(cells)), [", ".join(_level(v) for v in cell) or "all runs" for cell in cells]
        )
        axis.set_ylabel(", ".join(names))
        axis.invert_yaxis()
        axis.grid(axis="x")
        axis.grid(visible=False, axis="y")
        axis.set_xlabel("Mean time per request (ms)")
        figure.legend(loc="outside upper right", ncols=2, frameon=False)
        _caption(figure, summaries[0], "Black lines are intervals of each part")
    return figure


def _only(table: pl.DataFrame, group: dict[str | None, Level | None]) -> pl.DataFrame:
    conditions = [pl.col(name) == level for name, level in group.items() if name is not None]
    return table.filter(*conditions) if conditions else table


def _panels(
    rows: int, cols: int, *, height: float | None = None, sharex: bool = True
) -> tuple[Figure, np.ndarray]:
    # Not through pyplot: a figure that is only returned is not kept alive in a global list.
    size = (WIDTH_INCH, height or (1.0 + 2.1 * rows))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, cols, sharey=True, sharex=sharex, squeeze=False)
    return figure, axes


def _draw_group(
    axis: Axes,
    runs: pl.DataFrame,
    summary: pl.DataFrame,
    metric: str,
    x: str | None,
    xs: list[Level | None],
    offset: float,
    h: int,
) -> None:
    colour, marker = PALETTE[h % len(PALETTE)], MARKERS[h % len(MARKERS)]
    scale = x is not None and is_numeric(xs)

    def at(level: Level | None) -> float:
        return float(level) if scale else xs.index(level) + offset

    positions = [at(level) for level in (runs[x] if x else [None] * runs.height)]
    values = runs[metric].to_numpy()
    finite = np.isfinite(values)
    axis.scatter(
        np.array(positions)[finite], values[finite], s=7, color=colour, alpha=0.45, linewidths=0, zorder=2
    )
    shown = summary.filter(pl.col("estimate").is_finite())
    centres = [at(level) for level in (shown[x] if x else [None] * shown.height)]
    axis.plot(
        centres, shown["estimate"].to_list(), linestyle="-" if scale else "none", color=colour, marker=marker,
        markersize=5, markeredgecolor="white", markeredgewidth=0.5, linewidth=1.1, zorder=4,
    )  # fmt: skip
    for centre, found in zip(centres, shown.iter_rows(named=True), strict=True):
        if found["low"] is not None:
            axis.errorbar(
                centre, found["estimate"],
                yerr=[[found["estimate"] - found["low"]], [found["high"] - found["estimate"]]],
                color=colour, capsize=2.5, linewidth=1.2, zorder=3,
            )  # fmt: skip


def _mark_unbounded(axes, summary, layout: Layout, rows, cols, hues, xs) -> None:
    """A triangle at the top edge where the estimate is infinite: requests never completed."""
    for found in summary.filter(pl.col("estimate").is_infinite()).iter_rows(named=True):
        axis = axes[_index(rows, found, layout.row), _index(cols, found, layout.col)]
        h = _index(hues, found, layout.hue)
        offset = 0.0 if len(hues) == 1 else (h - (len(hues) - 1) / 2) * 0.6 / len(hues)
        scale = layout.x is not None and is_numeric(xs)
        centre = found[layout.x] if scale else _index(xs, found, layout.x) + offset
        axis.plot(
            centre, 0.97, marker="^", markersize=7, color=PALETTE[h % len(PALETTE)],
            transform=axis.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
        axis.annotate(
            "unbounded",
            (centre, 0.93),
            xycoords=axis.get_xaxis_transform(),
            fontsize=6,
            ha="center",
            va="top",
        )


def _index(levels: list[Level | None], found: dict[str, object], name: str | None) -> int:
    return 0 if name is None else levels.index(found[name])


def _draw_estimate(axis: Axes, found: dict[str, object], y: float) -> None:
    colour = PALETTE[0]
    axis.plot(found["estimate"], y, marker="o", markersize=4.5, color=colour, linestyle="none", zorder=4)
    if found["low"] is not None:
        axis.plot([found["low"], found["high"]], [y, y], color=colour, linewidth=1.4, zorder=3)


def _exceedance(values: np.ndarray, remaining: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and the share of values above each; infinite values keep the line from falling to zero."""
    values = np.sort(values)
    n = values.size
    ranks = np.unique(np.clip(np.floor((1 - remaining) * n).astype(int), 0, n - 1))
    t, above = values[ranks], 1 - (ranks + 1) / n
    drawn = np.isfinite(t) & (above > 0)
    return t[drawn], above[drawn]


def _name_axis(axis: Axes, x: str | None, xs: list[Level | None]) -> None:
    if x is None:
        axis.set_xticks([0], ["all runs"])
    elif is_numeric(xs):
        axis.set_xticks([float(level) for level in xs], [_level(level) for level in xs])
    else:
        axis.set_xticks(range(len(xs)), [_level(level) for level in xs])
        axis.set_xlim(-0.6, len(xs) - 0.4)
        if max(len(str(level)) for level in xs) * len(xs) > 30:
            axis.tick_params(axis="x", labelrotation=25)
            for tick in axis.get_xticklabels():
                tick.set_ha("right")
                tick.set_rotation_mode("anchor")
    axis.set_xlabel(x or "")
    axis.label_outer()


def _scale(axes: np.ndarray, values: list[float], limit: float | None) -> None:
    finite = [v for v in [*values, limit] if v is not None and math.isfinite(v)]
    if finite and min(finite) > 0 and max(finite) / min(finite) > LOG_RATIO:
        axes[0, 0].set_yscale("log")
        for axis in axes.flat:
            axis.yaxis.set_major_formatter(FuncFormatter(_plain))
    elif finite and min(finite) >= 0:
        axes[0, 0].set_ylim(bottom=0, top=None if max(finite) > 0 else 1)


def _legend(figure: Figure, name: str | None, levels: list[Level | None], limit: float | None) -> None:
    from matplotlib.lines import Line2D

    handles = []
    if name is not None:
        for h, level in enumerate(levels):
            handles.append(
                Line2D([], [], color=PALETTE[h % len(PALETTE)], marker=MARKERS[h % len(MARKERS)], label=_level(level),
                       markersize=5, linewidth=1.2)
            )  # fmt: skip
    if limit is not None:
        handles.append(
            Line2D([], [], color="#333333", linewidth=0.9, linestyle=(0, (4, 2)), label="objective")
        )
    if handles:
        figure.legend(handles=handles, title=name, loc="outside right upper", frameon=False, alignment="left")


def _line_legend(figure: Figure, study: Study, table: pl.DataFrame, layout: Layout) -> None:
    from matplotlib.lines import Line2D

    handles = []
    if layout.x:
        for i, level in enumerate(levels_of(study, table, layout.x)):
            handles.append(Line2D([], [], color=PALETTE[i % len(PALETTE)], label=_level(level)))
    if layout.hue:
        for j, level in enumerate(levels_of(study, table, layout.hue)):
            handles.append(
                Line2D([], [], color="#555555", linestyle=LINES[j % len(LINES)], label=_level(level))
            )
    if handles:
        figure.legend(handles=handles, loc="outside right upper", frameon=False, alignment="left")


def _panel_title(layout: Layout, row: Level | None, col: Level | None) -> str:
    parts = [f"{name} {_level(level)}" for name, level in ((layout.col, col), (layout.row, row)) if name]
    return ", ".join(parts)


def _caption(figure: Figure, summary: pl.DataFrame, first: str, *, gap: float = 0.0) -> None:
    ns = sorted(summary["n"].unique().to_list())
    n = f"n = {ns[0]}" if len(ns) == 1 else f"n = {ns[0]} to {ns[-1]}"
    methods = [m for m in summary["method"].unique(maintain_order=True).to_list() if m != "none"]
    if methods:
        bars = f"bars are {CONFIDENCE:.0%} {methods[0]} intervals over {n} repetitions"
        if ns[0] == 1:
            bars += " (none where n = 1)"
    else:
        bars = f"{n} repetition{'' if ns[-1] == 1 else 's'}: no interval"
    _note(figure, f"{first}; {bars}.", gap=gap)


def _note(figure: Figure, text: str, *, gap: float = 0.0) -> None:
    # Below the figure's own area; saving with a tight box includes it.
    figure.text(0.01, -0.02 - gap / figure.get_figheight() * 0, text, fontsize=7.5, color="#444444", va="top")


def _wrapped(text: str) -> str:
    return text if len(text) < 30 else text.replace(" of ", "\nof ", 1)


def _level(level: object) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


def _plain(value: float, _position: int) -> str:
    return f"{value:g}"


def _nothing(_value: float, _position: int) -> str:
    return ""


def _narrow(axis: Axes) -> bool:
    low, high = axis.get_xlim()
    return low > 0 and high / low < 10
