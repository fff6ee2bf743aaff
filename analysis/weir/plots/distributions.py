"""Charts of distributions by the columns of a table: tails, boxes and violins.

seaborn draws. A table is one of polars or pandas. An infinite value is never left out: it keeps the tail from
falling to zero, and has a mark at the panel's edge with its share.
"""

import math
import warnings
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from weir.load import Level
from weir.plots import axes as panels
from weir.plots import facets
from weir.plots.axes import note as write_note
from weir.plots.axes import unbounded
from weir.plots.facets import GROUP_WIDTH, Facets, Place, Table, centre
from weir.plots.palette import LINES
from weir.plots.style import style
from weir.statistics import mean_interval

#: Points of a distribution's line: more than a printed page resolves.
TAIL_POINTS = 160
#: What stands beside the mark of a group's infinite values.
_UNBOUNDED_SHARE = "{:.1%} " + panels.UNBOUNDED


@style()
def tail(
    table: Table,
    value: str = "response_ms",
    *,
    x: Place = None,
    hue: Place = None,
    col: Place = None,
    row: Place = None,
    run: str = "run",
    order: Mapping[str, Sequence[Level]] | None = None,
    words: Mapping[object, str] | None = None,
    band: bool = False,
    above: str | None = None,
    lost: float | None = None,
    height: float | None = None,
) -> Figure:
    """The share of requests that took longer than t.

    Args:
        table: one row per request, or with `above` one row per point of a line.
        value: the column of times.
        x: the column in colours.
        hue: the column in dashes.
        col: the column in columns of panels.
        row: the column in rows of panels.
        run: the column that tells runs apart.
        order: levels by column, in the order of the figure.
        words: what columns and levels are called.
        band: draw the geometric mean of each quantile over runs with its interval, instead of a line per run.
        above: the column of the share of a run's requests that took longer than the time (`exceedance`);
            with lines of runs only.
        lost: the share of requests that never completed; that of the rows if None.
        height: of the figure without legend and note, in inches.

    Raises:
        ValueError: there is no request.
    """
    at = Facets.of(table, x=x, hue=hue, col=col, row=row, order=order, words=words)
    if at.table.is_empty():
        raise ValueError("there is no request to draw")
    dashes = {str(level): LINES[i % len(LINES)] for i, level in enumerate(at.levels[at.hue])}
    figure = facets.grid(at, height=height)
    for axis, of_row, of_col in at.panels(figure):
        panel = at.only(at.table, of_row, of_col)
        for level in at.levels[at.x]:
            for dash in at.levels[at.hue]:
                cell = facets.only(panel, {at.x: level, at.hue: dash})
                own = {"color": at.look[at.x][str(level)].color, "linestyle": dashes[str(dash)]}
                _draw_tail(axis, cell, value, run, own, band=band, above=above)
        axis.grid(axis="both")
        axis.set(xlabel="", ylabel="")
        if axis.get_subplotspec().is_first_col():
            axis.set_ylabel("Share of requests\nthat took longer")
    figure.axes[0].set_yscale("log")
    for axis in figure.axes:
        panels.log_x(axis)
        axis.set_xlabel((words or {}).get(value, "Response time (ms)"))
        axis.yaxis.set_major_formatter(FuncFormatter(panels.plain))
    facets.label_lowest(figure)
    colours = zip(at.levels[at.x], at.texts(at.x), strict=True)
    handles = {text: Line2D([], [], color=at.look[at.x][str(level)].color) for level, text in colours if at.x}
    for level, text in zip(at.levels[at.hue], at.texts(at.hue), strict=True):
        if at.hue is not None:
            handles[text] = Line2D([], [], color="#555555", linestyle=dashes[str(level)])
    # Of both there is no one name.
    names = [at.called(name) for name in (at.x, at.hue) if name is not None]
    facets.place_legend(figure, handles, names[0] if len(names) == 1 else None)
    n = at.table[run].n_unique()
    means = "Lines: geometric means of quantiles over runs; shades: 95% intervals (log-t),"
    drawn = means if band else "One line per run,"
    lost = at.table[value].is_infinite().mean() if lost is None else lost
    share = f" Never completed: {lost:.2%} of the requests; their time is {panels.UNBOUNDED}." if lost else ""
    write_note(figure, f"{drawn} n = {n} runs{'' if band else '; no interval'}.{share}")
    return figure


@style()
def spread(
    table: Table,
    value: str,
    *,
    x: Place = None,
    hue: Place = None,
    col: Place = None,
    row: Place = None,
    kind: str = "box",
    order: Mapping[str, Sequence[Level]] | None = None,
    words: Mapping[object, str] | None = None,
    height: float | None = None,
) -> Figure:
    """How values are spread: a box (quartiles, 5 % to 95 %) or a violin for each group.

    A spread of requests is no interval of an estimate: requests of one run are not independent.

    Args:
        table: one row per value, such as a request.
        value: the column to draw.
        x: the column along the axis.
        hue: the column in colours.
        col: the column in columns of panels.
        row: the column in rows of panels.
        kind: `box` or `violin`.
        order: levels by column, in the order of the figure.
        words: what columns, levels and the value are called.
        height: of the figure without legend and note, in inches.

    Raises:
        ValueError: there is no value, or the kind is unknown.
    """
    if kind not in ("box", "violin"):
        raise ValueError(f"unknown kind {kind!r}: box or violin")
    table, words = facets.as_polars(table).drop_nulls(value), words or {}
    at = Facets.of(table, x=x, hue=hue, col=col, row=row, order=order, words=words)
    if at.table.is_empty():
        raise ValueError(f"no row has a value of {value}")
    figure = facets.grid(at, height=height)
    columns = panels.grid_shape(figure.axes)[1]
    wide = facets.is_wide(at.table[value].to_list())
    xs, hues = list(map(str, at.levels[at.x])), list(map(str, at.levels[at.hue]))
    for axis, of_row, of_col in at.panels(figure):
        panel = at.only(at.table, of_row, of_col)
        look = {
            "x": "_x", "y": value, "order": xs, "hue": "_hue", "hue_order": hues, "saturation": 1,
            "palette": {h: at.look[at.hue][h].color for h in hues}, "width": GROUP_WIDTH, "linewidth": 0.8,
            "log_scale": (None, 10) if wide else None, "legend": False, "ax": axis,
        }  # fmt: skip
        places = facets.text_column(panel, at.x).alias("_x"), facets.text_column(panel, at.hue).alias("_hue")
        data = facets.finite(panel.select(value, *places), value)
        if kind == "box":
            with warnings.catch_warnings():
                # seaborn 0.13 calls matplotlib with `vert`, which matplotlib 3.11 to 3.12 warn of.
                warnings.simplefilter("ignore", mpl.MatplotlibDeprecationWarning)
                sns.boxplot(data, whis=(5, 95), showfliers=False, **look)
        else:
            sns.violinplot(data, inner="quart", cut=0, density_norm="width", **look)
        for level in at.levels[at.x]:
            for hue_level in at.levels[at.hue]:
                cell = facets.only(panel, {at.x: level, at.hue: hue_level})[value]
                if cell.is_infinite().any():
                    text = _UNBOUNDED_SHARE.format(cell.is_infinite().mean())
                    color = at.look[at.hue][str(hue_level)].color
                    unbounded(axis, centre(at, level, hue_level, scaled=False), color, text=text)
        facets.name_levels(axis, at, False, 0.66 * figure.get_figwidth() / columns)
        first = axis.get_subplotspec().is_first_col()
        axis.set_ylabel(facets.metric_title(value, words, 2.0) if first else "")
    facets.scale_values(figure.axes, at.table[value].to_list(), None, _UNBOUNDED_SHARE.format(0.1))
    facets.label_lowest(figure)
    facets.group_legend(figure, at, None)
    boxes = "Boxes: quartiles and median; whiskers: 5% to 95%"
    what = boxes if kind == "box" else "Violins: density and quartiles"
    write_note(figure, f"{what} of {at.table.height:,} values.")
    return figure


def exceedance(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and the share of requests that took longer than each.

    Ranks are spaced by the logarithm of what remains, so that the tail has as many points as the body.
    Infinite responses have no time, but keep the share from falling to zero.
    """
    values = np.sort(values)
    n = values.size
    remaining = np.geomspace(0.995, 1e-5, TAIL_POINTS)
    ranks = np.unique(np.clip(np.floor((1 - remaining) * n).astype(int), 0, n - 1))
    t, above = values[ranks], 1 - (ranks + 1) / n
    drawn = np.isfinite(t) & (above > 0)
    return t[drawn], above[drawn]


def _draw_tail(
    axis: Axes, cell: pl.DataFrame, value: str, run: str, look: dict[str, str], *, band: bool,
    above: str | None,
) -> None:  # fmt: skip
    if cell.is_empty():
        return
    groups = [of for _, of in cell.group_by(run, maintain_order=True)]
    runs = [of[value].to_numpy() for of in groups]
    if not band:
        points = map(exceedance, runs) if above is None else (of.select(value, above) for of in groups)
        curves = [pd.DataFrame({"t": t, "above": share, "run": at}) for at, (t, share) in enumerate(points)]
        sns.lineplot(
            pd.concat(curves, ignore_index=True), x="t", y="above", units="run", estimator=None, sort=False,
            drawstyle="steps-post", linewidth=0.9, alpha=0.75, ax=axis, legend=False, **look,
        )  # fmt: skip
        return
    least = min(map(len, runs))
    above = np.geomspace(0.995, max(1.0 / least, 1e-5), TAIL_POINTS)
    ranks = [np.sort(values)[np.ceil((1 - above) * len(values) - 1e-9).astype(int) - 1] for values in runs]
    found = [
        mean_interval(column, "log-t" if (column > 0).all() else "t", bounds=(0, math.inf))
        for column in np.array(ranks).T
    ]
    bounded = [at for at, one in enumerate(found) if math.isfinite(one.estimate)]
    axis.plot([found[at].estimate for at in bounded], above[bounded], linewidth=1.2, **look)
    shaded = [at for at in bounded if found[at].low is not None]
    axis.fill_betweenx(
        above[shaded], [found[at].low for at in shaded], [found[at].high for at in shaded],
        color=look["color"], alpha=0.2, linewidth=0,
    )  # fmt: skip
