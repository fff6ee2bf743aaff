"""Strokes of the figures: points with intervals over classes, a line for each file system or site."""

from collections.abc import Callable, Iterable, Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.data_center.names import LABELS
from papers.data_center.samples import Sample, interval
from weir.plots.style import LINES, MARKERS, PALETTE, WIDTH_INCH
from weir.statistics import Interval

#: The paper's own numbers.
PRINTED = "#555555"
BARS = "Bars: 95 % intervals over repetitions, or over batches of a single run."
#: Groups on an axis of names take so much of the distance between two of them.
WIDTH = 0.5


def figure(columns: int, height: float, **share: object) -> tuple[Figure, list[Axes]]:
    """A figure of the text block's width with panels beside each other."""
    made = Figure(figsize=(WIDTH_INCH, height), layout="constrained")
    return made, list(made.subplots(1, columns, squeeze=False, **share).flat)


def legend(made: Figure, axes: Iterable[Axes], columns: int = 5) -> None:
    """One legend for all panels."""
    handles: dict[str, object] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        made.legend(handles.values(), handles, loc="outside upper center", ncols=columns, frameon=False)


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
    color = PALETTE[look % len(PALETTE)]
    xs, middles = [x for x, _ in kept], [one.estimate for _, one in kept]
    axis.plot(
        xs, middles, color=color, marker=MARKERS[look % len(MARKERS)], markersize=4.5, linewidth=0.9,
        linestyle=LINES[look % len(LINES)], label=label, zorder=3,
    )  # fmt: skip
    for x, one in kept:
        if one.low is not None and one.high is not None:
            axis.plot([x, x], [one.low, one.high], color=color, linewidth=1.4, alpha=0.6, zorder=2)


def look_of(filesystem: str) -> int:
    """The colour and marker of a file system, the same in all figures."""
    return list(LABELS).index(filesystem)


def class_look(name: str) -> int:
    """The colour of a class such as `class3`, the same in all figures."""
    digits = "".join(filter(str.isdigit, name))
    return int(digits) if digits else 0


def name_places(axis: Axes, names: Sequence[str], label: str = "") -> None:
    """What stands along the axis."""
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


def decades(axis: Axes, values: Iterable[float]) -> None:
    """Decades where values span more than thirty times, else from zero."""
    found = [value for value in values if value > 0]
    if found and max(found) / min(found) > 30:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.yaxis.set_minor_formatter(lambda *_: "")
        axis.set_ylim(min(found) / 1.6, max(found) * 1.6)
    else:
        axis.set_ylim(bottom=0)
