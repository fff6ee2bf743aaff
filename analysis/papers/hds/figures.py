"""Figures 3 to 8, the reservation in KB/s, and the sensitivity to open parameters."""

from collections.abc import Iterable

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.hds import fluid
from papers.hds.results import RATE, SECOND, STREAM, asked_mb_s, control, rates
from weir import plots
from weir.statistics import means_by

RECEIVED, ASKED, TIME = "Received (MB/s)", "Asked by each (MB/s)", "Time (s)"
BANDS = "Lines: means over repetitions in windows of two seconds; shades: the least and the most."


def name_of(stream: str) -> str:
    """A stream as readers see it."""
    return stream.replace("stream", "stream ")


def _spread(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean, least and largest rate at each time."""
    rate = pl.col(RATE)
    return (
        rows.group_by(SECOND).agg(rate.mean(), rate.min().alias("low"), rate.max().alias("high")).sort(SECOND)
    )


def series(axis: Axes, table: pl.DataFrame, *, total: bool = False, window_s: int = 2) -> None:
    """Rates over time, a line for each stream, and their total."""
    table = table.with_columns(pl.col(SECOND) // window_s * window_s)
    each = table.group_by("repetition", STREAM, SECOND).agg(pl.col(RATE).mean()).sort(STREAM, SECOND)
    parts = [(name_of(str(name)), rows) for (name,), rows in each.group_by(STREAM, maintain_order=True)]
    if total:
        parts.append(("total", each.group_by("repetition", SECOND).agg(pl.col(RATE).sum())))
    for at, (name, rows) in enumerate(parts):
        over = _spread(rows)
        # A stream that has not begun is not drawn.
        begun = np.flatnonzero(over["high"].to_numpy() > 0)
        over = over[int(begun[0]) :] if begun.size else over
        is_total = name == "total"
        own = {"color": plots.PRINTED, "linestyle": "-"} if is_total else {}
        x = over[SECOND].to_numpy() + window_s / 2
        plots.band(axis, x, over["low"], over["high"], plots.PRINTED if is_total else at)
        plots.line(axis, x, over[RATE], name, at, markersize=3, markevery=(at, 10), **own)
    axis.set_xlabel(TIME)
    axis.set_ylim(bottom=0)


def overload(table: pl.DataFrame) -> Figure:
    """Fig. 3: what two streams get over what they ask for, under three controls."""
    table = table.with_columns(
        pl.col("scheduler").map_elements(control, return_dtype=pl.String).alias("control"),
        pl.col("variant").map_elements(asked_mb_s, return_dtype=pl.Float64).alias("asked"),
    )
    got = rates(table, "control", "asked")
    spread = (
        table.group_by("control", "asked", STREAM)
        .agg(pl.col(RATE).quantile(0.05).alias("low"), pl.col(RATE).quantile(0.95).alias("high"))
        .sort("asked")
    )
    names = ["Linux alone", "HDS, equal weights", "HDS, 70 % and 30 %"]
    streams = sorted(got[STREAM].unique())
    words = {RATE: RECEIVED, "asked": ASKED} | {name: name for name in names}
    figure = plots.intervals(
        got.filter(pl.col("control").is_in(names)), RATE, x="asked", hue=STREAM, col="control",
        order={"control": names, STREAM: streams}, words=words | {name: name_of(name) for name in streams},
        runs=False,
        note="Shades: 5 to 95 % of all seconds. Dotted: all that is asked; dashed: the paper.",
    )  # fmt: skip
    most = float(got["asked"].max())
    for axis, name in zip(figure.axes, names, strict=True):
        for stream in streams:
            band = spread.filter((pl.col("control") == name) & (pl.col(STREAM) == stream))
            plots.band(axis, band["asked"], band["low"], band["high"], stream)
        axis.plot([0, most], [0, most], color=plots.PRINTED, linestyle=":", linewidth=0.8)
        axis.set_ylim(0, 22)
    plots.reference(figure.axes[2], 12.7, 5.7, line="--")
    return figure


@plots.style()
def isolation(table: pl.DataFrame) -> Figure:
    """Fig. 4: three greedy streams over time, with token buckets and without."""
    parts = {
        "(a) with token buckets": table.filter(pl.col("scheduler").str.starts_with("hds")),
        "(b) Linux alone": table.filter(~pl.col("scheduler").str.starts_with("hds")),
    }
    (scheduler,) = parts["(a) with token buckets"]["scheduler"].unique()
    figure, axes = plots.panels(1, 2, 2.9, sharey=True)
    for axis, (title, rows) in zip(axes, parts.items(), strict=True):
        series(axis, rows)
        axis.set_title(title, loc="left")
    _reserved(axes[0], scheduler)
    axes[0].set_ylabel(RECEIVED)
    plots.legend(figure, axes[0], 5)
    plots.note(figure, BANDS + " Dotted: what is reserved.")
    return figure


def _reserved(axis: Axes, scheduler: str) -> None:
    for share in fluid.shares(fluid.tree_of(scheduler)).values():
        plots.reference(axis, share * fluid.root_mb_s(scheduler))


@plots.style()
def over_time(
    table: pl.DataFrame, *, events: Iterable[float] = (), reserved: bool = False, total: bool = True
) -> Figure:
    """Figs. 5, 6 and 8: rates over time, with the times at which something begins."""
    (scheduler,) = table["scheduler"].unique()
    figure, axes = plots.panels(1, 1, 3.0)
    series(axes[0], table, total=total)
    for at in events:
        plots.reference(axes[0], at, across=False, line="--")
    if reserved:
        _reserved(axes[0], scheduler)
    axes[0].set_ylabel(RECEIVED)
    plots.legend(figure, axes[0], 5)
    words = " Dashed: something begins." if events else ""
    plots.note(figure, BANDS + words + (" Dotted: what is reserved." if reserved else ""))
    return figure


@plots.style()
def root(table: pl.DataFrame, off_points: np.ndarray, step_s: int, step_mb_s: float) -> Figure:
    """Fig. 7: rates while the root's rises, and how far the worst share is off."""
    (scheduler,) = table["scheduler"].unique()
    figure, axes = plots.panels(1, 2, 3.0, width_ratios=[2, 1])
    series(axes[0], table, total=True)
    start = fluid.root_mb_s(scheduler)
    steps = np.arange(off_points.shape[1])
    axes[0].step(
        steps * step_s, start + steps * step_mb_s, where="post", color=plots.PRINTED, linewidth=0.9,
        linestyle=":", label="root",
    )  # fmt: skip
    axes[0].set_ylabel(RECEIVED)
    rows = pl.DataFrame(
        {
            "more": np.tile(steps * step_mb_s, off_points.shape[0]),
            "off": off_points.ravel(),
        }
    )
    plots.estimates(axes[1], *means_by(rows, "more", "off"), "worst stream", 1)
    plots.reference(axes[1], 2.36, across=False, line="--")
    axes[1].set_xlabel("Root's rate, more than at first (MB/s)")
    axes[1].set_ylabel("Share off (points), worst stream")
    axes[1].set_ylim(bottom=0)
    plots.legend(figure, axes[0], 5)
    plots.note(figure, BANDS + "\nRight: means with 95 % t intervals; dashed: where the paper's failed.")
    return figure


@plots.style()
def bandwidth(table: pl.DataFrame, promised_mb_s: float) -> Figure:
    """Section 5: what stream 1 and all get as streams come, by the kind of its reservation."""
    kinds = {
        "a third of a fixed root": ~pl.col("scheduler").str.contains("root=adapt"),
        "a third of an adaptive root": pl.col("scheduler").str.contains("root=adapt.*33.3"),
        "6000 KB/s, adaptive root": pl.col("scheduler").str.contains("stream1:6000kb_s"),
    }
    window = table.with_columns(pl.col(SECOND) // 2 * 2)
    figure, axes = plots.panels(1, 2, 2.9)
    for at, (name, rule) in enumerate(kinds.items()):
        rows = window.filter(rule)
        first = rows.filter(pl.col(STREAM) == "stream1").group_by("repetition", SECOND)
        whole = rows.group_by("repetition", SECOND, STREAM).agg(pl.col(RATE).mean())
        for axis, one in (
            (axes[0], first.agg(pl.col(RATE).mean())),
            (axes[1], whole.group_by("repetition", SECOND).agg(pl.col(RATE).sum())),
        ):
            over = _spread(one)
            x = over[SECOND].to_numpy() + 1
            plots.band(axis, x, over["low"], over["high"], at, alpha=0.15)
            plots.line(axis, x, over[RATE], name, at, marker="")
    plots.reference(axes[0], promised_mb_s)
    axes[0].set_title("(a) stream 1", loc="left")
    axes[1].set_title("(b) all streams", loc="left")
    for axis in axes:
        axis.set_xlabel(TIME)
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel(RECEIVED)
    plots.legend(figure, axes[0], 3)
    plots.note(figure, BANDS + "\nDotted: 6000 KB/s. Another stream comes every 25 s.")
    return figure


@plots.style()
def sensitivity(table: pl.DataFrame) -> Figure:
    """Largest error of a share of Fig. 4, by the paper's open parameters."""
    keys = ["scheduler", "variant"]
    got = rates(table, *keys)
    rows = []
    for (repetition, scheduler, variant), cell in got.group_by("repetition", *keys, maintain_order=True):
        own = fluid.shares(fluid.tree_of(str(scheduler)))
        share = dict(zip(cell[STREAM], cell["share_pct"], strict=True))
        off = max(abs(share[name] - 100 * part) for name, part in own.items())
        rows.append((repetition, setting(str(scheduler)), variant, off, float(cell[RATE].sum())))
    found = pl.DataFrame(
        rows, ["repetition", "setting", "variant", "off", "total"], orient="row", infer_schema_length=None
    )
    settings = sorted(found["setting"].unique())
    variants = sorted(found["variant"].unique())
    figure, axes = plots.panels(1, 2, 3.6, sharey=True)
    for at, name in enumerate(settings):
        for axis, column in zip(axes, ("off", "total"), strict=True):
            part = found.filter(pl.col("setting") == name)
            means = part.group_by("variant").agg(pl.col(column).mean()).sort("variant")
            rows = [variants.index(v) + (at - 3) * 0.09 for v in means["variant"]]
            plots.line(axis, means[column], rows, name, at, linestyle="none", markersize=4)
    words = [v.replace("kib-0", "").replace("kib-", "").replace("-depth-", " KiB, ") for v in variants]
    axes[0].set_yticks(range(len(variants)), [f"{word} outstanding" for word in words])
    plots.reference(axes[0], 3, across=False)
    axes[0].set_xlabel("Share off (points), worst stream")
    axes[1].set_xlabel("Total (MB/s)")
    plots.legend(figure, axes[0], 3)
    plots.note(figure, "Means over repetitions. Dotted: the band of Fig. 4.")
    return figure


def setting(scheduler: str) -> str:
    """The settings of the sensitivity study, for readers."""
    words = dict(word.split("=", 1) for word in scheduler.split()[1:] if "=" in word)
    below = {"linux-mq-deadline": "mq-deadline"}.get(words.get("below", ""), words.get("below", ""))
    return f"root {fluid.root_mb_s(scheduler):.1f} MB/s, {words.get('burst_ms', '500')} ms, {below}"
