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
from weir import plots
from weir.statistics import Interval, means_by

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


@plots.style()
@mpl.rc_context(SMALL)
def compared(rows: pl.DataFrame) -> Figure:
    """Capacity of each scheduler, response of text, throughput of bulk: a row per scheduler."""
    light, heavy = sorted(rows[TEXT_PER_S].unique())
    names = by_capacity(rows, light)
    figure, axes = plots.panels(1, 3, 0.9 + 0.2 * len(names), width=COLUMN_INCH, sharey=True)
    figure.get_layout_engine().set(wspace=0.03, w_pad=0.02)  # type: ignore[union-attr]
    for y, name in enumerate(names):
        _pair(axes[0], y, [breaks_at(rows, name, text) for text in (light, heavy)], float(rows[ASKED].max()))
        waits = [at_load(rows, name, light, asked, "text_p95_ms") for asked in (LIGHT, HEAVY)]
        _pair(axes[1], y, [w if w.estimate <= LONGEST_MS else None for w in waits], LONGEST_MS)
        _pair(axes[2], y, [at_load(rows, name, light, asked, "bulk_mb_s") for asked in (LIGHT, HEAVY)])
    admits = set(rows.filter(pl.col("promised").is_not_null())["scheduler"])
    axes[1].set_xscale("log")
    axes[1].set_xlim(25, LONGEST_MS)
    axes[1].xaxis.set_major_locator(LogLocator(10, numticks=4))
    axes[1].xaxis.set_major_formatter(FuncFormatter(lambda ms, _: f"{ms / 1000:g}"))
    axes[1].xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    for axis in (axes[0], axes[2]):
        axis.set_xlim(left=0)
        axis.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    plots.name_rows(axes[0], [NAMES[name] + (ADMITS if name in admits else "") for name in names])
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
        if one is not None and one.low is not None:
            look = {"color": plots.PALETTE[at], "linewidth": 2.2, "alpha": 0.5, "zorder": 2}
            axis.plot([one.low, one.high], [level] * 2, **look)
        face = plots.PALETTE[0] if at == 0 else "white"
        marker = ">" if one is None else "os"[at]
        axis.plot(
            [place], [level], marker=marker, color=plots.PALETTE[at], markerfacecolor=face, markersize=3.6,
            markeredgewidth=0.9, linestyle="none", zorder=3, clip_on=False,
        )  # fmt: skip


def curves(rows: pl.DataFrame) -> Figure:
    """The share of late requests over the streams that ask: a panel per scheduler."""
    light, heavy = sorted(rows[TEXT_PER_S].unique())
    shown = refused_leave(rows)
    lines = {}
    for name in by_capacity(rows, light):
        for text_per_s, face in ((light, None), (heavy, "white")):
            part = shown.filter((pl.col("scheduler") == name) & (pl.col(TEXT_PER_S) == text_per_s))
            places, found = means_by(part, ASKED, "late_pct")
            low = [max(f.estimate if f.low is None else f.low, 0) for f in found]
            high = [min(f.estimate if f.high is None else f.high, 100) for f in found]
            means = [f.estimate for f in found]
            more = {"markersize": 3, "markerfacecolor": face}
            lines[NAMES[name], f"text {text_per_s}/s"] = plots.Curve(places, means, low, high, more=more)
    return plots.curves(
        lines, "Streams that ask", "Late requests (%)", columns=4, share="xy", level=[LATE_PCT],
        ylim=(-3, 103),
        note=f"Means over repetitions; shades: 95 % t intervals. Dotted: {LATE_PCT:g} %. "
        "Requests of streams that are turned away count as late.",
    )  # fmt: skip
