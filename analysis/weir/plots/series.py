"""Series of a panel: estimates with their intervals, and reference lines."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from weir.plots import axes
from weir.plots.palette import PRINTED
from weir.statistics import Interval


def estimates(
    axis: Axes,
    x: Sequence[float],
    found: Sequence[Interval],
    label: str | None = None,
    *,
    across: bool = False,
    infinite: str = axes.UNBOUNDED,
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
            axes.unbounded(axis, at, str(own["color"]), across=across, text=infinite)


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
