"""The figure of the common study, for one column of a paper; and the curves behind it."""

import math

import polars as pl
from matplotlib.figure import Figure

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
COLUMN_INCH = plots.SIZES["usenix-column"].width_inch
#: Longer responses are drawn as unbounded: nobody waits for longer.
LONGEST_MS = 10_000.0
#: Who turns streams away.
ADMITS = "\N{DAGGER}"
_BEYOND = Interval(math.inf, None, None, 0, "none")


def compared(rows: pl.DataFrame) -> Figure:
    """Capacity of each scheduler, response of text, throughput of bulk: a row per scheduler."""
    light, heavy = sorted(rows[TEXT_PER_S].unique())
    admits = set(rows.filter(pl.col("promised").is_not_null())["scheduler"])
    breaks, text, bulk = "Breaks at\n(streams)", "Text, p95\n(ms)", "Bulk\n(MB/s)"
    found: dict[tuple[str, ...], Interval] = {}
    for name in by_capacity(rows, light):
        row = NAMES[name] + (ADMITS if name in admits else "")
        for level, per_s, asked in (("less", light, LIGHT), ("more", heavy, HEAVY)):
            wait = at_load(rows, name, light, asked, "text_p95_ms")
            found[row, level, breaks] = breaks_at(rows, name, per_s) or _BEYOND
            found[row, level, text] = wait if wait.estimate <= LONGEST_MS else _BEYOND
            found[row, level, bulk] = at_load(rows, name, light, asked, "bulk_mb_s")
    note = (
        f"Left: streams up to which {LATE_PCT:g} % of requests are late, beside {light} (less) and {heavy} "
        f"(more) text requests a second. Middle and right: with {LIGHT} (less) and {HEAVY} (more) streams "
        f"that ask. Triangles: no load was too much, or more than {LONGEST_MS / 1000:g} s. {ADMITS} turns "
        "away whom it cannot promise; all: serves them as best effort. Bars: 95 % t intervals over "
        "repetitions."
    )
    with plots.style("usenix-column"):
        figure = plots.points(
            plots.tabled(found, "scheduler", "load", "panel"), x="scheduler", hue="load", col="panel",
            across=True, log=[text], infinite="", note=note,
        )  # fmt: skip
    figure.axes[1].set_xlim(5, LONGEST_MS)
    plots.log_x(figure.axes[1])
    return figure


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
