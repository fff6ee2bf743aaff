"""Chart of curves: numbers that were computed over numbers, by panel and series."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weir.load import Level
from weir.plots import axes as panels
from weir.plots import facets
from weir.plots.axes import note as write_note
from weir.plots.palette import PRINTED, Look, looks
from weir.plots.style import on_lines, style
from weir.statistics import Interval

#: A curve of more points has no markers.
MARKED_POINTS = 26
#: Height of a line of panels, in inches: of several beside each other, and of one below the other.
_LINE_INCH, _WIDE_INCH = 1.9, 1.25

Titles = str | Sequence[str]
Lines = Sequence[float] | Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Curve:
    """Values over numbers.

    Attributes:
        x: the numbers.
        y: the values, or estimates, whose intervals are bars.
        low: the lower ends of a shade.
        high: its upper ends.
        like: the level whose look it has, if not that of its series.
        more: properties of the line, in matplotlib's words.
    """

    x: Sequence[float]
    y: Sequence[float] | Sequence[Interval]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    like: str | None = None
    more: dict[str, object] = field(default_factory=dict)

    @classmethod
    def shares(cls, values: np.ndarray, *, above: bool = False, **more: object) -> "Curve":
        """The share of values that are at most x, or (`above`) larger."""
        x, counts = np.unique(values, return_counts=True)
        share = np.cumsum(counts) / len(values)
        # From the left edge of all values; no share above the largest one is drawn.
        kept = slice(len(x) - 1 if above and len(x) > 1 else None)
        x, share = np.concatenate((x[:1], x[kept])), np.concatenate(([0], share[kept]))
        return cls(x, 1 - share if above else share, more={"drawstyle": "steps-post", "marker": ""} | more)


@style()
def curves(
    found: Mapping[tuple[str, Level], Curve | Sequence[Curve]],
    x: Titles,
    y: Titles,
    *,
    columns: int | None = None,
    height: float | None = None,
    share: str = "",
    level: Lines = (),
    at: Lines = (),
    xlim: tuple[float, float] | None = None,
    ylim: tuple[float | None, float | None] | None = (0, None),
    legends: Sequence[str] = (),
    title: str | None = None,
    absent: str = "",
    note: str = "",
) -> Figure:
    """Curves by panel and series.

    Args:
        found: by the titles of panel and series. Several curves of one series have one name in the legend; a
            series without any curve makes a panel that says `absent`. Series of numbers are shades.
        x: title of the x axis; a title for each panel if they differ.
        y: title of the y axis, or titles.
        columns: of panels; by default all are in one line.
        height: of the figure without legend and note, in inches.
        share: the axes that panels share: `x`, `y` or `xy`.
        level: numbers with a dotted line across, in all panels or by panel.
        at: numbers with a dotted line upwards.
        xlim: the range of the x axes; that of the curves if None.
        ylim: the range of the y axes; that of the curves if None.
        legends: the place of a legend in each panel, in matplotlib's words, in place of one of all panels.
        title: of the legend of all panels.
        absent: what a panel without curves says.
        note: what lines and shades are.
    """
    names = list(dict.fromkeys(panel for panel, _ in found))
    columns = columns or len(names)
    lines = -(-len(names) // columns)
    inches = _WIDE_INCH if columns == 1 < lines else _LINE_INCH
    shared = {f"share{axis}": axis in share for axis in "xy"}
    figure, axes = panels.panels(lines, columns, height or 0.9 + inches * lines, **shared)
    look = {}
    for panel in names:
        # Panels that have legends of their own begin with the first colour.
        own = [
            _like(label, of) for (there, label), of in found.items() if of and (there == panel or not legends)
        ]
        look |= {(panel, name): one for name, one in looks(list(dict.fromkeys(own)), in_order=True).items()}
    for (panel, label), of in found.items():
        axis = axes[names.index(panel)]
        each = of if isinstance(of, Sequence) else [of]
        for nth, one in enumerate(each):
            _draw(axis, one, None if nth else facets.level_text(label), look[panel, _like(label, of)])
        if not each:
            axis.set_axis_off()
            axis.text(0.5, 0.5, absent, transform=axis.transAxes, ha="center", color=PRINTED)
    for place, (axis, panel) in enumerate(zip(axes, names, strict=False)):
        axis.set_title(panel, loc="left")
        is_first, is_last = place % columns == 0, place + columns >= len(names)
        below = (x if is_last else "") if isinstance(x, str) else x[place]
        beside = (y if is_first else "") if isinstance(y, str) else y[place]
        width, tall = 0.7 * figure.get_figwidth() / columns, 0.6 * figure.get_figheight() / lines
        size = mpl.rcParams["axes.labelsize"]
        axis.set(xlabel=on_lines(below, size, width), ylabel=on_lines(beside, size, tall))
        axis.tick_params(labelbottom=is_last or "x" not in share)
        for numbers, across in ((level, True), (at, False)):
            own = numbers.get(panel, ()) if isinstance(numbers, Mapping) else numbers
            panels.reference(axis, *own, across=across)
        axis.margins(x=0.02)
        axis.set(**{name: ends for name, ends in (("xlim", xlim), ("ylim", ylim)) if ends})
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    for axis, place in zip(axes, legends, strict=False):
        axis.legend(loc=place)
    if not legends:
        handles = {}
        for axis in axes:
            handles = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True)) | handles
        names = (facets.level_text(label) for _, label in found)
        handles = {name: handles[name] for name in names if name in handles}
        # Beside three panels a legend would leave them no room.
        if columns > 2:
            panels.keys(figure, handles, title=title, loc="outside upper left")
        else:
            facets.place_legend(figure, handles, title)
    write_note(figure, note)
    return figure


def _like(label: Level, of: Curve | Sequence[Curve]) -> Level:
    return (of[0] if isinstance(of, Sequence) else of).like or label


def _draw(axis: Axes, curve: Curve, label: str | None, look: Look) -> None:
    own = {
        "color": look.color,
        "linestyle": look.linestyle,
        "marker": look.marker if len(curve.x) <= MARKED_POINTS else "",
        "linewidth": 1.2,
        "markersize": 3.5,
    } | curve.more
    if curve.low is not None:
        step = "post" if "drawstyle" in own else None
        shade = {"color": own["color"], "alpha": 0.2, "linewidth": 0, "step": step}
        axis.fill_between(curve.x, curve.low, curve.high, **shade)
    if isinstance(curve.y[0], Interval):
        panels.estimates(axis, curve.x, curve.y, label, **own)
    else:
        axis.plot(curve.x, curve.y, label=label, **own)
