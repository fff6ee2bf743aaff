"""Facets of a table: which columns go along the axis, into colours, into columns and rows of panels."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import polars as pl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from weir.labels import label
from weir.load import Level
from weir.plots import axes as panels
from weir.plots.layout import is_numeric
from weir.plots.palette import Look, looks
from weir.plots.style import on_lines, width_inch
from weir.statistics import CONFIDENCE, POOLED

Table = pl.DataFrame | pd.DataFrame
#: The columns that one place of a figure shows; of several, the levels are joined.
Place = str | Sequence[str] | None
#: The part of the distance between two levels that a group of colours takes.
GROUP_WIDTH = 0.6
#: Characters of a level's name along the axis on one line.
TICK_CHARS = 26
#: Below this width a legend beside the panels leaves them no room.
NARROW_INCH = 5
#: A panel is not narrower than this.
_PANEL_INCH = 1.25
#: The largest part of a figure's width that a legend beside the panels takes.
_LEGEND_PART = 0.3
_OBJECTIVE = {"color": "#333333", "linewidth": 0.9, "linestyle": (0, (4, 2))}
#: The one level of a place without a column.
_NONE = ""
#: The panels of several metrics are levels of this column; a title does not repeat the axis's.
METRIC = "metric"


def as_polars(table: Table) -> pl.DataFrame:
    """A table of polars or pandas as one of polars."""
    return table if isinstance(table, pl.DataFrame) else pl.from_pandas(table)


@dataclass(frozen=True)
class Facets:
    """A table, the columns in the places of a figure, their levels in order, and the looks of levels."""

    table: pl.DataFrame
    x: str | None
    hue: str | None
    col: str | None
    row: str | None
    levels: dict[str | None, list[Level]]
    look: dict[str | None, dict[str, Look]]
    words: Mapping[object, str]

    @classmethod
    def of(
        cls,
        table: Table,
        *,
        x: Place = None,
        hue: Place = None,
        col: Place = None,
        row: Place = None,
        order: Mapping[str, Sequence[Level]] | None = None,
        words: Mapping[object, str] | None = None,
    ) -> "Facets":
        """Puts columns of a table into places.

        Args:
            table: of polars or pandas.
            x: along the axis.
            hue: in colours.
            col: in columns of panels.
            row: in rows of panels.
            order: levels by column; they may be more than the table has, and keep their colours then.
            words: what columns and levels are called; a number is named as a pair of column and level.
        """
        table, order, words = as_polars(table), order or {}, words or {}
        names: list[str | None] = []
        parts_of: dict[str, Sequence[str]] = {}
        for place in (x, hue, col, row):
            if place is None or isinstance(place, str):
                names.append(place)
                continue
            joined = ", ".join(place)
            parts_of[joined] = place
            parts = [
                pl.col(one).cast(pl.String).replace({str(k): v for k, v in words.items()}) for one in place
            ]
            table = table.with_columns(pl.concat_str(parts, separator=", ").alias(joined))
            names.append(joined)
        levels: dict[str | None, list[Level]] = {None: [_NONE]}
        look: dict[str | None, dict[str, Look]] = {None: {_NONE: Look.at(0)}}
        for name in filter(None, names):
            levels[name] = _ordered(table[name], order.get(name))
            planned = [level for level in order.get(name, ())]
            known = {str(level) for level in planned}
            everything = planned + [level for level in levels[name] if str(level) not in known]
            look[name] = {str(level): of for level, of in looks(everything).items()}
        for joined, place in parts_of.items():
            look[joined] = _joined_looks(table, joined, place, order)
        return cls(table, *names, levels, look, words)

    @property
    def factors(self) -> list[str]:
        """The columns in use."""
        return [name for name in (self.x, self.hue, self.col, self.row) if name is not None]

    @property
    def scaled(self) -> bool:
        """Whether the levels along the axis are numbers."""
        return self.x is not None and is_numeric(self.levels[self.x])

    def texts(self, name: str | None) -> list[str]:
        """The levels of a column as they are written."""
        plain = level_texts(self.levels[name])
        return [self._word(name, level) or text for level, text in zip(self.levels[name], plain, strict=True)]

    def _word(self, name: str | None, level: Level) -> str | None:
        # A number is a level of several columns.
        own = self.words.get((name, level))
        return self.words.get(level) if own is None and isinstance(level, str) else own

    def called(self, name: str | None) -> str:
        """What a column is called."""
        # A factor within one (`filesystem_options.stripe_count`) would take half of the figure's width.
        return "" if name is None else self.words.get(name, name.rpartition(".")[2])

    def title(self, row: Level, col: Level, inches: float) -> str:
        """The levels that a panel stands for; on several lines where one would be wider than a panel."""
        parts = []
        for name, level in ((self.col, col), (self.row, row)):
            if name is not None and name != METRIC:
                own = self._word(name, level)
                text = self.texts(name)[self.levels[name].index(level)]
                parts.append(own or f"{self.called(name)} {text}".strip())
        size = mpl.rcParams["axes.titlesize"]
        one = ", ".join(parts)
        return (
            one if on_lines(one, size, inches) == one else "\n".join(on_lines(p, size, inches) for p in parts)
        )

    def panels(self, figure: Figure) -> Iterator[tuple[Axes, Level, Level]]:
        """Each panel with its levels of row and column; the title is set."""
        wanted = [(row, col) for row in self.levels[self.row] for col in self.levels[self.col]]
        columns = panels.grid_shape(figure.axes)[1]
        for axis, (row, col) in zip(figure.axes, wanted, strict=True):
            axis.set_title(self.title(row, col, 0.82 * figure.get_figwidth() / columns))
            yield axis, row, col

    def only(self, table: pl.DataFrame, row: Level, col: Level) -> pl.DataFrame:
        """The rows of a panel."""
        return only(table, {self.row: row, self.col: col})


def grid(
    at: Facets,
    *,
    height: float | None = None,
    sharex: bool = True,
    sharey: bool = True,
    wrapped: bool = True,
) -> Figure:
    """A figure with a panel for each level of the columns and rows; columns that do not fit go below.

    All columns stay in one line if not `wrapped`.
    """
    columns, rows = len(at.levels[at.col]), len(at.levels[at.row])
    fit = max(1, int(width_inch() / _PANEL_INCH))
    wrap = None
    if wrapped and at.row is None and columns > fit:
        # Lines of equal length, so that none has a single panel.
        wrap = -(-columns // -(-columns // fit))
        rows, columns = -(-columns // wrap), wrap
    names = [name for name in (at.col, at.row) if name is not None]
    texts = {name: at.table[name].cast(pl.String).to_list() for name in names}
    drawn = sns.FacetGrid(
        pd.DataFrame(texts if names else {_NONE: [_NONE]}),
        col=at.col,
        row=at.row,
        col_order=None if at.col is None else _as_text(at, at.col),
        row_order=None if at.row is None else _as_text(at, at.row),
        col_wrap=wrap,
        sharex=sharex,
        sharey=sharey,
        despine=False,
    )
    figure = drawn.figure
    # A figure that pyplot knows stays in memory, and a notebook shows it a second time.
    plt.close(figure)
    each = 2.1 if width_inch() > NARROW_INCH else 1.5
    figure.set_size_inches(width_inch(), height or 0.7 + each * rows)
    figure.set_layout_engine("constrained")
    return figure


def _joined_looks(
    table: pl.DataFrame, joined: str, columns: Sequence[str], order: Mapping[str, Sequence[Level]]
) -> dict[str, Look]:
    """Looks of joined levels: the first column gives the colour, the others marker and dashes."""
    cells = table.select(joined, *columns).unique(maintain_order=True).rows()
    shades = looks(order.get(columns[0]) or list(dict.fromkeys(cell[1] for cell in cells)))
    others = list(dict.fromkeys(cell[2:] for cell in cells))
    return {
        text: replace(Look.at(others.index(tuple(rest))), color=shades[head].color)
        for text, head, *rest in cells
    }


def finite(table: pl.DataFrame, column: str) -> pd.DataFrame:
    """The rows with a finite value, for seaborn, which leaves infinite ones out without a word."""
    return table.filter(pl.col(column).is_finite()).to_pandas()


def triples(summary: pl.DataFrame) -> pd.DataFrame:
    """Estimate, low and high of each finite row, one below the other in the column `value`.

    With `estimator=first` and `errorbar=ends` seaborn draws exactly these numbers and computes none.
    """
    kept = finite(summary, "estimate")
    ends = [kept.assign(value=kept[name].astype(float)) for name in ("estimate", "low", "high")]
    return pd.concat(ends, ignore_index=True)


def first(values: pd.Series) -> float:
    """The estimate of a group of `triples`."""
    return float(values.iloc[0])


def ends(values: pd.Series) -> tuple[float, float]:
    """The interval of a group of `triples`; NaN where it has none."""
    return (float(values.iloc[1]), float(values.iloc[2])) if len(values) == 3 else (math.nan, math.nan)


def only(table: pl.DataFrame, group: dict[str | None, Level | None]) -> pl.DataFrame:
    """The rows whose columns have these levels; a place without a column is no condition."""
    conditions = [pl.col(name) == level for name, level in group.items() if name is not None]
    return table.filter(*conditions) if conditions else table


def text_column(table: pl.DataFrame, name: str | None) -> pl.Expr:
    """A column as text; for no column, the one level of a place without."""
    return pl.lit(_NONE) if name is None else pl.col(name).cast(pl.String)


def draw_limit(axis: Axes, limit: float, *, across: bool = True) -> None:
    """The objective's limit."""
    (axis.axhline if across else axis.axvline)(limit, zorder=1, **_OBJECTIVE)


def name_levels(axis: Axes, at: Facets, scaled: bool, inches: float, *, cells: bool = False) -> None:
    """Ticks at the levels of the factor along the axis, turned where they would run into each other.

    Args:
        axis: the panel.
        at: the facets.
        scaled: whether levels stand at their numbers.
        inches: width of the panel.
        cells: whether levels are cells of a heat map, named in their middles.
    """
    texts = at.texts(at.x)
    letter_inch = 0.55 * mpl.rcParams["xtick.labelsize"] / 72
    fits = (max(map(len, texts)) + 1.2) * letter_inch <= inches / len(texts)
    if at.x is None:
        axis.set_xticks([0], ["all runs"])
        axis.set_xlim(-1, 1)
    elif scaled and not fits:
        # The ticks that matplotlib chooses: names of all levels do not fit.
        axis.xaxis.set_major_locator(MaxNLocator(max(2, int(inches / (6 * letter_inch)))))
        axis.set_xlabel(at.called(at.x))
        return
    elif scaled:
        axis.set_xticks([float(level) for level in at.levels[at.x]], texts)
    else:
        places = [place + 0.5 * cells for place in range(len(texts))]
        axis.set_xticks(places, [_folded(text) for text in texts], rotation=0)
        if not cells:
            axis.set_xlim(-0.6, len(texts) - 0.4)
    if at.x is not None and not fits:
        axis.tick_params(axis="x", labelrotation=30)
        for tick in axis.get_xticklabels():
            tick.set(ha="right", rotation_mode="anchor")
    axis.set_xlabel(at.called(at.x))


def is_wide(values: Sequence[float | None]) -> bool:
    """Whether positive values span more decades than an axis from zero shows."""
    found = [v for v in values if v is not None and math.isfinite(v)]
    return bool(found) and min(found) > 0 and max(found) / min(found) > panels.LOG_RATIO


def scale_values(
    axes: Sequence[Axes], values: Sequence[float | None], limit: float | None, mark: str = panels.UNBOUNDED
) -> None:
    """From zero for quantities that cannot be negative; in decades where they span too many.

    Above infinite values there is room for their marks with this text.
    """
    found = [v for v in [*values, limit] if v is not None and math.isfinite(v)]
    if not found or min(found) < 0:
        return
    if is_wide(found):
        panels.log_y(axes)
    else:
        # Values that are nearly equal leave no margin of their own.
        top = max(*(axis.get_ylim()[1] for axis in axes), 1.08 * max(found)) if max(found) > 0 else 1
        for axis in axes:
            axis.set_ylim(0, top)
    if any(v is not None and math.isinf(v) for v in values):
        points = 0.75 * 72 * axes[0].figure.get_figheight() / panels.grid_shape(axes)[0]
        part = min(0.08 + 0.55 * mpl.rcParams["legend.fontsize"] * len(mark) / points, 0.5)
        for axis in {axis.get_shared_y_axes().get_siblings(axis)[0]: axis for axis in axes}.values():
            low, high = axis.get_ylim()
            more = (high / low) ** (part / (1 - part)) if axis.get_yscale() == "log" else 0
            axis.set_ylim(low, high * more if more else low + (high - low) / (1 - part))


def group_legend(
    figure: Figure, at: Facets, limit: float | None, *, points: bool = True, lines: bool = False
) -> None:
    """Legend of the colours, markers (`points`) and dashes (`lines`) of `hue`, and the objective's line."""
    handles = {}
    if at.hue is not None:
        for level, text in zip(at.levels[at.hue], at.texts(at.hue), strict=True):
            look = at.look[at.hue][str(level)]
            drawn = {
                "marker": look.marker if points else "",
                "linestyle": look.linestyle if lines else "none",
            }
            handles[text] = Line2D([], [], color=look.color, markersize=5, **drawn)
    if limit is not None:
        handles["objective"] = Line2D([], [], **_OBJECTIVE)
    place_legend(figure, handles, at.called(at.hue) if at.hue else None)


def place_legend(figure: Figure, handles: dict[str, Line2D], title: str | None) -> None:
    """A legend beside the panels, or above them where its names would take their room."""
    if not handles:
        return
    letter_inch = 0.52 * mpl.rcParams["legend.fontsize"] / 72
    inches = letter_inch * (max(len(name) for name in [*handles, title or ""]) + 5)
    if figure.get_figwidth() > NARROW_INCH and inches <= _LEGEND_PART * figure.get_figwidth():
        look = {"title": title, "alignment": "left", "loc": "outside right upper"}
        figure.legend(handles.values(), handles, **look)
    else:
        panels.keys(figure, handles, title=title, loc="outside upper left")


def metric_title(metric: str, words: Mapping[object, str], inches: float) -> str:
    """What a metric is called on an axis, with its unit; on several lines where an axis is short."""
    return on_lines(words.get(metric, label(metric).axis), mpl.rcParams["axes.labelsize"], inches)


def interval_caption(summary: pl.DataFrame, bars: str, unit: str = "repetition") -> str:
    """Caption of intervals, such as `bars: 95% intervals of the mean of runs (t), n = 3 repetitions`."""
    summary = summary.drop_nulls("estimate")
    ns = sorted(summary["n"].unique().to_list())
    n = f"n = {ns[0]}" if len(ns) == 1 else f"n = {ns[0]} to {ns[-1]}"
    units = unit if ns[-1] == 1 else f"{unit}s"
    methods = [m for m in summary["method"].unique(maintain_order=True).to_list() if m != "none"]
    if not methods:
        return f"{n} {units}: no interval."
    without = summary.filter(pl.col("low").is_null() & pl.col("estimate").is_finite())
    reasons = sorted({"n = 1" if n == 1 else "all are equal" for n in without["n"]})
    but = f" (none where {' or '.join(reasons)})" if reasons else ""
    bounded = summary.drop_nulls("low")
    parts = [part for note in bounded["note"] for part in note.split(", ")]
    pooled = POOLED if parts.count(POOLED) == bounded.height else f"{POOLED} for some"
    how = ", ".join([*methods, *([pooled] if POOLED in parts else [])])
    of = " or ".join(bounded["estimand"].unique(maintain_order=True))
    text = f"{bars}: {CONFIDENCE:.0%} intervals of the {of} ({how}){but}, {n} {units}."
    is_cut = any(part.startswith("cut at") for part in parts)
    return f"{text} Triangles: cut at the limit of the quantity." if is_cut else text


def level_text(level: object) -> str:
    """A level as it is written in a figure."""
    return f"{level:g}" if isinstance(level, float) else str(level)


def level_texts(levels: Sequence[Level | None]) -> list[str]:
    """Levels as they are written beside each other, without settings (`name=value`) that all of them have."""
    words = [level_text(level).split(" ") for level in levels]
    of_all = set(words[0]).intersection(*words[1:]) if len(words) > 1 else set()
    same = {word for word in of_all if "=" in word}
    return [" ".join(word for word in of_level if word not in same) for of_level in words]


def _ordered(column: pl.Series, planned: Sequence[Level] | None) -> list[Level]:
    present = [level for level in column.unique(maintain_order=True).to_list() if level is not None]
    if planned is None:
        return sorted(present) if column.dtype.is_numeric() else present
    # A factor of mixed types is text in the table.
    place = {str(level): at for at, level in enumerate(planned)}
    return sorted(present, key=lambda level: place.get(str(level), len(place)))


def _as_text(at: Facets, name: str) -> list[str]:
    return (
        at.table.select(pl.Series(name, at.levels[name], at.table[name].dtype).cast(pl.String))
        .to_series()
        .to_list()
    )


def _folded(text: str) -> str:
    return on_lines(text, 1, TICK_CHARS * 0.52 / 72)


def centre(at: Facets, x: Level, hue: Level, *, scaled: bool) -> float:
    """The place of the group of this level and colour."""
    if scaled:
        return float(x)
    hues = at.levels[at.hue]
    offset = hues.index(hue) - (len(hues) - 1) / 2
    return at.levels[at.x].index(x) + offset * GROUP_WIDTH / len(hues)


def label_lowest(figure: Figure) -> None:
    """Names and ticks of the x axis only where no panel stands below; names no wider than a panel."""
    last = panels.lowest(figure.axes)
    inches = 0.8 * figure.get_figwidth() / panels.grid_shape(figure.axes)[1]
    for axis in figure.axes:
        axis.tick_params(labelbottom=axis in last)
        text = axis.get_xlabel() if axis in last else ""
        axis.set_xlabel(on_lines(text, mpl.rcParams["axes.labelsize"], inches) if text else "")
