"""Figures: the simulations of layouts: Figs. 6.5 to 6.11, 7.1 and 7.2."""

import math

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from papers.clockwise.results import SCHEDULERS, disk, of, shown_disks
from weir import plots

LOAD = "Real-time load (MB/s)"
LATENCY = "Mean best-effort latency (ms)"
SHADES = "Lines: means over repetitions; shades: least and most."


#: Titles of columns.
WORDS = {"mb_s": LOAD, "tasks": "Real-time tasks", "ms": LATENCY} | {
    disk(at): f"CELLO disk {at}" for at in range(8)
}
_ORDER = {"scheduler": SCHEDULERS}


def by_disk(rows: pl.DataFrame) -> Figure:
    """Figs. 6.5, 6.7, 6.10, 6.11, 7.1 and 7.2: latencies by CELLO disk, load and scheduler."""
    disks = [disk(at) for at in shown_disks(rows)]
    table = pl.concat([of(rows, name) for name in SCHEDULERS])
    table = table.unpivot(
        disks, index=["repetition", "mb_s", "scheduler"], variable_name="disk", value_name="ms"
    )
    order = _ORDER | {"disk": disks}
    return plots.intervals(
        table, "ms", x="mb_s", hue="scheduler", col="disk", order=order, words=WORDS, runs=False
    )


def bursts(rows: pl.DataFrame) -> Figure:
    """Fig. 6.6."""
    table = pl.concat([of(rows.filter(pl.col("tasks") > 0), name) for name in SCHEDULERS])
    # As in the thesis: the deviation of EDF is of another size.
    is_edf = pl.col("scheduler") == "EDF"
    table = table.with_columns(
        pl.col("switches") / 1e3, burst_sd=pl.when(is_edf).then(None).otherwise("burst_sd")
    )
    words = WORDS | {
        "switches": "Context switches (thousands)",
        "burst_mean": "Best-effort burst, mean (requests)",
        "burst_sd": "Its standard deviation (requests)",
    }
    figure = plots.intervals(
        table, ("switches", "burst_mean", "burst_sd"), x="tasks", hue="scheduler", order=_ORDER, words=words,
        runs=False, note="All disks together. Dotted: 35 tasks, where the thesis's differ.",
    )  # fmt: skip
    for axis in figure.axes:
        plots.reference(axis, 35, across=False)
    return figure


def placed(rows: pl.DataFrame, sequential: pl.DataFrame) -> Figure:
    """Fig. 6.8: CELLO disk 0 in two layouts."""
    parts = {(name, "random"): of(rows, name) for name in SCHEDULERS}
    parts |= {(name, "sequential"): of(sequential, name) for name in SCHEDULERS}
    return _disk_0(parts, "CELLO disk 0.")


def over_predicted(rows: pl.DataFrame) -> Figure:
    """Fig. 6.9: CELLO disk 0 with and without the time that is predicted too much."""
    shown = [name for name in SCHEDULERS if not of(rows, name, "spare=fill").is_empty()]
    settings = {"without": "", "with over-predicted time": "spare=fill"}
    parts = {(name, text): of(rows, name, setting) for name in shown for text, setting in settings.items()}
    return _disk_0(parts, "CELLO disk 0, random layout.")


def _disk_0(parts: dict[tuple[str, str], pl.DataFrame], note: str) -> Figure:
    """Latencies of CELLO disk 0: a panel for each scheduler, a line for each variant."""
    tables = [
        table.select("repetition", "mb_s", ms=disk(0), variant=pl.lit(variant), scheduler=pl.lit(name))
        for (name, variant), table in parts.items()
    ]
    return plots.intervals(
        pl.concat(tables), "ms", x="mb_s", hue="variant", col="scheduler", order=_ORDER,
        words=WORDS | {name: name for name in SCHEDULERS}, runs=False, note=note,
    )  # fmt: skip


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
