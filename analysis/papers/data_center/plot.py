"""Parts of the figures: points with intervals over classes, a line for each file system or site."""

from collections.abc import Callable, Sequence

import polars as pl
from matplotlib.axes import Axes

from papers.data_center.names import LABELS
from papers.data_center.samples import Sample, interval
from weir import plots
from weir.statistics import Interval

BARS = "Bars: 95 % intervals over repetitions, or over batches of a single run."
#: Groups on an axis of names take so much of the distance between two of them.
WIDTH = 0.5


def words(variant: str) -> str:
    """A class or another level as it is written below an axis."""
    return variant.replace("class", "class ").replace("alpha-", "")


def points(
    axis: Axes,
    at: int,
    of: int,
    names: Sequence[str],
    found: dict[str, Interval],
    label: str,
    look: int | None = None,
) -> None:
    """One series over names: a marker with a bar for each, joined by a line.

    Args:
        axis: the panel.
        at: which series, from 0.
        of: of how many.
        names: what stands along the axis, in its order.
        found: the estimates, by name; a name without one has no marker.
        label: of the series.
        look: its colour and marker, where series of other figures have the same; `at` if None.
    """
    look = at if look is None else look
    shift = (at - (of - 1) / 2) * WIDTH / max(of, 1)
    kept = [(x + shift, found[name]) for x, name in enumerate(names) if name in found]
    if not kept:
        return
    xs, middles = [x for x, _ in kept], [one.estimate for _, one in kept]
    plots.line(axis, xs, middles, label, look, markersize=4.5, linewidth=0.9, zorder=3)
    for x, one in kept:
        plots.interval_bar(axis, x, one, color=plots.colour(look), linewidth=1.4, alpha=0.6, zorder=2)


def look_of(filesystem: str) -> int:
    """The colour and marker of a file system, the same in all figures."""
    return list(LABELS).index(filesystem)


def class_look(name: str) -> int:
    """The colour of a class such as `class3`, the same in all figures."""
    digits = "".join(filter(str.isdigit, name))
    return int(digits) if digits else 0


def name_places(axis: Axes, names: Sequence[str], label: str = "") -> None:
    """Names along the x axis."""
    axis.set_xticks(range(len(names)), [words(name) for name in names])
    axis.set_xlim(-0.5, len(names) - 0.5)
    axis.set_xlabel(label)


def by_filesystem(
    axis: Axes,
    table: pl.DataFrame | None,
    value: Callable[[str, str], Sample | None],
    *,
    keep: Callable[[str], bool] = lambda _: True,
    named: Callable[[str], str] = lambda variant: variant,
    falling: bool = False,
) -> bool:
    """A series for each file system over the variants of a table.

    Args:
        axis: the panel.
        table: with `variant` and `filesystem`.
        value: of a variant and a file system.
        keep: whether a variant is of this panel.
        named: what it is called along the axis.
        falling: the largest variant first.

    Returns:
        Whether there is anything.
    """
    if table is None:
        return False
    variants = sorted((v for v in table["variant"].unique() if keep(v)), reverse=falling)
    systems = [name for name in LABELS if name in set(table["filesystem"])]
    for at, filesystem in enumerate(systems):
        found = {variant: value(variant, filesystem) for variant in variants}
        shown = {named(variant): interval(one) for variant, one in found.items() if one is not None}
        along = [named(v) for v in variants]
        points(axis, at, len(systems), along, shown, LABELS[filesystem], look_of(filesystem))
    name_places(axis, [named(v) for v in variants])
    return bool(variants)
