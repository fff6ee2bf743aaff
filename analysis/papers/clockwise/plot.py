"""Strokes that the figures of this thesis share."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from weir.plots import draw
from weir.plots.style import LINES, MARKERS, PALETTE, WIDTH_INCH

#: The thesis's own numbers.
PRINTED = "#555555"
BLOCK = "Block (KB)"


def grid(rows: int, columns: int, height: float, **share: object) -> tuple[Figure, list[Axes]]:
    """A figure of a page's width."""
    figure = Figure(figsize=(WIDTH_INCH, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **share).flat)


def line(axis: Axes, x: Sequence[float], y: Sequence[float], label: str, at: int, **more: object) -> None:
    """One of several lines: its place among them gives colour, dashes and marker."""
    look: dict[str, object] = {
        "color": PALETTE[at % len(PALETTE)],
        "linestyle": LINES[at % len(LINES)],
        "marker": MARKERS[at % len(MARKERS)],
        "markersize": 3.5,
        "linewidth": 1.2,
    }
    axis.plot(x, y, label=label, **(look | more))


def distribution(axis: Axes, values: np.ndarray, label: str, at: int) -> None:
    """The share of values that are not larger."""
    x = np.sort(values)
    y = np.arange(1, len(x) + 1) / len(x)
    # From the left edge of all that there is to its right edge.
    axis.step(
        np.concatenate(([x[0]], x)), np.concatenate(([0], y)), where="post", label=label, linewidth=1.2,
        color=PALETTE[at % len(PALETTE)], linestyle=LINES[at % len(LINES)],
    )  # fmt: skip
    axis.set_ylim(0, 1.02)


def shade(part: float) -> tuple[float, float, float, float]:
    """A colour of a scale from dark to light, for many lines in an order; the lightest are left out."""
    return colormaps["viridis"](0.92 * part)


def sizes(axis: Axes, values: Sequence[int], *, ticks: Sequence[int] | None = None) -> None:
    """An axis of sizes in powers of two."""
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(ticks or values))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(draw.plain))


def printed(axis: Axes, at: float, *, across: bool = True, label: str | None = None) -> None:
    """A number of the thesis."""
    look = {"color": PRINTED, "linewidth": 0.8, "linestyle": ":"}
    (axis.axhline if across else axis.axvline)(at, label=label, **look)


def legend(figure: Figure, axis: Axes, columns: int = 4) -> None:
    """The lines of an axis, above the figure."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)


def letters(axes: Sequence[Axes], titles: Sequence[str]) -> None:
    """Titles of panels with letters."""
    for axis, letter, title in zip(axes, "abcdefghijkl", titles, strict=False):
        axis.set_title(f"({letter}) {title}", loc="left")


def logarithmic(axes: Sequence[Axes]) -> None:
    """Axes in decades, with 2 and 5 between them where there are few."""
    for axis in axes:
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        axis.yaxis.set_major_formatter(FuncFormatter(draw.plain))
        axis.yaxis.set_minor_formatter(FuncFormatter(_two_and_five) if high / low < 200 else NullFormatter())


def _two_and_five(value: float, _position: int) -> str:
    return f"{value:g}" if f"{value:e}"[0] in "25" else ""
