"""Figures of responses by a study's factors: distributions by cell, and the course of every run over time.

A colour is a level of the same factor as in `study_figures.intervals`; other factors are panels.
"""

import math

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from weir.load import Level, Study
from weir.plots import axes as panels
from weir.plots import facets
from weir.plots.axes import note as write_note
from weir.plots.facets import Facets
from weir.plots.layout import place
from weir.plots.style import INK, style
from weir.responses import Responses
from weir.study import cell_label

#: The column that names a panel by its levels.
PANEL = "panel"
#: Ticks of an axis of shares.
SHARES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)
#: The axis of response times begins where this share of the requests is done.
_BODY = 0.005
#: Height of a panel over time, in inches.
_COURSE_INCH = 1.35
_WARM_UP = {"color": INK, "alpha": 0.09, "linewidth": 0}


def nines(share: pl.Expr) -> pl.Expr:
    """A share on an axis where 90, 99 and 99.9 % are at equal distances, so that the tail has room.

    1 is infinite.
    """
    return -(share * -1 + 1).log10()


def coloured(study: Study, table: pl.DataFrame) -> tuple[pl.DataFrame, str | None, list[str]]:
    """The table, the column in colours, and the other columns."""
    table, at = place(study, table)
    if at.hue is None:
        return table, at.x, [name for name in (at.col, at.row) if name is not None]
    return table, at.hue, [name for name in (at.x, at.col, at.row) if name is not None]


@style()
def distributions(study: Study, found: Responses, objective: tuple[float, float] | None = None) -> Figure:
    """The share of requests that took at most t: a line for each cell, a shade from lowest to highest run.

    Args:
        study: the study.
        found: the responses of one class.
        objective: quantile and limit in ms, drawn as a cross.

    Raises:
        ValueError: there is no request.
    """
    if found.shares.is_empty():
        raise ValueError("there is no request to draw")
    table, hue, others = coloured(study, found.shares)
    at = _facets(study, table, hue, others)
    top = at.table.filter(pl.col("share") < 1).select(nines(pl.col("share")).max()).item() or 1.0
    top = 1.06 * max(top, 1.0)
    figure = facets.grid(at)
    for axis, of_row, of_col in at.panels(figure):
        panel = at.only(at.table, of_row, of_col)
        axis.set_visible(panel.height > 0)
        for level in at.levels[at.hue]:
            cell = facets.only(panel, {at.hue: level}).with_columns(
                nines(pl.col("share", "low", "high")).clip(0, 2 * top)
            )
            t, *ends = (cell[name].to_numpy() for name in ("response_ms", "low", "high"))
            color = at.look[at.hue][str(level)].color
            axis.fill_between(t, *ends, step="post", color=color, alpha=0.2, linewidth=0)
            axis.step(t, cell["share"].to_numpy(), where="post", color=color, linewidth=1.2)
        if objective is not None:
            q, limit = objective
            axis.plot(limit, -math.log10(max(1 - q, 1e-6)), "x", color=INK, markersize=5, zorder=5)
        axis.grid(axis="both")
        axis.set_ylim(0, top)
        ticks = [share for share in SHARES if -math.log10(1 - share) <= top]
        axis.set_yticks([-math.log10(1 - share) for share in ticks], [f"{100 * s:g} %" for s in ticks])
        axis.set(xlabel="Response time (ms)", ylabel="")
        if axis.get_subplotspec().is_first_col():
            axis.set_ylabel("Share of requests\nthat took at most")
    # The body and the tail: a few fast requests would take half of the axis.
    body = at.table.filter(pl.col("share") >= _BODY)["response_ms"]
    for axis in figure.axes:
        axis.set_xlim(0.8 * body.min(), 1.25 * max(body.max(), objective[1] if objective else 0))
        panels.log_x(axis)
    facets.label_lowest(figure)
    handles = _colours(at)
    if objective is not None:
        handles["objective"] = Line2D([], [], color=INK, marker="x", linestyle="none", markersize=5)
    facets.place_legend(figure, handles, at.called(at.hue) if at.hue else None)
    write_note(figure, f"Lines: means over runs; shades: lowest to highest run, {runs_text(found)}.")
    return figure


@style()
def over_time(study: Study, found: Responses, limit: float | None = None) -> Figure:
    """The course of responses: a panel for each cell, a line for each run, the warm-up shaded.

    Args:
        study: the study.
        found: the responses of one class.
        limit: the objective's limit in ms, if it is one of the quantile that is drawn.

    Raises:
        ValueError: there is no request.
    """
    if found.course.is_empty():
        raise ValueError("there is no request to draw")
    table, hue, others = coloured(study, found.course)
    at = _facets(study, table, hue, others, apart=True)
    figure = facets.grid(at)
    figure.set_figheight(0.7 + _COURSE_INCH * panels.grid_shape(figure.axes)[0])
    for axis, of_row, of_col in at.panels(figure):
        panel = at.only(at.table, of_row, of_col)
        axis.set_visible(panel.height > 0)
        axis.axvspan(0, found.warmup_s, **_WARM_UP)
        for run in panel.partition_by("run", maintain_order=True):
            level = "" if hue is None else str(run[hue][0])
            _draw_course(axis, run, at.look[hue][level].color)
        if limit is not None:
            facets.draw_limit(axis, limit)
        axis.set(xlabel="Time since the start of the run (s)", ylabel="")
        axis.set_xlim(0, at.table["time_s"].max() + found.step_s / 2)
        if axis.get_subplotspec().is_first_col():
            axis.set_ylabel("Response time\n(ms)")
    facets.scale_values(figure.axes, at.table["response_ms"].to_list(), limit)
    facets.label_lowest(figure)
    what = f"{100 * found.q:g}th percentile" if found.q != 0.5 else "median"
    parts = [
        f"A line is a run: the {what} of the requests that were due in each {found.step_s:g} s, "
        f"{runs_text(found)}."
    ]
    parts += ["Shaded: warm-up."] * (found.warmup_s > 0) + ["Dashed: objective."] * (limit is not None)
    parts += ["Triangles: unbounded."] * at.table["response_ms"].is_infinite().any()
    write_note(figure, " ".join(parts))
    return figure


def runs_text(found: Responses) -> str:
    """The number of runs of a cell, and which runs and cells are shown if not all."""
    low, high = found.repetitions
    n = f"n = {low}" if low == high else f"n = {low} to {high}"
    text = f"{n} repetition{'' if high == 1 else 's'}"
    if found.most < high:
        text += f", the first {found.most} of each cell"
    if found.shown < found.cells:
        text += f"; {found.shown} of {found.cells} cells: those with the longest responses"
    return text


def _draw_course(axis: Axes, run: pl.DataFrame, color: str) -> None:
    bounded = run.with_columns(pl.when(pl.col("response_ms").is_finite()).then(pl.col("response_ms")))
    axis.plot(bounded["time_s"], bounded["response_ms"], color=color, linewidth=0.9, alpha=0.8)
    at = run.filter(pl.col("response_ms").is_infinite())["time_s"].to_list()
    if at:
        look = {"color": color, "marker": "^", "markersize": 3.5, "linestyle": "none"}
        axis.plot(at, [0.97] * len(at), transform=axis.get_xaxis_transform(), **look)


def _facets(
    study: Study, table: pl.DataFrame, hue: str | None, others: list[str], *, apart: bool = False
) -> Facets:
    """Facets with the levels of `hue` in colours, and if `apart` in columns of panels too."""
    order = {name: study.factors[name] for name in (hue, *others) if name in study.factors}
    if apart:
        across, *down = [name for name in (hue, *others) if name is not None] or [None]
    else:
        across, *down = others or [None]
    places = [across, *down]
    wide = across is not None and len(set(table[across])) > 5
    if down and wide:
        # Panels in lines of equal length: a row of them would be too narrow.
        across, down = PANEL, []
        table = with_panel(table, places)
    elif down:
        table = with_panel(table, down)
        down = [PANEL]
    # A level that is a word needs no name of its factor.
    words = {PANEL: ""} | {name: "" for name in [across] if name and table.schema[name] == pl.String}
    return Facets.of(table, hue=hue, col=across, row=down[0] if down else None, order=order, words=words)


def with_panel(table: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The table with the column `PANEL`: the levels of these columns in words."""
    cells = table.select(names).unique(maintain_order=True)
    texts = [cell_label(cell, names) for cell in cells.iter_rows(named=True)]
    return table.join(
        cells.with_columns(pl.Series(PANEL, texts)),
        on=names,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )


def _colours(at: Facets) -> dict[str, object]:
    if at.hue is None:
        return {}
    levels: list[tuple[Level, str]] = list(zip(at.levels[at.hue], at.texts(at.hue), strict=True))
    return {text: Line2D([], [], color=at.look[at.hue][str(level)].color) for level, text in levels}
