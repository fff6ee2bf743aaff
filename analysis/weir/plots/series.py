"""Series of a panel: lines, estimates with intervals, bands, distributions, reference lines.

A series names its look: its place among the others (from 0), or a level, which looks the same in all figures.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from weir.plots import axes
from weir.plots.palette import LINES, MARKERS, PALETTE, PRINTED, look_of
from weir.statistics import Interval


def colour(of: int | str) -> str:
    """The colour of a series."""
    return PALETTE[of % len(PALETTE)] if isinstance(of, int) else look_of(of).color


def marker(of: int | str) -> str:
    """The marker of a series."""
    return MARKERS[of % len(MARKERS)] if isinstance(of, int) else look_of(of).marker


def line_style(of: int | str) -> str:
    """The dashes of a series."""
    return LINES[of % len(LINES)] if isinstance(of, int) else look_of(of).linestyle


def look(of: int | str, **more: object) -> dict[str, object]:
    """Colour, marker and dashes of a series; `more` replaces or adds properties of a line."""
    return {"color": colour(of), "marker": marker(of), "linestyle": line_style(of), "markersize": 3.5} | more


def line(
    axis: Axes, x: Sequence[float], y: Sequence[float], label: str, of: int | str, **more: object
) -> None:
    """A line with markers."""
    axis.plot(x, y, label=label, **look(of, **({"linewidth": 1.2} | more)))


def estimates(
    axis: Axes,
    x: Sequence[float],
    found: Sequence[Interval],
    label: str,
    of: int | str,
    *,
    across: bool = False,
    **more: object,
) -> None:
    """A line of estimates with their intervals; one without interval has no bar, an infinite one a mark.

    Args:
        axis: the panel.
        x: where each stands on the other axis.
        found: the estimates.
        label: of the series.
        of: its place or level.
        across: values go along the x axis instead of the y axis.
        more: properties of the line.
    """
    own = look(of, **({"linewidth": 1.1} | more))
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
            axes.unbounded(axis, at, str(own["color"]), across=across)


def interval_bar(axis: Axes, at: float, found: Interval, *, across: bool = False, **more: object) -> None:
    """The interval of one estimate as a bar without caps, if it has one.

    Args:
        axis: the panel.
        at: where it stands on the other axis.
        found: the estimate.
        across: along the x axis instead of the y axis.
        more: properties of the line.
    """
    if found.low is not None and found.high is not None:
        ends, place = [found.low, found.high], [at, at]
        own = {"color": "#222222", "linewidth": 1} | more
        axis.plot(*(ends, place) if across else (place, ends), **own)


def band(
    axis: Axes,
    x: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    of: int | str,
    *,
    alpha: float = 0.2,
    label: str | None = None,
) -> None:
    """A shade between two curves, in the colour of a series or in a named one (`#...`)."""
    shade = of if isinstance(of, str) and of.startswith("#") else colour(of)
    axis.fill_between(x, low, high, color=shade, alpha=alpha, linewidth=0, label=label)


def distribution(axis: Axes, values: np.ndarray, label: str, of: int | str) -> None:
    """The share of values that are at most x."""
    x = np.sort(values)
    share = np.arange(1, len(x) + 1) / len(x)
    # From the left edge of all values to the right edge.
    edges, shares = np.concatenate(([x[0]], x)), np.concatenate(([0], share))
    axis.step(edges, shares, where="post", label=label, **look(of, marker="", linewidth=1.2))
    axis.set_ylim(0, 1.02)


def steps_above(axis: Axes, values: np.ndarray, label: str, of: int | str) -> None:
    """The share of values above x."""
    x = np.sort(values)
    share = 1 - np.arange(1, len(x) + 1) / len(x)
    # The curve ends before the largest value, above which there is none.
    is_below = x < x[-1]
    axis.step(x[is_below], share[is_below], where="post", label=label, **look(of, marker="", linewidth=1.2))


def reference(
    axis: Axes, *at: float, across: bool = True, line: str = ":", label: str | None = None, **more: object
) -> None:
    """Lines at a paper's numbers, at limits or at events.

    Args:
        axis: the panel.
        at: the numbers.
        across: horizontal lines; else vertical ones.
        line: the dashes.
        label: of the first line, in the legend.
        more: properties of the lines.
    """
    for nth, value in enumerate(at):
        own = {"color": PRINTED, "linewidth": 0.8, "linestyle": line, "label": None if nth else label} | more
        (axis.axhline if across else axis.axvline)(value, **own)
