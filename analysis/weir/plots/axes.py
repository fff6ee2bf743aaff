"""Panels of a figure: scales of axes, legends, estimates and their marks, reference lines, the note below."""

from collections.abc import Iterable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from weir.labels import DASH
from weir.plots.palette import PRINTED
from weir.plots.style import QUIET, on_lines, width_inch
from weir.statistics import Interval

#: A positive axis whose largest value is this many times its smallest is logarithmic.
LOG_RATIO = 30
#: From this ratio on there is no room for ticks between decades.
NARROW_RATIO = 200
#: What stands beside the mark of an infinite value.
UNBOUNDED = "unbounded"
#: What stands in place of an estimate that rests on too few responses.
TOO_FEW = f"{DASH} too few responses"
#: Width of a legend's key with its space, in letters.
_KEY_LETTERS = 9


def panels(rows: int, columns: int, height: float, **share: object) -> tuple[Figure, list[Axes]]:
    """A figure with a grid of panels.

    Args:
        rows: of panels.
        columns: of panels.
        height: of the figure in inches.
        share: what panels share (`sharex`, `sharey`), and `height_ratios`.

    Returns:
        The figure and its panels, row by row.
    """
    # Not through pyplot, which keeps every figure in a global list.
    figure = Figure(figsize=(width_inch(), height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **share).flat)


def grid_shape(axes: Sequence[Axes]) -> tuple[int, int]:
    """Rows and columns of the grid in which panels stand."""
    places = [axis.get_subplotspec() for axis in axes]
    return max(place.rowspan.stop for place in places), max(place.colspan.stop for place in places)


def lowest(axes: Sequence[Axes]) -> list[Axes]:
    """The lowest panel of each column."""
    return list({axis.get_subplotspec().colspan.start: axis for axis in axes}.values())


def legend(figure: Figure, axis: Axes, columns: int = 4, *, loc: str = "outside upper center") -> None:
    """A legend of one panel's series for all panels, outside them; `columns` at most."""
    keys(figure, dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True)), columns, loc=loc)


def keys(
    figure: Figure,
    handles: dict[str, Artist],
    columns: int = 99,
    *,
    title: str | None = None,
    loc: str = "outside upper center",
) -> None:
    """A legend of these names; the figure grows by its height, so that panels keep theirs."""
    if not handles:
        return
    letters_wide = figure.get_figwidth() * 72 / (0.52 * mpl.rcParams["legend.fontsize"])
    fit = int(letters_wide / (max(map(len, handles)) + _KEY_LETTERS))
    columns = max(1, min(columns, fit, len(handles)))
    if "upper" in loc and "right" not in loc:
        lines = -(-len(handles) // columns) + (title is not None)
        figure.set_figheight(
            figure.get_figheight() + (lines - 1) * 1.4 * mpl.rcParams["legend.fontsize"] / 72
        )
    figure.legend(handles.values(), handles, loc=loc, ncols=columns, title=title, alignment="left")


def note(figure: Figure, text: str) -> None:
    """Lines below the figure that say what is drawn; the figure grows by their height."""
    size = mpl.rcParams["legend.fontsize"] - 0.5
    lines = on_lines(text, size, figure.get_figwidth() - 0.15)
    figure.set_figheight(figure.get_figheight() + (lines.count("\n") + 1) * 1.25 * size / 72)
    figure.supxlabel(lines, x=0.01, ha="left", fontsize=size, color=QUIET)


def unbounded(
    axis: Axes,
    at: float,
    color: str,
    *,
    across: bool = False,
    low: bool = False,
    text: str = UNBOUNDED,
    nth: int = 0,
) -> None:
    """Marks an infinite value: a triangle at the panel's upper edge (`across`: right edge) and a label.

    Args:
        axis: the panel.
        at: the place on the other axis, in data.
        color: of the series.
        across: whether values go along the x axis.
        low: at the left edge instead of the right one.
        text: the label.
        nth: how many marks this place has already; only the first has the label.
    """
    edge, before = 0.985 - 0.05 * nth, 0.95
    text = "" if nth else text
    look = {"color": color, "markersize": 5.5, "linestyle": "none", "clip_on": False, "zorder": 5}
    small = mpl.rcParams["legend.fontsize"] - 1.5
    own = {"fontsize": small, "color": color, "zorder": 5}
    if across:
        place = {"transform": axis.get_yaxis_transform()}
        axis.plot(1 - edge if low else edge, at, marker="<" if low else ">", **place, **look)
        side = {"ha": "left" if low else "right", "va": "center"}
        axis.text(1 - before if low else before, at, text, **place, **side, **own)
    else:
        axis.plot(at, edge, marker="^", transform=axis.get_xaxis_transform(), **look)
        turned = {"rotation": 90, "ha": "center", "va": "top"}
        axis.text(at, before - 0.02, text, transform=axis.get_xaxis_transform(), **turned, **own)


def estimates(
    axis: Axes,
    x: Sequence[float],
    found: Sequence[Interval],
    label: str | None = None,
    *,
    across: bool = False,
    infinite: str = UNBOUNDED,
    **more: object,
) -> None:
    """A line of estimates with their intervals; one without interval has no bar, an infinite one a mark.

    Args:
        axis: the panel.
        x: where each stands on the other axis.
        found: the estimates.
        label: of the series.
        across: values go along the x axis instead of the y axis.
        infinite: what stands beside the mark of an infinite estimate.
        more: properties of the line.
    """
    own = {"linewidth": 1.1, "markersize": 3.5} | more
    kept = [(at, one) for at, one in zip(x, found, strict=True) if np.isfinite(one.estimate)]
    error = [
        [0 if one.low is None else one.estimate - one.low for _, one in kept],
        [0 if one.high is None else one.high - one.estimate for _, one in kept],
    ]
    places, middle = [at for at, _ in kept], [one.estimate for _, one in kept]
    ends = {"xerr": error} if across else {"yerr": error}
    axis.errorbar(*(middle, places) if across else (places, middle), **ends, label=label, capsize=2, **own)
    for at, one in zip(x, found, strict=True):
        if np.isinf(one.estimate):
            unbounded(axis, at, str(own["color"]), across=across, text=infinite)


def reference(axis: Axes, *at: float, across: bool = True, line: str = ":", **more: object) -> None:
    """Lines at a paper's numbers, at limits or at events.

    Args:
        axis: the panel.
        at: the numbers.
        across: horizontal lines; else vertical ones.
        line: the dashes.
        more: properties of the lines.
    """
    for value in at:
        own = {"color": PRINTED, "linewidth": 0.8, "linestyle": line} | more
        (axis.axhline if across else axis.axvline)(value, **own)


def cut(axis: Axes, at: float, end: float, color: str, *, low: bool, across: bool = False) -> None:
    """Marks the end of an interval that was cut at a limit of the quantity by a triangle.

    Args:
        axis: the panel.
        at: the place on the other axis, in data.
        end: the end, in data.
        color: of the series.
        low: whether it is the lower end.
        across: whether values go along the x axis.
    """
    marker = ("<" if low else ">") if across else ("v" if low else "^")
    place = (end, at) if across else (at, end)
    axis.plot(*place, marker=marker, color=color, markersize=3.5, linestyle="none", clip_on=False, zorder=5)


def dash(axis: Axes, at: float, color: str) -> None:
    """A dash with a label at the lower edge of the panel: an estimate that is not shown as a number."""
    look = {"color": color, "ha": "center", "va": "bottom", "fontsize": mpl.rcParams["legend.fontsize"] - 1}
    axis.text(at, 0.02, TOO_FEW, rotation=90, transform=axis.get_xaxis_transform(), **look)


def name_rows(axis: Axes, names: Sequence[str]) -> None:
    """Names the rows of a panel, the first one on top, with lines across."""
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.grid(axis="x")
    axis.grid(visible=False, axis="y")


def log_x(axis: Axes) -> None:
    """A logarithmic x axis with few round ticks, for a fifth of a decade as for five."""
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    subs = (1, 2, 5) if high / low < NARROW_RATIO else (1,)
    narrow = MaxNLocator(5, steps=[1, 2, 5, 10])
    axis.xaxis.set_major_locator(LogLocator(subs=subs) if high / low > 8 else narrow)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(plain))


def log_y(axes: Iterable[Axes]) -> None:
    """Logarithmic y axes with plain numbers; 2 and 5 between decades where there are few."""
    for axis in axes:
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        axis.yaxis.set_major_formatter(FuncFormatter(plain))
        is_narrow = high / low < NARROW_RATIO
        axis.yaxis.set_minor_formatter(FuncFormatter(two_and_five) if is_narrow else NullFormatter())


def powers_of_two(axis: Axes, ticks: Sequence[int]) -> None:
    """An x axis of sizes in powers of two."""
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(plain))


def plain(value: float, _position: int) -> str:
    """A tick without powers of ten."""
    return f"{value:g}"


def two_and_five(value: float, _position: int) -> str:
    """Ticks between two decades: 2 and 5 only, since all nine do not fit."""
    return f"{value:g}" if f"{value:e}"[0] in "25" else ""
