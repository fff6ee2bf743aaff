"""Figures: the simulations of layouts: Figs. 6.5 to 6.11, 7.1 and 7.2."""

import polars as pl
from matplotlib.figure import Figure

from papers.clockwise.results import SCHEDULERS, disk, of, shown_disks
from weir import plots
from weir.plots import Curve

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


def ratios(parts: dict[str, pl.DataFrame]) -> Figure:
    """LST by deltaL over the load, all CELLO disks together, by layout."""
    found = {name: _ratio_by_load(rows, shown_disks(rows)) for name, rows in parts.items()}
    lines = {("", name): Curve(of["mb_s"], of["ratio"], of["low"], of["high"]) for name, of in found.items()}
    figure = plots.curves(
        lines, LOAD, "Latency, LST by deltaL", ylim=None, level=[1],
        note="Geometric means over CELLO disks. Above 1 deltaL is better. " + SHADES,
    )  # fmt: skip
    plots.log_y(figure.axes)
    return figure


def _ratio_by_load(rows: pl.DataFrame, disks: list[int]) -> pl.DataFrame:
    """By load: the mean over repetitions of `ratio`, its least (`low`) and most (`high`)."""
    both = of(rows, "LST").join(of(rows, "deltaL"), on=["mb_s", "repetition"], suffix="_of_delta")
    logs = [(pl.col(disk(at)) / pl.col(f"{disk(at)}_of_delta")).log() for at in disks]
    ratio = both.select("mb_s", pl.mean_horizontal(logs).exp().alias("ratio"))
    ratio = ratio.filter(pl.col("ratio").is_finite() & (pl.col("ratio") > 0))
    low, high = pl.col("ratio").min().alias("low"), pl.col("ratio").max().alias("high")
    return ratio.group_by("mb_s", maintain_order=True).agg(pl.col("ratio").mean(), low, high).sort("mb_s")
