"""Drawings of Figs. 5 to 13, and of what moves them."""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.wijayaratne.results import admitted_rounds, demand_blocks, levels, load_pct
from weir import plots
from weir.load import Run, Study
from weir.statistics import means_by

#: Names of layouts, kinds and columns as readers see them.
#: What film_gains computes, as readers see it, with the paper's number.
GAINS = {
    "trace": ("Trace-based over peak-rate (%)", (130.0, 195.0)),
    "policy": ("Minimal load over greedy (%)", (80.0, 80.0)),
    "waiting": ("Target 1,000 over 100 rounds (%)", (17.8, 17.8)),
}
WORDS = {
    "cdl": "CDL", "bctl": "BCTL", "admitted": "Streams admitted", "startup_mean_rounds": "Mean rounds waited",
    "utilisation_pct": "Mean utilisation (%)", "block_kib": "Block size (KiB)",
    "drop_pct": "Blocks dropped (%)", "latency_target_rounds": "Latency target (rounds)",
    "mean_ms": "Mean response (ms)", "max_ms": "Longest response (ms)",
    "aperiodic_per_s": "Aperiodic requests/s", "requested": "Streams that ask", "used_pct": "Disks' time (%)",
}  # fmt: skip
BARS = "Points: means over repetitions; bars: 95 % t intervals."


def curves(
    axis: Axes,
    table: pl.DataFrame,
    x: str,
    y: str,
    by: str | Sequence[str],
    labels: dict[object, str] | None = None,
) -> None:
    """A line for each level of a factor, with intervals over repetitions; a categorical axis."""
    names = [by] if isinstance(by, str) else list(by)
    xs = sorted(table[x].unique().to_list())
    for at, (key, rows) in enumerate(table.group_by(names, maintain_order=True)):
        shown, found = means_by(rows, x, y)
        text = ", ".join(str((labels or WORDS).get(part, part)) for part in key)
        places = [xs.index(value) for value in shown]
        plots.estimates(axis, places, found, text, at, linestyle="-")
    axis.set_xticks(range(len(xs)), [f"{value:g}" for value in xs])
    axis.set_xlabel(WORDS[x])


@plots.style()
def layouts(table: pl.DataFrame) -> Figure:
    """Fig. 5: streams by layout and block size, trace-based and peak-rate."""
    streams = table["stream"].unique(maintain_order=True).to_list()
    streams = [name for name in ("lambs", "term", "news", "asterix", "mix") if name in streams]
    tables = {name: table.filter(pl.col("stream") == name) for name in streams}
    return _by_block_size(tables, "Random start, latency target 300 rounds.")


def _by_block_size(tables: dict[str, pl.DataFrame], note: str) -> Figure:
    """Streams by block size, layout and rule: a panel for each table."""
    figure, axes = plots.panels(1, len(tables), 2.9)
    for axis, (name, table) in zip(axes, tables.items(), strict=True):
        rows = table.sort("rule", "layout", descending=True)
        curves(axis, rows, "block_kib", "admitted", ["rule", "layout"])
        axis.set_ylim(bottom=0)
        axis.set_title(name)
    axes[0].set_ylabel(WORDS["admitted"])
    plots.legend(figure, axes[0], 4)
    plots.note(figure, f"{BARS} {note}")
    return figure


@plots.style()
def load(runs: Iterable[Run]) -> Figure:
    """Fig. 6: the load of one disk over time, a panel for each policy; the first repetition."""
    shown = sorted(
        (run for run in runs if run.repetition == 0),
        key=lambda run: (str(levels(run)["layout"]), str(levels(run)["policy"])),
    )
    figure, axes = plots.panels(len(shown), 1, 1.2 * len(shown) + 0.5, sharex=True)
    for axis, run in zip(axes, shown, strict=True):
        disk = np.array(load_pct(run)[0])
        smooth = np.convolve(disk, np.ones(10) / 10, "valid")
        plots.line(axis, range(len(disk)), disk, "each round", 0, marker="", alpha=0.35, linewidth=0.4)
        rounds = np.arange(len(smooth)) + 5
        plots.line(axis, rounds, smooth, "mean of 10 rounds", 1, marker="", linestyle="-", linewidth=0.9)
        name = f"{WORDS[str(levels(run)['layout'])]}, {levels(run)['policy']}"
        axis.set_title(f"{name}: mean {disk.mean():.0f} %", loc="left")
        axis.set_ylim(0, 105)
        axis.set_ylabel("Load (%)")
        axis.margins(x=0)
    axis.set_xlabel("Round")
    axis.legend(ncols=2, loc="lower left")
    plots.note(figure, "Worst-case load that disk 0 is committed to; first repetition.")
    return figure


@plots.style()
def policies(table: pl.DataFrame, y: str) -> Figure:
    """Figs. 7 and 8: streams, or rounds waited, by policy and block size."""
    figure, axes = plots.panels(1, 2, 3.1, sharey=True)
    for axis, layout in zip(axes, ("cdl", "bctl"), strict=True):
        curves(axis, table.filter(pl.col("layout") == layout).sort("policy"), "block_kib", y, "policy")
        axis.set_title(WORDS[layout])
    # Only now: the two share it.
    axes[0].set_ylim(bottom=0)
    axes[0].set_ylabel(WORDS[y])
    plots.legend(figure, axes[0], 3)
    plots.note(figure, BARS + " A mix of the four films, latency target 300 rounds.")
    return figure


@plots.style()
def statistical(table: pl.DataFrame) -> Figure:
    """Fig. 9: streams and utilisation by latency target and share of drops."""
    figure, axes = plots.panels(1, 2, 3.2)
    for axis, y in zip(axes, ("admitted", "utilisation_pct"), strict=True):
        names = {drop: f"{drop:g} %" for drop in table["drop_pct"].unique()}
        curves(axis, table.sort("drop_pct"), "latency_target_rounds", y, "drop_pct", names)
        axis.set_ylabel(WORDS[y])
    plots.legend(figure, axes[0], 7, title=WORDS["drop_pct"])
    plots.note(figure, BARS + " BCTL, 64 KiB blocks, random start.")
    return figure


@plots.style()
def used(table: pl.DataFrame, x: str = "aperiodic_per_s") -> Figure:
    """Fig. 10: the disks' time by kind of request."""
    figure, axes = plots.panels(1, 1, 2.9)
    curves(axes[0], table, x, "used_pct", "kind")
    plots.reference(axes[0], 25, 50)
    axes[0].set_ylabel(WORDS["used_pct"])
    axes[0].set_ylim(bottom=0)
    plots.legend_above(axes[0])
    plots.note(
        figure,
        BARS + " Dotted: shares of periodic (50 %), interactive and aperiodic requests (25 % each).",
    )
    return figure


@plots.style()
def responses(table: pl.DataFrame, x: str, by: str = "kind") -> Figure:
    """Figs. 11, 12 and 13: mean and longest responses; by kind, or of the interactive ones by scheduler."""
    table = table.sort(by)
    figure, axes = plots.panels(1, 2, 3.0)
    for axis, y in zip(axes, ("mean_ms", "max_ms"), strict=True):
        curves(axis, table, x, y, by)
        axis.set_ylabel(WORDS[y])
        axis.set_ylim(bottom=0)
    plots.legend(figure, axes[0], 3)
    plots.note(figure, BARS)
    return figure


@plots.style()
def readings(table: pl.DataFrame, printed: dict[int, float]) -> Figure:
    """Number of streams by the paper's open parameters."""
    table = table.with_columns(
        reading=pl.concat_str("seek", "rotation", "transfer", separator=", "),
    ).sort("seek", "rotation", "transfer", descending=[True, True, False])
    groups = [(scale, target) for scale in (1, 0.125) for target in sorted(printed)]
    order = table["reading"].unique(maintain_order=True).to_list()
    figure, axes = plots.panels(2, 2, 5.6, sharey=True)
    for axis, (scale, target) in zip(axes, groups, strict=True):
        for at, layout in enumerate(("cdl", "bctl")):
            rows = table.filter(
                (pl.col("frame_scale") == scale)
                & (pl.col("latency_target_rounds") == target)
                & (pl.col("layout") == layout)
            )
            found = dict(zip(*means_by(rows, "reading", "admitted"), strict=True))
            means = [found[name].estimate for name in order]
            plots.line(axis, means, range(len(order)), WORDS[layout], at, linestyle="none", markersize=4)
        plots.reference(axis, printed[target], across=False, label="paper (its unit)")
        unit = "paper's sizes" if scale == 1 else "an eighth of them"
        axis.set_title(f"Target {target:,} rounds, {unit}", loc="left")
        axis.set_xlim(left=0)
        axis.grid(axis="x")
        axis.set_yticks(range(len(order)), order)
    for axis in axes[2:]:
        axis.set_xlabel(WORDS["admitted"])
    plots.legend(figure, axes[0], 3)
    plots.note(
        figure,
        "Assumed of each request: seek, rotation, transfer. Means over repetitions; 64 KiB blocks.",
    )
    return figure


def film_gains(study: Study) -> pl.DataFrame:
    """Gains with each film: a row per film, variation and repetition.

    Columns: `film`, `repetition`, `peak_to_mean` (of the blocks of a round), and in % more streams: `trace`
    (trace-based over peak-rate), `policy` (minimal load over greedy), `waiting` (a latency target of 1,000
    over 100 rounds).
    """
    found: dict[tuple[str, int], dict[tuple[object, ...], float]] = {}
    peaks = {}
    for run in study.valid_runs:
        at = levels(run)
        key = (str(at["stream"]), run.repetition)
        cell = (at["rule"], at["policy"], at["latency_target_rounds"])
        found.setdefault(key, {})[cell] = len(admitted_rounds(run))
        blocks = np.array(demand_blocks(run)[key[0]])
        peaks[key] = float(blocks.max() / blocks.mean())
    trace, peak = "trace-based", "peak-rate"
    rows = []
    for (film, repetition), streams in found.items():
        base = streams[trace, "random-start", 100]
        gains = {
            "trace": base / streams[peak, "random-start", 100],
            "policy": streams[trace, "minimal-load", 100] / streams[trace, "greedy", 100],
            "waiting": streams[trace, "random-start", 1000] / base,
        }
        row = {"film": film, "repetition": repetition, "peak_to_mean": peaks[film, repetition]}
        rows.append(row | {name: 100 * (ratio - 1) for name, ratio in gains.items()})
    return pl.DataFrame(rows).sort("film", "repetition")


@plots.style()
def films(gains: pl.DataFrame) -> Figure:
    """The gains of film_gains over the peak of a round beside its mean."""
    figure, axes = plots.panels(1, len(GAINS), 2.9)
    for axis, (name, (text, paper)) in zip(axes, GAINS.items(), strict=True):
        for at, (key, rows) in enumerate(gains.group_by("film", maintain_order=True)):
            x, y = rows["peak_to_mean"], rows[name]
            plots.line(axis, x, y, str(key[0]), at, linestyle="none", markersize=5)
        axis.axhspan(*paper, color=plots.PRINTED, alpha=0.2 if paper[0] < paper[1] else 1, linewidth=0.8)
        axis.set_title(text, fontsize=8.5)
        axis.set_xlabel("Largest round beside mean")
    axes[0].set_ylabel("More streams (%)")
    plots.legend(figure, axes[0], 6)
    plots.note(figure, "One point a repetition. Grey: the paper, for its mix. BCTL, 64 KiB blocks.")
    return figure


@plots.style()
def devices(tables: dict[str, pl.DataFrame]) -> Figure:
    """Fig. 5's question on other devices: streams by layout, block size and rule."""
    return _by_block_size(tables, "Eight devices each; random start, latency target 300 rounds.")
