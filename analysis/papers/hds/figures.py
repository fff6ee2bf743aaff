"""Drawings of Figs. 3 to 8, of the reservation in KB/s, and of what moves them."""

from collections.abc import Iterable

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.hds import fluid
from papers.hds.results import RATE, SECOND, STREAM, asked_mb_s, control, rates
from weir.plots import draw
from weir.plots.style import LINES, MARKERS, PALETTE, WIDTH_INCH, style
from weir.statistics import mean_interval

RECEIVED, ASKED, TIME = "Received (MB/s)", "Asked by each (MB/s)", "Time (s)"
BARS = "Points: means over repetitions; bars: 95 % t intervals."
BANDS = "Lines: means over repetitions in windows of two seconds; shades: the least and the most."
#: The paper's own numbers, reservations, and rates of the root.
PRINTED = "#555555"


def panels_of(columns: int, height: float, **share: object) -> tuple[Figure, list[Axes]]:
    """A figure of the text block's width with panels beside each other."""
    figure = Figure(figsize=(WIDTH_INCH, height), layout="constrained")
    return figure, list(figure.subplots(1, columns, squeeze=False, **share).flat)


def legend(figure: Figure, axis: Axes, columns: int = 5) -> None:
    """The legend of a figure whose panels all have the lines of one of them."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)


def name_of(stream: str) -> str:
    """A stream as readers see it."""
    return stream.replace("stream", "stream ")


def series(axis: Axes, table: pl.DataFrame, *, total: bool = False, window_s: int = 2) -> None:
    """Rates over time, a line for each stream, and their total."""
    table = table.with_columns(pl.col(SECOND) // window_s * window_s)
    each = table.group_by("repetition", STREAM, SECOND).agg(pl.col(RATE).mean()).sort(STREAM, SECOND)
    parts = [(name_of(str(name)), rows) for (name,), rows in each.group_by(STREAM, maintain_order=True)]
    if total:
        parts.append(("total", each.group_by("repetition", SECOND).agg(pl.col(RATE).sum())))
    for at, (name, rows) in enumerate(parts):
        over = rows.group_by(SECOND).agg(
            pl.col(RATE).mean(), pl.col(RATE).min().alias("low"), pl.col(RATE).max().alias("high")
        )
        over = over.sort(SECOND)
        # A stream that has not begun is not drawn.
        begun = np.flatnonzero(over["high"].to_numpy() > 0)
        over = over[int(begun[0]) :] if begun.size else over
        color = PRINTED if name == "total" else PALETTE[at % len(PALETTE)]
        x = over[SECOND].to_numpy() + window_s / 2
        axis.fill_between(x, over["low"], over["high"], color=color, alpha=0.2, linewidth=0)
        axis.plot(
            x, over[RATE], color=color, linewidth=1.2, linestyle=LINES[at % 4] if name != "total" else "-",
            label=name, marker=MARKERS[at % len(MARKERS)], markersize=3, markevery=(at, 10),
        )  # fmt: skip
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
    with style():
        figure, axes = panels_of(3, 2.9, sharey=True)
        for axis, letter, name in zip(axes, "abc", names, strict=True):
            for at, stream in enumerate(sorted(got[STREAM].unique())):
                rows = got.filter((pl.col("control") == name) & (pl.col(STREAM) == stream))
                _means(axis, rows, "asked", name_of(stream), at)
                band = spread.filter((pl.col("control") == name) & (pl.col(STREAM) == stream))
                axis.fill_between(
                    band["asked"], band["low"], band["high"], color=PALETTE[at], alpha=0.2, linewidth=0
                )
            most = float(got["asked"].max())
            axis.plot([0, most], [0, most], color=PRINTED, linestyle=":", linewidth=0.8)
            axis.set_ylim(0, 22)
            axis.set_title(f"({letter}) {name}", loc="left")
            axis.set_xlabel(ASKED)
        for printed in (12.7, 5.7):
            axes[2].axhline(printed, color=PRINTED, linestyle="--", linewidth=0.8)
        axes[0].set_ylabel(RECEIVED)
        legend(figure, axes[0])
        draw.note(
            figure, BARS + " Shades: 5 to 95 % of all seconds. Dotted: all that is asked; dashed: the paper."
        )
    return figure


def _means(axis: Axes, rows: pl.DataFrame, x: str, label: str, at: int, y: str = RATE) -> None:
    """A line of means with intervals over repetitions."""
    places = sorted(rows[x].unique())
    found = [mean_interval(rows.filter(pl.col(x) == place)[y].to_list()) for place in places]
    error = [
        [0 if f.low is None else f.estimate - f.low for f in found],
        [0 if f.high is None else f.high - f.estimate for f in found],
    ]
    axis.errorbar(
        places, [f.estimate for f in found], error, label=label, capsize=2, linewidth=1.1, markersize=3.5,
        color=PALETTE[at % len(PALETTE)], marker=MARKERS[at % len(MARKERS)], linestyle=LINES[at % 4],
    )  # fmt: skip


def isolation(table: pl.DataFrame) -> Figure:
    """Fig. 4: three greedy streams over time, with token buckets and without."""
    parts = {
        "(a) with token buckets": table.filter(pl.col("scheduler").str.starts_with("hds")),
        "(b) Linux alone": table.filter(~pl.col("scheduler").str.starts_with("hds")),
    }
    (scheduler,) = parts["(a) with token buckets"]["scheduler"].unique()
    with style():
        figure, axes = panels_of(2, 2.9, sharey=True)
        for axis, (title, rows) in zip(axes, parts.items(), strict=True):
            series(axis, rows)
            axis.set_title(title, loc="left")
        _reserved(axes[0], scheduler)
        axes[0].set_ylabel(RECEIVED)
        legend(figure, axes[0])
        draw.note(figure, BANDS + " Dotted: what is reserved.")
    return figure


def _reserved(axis: Axes, scheduler: str) -> None:
    for share in fluid.shares(fluid.tree_of(scheduler)).values():
        axis.axhline(share * fluid.root_mb_s(scheduler), color=PRINTED, linestyle=":", linewidth=0.8)


def over_time(
    table: pl.DataFrame, *, events: Iterable[float] = (), reserved: bool = False, total: bool = True
) -> Figure:
    """Figs. 5, 6 and 8: rates over time, with the times at which something begins."""
    (scheduler,) = table["scheduler"].unique()
    with style():
        figure, axes = panels_of(1, 3.0)
        series(axes[0], table, total=total)
        for at in events:
            axes[0].axvline(at, color=PRINTED, linewidth=0.7, linestyle="--")
        if reserved:
            _reserved(axes[0], scheduler)
        axes[0].set_ylabel(RECEIVED)
        legend(figure, axes[0])
        words = " Dashed: something begins." if events else ""
        draw.note(figure, BANDS + words + (" Dotted: what is reserved." if reserved else ""))
    return figure


def root(table: pl.DataFrame, off_points: np.ndarray, step_s: int, step_mb_s: float) -> Figure:
    """Fig. 7: rates while the root's rises, and how far the worst share is off."""
    (scheduler,) = table["scheduler"].unique()
    with style():
        figure, axes = panels_of(2, 3.0, width_ratios=[2, 1])
        series(axes[0], table, total=True)
        start = fluid.root_mb_s(scheduler)
        steps = np.arange(off_points.shape[1])
        axes[0].step(
            steps * step_s, start + steps * step_mb_s, where="post", color=PRINTED, linewidth=0.9,
            linestyle=":", label="root",
        )  # fmt: skip
        axes[0].set_ylabel(RECEIVED)
        rows = pl.DataFrame(
            {
                "more": np.tile(steps * step_mb_s, off_points.shape[0]),
                "off": off_points.ravel(),
            }
        )
        _means(axes[1], rows, "more", "worst stream", 1, "off")
        axes[1].axvline(2.36, color=PRINTED, linestyle="--", linewidth=0.8)
        axes[1].set_xlabel("Root's rate, more than at first (MB/s)")
        axes[1].set_ylabel("Share off (points), worst stream")
        axes[1].set_ylim(bottom=0)
        legend(figure, axes[0])
        draw.note(figure, BANDS + "\nRight: means with 95 % t intervals; dashed: where the paper's failed.")
    return figure


def bandwidth(table: pl.DataFrame, promised_mb_s: float) -> Figure:
    """Section 5: what stream 1 and all get as streams come, by the kind of its reservation."""
    kinds = {
        "a third of a fixed root": ~pl.col("scheduler").str.contains("root=adapt"),
        "a third of an adaptive root": pl.col("scheduler").str.contains("root=adapt.*33.3"),
        "6000 KB/s, adaptive root": pl.col("scheduler").str.contains("stream1:6000kb_s"),
    }
    window = table.with_columns(pl.col(SECOND) // 2 * 2)
    with style():
        figure, axes = panels_of(2, 2.9)
        for at, (name, rule) in enumerate(kinds.items()):
            rows = window.filter(rule)
            first = rows.filter(pl.col(STREAM) == "stream1").group_by("repetition", SECOND)
            whole = rows.group_by("repetition", SECOND, STREAM).agg(pl.col(RATE).mean())
            for axis, one in (
                (axes[0], first.agg(pl.col(RATE).mean())),
                (axes[1], whole.group_by("repetition", SECOND).agg(pl.col(RATE).sum())),
            ):
                over = one.group_by(SECOND).agg(
                    pl.col(RATE).mean(), pl.col(RATE).min().alias("low"), pl.col(RATE).max().alias("high")
                )
                over = over.sort(SECOND)
                x = over[SECOND].to_numpy() + 1
                color = PALETTE[at]
                axis.fill_between(x, over["low"], over["high"], color=color, alpha=0.15, linewidth=0)
                axis.plot(x, over[RATE], color=color, linestyle=LINES[at], linewidth=1.2, label=name)
        axes[0].axhline(promised_mb_s, color=PRINTED, linestyle=":", linewidth=0.9)
        axes[0].set_title("(a) stream 1", loc="left")
        axes[1].set_title("(b) all streams", loc="left")
        for axis in axes:
            axis.set_xlabel(TIME)
            axis.set_ylim(bottom=0)
        axes[0].set_ylabel(RECEIVED)
        legend(figure, axes[0], 3)
        draw.note(figure, BANDS + "\nDotted: 6000 KB/s. Another stream comes every 25 s.")
    return figure


def sensitivity(table: pl.DataFrame) -> Figure:
    """How far the worst share of Fig. 4 is off, by what the paper leaves open."""
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
    with style():
        figure, axes = panels_of(2, 3.6, sharey=True)
        for at, name in enumerate(settings):
            for axis, column in zip(axes, ("off", "total"), strict=True):
                part = found.filter(pl.col("setting") == name)
                means = part.group_by("variant").agg(pl.col(column).mean()).sort("variant")
                axis.plot(
                    means[column], [variants.index(v) + (at - 3) * 0.09 for v in means["variant"]],
                    linestyle="none", marker=MARKERS[at % len(MARKERS)], color=PALETTE[at % len(PALETTE)],
                    markersize=4, label=name,
                )  # fmt: skip
        words = [v.replace("kib-0", "").replace("kib-", "").replace("-depth-", " KiB, ") for v in variants]
        axes[0].set_yticks(range(len(variants)), [f"{word} outstanding" for word in words])
        axes[0].axvline(3, color=PRINTED, linestyle=":", linewidth=0.9)
        axes[0].set_xlabel("Share off (points), worst stream")
        axes[1].set_xlabel("Total (MB/s)")
        legend(figure, axes[0], 3)
        draw.note(figure, "Means over repetitions. Dotted: the band of Fig. 4.")
    return figure


def setting(scheduler: str) -> str:
    """The settings of the sensitivity study, for readers."""
    words = dict(word.split("=", 1) for word in scheduler.split()[1:] if "=" in word)
    below = {"linux-mq-deadline": "mq-deadline"}.get(words.get("below", ""), words.get("below", ""))
    return f"root {fluid.root_mb_s(scheduler):.1f} MB/s, {words.get('burst_ms', '500')} ms, {below}"
