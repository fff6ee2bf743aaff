"""Drawing of a study's table by its factors: groups with intervals, axes, legends, captions."""

import math
import textwrap
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from weir.load import Level, Study
from weir.plots.layout import Layout, is_numeric, levels_of
from weir.plots.panels import LOG_RATIO, plain, two_and_five
from weir.plots.series import colour, line_style, marker
from weir.statistics import CONFIDENCE

#: The part of the distance between two levels that a group of colours takes.
GROUP_WIDTH = 0.6
#: Characters of a panel's title on one line.
TITLE_CHARS = 30
#: Characters of a legend's line that fit beside the panels.
LEGEND_CHARS = 34
#: How much higher a figure is for each line of a legend above it.
LEGEND_LINE_INCH = 0.21
#: Characters of a level's name along the axis on one line.
TICK_CHARS = 26
_OBJECTIVE = {"color": "#333333", "linewidth": 0.9, "linestyle": (0, (4, 2))}


@dataclass(frozen=True)
class Places:
    """The levels at each place of a layout, and where on the axis a group stands."""

    layout: Layout
    xs: list[Level | None]
    hues: list[Level | None]
    cols: list[Level | None]
    rows: list[Level | None]

    @classmethod
    def of(cls, study: Study, table: pl.DataFrame, layout: Layout) -> "Places":
        """The levels that occur in a table, in the plan's order."""
        at = (layout.x, layout.hue, layout.col, layout.row)
        return cls(layout, *(levels_of(study, table, name) for name in at))

    @property
    def scaled(self) -> bool:
        """Whether the axis is a scale of numbers."""
        return self.layout.x is not None and is_numeric(self.xs)

    def centre(self, x: Level | None, hue: Level | None) -> float:
        """The place of the group of this level and colour."""
        if self.scaled:
            return float(x)
        offset = self.hues.index(hue) - (len(self.hues) - 1) / 2
        return self.xs.index(x) + offset * GROUP_WIDTH / len(self.hues)

    @property
    def aside(self) -> float:
        """Distance between the points of runs and their estimate, so that its bar does not hide them."""
        return 0.0 if self.scaled else 0.24 * GROUP_WIDTH / len(self.hues)


def only(table: pl.DataFrame, group: dict[str | None, Level | None]) -> pl.DataFrame:
    """The rows whose columns have these levels; a place without a factor is no condition."""
    conditions = [pl.col(name) == level for name, level in group.items() if name is not None]
    return table.filter(*conditions) if conditions else table


def draw_runs(axis: Axes, runs: pl.DataFrame, metric: str, places: Places, hue: Level | None) -> None:
    """One small point per run; runs whose value is infinite have no point."""
    x = places.layout.x
    finite = runs.filter(pl.col(metric).is_finite())
    at = [places.centre(level, hue) + places.aside for level in _column(finite, x)]
    shade = colour(places.hues.index(hue))
    axis.scatter(at, finite[metric].to_list(), s=7, color=shade, alpha=0.5, linewidths=0, clip_on=False)


def draw_estimates(axis: Axes, summary: pl.DataFrame, places: Places, hue: Level | None) -> None:
    """Estimates with their intervals; an infinite one is a triangle at the upper edge."""
    x, h = places.layout.x, places.hues.index(hue)
    shown = summary.filter(pl.col("estimate").is_finite())
    at = [places.centre(level, hue) for level in _column(shown, x)]
    # A panel without this level: a line of no points would still take room, at the figure's corner.
    if at:
        axis.plot(
            at,
            shown["estimate"].to_list(),
            linestyle="-" if places.scaled else "none",
            linewidth=1.1,
            color=colour(h),
            marker=marker(h),
            markersize=5,
            markeredgecolor="white",
            markeredgewidth=0.5,
            zorder=4,
            clip_on=False,
        )
    for centre, found in zip(at, shown.iter_rows(named=True), strict=True):
        if found["low"] is not None:
            middle = found["estimate"]
            reach = [[middle - found["low"]], [found["high"] - middle]]
            axis.errorbar(centre, middle, yerr=reach, color=colour(h), capsize=2.5, linewidth=1.2, zorder=3)
    edge = axis.get_xaxis_transform()
    for found in summary.filter(pl.col("estimate").is_infinite()).iter_rows(named=True):
        centre = places.centre(found[x] if x else None, hue)
        axis.plot(centre, 0.97, marker="^", markersize=6, color=colour(h), transform=edge, clip_on=False)
        axis.text(centre, 0.92, "unbounded", transform=edge, fontsize=6, ha="center", va="top", rotation=90)


def draw_row(axis: Axes, found: dict[str, float | None], y: float) -> None:
    """One estimate with its interval along a horizontal line."""
    axis.plot(found["estimate"], y, marker="o", markersize=4.5, color=colour(0), zorder=4)
    if found["low"] is not None:
        axis.plot([found["low"], found["high"]], [y, y], color=colour(0), linewidth=1.4, zorder=3)


def draw_limit(axis: Axes, limit: float) -> None:
    """The objective's limit."""
    axis.axhline(limit, zorder=1, **_OBJECTIVE)


def name_levels(axis: Axes, places: Places) -> None:
    """Ticks at the levels of the factor along the axis, turned where they would run into each other."""
    xs, x = places.xs, places.layout.x
    if x is None:
        axis.set_xticks([0], ["all runs"])
        axis.set_xlim(-1, 1)
    elif places.scaled:
        axis.set_xticks([float(level) for level in xs], level_texts(xs))
    else:
        axis.set_xticks(range(len(xs)), [on_lines(text, TICK_CHARS) for text in level_texts(xs)])
        axis.set_xlim(-0.6, len(xs) - 0.4)
        width_chars = 80 / len(places.cols)
        if sum(len(text) + 2 for text in level_texts(xs)) > width_chars:
            axis.tick_params(axis="x", labelrotation=25)
            for tick in axis.get_xticklabels():
                tick.set(ha="right", rotation_mode="anchor")
    axis.set_xlabel(x or "")
    axis.label_outer()


def scale_values(axes: list[Axes], values: list[float | None], limit: float | None) -> None:
    """From zero for quantities that cannot be negative; in decades where they span too many."""
    finite = [v for v in [*values, limit] if v is not None and math.isfinite(v)]
    if not finite or min(finite) < 0:
        return
    if min(finite) > 0 and max(finite) / min(finite) > LOG_RATIO:
        axes[0].set_yscale("log")
        for axis in axes:
            axis.yaxis.set_major_formatter(FuncFormatter(plain))
            narrow = max(finite) / min(finite) < 100
            axis.yaxis.set_minor_formatter(FuncFormatter(two_and_five) if narrow else NullFormatter())
    else:
        # Values that are nearly equal leave no margin of their own.
        axes[0].set_ylim(0, max(axes[0].get_ylim()[1], 1.08 * max(finite)) if max(finite) > 0 else 1)


def group_legend(figure: Figure, places: Places, limit: float | None) -> None:
    """Legend of colours, markers and the objective's line."""
    handles = []
    if places.layout.hue is not None:
        for h, text in enumerate(level_texts(places.hues)):
            handles.append(_key(text, color=colour(h), marker=marker(h), markersize=5))
    if limit is not None:
        handles.append(_key("objective", **_OBJECTIVE))
    _legend(figure, handles, places.layout.hue)


def line_legend(figure: Figure, places: Places) -> None:
    """Legend of colours (levels along the axis elsewhere) and dashes (colours elsewhere)."""
    handles = []
    if places.layout.x is not None:
        handles += [_key(text, color=colour(i)) for i, text in enumerate(level_texts(places.xs))]
    if places.layout.hue is not None:
        dashes = enumerate(level_texts(places.hues))
        handles += [_key(text, color="#555555", linestyle=line_style(j)) for j, text in dashes]
    # Of both there is no one name.
    names = [name for name in (places.layout.x, places.layout.hue) if name is not None]
    _legend(figure, handles, names[0] if len(names) == 1 else None)


def panel_title(layout: Layout, row: Level | None, col: Level | None) -> str:
    """The levels that a panel stands for; on several lines where one would be wider than a panel."""
    places = ((layout.col, col), (layout.row, row))
    parts = [f"{name} {level_text(level)}" for name, level in places if name is not None]
    if sum(map(len, parts)) <= TITLE_CHARS:
        return ", ".join(parts)
    return "\n".join(on_lines(part, TITLE_CHARS) for part in parts)


def interval_caption(summary: pl.DataFrame, bars: str, unit: str = "repetition") -> str:
    """Caption of intervals, such as `bars: 95% intervals (t), n = 3 repetitions`."""
    ns = sorted(summary["n"].unique().to_list())
    n = f"n = {ns[0]}" if len(ns) == 1 else f"n = {ns[0]} to {ns[-1]}"
    units = unit if ns[-1] == 1 else f"{unit}s"
    methods = [m for m in summary["method"].unique(maintain_order=True).to_list() if m != "none"]
    if not methods:
        return f"{n} {units}: no interval."
    without = summary.filter(pl.col("low").is_null() & pl.col("estimate").is_finite())
    reasons = sorted({"n = 1" if n == 1 else "all are equal" for n in without["n"]})
    but = f" (none where {' or '.join(reasons)})" if reasons else ""
    return f"{bars}: {CONFIDENCE:.0%} intervals ({', '.join(methods)}){but}, {n} {units}."


def level_text(level: object) -> str:
    """A level as it is written in a figure."""
    return f"{level:g}" if isinstance(level, float) else str(level)


def level_texts(levels: list[Level | None]) -> list[str]:
    """Levels as they are written beside each other, without settings (`name=value`) that all of them have."""
    words = [level_text(level).split(" ") for level in levels]
    of_all = set(words[0]).intersection(*words[1:]) if len(words) > 1 else set()
    same = {word for word in of_all if "=" in word}
    return [" ".join(word for word in of_level if word not in same) for of_level in words]


def on_lines(text: str, chars: int) -> str:
    """A text on lines of at most so many characters, parted at blanks if it can be."""
    return textwrap.fill(text, chars, break_on_hyphens=False)


def _column(table: pl.DataFrame, name: str | None) -> list[Level | None]:
    return [None] * table.height if name is None else table[name].to_list()


def _key(text: str, **line: object) -> Line2D:
    return Line2D([], [], label=text, **line)


def _legend(figure: Figure, handles: list[Line2D], title: str | None) -> None:
    if not handles:
        return
    # A factor within one (`filesystem_options.stripe_count`) would take half of the figure's width.
    name = title and title.rpartition(".")[2]
    look = {"title": name, "title_fontsize": 8, "alignment": "left"}
    if max(len(handle.get_label()) for handle in handles) <= LEGEND_CHARS:
        figure.legend(handles=handles, loc="outside right upper", **look)
        return
    # Beside the panels it would leave them no room: above them, for which the figure grows.
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE_INCH * (len(handles) + (name is not None)))
    figure.legend(handles=handles, loc="outside upper left", **look)
