"""Drawings of the simulations of layouts: Figs. 6.5 to 6.11, 7.1 and 7.2."""

import math

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.clockwise.results import SCHEDULERS, disk, means, of, shown_disks
from weir import plots

LOAD = "Real-time load (MB/s)"
LATENCY = "Mean best-effort latency (ms)"
SHADES = "Lines: means over repetitions; shades: least and most."


def _latency(axis: Axes, rows: pl.DataFrame, at: int, label: str, look: int) -> None:
    finite = rows.filter(pl.col(disk(at)).is_finite())
    found = means(finite, disk(at))
    plots.band(axis, found["mb_s"], found["low"], found["high"], look)
    plots.line(axis, found["mb_s"], found[disk(at)], label, look, markersize=3, linewidth=1.1)


@plots.style()
def by_disk(rows: pl.DataFrame) -> Figure:
    """Figs. 6.5, 6.7, 6.10, 6.11, 7.1 and 7.2: latencies by CELLO disk, load and scheduler."""
    disks = shown_disks(rows)
    columns = 4 if len(disks) > 6 else min(3, len(disks))
    lines = math.ceil(len(disks) / columns)
    figure, axes = plots.panels(lines, columns, 0.9 + 1.75 * lines, sharex=True, sharey=True)
    for axis, at in zip(axes, disks, strict=False):
        for look, name in enumerate(SCHEDULERS):
            _latency(axis, of(rows, name), at, name, look)
        axis.set_title(f"CELLO disk {at}", loc="left")
    plots.hide(axes[len(disks) :])
    plots.log_y(axes[:1])
    plots.axis_titles(axes, LOAD, LATENCY)
    plots.legend(figure, axes[0])
    plots.note(figure, SHADES)
    return figure


@plots.style()
def bursts(rows: pl.DataFrame) -> Figure:
    """Fig. 6.6."""
    rows = rows.filter(pl.col("tasks") > 0)
    panels = {
        "switches": ("(a) context switches", "Switches (thousands)", 1e3),
        "burst_mean": ("(b) best-effort burst, mean", "Requests", 1.0),
        "burst_sd": ("(c) standard deviation", "Requests", 1.0),
    }
    figure, axes = plots.panels(1, 3, 2.9)
    for axis, (column, (title, words, unit)) in zip(axes, panels.items(), strict=True):
        for look, name in enumerate(SCHEDULERS):
            if name == "EDF" and column == "burst_sd":
                # As in the thesis: the deviation of EDF is of another size.
                continue
            found = means(of(rows, name), column)
            plots.line(axis, found["tasks"], found[column] / unit, name, look)
        plots.reference(axis, 35, across=False)
        axis.set_title(title, loc="left")
        axis.set_xlabel("Real-time tasks")
        axis.set_ylabel(words)
        axis.set_ylim(bottom=0)
    plots.legend(figure, axes[0])
    plots.note(
        figure, "Means over repetitions, all disks together. Dotted: 35 tasks, where the thesis's differ."
    )
    return figure


@plots.style()
def placed(rows: pl.DataFrame, sequential: pl.DataFrame) -> Figure:
    """Fig. 6.8: CELLO disk 0 in two layouts."""
    parts = {name: {"random": of(rows, name), "sequential": of(sequential, name)} for name in SCHEDULERS}
    return _disk_0(parts, "CELLO disk 0. ")


@plots.style()
def over_predicted(rows: pl.DataFrame) -> Figure:
    """Fig. 6.9: CELLO disk 0 with and without the time that is predicted too much."""
    shown = [name for name in SCHEDULERS if not of(rows, name, "spare=fill").is_empty()]
    settings = {"without": "", "with over-predicted time": "spare=fill"}
    parts = {name: {label: of(rows, name, setting) for label, setting in settings.items()} for name in shown}
    return _disk_0(parts, "CELLO disk 0, random layout. ")


def _disk_0(parts: dict[str, dict[str, pl.DataFrame]], note: str) -> Figure:
    """Latencies of CELLO disk 0: a panel for each scheduler, a line for each variant."""
    figure, axes = plots.panels(1, max(len(parts), 1), 2.8, sharey=True)
    for axis, variants in zip(axes, parts.values(), strict=False):
        for look, (label, rows) in enumerate(variants.items()):
            _latency(axis, rows, 0, label, look)
        axis.set_xlabel(LOAD)
    plots.log_y(axes)
    plots.letters(axes, list(parts))
    axes[0].set_ylabel(LATENCY)
    plots.legend(figure, axes[0])
    plots.note(figure, note + SHADES)
    return figure


@plots.style()
def ratios(parts: dict[str, pl.DataFrame]) -> Figure:
    """LST by deltaL over the load, all CELLO disks together, by layout."""
    figure, (axis,) = plots.panels(1, 1, 2.9)
    for look, (name, rows) in enumerate(parts.items()):
        disks = shown_disks(rows)
        found = _ratio_by_load(rows, disks)
        x = sorted(found)
        values = [np.mean(found[load]) for load in x]
        low, high = [min(found[load]) for load in x], [max(found[load]) for load in x]
        plots.band(axis, x, low, high, look)
        plots.line(axis, x, values, name, look)
    plots.reference(axis, 1, line="-")
    plots.log_y([axis])
    axis.set_xlabel(LOAD)
    axis.set_ylabel("Latency, LST by deltaL")
    plots.legend_above(axis)
    plots.note(figure, "Geometric means over CELLO disks. Above 1 deltaL is better. " + SHADES)
    return figure


def _ratio_by_load(rows: pl.DataFrame, disks: list[int]) -> dict[float, list[float]]:
    keys = ["mb_s", "repetition"]
    both = of(rows, "LST").join(of(rows, "deltaL"), on=keys, suffix="_of_delta")
    found: dict[float, list[float]] = {}
    for row in both.sort(keys).iter_rows(named=True):
        logs = [math.log(row[disk(at)] / row[f"{disk(at)}_of_delta"]) for at in disks]
        if all(map(math.isfinite, logs)):
            found.setdefault(row["mb_s"], []).append(math.exp(sum(logs) / len(logs)))
    return found
