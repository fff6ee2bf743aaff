"""The figure of the common study, for one column of a paper; and the curves behind it."""

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from papers.schedulers_compared.results import (
    ASKED,
    LATE_PCT,
    NAMES,
    TEXT_PER_S,
    at_load,
    breaks_at,
    by_capacity,
    refused_leave,
)
from papers.schedulers_compared.tables import HEAVY, LIGHT
from weir.plots import draw
from weir.plots.style import PALETTE, WIDTH_INCH, style
from weir.statistics import Interval, mean_interval

#: The width of a column of a page with two.
COLUMN_INCH = 3.5
#: Letters of a printed column.
SMALL = {
    "font.size": 7,
    "axes.titlesize": 7,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 7,
}
LINE = "#bbbbbb"
#: Two estimates on a line stand so far above and below it.
SHIFT = 0.14
#: Where the axis of text ends: nobody waits for longer.
LONGEST_MS = 10_000.0
#: Who turns streams away.
ADMITS = "\N{DAGGER}"


def compared(rows: pl.DataFrame) -> Figure:
    """Where each scheduler breaks, and what text and bulk have beside it: a line per scheduler."""
    light, heavy = sorted(rows[TEXT_PER_S].unique())
    names = by_capacity(rows, light)
    with style(), mpl.rc_context(SMALL):
        figure = Figure(figsize=(COLUMN_INCH, 0.9 + 0.2 * len(names)), layout="constrained")
        figure.get_layout_engine().set(wspace=0.03, w_pad=0.02)  # type: ignore[union-attr]
        axes = list(figure.subplots(1, 3, sharey=True))
        for y, name in enumerate(names):
            _pair(
                axes[0], y, [breaks_at(rows, name, text) for text in (light, heavy)], float(rows[ASKED].max())
            )
            waits = [at_load(rows, name, light, asked, "text_p95_ms") for asked in (LIGHT, HEAVY)]
            _pair(axes[1], y, [w if w.estimate <= LONGEST_MS else None for w in waits], LONGEST_MS)
            _pair(axes[2], y, [at_load(rows, name, light, asked, "bulk_mb_s") for asked in (LIGHT, HEAVY)])
        admits = set(rows.filter(pl.col("promised").is_not_null())["scheduler"])
        axes[0].set_yticks(
            range(len(names)), [NAMES[name] + (ADMITS if name in admits else "") for name in names]
        )
        axes[0].set_ylim(len(names) - 0.4, -0.6)
        axes[1].set_xscale("log")
        axes[1].set_xlim(25, LONGEST_MS)
        axes[1].xaxis.set_major_locator(LogLocator(10, numticks=4))
        axes[1].xaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms / 1000:g}"))
        axes[1].xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
        for axis in (axes[0], axes[2]):
            axis.set_xlim(left=0)
            axis.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        titles = ("Breaks at", "Text, p95", "Bulk")
        for axis, title, unit in zip(axes, titles, ("streams", "s", "MB/s"), strict=True):
            axis.set_title(title, loc="left")
            axis.set_xlabel(unit, labelpad=1)
            axis.grid(axis="x")
            axis.grid(visible=False, axis="y")
            axis.tick_params(axis="y", length=0)
        axes[0].set_xlim(0, float(rows[ASKED].max()) * 1.02)
        words = (
            f"Left: streams up to which {LATE_PCT:g} % of requests are late, beside {light} (filled)\n"
            f"and {heavy} (open) text requests a second. Middle and right: with {LIGHT} (filled) and\n"
            f"{HEAVY} (open) streams that ask; \N{BLACK RIGHT-POINTING TRIANGLE}: beyond the axis. "
            f"{ADMITS} turns away whom it cannot promise;\nall: serves them as best effort. "
            "Bars: 95 % t intervals over repetitions."
        )
        figure.text(0.01, -0.01, words, fontsize=6, color="#444444", va="top")
    return figure


def _pair(
    axis: Axes, y: int, found: list[Interval | None] | list[Interval], most: float | None = None
) -> None:
    """Two estimates with their intervals on a line, the second one open; None is beyond `most`."""
    places = [most if one is None else one.estimate for one in found]
    axis.plot(places, [y - SHIFT, y + SHIFT], color=LINE, linewidth=0.8, zorder=1)
    for at, (one, place) in enumerate(zip(found, places, strict=True)):
        level = y + (-SHIFT, SHIFT)[at]
        if one is not None and one.low is not None and one.high is not None:
            ends = [one.low, one.high]
            axis.plot(ends, [level, level], color=PALETTE[at], linewidth=2.2, alpha=0.5, zorder=2)
        face = PALETTE[0] if at == 0 else "white"
        marker = ">" if one is None else "os"[at]
        axis.plot(
            [place], [level], marker=marker, color=PALETTE[at], markerfacecolor=face, markersize=3.6,
            markeredgewidth=0.9, linestyle="none", zorder=3, clip_on=False,
        )  # fmt: skip


def curves(rows: pl.DataFrame) -> Figure:
    """The share of late requests over the streams that ask: a panel per scheduler."""
    light, heavy = sorted(rows[TEXT_PER_S].unique())
    names = by_capacity(rows, light)
    lines = -(-len(names) // 4)
    shown = refused_leave(rows)
    with style():
        figure = Figure(figsize=(WIDTH_INCH, 0.7 + 1.35 * lines), layout="constrained")
        axes = list(figure.subplots(lines, 4, sharex=True, sharey=True, squeeze=False).flat)
        for axis in axes[len(names) :]:
            axis.set_visible(False)
        for axis, name in zip(axes, names, strict=False):
            for at, text_per_s in enumerate((light, heavy)):
                part = shown.filter((pl.col("scheduler") == name) & (pl.col(TEXT_PER_S) == text_per_s))
                places = sorted(part[ASKED].unique())
                found = [mean_interval(part.filter(pl.col(ASKED) == x)["late_pct"].to_list()) for x in places]
                axis.fill_between(
                    places, [max(_or(f.low, f), 0) for f in found], [min(_or(f.high, f), 100) for f in found],
                    color=PALETTE[at], alpha=0.25, linewidth=0,
                )  # fmt: skip
                axis.plot(
                    places, [f.estimate for f in found], color=PALETTE[at], marker="os"[at], markersize=3,
                    linestyle=("-", "--")[at], linewidth=1, label=f"text {text_per_s}/s",
                    markerfacecolor=PALETTE[at] if at == 0 else "white",
                )  # fmt: skip
            axis.axhline(LATE_PCT, color="#555555", linewidth=0.6, linestyle=":")
            axis.set_title(NAMES[name], loc="left")
            axis.set_ylim(-3, 103)
        figure.supxlabel("Streams that ask", fontsize=9)
        figure.supylabel("Late requests (%)", fontsize=9)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2, frameon=False)
        draw.note(
            figure, f"Means over repetitions; shades: 95 % t intervals. Dotted: {LATE_PCT:g} %. "
            "Requests of streams that are turned away count as late."
        )  # fmt: skip
    return figure


def _or(value: float | None, found: Interval) -> float:
    return found.estimate if value is None else value
