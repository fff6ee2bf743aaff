"""Figures 3 to 8, the reservation in KB/s, and the sensitivity to open parameters."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from papers.hds import fluid
from papers.hds.claims import CLAIMS
from papers.hds.results import RATE, SECOND, STREAM, asked_mb_s, control, rates
from weir import plots
from weir.plots import Curve
from weir.statistics import mean_interval, means_by

RECEIVED, ASKED, TIME = "Received (MB/s)", "Asked by each (MB/s)", "Time (s)"
LINES = "Lines: means over repetitions in windows of two seconds; shades: the least and the most."


def name_of(stream: str) -> str:
    """A stream as readers see it."""
    return stream.replace("stream", "stream ")


def _spread(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean, least and largest rate at each time."""
    rate = pl.col(RATE)
    return (
        rows.group_by(SECOND, maintain_order=True)
        .agg(rate.mean(), rate.min().alias("low"), rate.max().alias("high"))
        .sort(SECOND)
    )


def series(
    table: pl.DataFrame, panel: str = "", *, total: bool = False, window_s: int = 2
) -> dict[tuple[str, str], Curve]:
    """Rates over time, a curve for each stream, and their total."""
    table = table.with_columns(pl.col(SECOND) // window_s * window_s)
    each = (
        table.group_by("repetition", STREAM, SECOND, maintain_order=True)
        .agg(pl.col(RATE).mean())
        .sort(STREAM, SECOND)
    )
    parts = {name_of(str(name)): rows for (name,), rows in each.group_by(STREAM, maintain_order=True)}
    found = {(panel, name): _course(rows, window_s) for name, rows in parts.items()}
    if total:
        grey = {"color": plots.PRINTED, "linestyle": "-"}
        whole = each.group_by("repetition", SECOND, maintain_order=True).agg(pl.col(RATE).sum())
        found[panel, "total"] = _course(whole, window_s, **grey)
    return found


def _course(rows: pl.DataFrame, window_s: int, **more: object) -> Curve:
    """Mean, least and largest rate at each time; a stream that has not begun is not drawn."""
    over = _spread(rows)
    begun = np.flatnonzero(over["high"].to_numpy() > 0)
    over = over[int(begun[0]) :] if begun.size else over
    x = over[SECOND].to_numpy() + window_s / 2
    return Curve(x, over[RATE], over["low"], over["high"], more=more)


def overload(table: pl.DataFrame) -> Figure:
    """Fig. 3: what two streams get over what they ask for, under three controls."""
    table = table.with_columns(
        pl.col("scheduler").map_elements(control, return_dtype=pl.String).alias("control"),
        pl.col("variant").map_elements(asked_mb_s, return_dtype=pl.Float64).alias("asked"),
    )
    got = rates(table, "control", "asked")
    quantiles = [pl.col(RATE).quantile(0.05).alias("low"), pl.col(RATE).quantile(0.95).alias("high")]
    lines = {}
    for name in ("Linux alone", "HDS, equal weights", "HDS, 70 % and 30 %"):
        for stream in sorted(got[STREAM].unique()):
            is_of = (pl.col("control") == name) & (pl.col(STREAM) == stream)
            spread = table.filter(is_of).group_by("asked", maintain_order=True).agg(quantiles).sort("asked")
            x, found = means_by(got.filter(is_of), "asked", RATE)
            lines[name, name_of(stream)] = Curve(x, found, spread["low"], spread["high"], like=stream)
        dotted = {"color": plots.PRINTED, "linestyle": ":", "marker": "", "linewidth": 0.8}
        lines[name, ""] = Curve([0, max(x)], [0, max(x)], more=dotted)
    printed = [CLAIMS.register[f"H-F3 c stream {at}"].paper for at in (1, 2)]
    return plots.curves(
        lines, ASKED, RECEIVED, share="y", level={"HDS, 70 % and 30 %": printed}, ylim=(0, 22),
        note="Means over repetitions with 95 % t intervals. Shades: 5 to 95 % of all seconds. Dotted: all "
        "that is asked, and the paper.",
    )  # fmt: skip


def isolation(table: pl.DataFrame) -> Figure:
    """Fig. 4: three greedy streams over time, with token buckets and without."""
    is_hds = pl.col("scheduler").str.starts_with("hds")
    with_buckets, alone = "(a) with token buckets", "(b) Linux alone"
    lines = series(table.filter(is_hds), with_buckets) | series(table.filter(~is_hds), alone)
    (scheduler,) = table.filter(is_hds)["scheduler"].unique()
    level = {with_buckets: _reserved(scheduler)}
    note = LINES + " Dotted: what is reserved."
    return plots.curves(lines, TIME, RECEIVED, share="y", level=level, note=note)


def _reserved(scheduler: str) -> list[float]:
    return [share * fluid.root_mb_s(scheduler) for share in fluid.shares(fluid.tree_of(scheduler)).values()]


def over_time(
    table: pl.DataFrame, *, events: Iterable[float] = (), reserved: bool = False, total: bool = True
) -> Figure:
    """Figs. 5, 6 and 8: rates over time, with the times at which something begins."""
    (scheduler,) = table["scheduler"].unique()
    dotted = ["what is reserved"] * reserved + ["when something begins"] * bool(events)
    level = _reserved(scheduler) if reserved else []
    return plots.curves(
        series(table, total=total), TIME, RECEIVED, at=list(events), level=level,
        note=f"{LINES} Dotted: {', and '.join(dotted)}." if dotted else LINES,
    )  # fmt: skip


def root(table: pl.DataFrame, off_points: np.ndarray, step_s: int, step_mb_s: float) -> Figure:
    """Fig. 7: rates while the root's rises, and how far the worst share is off."""
    (scheduler,) = table["scheduler"].unique()
    left, right = "(a) rates", "(b) worst stream"
    steps = np.arange(off_points.shape[1])
    dotted = {"drawstyle": "steps-post", "marker": "", "color": plots.PRINTED, "linestyle": ":"}
    lines = series(table, left, total=True) | {
        (left, "root"): Curve(steps * step_s, fluid.root_mb_s(scheduler) + steps * step_mb_s, more=dotted),
        (right, ""): Curve(steps * step_mb_s, [mean_interval(off) for off in off_points.T]),
    }
    return plots.curves(
        lines, (TIME, "Root's rate, more than at first (MB/s)"), (RECEIVED, "Share off (points)"),
        at={right: CLAIMS.register["H-F7 fails"].bounds},
        note=LINES + " Right: means with 95 % t intervals; dotted: between which the "
        "paper's failed.",
    )  # fmt: skip


def bandwidth(table: pl.DataFrame, promised_mb_s: float) -> Figure:
    """Section 5: what stream 1 and all get as streams come, by the kind of its reservation."""
    kinds = {
        "a third of a fixed root": ~pl.col("scheduler").str.contains("root=adapt"),
        "a third of an adaptive root": pl.col("scheduler").str.contains("root=adapt.*33.3"),
        "6000 KB/s, adaptive root": pl.col("scheduler").str.contains("stream1:6000kb_s"),
    }
    first, every, lines = "(a) stream 1", "(b) all streams", {}
    for name, rule in kinds.items():
        rows = table.filter(rule)
        lines[first, name] = series(rows.filter(pl.col(STREAM) == "stream1"))["", "stream 1"]
        lines[every, name] = replace(series(rows, total=True)["", "total"], more={})
    return plots.curves(
        lines, TIME, RECEIVED, level={first: [promised_mb_s]},
        note=LINES + " Dotted: 6000 KB/s. Another stream comes every 25 s.",
    )  # fmt: skip


def sensitivity(table: pl.DataFrame) -> Figure:
    """Largest error of a share of Fig. 4, by the paper's open parameters."""
    keys = ["scheduler", "variant"]
    rows = []
    for (_, scheduler, variant), cell in rates(table, *keys).group_by(
        "repetition", *keys, maintain_order=True
    ):
        share = dict(zip(cell[STREAM], cell["share_pct"], strict=True))
        own = fluid.shares(fluid.tree_of(str(scheduler)))
        off = max(abs(share[name] - 100 * part) for name, part in own.items())
        rows.append((setting(str(scheduler)), variant, off, float(cell[RATE].sum())))
    titles = ["Share off (points), worst stream", "Total (MB/s)"]
    found = pl.DataFrame(rows, ["setting", "variant", *titles], orient="row", infer_schema_length=None)
    names = sorted(found["variant"].unique())
    words = {v: v.replace("kib-0", "").replace("kib-", "").replace("-depth-", " KiB, ") for v in names}
    figure = plots.points(
        found.unpivot(titles, index=["setting", "variant"], variable_name="panel", value_name="estimate")
        .group_by("setting", "variant", "panel", maintain_order=True)
        .agg(pl.col("estimate").mean())
        .sort("setting", "panel"),
        x="variant", hue="setting", col="panel", across=True, height=3.6,
        order={"variant": names, "panel": titles},
        words={v: f"{word} outstanding" for v, word in words.items()},
        note="Means over repetitions. Dotted: the band of Fig. 4.",
    )  # fmt: skip
    low, high = CLAIMS.register["H-F4 1"].bounds
    plots.reference(figure.axes[0], (high - low) / 2, across=False)
    figure.axes[0].set_xlim(right=max(3.2, figure.axes[0].get_xlim()[1]))
    figure.axes[1].set_xlim(left=0.95 * float(found[titles[1]].min()))
    return figure


def setting(scheduler: str) -> str:
    """The settings of the sensitivity study, for readers."""
    words = dict(word.split("=", 1) for word in scheduler.split()[1:] if "=" in word)
    below = words.get("below", "").removeprefix("linux-")
    passes = "" if words.get("pass") == "own" else ", passes on any tokens"
    return f"root {fluid.root_mb_s(scheduler):.1f} MB/s, {words.get('burst_ms', '500')} ms, {below}{passes}"
