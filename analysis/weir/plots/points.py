"""Chart of estimates that a table already has, such as medians, pooled means or ratios."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from weir.load import Level
from weir.plots import axes as panels
from weir.plots import facets
from weir.plots.axes import note as write_note
from weir.plots.facets import Facets, Place, Table, centre
from weir.plots.palette import PRINTED
from weir.plots.style import on_lines, style
from weir.statistics import Interval

#: What stands in a panel without any estimate.
ABSENT = "not measured"
#: Height of a row of a chart of rows, in inches.
_ROW_INCH = 0.25
#: Columns with marks beside the estimates.
_MARKS = {
    "each": {"fillstyle": "none", "alpha": 0.5, "markersize": 6},
    "printed": {"markerfacecolor": "white", "markersize": 3.5},
}


def tabled(found: Mapping[tuple[Level, ...], Interval | None], *names: str) -> pl.DataFrame:
    """Estimates as a table for `points`, without those that are None.

    Args:
        found: estimates by the levels of their cell.
        names: the columns of these levels.
    """
    rows = [
        dict(zip(names, cell, strict=True)) | {"estimate": one.estimate, "low": one.low, "high": one.high}
        for cell, one in found.items()
        if one is not None
    ]
    ends = dict.fromkeys(("estimate", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=ends, infer_schema_length=None)


@style()
def points(
    table: Table,
    *,
    x: Place = None,
    hue: Place = None,
    col: Place = None,
    order: Mapping[str, Sequence[Level]] | None = None,
    words: Mapping[object, str] | None = None,
    title: str = "",
    across: bool = False,
    joined: bool = True,
    log: bool | Sequence[Level] | None = None,
    sharey: bool = True,
    infinite: str = panels.UNBOUNDED,
    height: float | None = None,
    note: str = "",
) -> Figure:
    """Estimates by factors, with the intervals that they have.

    Args:
        table: a row per estimate: `estimate`, and if it has them `low` and `high` (null without an interval),
            `each`, lists of single values, drawn as rings; `printed`, a paper's numbers, drawn as open
            markers. A panel of which all estimates are null says that it was not measured.
        x: the column along the axis; one place for each of its levels.
        hue: the column in colours.
        col: the column in columns of panels.
        order: levels by column, in the order of the figure.
        words: what columns and levels are called.
        title: of the axis of values; with `across` each panel's level is the title of its own.
        across: values go along the x axis, and the levels of `x` are rows, the first one on top.
        joined: lines join the estimates.
        log: logarithmic axes of values; by default where values span many decades, with `across` of the
            panels of these levels.
        sharey: whether panels share the axis of values.
        infinite: what stands beside the mark of an infinite estimate.
        height: of the figure without legend and note, in inches.
        note: what bars and marks are.

    Raises:
        ValueError: there is no estimate.
    """
    table = facets.as_polars(table)
    absent = [pl.lit(None, pl.Float64).alias(end) for end in ("low", "high") if end not in table.columns]
    at = Facets.of(table.with_columns(absent), x=x, hue=hue, col=col, order=order, words=words)
    if at.table["estimate"].is_null().all():
        raise ValueError("there is no estimate to draw")
    if across:
        height = height or 1.0 + _ROW_INCH * len(at.levels[at.x])
    figure = facets.grid(at, height=height, sharex=not across, sharey=across or sharey, wrapped=not across)
    inches = 0.66 * figure.get_figwidth() / panels.grid_shape(figure.axes)[1]
    for axis, _, of_col in at.panels(figure):
        own = at.only(at.table, None, of_col)
        _draw(axis, own, at, infinite, across=across, joined=joined and not across)
        if own["estimate"].is_null().all():
            axis.text(0.5, 0.5, ABSENT, transform=axis.transAxes, ha="center", color=PRINTED)
        if across:
            axis.set_title("")
            named = at.texts(at.col)[at.levels[at.col].index(of_col)] if at.col else title
            axis.set_xlabel(on_lines(named, mpl.rcParams["axes.labelsize"], inches))
            panels.name_rows(axis, at.texts(at.x))
            axis.tick_params(labelleft=axis.get_subplotspec().is_first_col())
            if log is True or (log and of_col in log):
                panels.log_x(axis)
            elif (own["estimate"].drop_nulls() >= 0).all():
                # Room for the last marker, and for few ticks, beside the next panel's.
                axis.set_xlim(0, 1.05 * axis.get_xlim()[1])
                axis.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], prune="upper"))
        else:
            facets.name_levels(axis, at, False, inches)
            axis.set_ylabel(title if axis.get_subplotspec().is_first_col() else "")
            if not sharey:
                _scale([axis], own, log)
    if not across:
        if sharey:
            _scale(figure.axes, at.table, log)
        facets.label_lowest(figure)
    facets.group_legend(figure, at, None, lines=joined and not across)
    write_note(figure, note)
    return figure


def _draw(axis: Axes, table: pl.DataFrame, at: Facets, infinite: str, *, across: bool, joined: bool) -> None:
    for level in at.levels[at.hue]:
        rows = facets.only(table, {at.hue: level})
        if at.x:
            rows = rows.drop_nulls(at.x)
        look = at.look[at.hue][str(level)]
        own = {"color": look.color, "marker": look.marker}
        places = [centre(at, one, level, scaled=False) if at.x else 0.0 for one in rows[at.x or "estimate"]]
        found = {
            place: Interval(*ends, 1, "")
            for place, ends in zip(places, rows.select("estimate", "low", "high").rows(), strict=True)
            if ends[0] is not None
        }
        if found:
            line = {"linestyle": look.linestyle if joined else "none", "linewidth": 0.9, "markersize": 4.5}
            panels.estimates(
                axis, list(found), list(found.values()), across=across, infinite=infinite, **own, **line
            )
        for name, more in _MARKS.items():
            for place, values in zip(places, rows[name] if name in rows.columns else (), strict=False):
                marks = values if isinstance(values, pl.Series) else [values]
                _marks(axis, place, [v for v in marks if v is not None], across, **own, **more)


def _marks(axis: Axes, place: float, values: Sequence[float], across: bool, **more: object) -> None:
    places = [place] * len(values)
    axis.plot(*(values, places) if across else (places, values), linestyle="none", **more)


def _scale(axes: Sequence[Axes], table: pl.DataFrame, log: object) -> None:
    if log:
        panels.log_y(axes)
    elif log is None:
        facets.scale_values(axes, table["estimate"].to_list(), None)
