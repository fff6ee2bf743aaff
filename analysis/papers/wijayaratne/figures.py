"""Figures 5 to 13 of Wijayaratne and Reddy, and of their open parameters."""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from papers.wijayaratne import CLAIMS
from papers.wijayaratne.admission_claims import is_base_reading, more_pct, of_base_reading
from papers.wijayaratne.results import admitted_rounds, demand_blocks, levels, load_pct
from weir import plots
from weir.load import Run, Study
from weir.plots import Curve

#: What `film_gains` computes: its titles.
GAINS = {
    "trace": "Trace-based over\npeak-rate (%)",
    "policy": "Minimal load over\ngreedy (%)",
    "waiting": "Target 1,000 over\n100 rounds (%)",
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


def load(runs: Iterable[Run]) -> Figure:
    """Fig. 6: the load of one disk over time, a panel for each policy; the first repetition."""
    lines = {}
    for run in sorted(
        (run for run in runs if run.repetition == 0 and is_base_reading(levels(run))),
        key=lambda run: (str(levels(run)["layout"]), str(levels(run)["policy"])),
    ):
        disk = np.array(load_pct(run)[0])
        smooth = np.convolve(disk, np.ones(10) / 10, "valid")
        name = f"{WORDS[str(levels(run)['layout'])]}, {levels(run)['policy']}: mean {disk.mean():.0f} %"
        thin = {"alpha": 0.35, "linewidth": 0.4}
        lines[name, "each round"] = Curve(range(len(disk)), disk, more=thin)
        lines[name, "mean of 10 rounds"] = Curve(np.arange(len(smooth)) + 5, smooth, more={"linestyle": "-"})
    note = "Worst-case load that disk 0 is committed to; first repetition."
    return plots.curves(lines, "Round", "Load (%)", columns=1, share="xy", ylim=(0, 105), note=note)


def policies(table: pl.DataFrame, y: str) -> Figure:
    """Figs. 7 and 8: streams, or rounds waited, by policy and block size."""
    note = "A mix of the four films, latency target 300 rounds."
    return curves(
        of_base_reading(table).sort("policy"),
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


def printed(claim: str) -> float:
    """The number that the paper prints."""
    number = CLAIMS.register[claim].paper
    assert number is not None
    return number


def readings(table: pl.DataFrame) -> Figure:
    """Number of streams by the paper's open parameters."""
    table = table.with_columns(
        reading=pl.concat_str("seek", "rotation", "transfer", separator=", "),
    ).sort("seek", "rotation", "transfer", descending=[True, True, False])
    panels = {
        (scale, target): f"Streams admitted: target {target:,} rounds, {unit}"
        for scale, unit in ((1, "paper's sizes"), (0.125, "an eighth of them"))
        for target in (100, 1000)
    }
    means = table.group_by("reading", "layout", "frame_scale", "latency_target_rounds", maintain_order=True)
    rows = [
        {"reading": reading, "layout": layout, "panel": panels[key], "estimate": cell["admitted"].mean()}
        for (reading, layout, *at), cell in means
        if (key := tuple(at)) in panels
    ]
    figure = plots.points(
        pl.DataFrame(rows), x="reading", hue="layout", col="panel", across=True, height=5.6,
        order={"panel": list(panels.values()), "layout": ["cdl", "bctl"]}, words=WORDS,
        note="Assumed of each request: seek, rotation, transfer. Means over repetitions; 64 KiB blocks. "
        "Dotted: the paper, in its unit.",
    )  # fmt: skip
    for axis, (_, target) in zip(figure.axes, panels, strict=True):
        plots.reference(axis, printed(f"W-F9 {target}"), across=False)
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


def films(gains: pl.DataFrame) -> Figure:
    """The gains of film_gains over the peak of a round beside its mean."""
    each = {str(film): rows for (film,), rows in gains.group_by("film", maintain_order=True)}
    points = {"linestyle": "none", "markersize": 5}
    figure = plots.curves(
        {
            (text, film): Curve(rows["peak_to_mean"], rows[name], more=points)
            for name, text in GAINS.items()
            for film, rows in each.items()
        },
        "Largest round beside mean", "More streams (%)", ylim=None,
        note="One point a repetition. Grey: the paper, for its mix. BCTL, 64 KiB blocks.",
    )  # fmt: skip
    waiting = more_pct(printed("W-F9 1000"), printed("W-F9 100"))
    papers = {
        "trace": (printed("W-F5 least"), printed("W-F5 most")),
        "policy": (printed("W-F7 greedy"),) * 2,
        "waiting": (waiting, waiting),
    }
    for axis, paper in zip(figure.axes, (papers[name] for name in GAINS), strict=True):
        axis.axhspan(*paper, color=plots.PRINTED, alpha=0.2 if paper[0] < paper[1] else 1, linewidth=0.8)
    return figure


def devices(tables: dict[str, pl.DataFrame]) -> Figure:
    """Fig. 5's question on other devices: streams by layout, block size and rule."""
    parts = [table.with_columns(pl.lit(name).alias("device")) for name, table in tables.items()]
    start = "Eight devices each; random start"
    return _by_block_size(pl.concat(parts, how="diagonal_relaxed"), "device", list(tables), start)
