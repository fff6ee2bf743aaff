"""The page of the isolation benchmark: each desideratum, a line or a point per mechanism."""

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.isolation import desiderata, qos
from papers.isolation.results import ALONE, BASELINE, OF_TENANTS, of_tenants, over_repetitions
from weir import plots

LINE = "#bbbbbb"
NOTE = (
    "Points: means over repetitions, geometric of times, rates and ratios; bars: 95 % confidence intervals; "
    "rings: each repetition."
)
#: Points nearer to each other than this share of both axes have their names one below the other.
NEAR = 0.05
MARK = {"linestyle": "none", "markersize": 6}
#: The kernel's own first, in the order in which one would try them; policies of the block server follow.
ORDER = (
    "none",
    "group",
    "mq-deadline",
    "kyber",
    "bfq-levels",
    "bfq",
    "io.prio.class",
    "io.max",
    "io.latency",
    "io.weight",
)


def mechanisms(rows: pl.DataFrame) -> list[str]:
    """The mechanisms of a table, the kernel's own first."""
    found = set(rows["mechanism"].unique()) - {ALONE}
    known = [name for name in ORDER if name in found]
    return known + sorted(found - set(known))


def _dots(
    names: Sequence[str], panels: Mapping[str, tuple[pl.DataFrame, str]], note: str = "", *log: str
) -> Figure:
    """A row for each mechanism, a colour for each load; by the title of a panel its table and column."""
    cells = []
    for title, (rows, column) in panels.items():
        for (name, setting), cell in rows.group_by("mechanism", "setting", maintain_order=True):
            found = over_repetitions(cell, column)
            ends = (None, None, None) if found is None else (found.estimate, found.low, found.high)
            each = [] if found is None else cell[column].to_list()
            cells.append((name, setting, title, *ends, each))
    schema = ["mechanism", "setting", "panel", "estimate", "low", "high", "each"]
    table = pl.DataFrame(cells, schema, orient="row", infer_schema_length=None)
    return plots.points(
        table.filter(pl.col("mechanism").is_in(names)), x="mechanism", col="panel", across=True,
        hue="setting" if table["setting"].n_unique() > 1 else None,
        order={"mechanism": names, "panel": list(panels)}, log=log, note=f"{NOTE} {note}",
    )  # fmt: skip


def overhead(rows: pl.DataFrame) -> Figure:
    """Overhead of each mechanism for a single client: response time, rate and CPU time."""
    rows = rows.with_columns(pl.col("requests_per_s") / 1000)
    one, many = (
        rows.filter(pl.col("setting") == of).with_columns(setting=pl.lit(""))
        for of in ("latency", "throughput")
    )
    panels = {
        "Median (us)\none at a time": (one, "p50_us"),
        "99th percentile (us)\none at a time": (one, "p99_us"),
        "Requests (1,000/s)\n16 at once": (many, "requests_per_s"),
        "CPU (us/request)\n16 at once": (many, "cpu_us"),
    }
    note = "Dashed: without a mechanism. CPU: of the program that asks, with its system calls."
    figure = _dots(mechanisms(rows), panels, note)
    for axis, (part, column) in zip(figure.axes, panels.values(), strict=True):
        free = over_repetitions(part.filter(pl.col("mechanism") == BASELINE), column)
        if free is not None:
            plots.reference(axis, free.estimate, across=False, line="--", color=LINE, zorder=0)
    return figure


def fairness(rows: pl.DataFrame) -> Figure:
    """Jain's index and errors of shares, and what all get together."""
    rows = rows.filter(pl.col("setting").is_in(["weights", "greedy"]))
    panels = {
        "Jain's index by\npromised weights": (rows, "jain"),
        "Largest error\nof a share": (rows, "share_error"),
        "Requests of all\n(1/s)": (rows, "requests_per_s"),
    }
    note = "weights: 4, 2 and 1 of 7 promised; greedy: equal shares, 2, 8 and 32 outstanding."
    figure = _dots(mechanisms(rows), panels, note)
    figure.axes[0].set_xlim(1 / 3, 1.02)
    return figure


def priority(rows: pl.DataFrame) -> Figure:
    """Slowdown of the urgent class over the utilisation of the device; the line joins what nothing beats."""
    found: dict[str, list[tuple[float, float, str]]] = {}
    for (name, setting), cell in rows.group_by("mechanism", "setting", maintain_order=True):
        use, slow = over_repetitions(cell, "utilisation"), over_repetitions(cell, "slowdown")
        if name != ALONE and use is not None and slow is not None:
            found.setdefault(str(name), []).append((use.estimate, slow.estimate, str(setting)))
    points = [point for name in mechanisms(rows) for point in found.get(name, ())]
    best = [points[i][:2] for i in desiderata.frontier([point[:2] for point in points])]
    lines = {
        ("", name): plots.Curve(*zip(*[point[:2] for point in found[name]], strict=True), more=MARK)
        for name in mechanisms(rows)
        if name in found
    } | {
        ("", ""): plots.Curve(
            *zip(*best, strict=True), more={"color": LINE, "marker": "", "linestyle": "-", "zorder": 0}
        )
    }
    figure = plots.curves(
        lines, "Utilisation: requests of both / those without a mechanism",
        "Slowdown of the urgent class\n(99th percentile / alone)", ylim=None, height=3.4,
        note="Geometric means over repetitions. Right and low is better; the line joins what nothing beats.",
    )  # fmt: skip
    figure.axes[0].set_xlim(left=0)
    plots.log_y(figure.axes)
    _name_points(figure.axes[0], [point[:2] for point in points], [point[2] for point in points])
    return figure


def _name_points(axis: Axes, points: Sequence[tuple[float, float]], names: Sequence[str]) -> None:
    """A name beside each point that has one; those of points that lie together, below each other."""
    places = axis.transAxes.inverted().transform(axis.transData.transform(points)) if points else []
    placed: list[tuple[float, float]] = []
    for point, (x, y), name in zip(points, places, names, strict=True):
        if not name:
            continue
        line = sum(abs(x - x2) < NEAR and abs(y - y2) < NEAR for x2, y2 in placed)
        placed.append((x, y))
        axis.annotate(name, point, (5, 3 - 7 * line), textcoords="offset points", fontsize=6.5)


def bursts(rows: pl.DataFrame) -> Figure:
    """Response of the urgent class to a burst, and work conservation for the batch class."""
    order = mechanisms(rows)
    rows = rows.filter(pl.col("mechanism").is_in(order)).sort(
        pl.col("mechanism").replace_strict(order, range(len(order))),
        pl.col("setting").str.len_chars(),
        "setting",
    )
    cell = pl.concat_str("mechanism", "setting", separator=" ").str.strip_chars_end()
    rows = rows.with_columns(mechanism=cell, setting=pl.lit(""))
    panels = {
        f"Response to a burst (ms; at least {desiderata.INTERVAL_MS})": (rows, "burst_ms"),
        "Work conservation: rate by itself / without a mechanism": (rows, "conserved"),
    }
    figure = _dots(rows["mechanism"].unique(maintain_order=True).to_list(), panels, "", next(iter(panels)))
    plots.reference(figure.axes[1], 1, across=False, line="--", color=LINE, zorder=0)
    return figure


def tenants(rows: pl.DataFrame) -> Figure:
    """The delay to a fair share, fairness and tails by the number of tenants."""
    shown = ("delta_ms", "jain", "p99_ms")
    titles = {column: OF_TENANTS[column] for column in shown}
    numbers, names = sorted(rows["tenants"].unique()), mechanisms(rows)
    found = {
        (titles[column], name, number): of_tenants(rows, column, name, number)
        for column in shown
        for name in names
        for number in numbers
    }
    return plots.points(
        plots.tabled(found, "panel", "mechanism", "tenants"), x="tenants", hue="mechanism", col="panel",
        order={"mechanism": names, "tenants": numbers, "panel": list(titles.values())},
        words={"tenants": "tenants beside the newcomer", "panel": "", titles["p99_ms"]: "tenants' p99 (ms)"},
        sharey=False, height=2.6,
        note="Bars: 95 % confidence intervals over repetitions. Unbounded: in at least one repetition "
        "the newcomer never has its share.",
    )  # fmt: skip


def rates(rows: pl.DataFrame) -> Figure:
    """Slowdown and utilisation by the rate of iocost's virtual time; the dotted lines are the solutions."""
    table = qos.by_rate(rows)
    vrates = table["vrate"].to_list()
    lines = {
        ("Slowdown of the urgent class (p99 / alone)", ""): plots.Curve(vrates, table["slowdown"].to_list()),
        ("Utilisation: requests of both / without iocost", ""): plots.Curve(
            vrates, table["utilisation"].to_list()
        ),
    }
    return plots.curves(
        lines, "Rate of iocost's virtual time (% of the model)", "", height=2.4,
        at=[one.vrate for one in qos.solutions(rows)],
        note="Medians. Dotted: the highest rate that protects, the lowest that wastes nothing.",
    )  # fmt: skip
