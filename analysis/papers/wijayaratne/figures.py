"""Figures 5 to 13 of Wijayaratne and Reddy, and of their open parameters."""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from papers.wijayaratne.results import admitted_rounds, demand_blocks, levels, load_pct
from weir import plots
from weir.load import Run, Study
from weir.statistics import means_by

#: What `film_gains` computes: its title, and the paper's number.
GAINS = {
    "trace": ("Trace-based over peak-rate (%)", (130.0, 195.0)),
    "policy": ("Minimal load over greedy (%)", (80.0, 80.0)),
    "waiting": ("Target 1,000 over 100 rounds (%)", (17.8, 17.8)),
}
#: Titles of columns and levels.
WORDS = {
    "cdl": "CDL", "bctl": "BCTL", "admitted": "Streams admitted", "startup_mean_rounds": "Mean rounds waited",
    "utilisation_pct": "Mean utilisation (%)", "block_kib": "Block size (KiB)",
    "drop_pct": "Blocks dropped (%)", "latency_target_rounds": "Latency target (rounds)",
    "mean_ms": "Mean response (ms)", "max_ms": "Longest response (ms)",
    "aperiodic_per_s": "Aperiodic requests/s", "requested": "Streams that ask", "used_pct": "Disks' time (%)",
}  # fmt: skip


def curves(
    table: pl.DataFrame, metric: str | Sequence[str], x: str, hue: plots.Place, **more: object
) -> Figure:
    """Means over repetitions with intervals: a line for each level, over levels at equal distances."""
    own = {"scaled": False, "joined": True, "runs": False, "words": WORDS} | more
    return plots.intervals(table, metric, x=x, hue=hue, **own)


def layouts(table: pl.DataFrame) -> Figure:
    """Fig. 5: streams by layout and block size, trace-based and peak-rate."""
    return _by_block_size(table, "stream", ("lambs", "term", "news", "asterix", "mix"), "Random start")


def _by_block_size(table: pl.DataFrame, col: str, names: Sequence[str], start: str) -> Figure:
    """Streams by block size, layout and rule: a panel for each level of a column."""
    rows = table.filter(pl.col(col).is_in(names)).sort("rule", "layout", descending=True)
    note = f"{start}, latency target 300 rounds."
    words = WORDS | {name: name for name in names}
    return curves(
        rows, "admitted", "block_kib", ["rule", "layout"], col=col, order={col: names}, words=words, note=note
    )


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


def policies(table: pl.DataFrame, y: str) -> Figure:
    """Figs. 7 and 8: streams, or rounds waited, by policy and block size."""
    note = "A mix of the four films, latency target 300 rounds."
    return curves(
        table.sort("policy"),
        y,
        "block_kib",
        "policy",
        col="layout",
        order={"layout": ("cdl", "bctl")},
        note=note,
    )


def statistical(table: pl.DataFrame) -> Figure:
    """Fig. 9: streams and utilisation by latency target and share of drops."""
    return curves(
        table, ("admitted", "utilisation_pct"), "latency_target_rounds", "drop_pct",
        note="BCTL, 64 KiB blocks, random start.",
    )  # fmt: skip


def used(table: pl.DataFrame, x: str = "aperiodic_per_s") -> Figure:
    """Fig. 10: the disks' time by kind of request."""
    note = "Dotted: shares of periodic (50 %), interactive and aperiodic requests (25 % each)."
    figure = curves(table, "used_pct", x, "kind", note=note)
    plots.reference(figure.axes[0], 25, 50)
    return figure


def responses(table: pl.DataFrame, x: str, by: str = "kind") -> Figure:
    """Figs. 11, 12 and 13: mean and longest responses; by kind, or of the interactive ones by scheduler."""
    return curves(table.sort(by), ("mean_ms", "max_ms"), x, by)


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


def devices(tables: dict[str, pl.DataFrame]) -> Figure:
    """Fig. 5's question on other devices: streams by layout, block size and rule."""
    parts = [table.with_columns(pl.lit(name).alias("device")) for name, table in tables.items()]
    start = "Eight devices each; random start"
    return _by_block_size(pl.concat(parts, how="diagonal_relaxed"), "device", list(tables), start)
