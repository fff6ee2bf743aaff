"""The page of the isolation benchmark: each desideratum, a line or a point per mechanism."""

from collections.abc import Callable, Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from papers.isolation import desiderata
from papers.isolation.results import ALONE, BASELINE
from weir import plots

LINE = "#bbbbbb"
RINGS = "Points: medians over repetitions; rings: each of them."
#: Points nearer to each other than this share of both axes have their names one below the other.
NEAR = 0.05
#: Two loads on one line stand so far above and below it.
SHIFT = 0.16
#: The kernel's own first, in the order in which one would try them; policies of the block server follow.
ORDER = (
    "none",
    "group",
    "mq-deadline",
    "kyber",
    "bfq-levels",
    "bfq",
    "io.prio.class",
    "io.max",
    "io.latency",
    "io.weight",
)


def mechanisms(rows: pl.DataFrame) -> list[str]:
    """The mechanisms of a table, the kernel's own first."""
    found = set(rows["mechanism"].unique()) - {ALONE}
    known = [name for name in ORDER if name in found]
    return known + sorted(found - set(known))


def over_blocks(rows: pl.DataFrame, column: str) -> float | None:
    """The median of a column over repetitions; None where it has no value in one of them.

    The median, since a pause of the host makes one repetition's tail many times as long, and never shorter.
    """
    values = rows[column] if column in rows.columns else pl.Series([], dtype=pl.Float64)
    return None if values.is_empty() or values.null_count() else float(values.median())  # type: ignore[arg-type]


def _dots(
    axis: Axes,
    rows: pl.DataFrame,
    names: Sequence[str],
    column: str,
    settings: Sequence[str],
    log: bool = False,
) -> None:
    """A line for each mechanism, a point for each load."""
    for at, setting in enumerate(settings):
        part = rows.filter(pl.col("setting") == setting)
        shift = SHIFT * (2 * at - len(settings) + 1)
        for y, name in enumerate(names):
            found = over_blocks(part.filter(pl.col("mechanism") == name), column)
            if found is None:
                continue
            each = part.filter(pl.col("mechanism") == name)[column].to_list()
            look = plots.look(at, linestyle="none")
            ring = {"markersize": 6, "fillstyle": "none", "alpha": 0.5}
            axis.plot(each, [y + shift] * len(each), **look | ring)
            axis.plot(found, y + shift, **look | {"markersize": 4, "label": setting if y == 0 else None})
    if log:
        plots.log_x(axis)
    _names(axis, names)


def _names(axis: Axes, names: Sequence[str]) -> None:
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.grid(axis="y", color="#eeeeee")
    axis.grid(axis="x", color="#dddddd", linewidth=0.6)


def _from_zero(axis: Axes) -> None:
    """An axis from 0 on that has room for the last marker, and for few ticks, beside the next panel's."""
    axis.set_xlim(0, axis.get_xlim()[1] * 1.05)
    axis.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], prune="upper"))


@plots.style()
def overhead(rows: pl.DataFrame) -> Figure:
    """Overhead of each mechanism for a single client: response time, rate and CPU time."""
    rows = rows.with_columns(pl.col("requests_per_s") / 1000)
    names = mechanisms(rows)
    figure, axes = plots.panels(1, 4, 1.0 + 0.25 * len(names), sharey=True)
    for axis, column, setting, title in zip(
        axes,
        ("p50_us", "p99_us", "requests_per_s", "cpu_us"),
        ("latency", "latency", "throughput", "throughput"),
        (
            "Median (us)\none at a time",
            "99th percentile (us)\none at a time",
            "Requests (1,000/s)\n16 at once",
            "CPU (us/request)\n16 at once",
        ),
        strict=True,
    ):
        part = rows.filter(pl.col("setting") == setting)
        _dots(axis, part, names, column, [setting])
        free = over_blocks(part.filter(pl.col("mechanism") == BASELINE), column)
        if free is not None:
            plots.reference(axis, free, across=False, line="--", color=LINE, zorder=0)
        _from_zero(axis)
        axis.set_xlabel(title)
    plots.note(
        figure,
        RINGS + "\nDashed: without a mechanism. CPU: of the program that asks, with its system calls.",
    )
    return figure


@plots.style()
def fairness(rows: pl.DataFrame) -> Figure:
    """Jain's index and errors of shares, and what all get together."""
    names = mechanisms(rows)
    settings = [name for name in ("weights", "greedy") if name in set(rows["setting"])]
    figure, axes = plots.panels(1, 3, 1.0 + 0.25 * len(names), sharey=True)
    for axis, column, title in zip(
        axes,
        ("jain", "share_error", "requests_per_s"),
        ("Jain's index by\npromised weights", "Largest error\nof a share", "Requests of all\n(1/s)"),
        strict=True,
    ):
        _dots(axis, rows, names, column, settings)
        axis.set_xlabel(title)
    axes[0].set_xlim(1 / 3, 1.02)
    _from_zero(axes[1])
    _from_zero(axes[2])
    plots.legend(figure, axes[0], 2)
    plots.note(
        figure,
        RINGS + "\nweights: 4, 2 and 1 of 7 promised; greedy: equal shares, 2, 8 and 32 outstanding.",
    )
    return figure


@plots.style()
def priority(rows: pl.DataFrame) -> Figure:
    """Slowdown of the urgent class over the utilisation of the device; the line joins what nothing beats."""
    names = mechanisms(rows)
    figure, (axis,) = plots.panels(1, 1, 3.4)
    points: list[tuple[float, float]] = []
    settings: list[str] = []
    for at, name in enumerate(names):
        part = rows.filter(pl.col("mechanism") == name)
        for (setting,), cell in part.group_by("setting", maintain_order=True):
            use, slow = over_blocks(cell, "utilisation"), over_blocks(cell, "slowdown")
            if use is None or slow is None:
                continue
            points.append((use, slow))
            settings.append(str(setting))
            label = name if name not in axis.get_legend_handles_labels()[1] else None
            axis.plot(use, slow, label=label, **plots.look(at, linestyle="none", markersize=6))
    best = [points[i] for i in desiderata.frontier(points)]
    axis.plot([x for x, _ in best], [y for _, y in best], color=LINE, zorder=0, linewidth=1.2)
    axis.set_xlim(left=0)
    axis.set_yscale("log")
    _name_points(axis, points, settings)
    axis.yaxis.set_major_formatter(plots.plain)
    axis.yaxis.set_minor_formatter(plots.two_and_five)
    axis.set_xlabel("Utilisation: requests of both / those without a mechanism")
    axis.set_ylabel("Slowdown of the urgent class\n(99th percentile / alone)")
    figure.legend(loc="outside right upper")
    plots.note(
        figure,
        "Medians over repetitions. Right and low is better; the line joins what no other setting beats.",
    )
    return figure


def _name_points(axis: Axes, points: Sequence[tuple[float, float]], names: Sequence[str]) -> None:
    """A name beside each point that has one; those of points that lie together, below each other."""
    places = axis.transAxes.inverted().transform(axis.transData.transform(points)) if points else []
    placed: list[tuple[float, float]] = []
    for point, (x, y), name in zip(points, places, names, strict=True):
        if not name:
            continue
        line = sum(abs(x - x2) < NEAR and abs(y - y2) < NEAR for x2, y2 in placed)
        placed.append((x, y))
        axis.annotate(name, point, (5, 3 - 7 * line), textcoords="offset points", fontsize=6.5)


@plots.style()
def bursts(rows: pl.DataFrame) -> Figure:
    """Response of the urgent class to a burst, and work conservation for the batch class."""
    rows = rows.with_columns(
        pl.when(pl.col("setting") == "")
        .then(pl.col("mechanism"))
        .otherwise(pl.col("mechanism") + " " + pl.col("setting"))
        .alias("cell")
    )
    names = _cells(rows)
    rows = rows.with_columns(pl.col("cell").alias("mechanism"), pl.lit("").alias("setting"))
    figure, axes = plots.panels(1, 2, 1.0 + 0.25 * len(names), sharey=True)
    _dots(axes[0], rows, names, "burst_ms", [""], log=True)
    _dots(axes[1], rows, names, "conserved", [""])
    axes[0].set_xlabel(f"Response to a burst (ms; at least {desiderata.INTERVAL_MS})")
    axes[1].set_xlabel("Work conservation: rate by itself / without a mechanism")
    axes[1].set_xlim(left=0)
    plots.reference(axes[1], 1, across=False, line="--", color=LINE, zorder=0)
    plots.note(figure, RINGS)
    return figure


def _cells(rows: pl.DataFrame) -> list[str]:
    """Mechanisms with their settings, in the order of mechanisms."""
    place: Callable[[str], int] = mechanisms(rows).index
    found = rows.select("mechanism", "setting", "cell").unique().rows()
    return [cell for _, _, cell in sorted(found, key=lambda row: (place(row[0]), len(row[1]), row[1]))]
