"""Figures 2, 3, 7 to 18."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from papers.shenoy import CLAIMS
from papers.shenoy.claims import HEAVY_TEXT
from papers.shenoy.load import OVERLOADS, Distribution, Improvement, by_seed, printed_number
from papers.shenoy.results import FULL_MS, FULL_PCT, SERVERS, TEXT, VIDEO, Surface
from weir import plots
from weir.plots import Curve
from weir.statistics import geometric_mean_interval, mean_interval, ratio_interval

TEXT_CLIENTS, VIDEO_CLIENTS = "Text clients", "Video clients"
RESPONSE, VIOLATED = "Mean response of text (ms)", "Video deadlines violated (%)"
WORDS = {TEXT: TEXT_CLIENTS, VIDEO: VIDEO_CLIENTS}
BARS = "Points: means over repetitions; bars: 95 % t intervals."


def _curve(x: np.ndarray, values: np.ndarray, **more: object) -> Curve:
    """Means with intervals; values by repetition (rows) and place."""
    return Curve(x, [mean_interval(column) for column in values.T], more=more)


def _by_repetition(rows: pl.DataFrame, x: str, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Places, and values by repetition and place."""
    wide = rows.sort(x).pivot(on="repetition", index=x, values=metric)
    return wide[x].to_numpy(), wide.drop(x).to_numpy().T


@plots.style()
def map_of_the_region(text: dict[str, Surface], video: dict[str, Surface]) -> Figure:
    """Figs. 7 and 8: where each server is the better one, in the region that the partitioned one bears."""
    figure, axes = plots.panels(1, 2, 3.4, sharey=True)
    apart, shared = (text[s].without_text_zero() for s in SERVERS)
    ratio = np.log2(apart.mean / shared.mean)
    border = apart.text, apart.video, ratio.T
    title = "(a) response of text: partitioned / integrated"
    _map(figure, axes[0], apart, ratio, title, lambda v, _: f"{2**v:.2g}")
    apart, shared = (video[s].without_video_zero() for s in SERVERS)
    more = apart.mean - shared.mean
    title = "(b) violated deadlines: partitioned - integrated"
    _map(figure, axes[1], apart, more, title, lambda v, _: f"{v:.3g}")
    axes[0].contour(*border, levels=[0], colors="#222222", linewidths=0.8)
    axes[0].set_ylabel(VIDEO_CLIENTS)
    plots.note(figure, "Blue: the integrated server is better; red: it is worse. Right in percentage points.")
    return figure


def _map(
    figure: Figure,
    axis: Axes,
    at: Surface,
    values: np.ndarray,
    title: str,
    words: Callable[[float, int], str],
) -> None:
    # Where nothing differs any scale does.
    top = float(np.nanmax(np.abs(values))) or 1.0
    low, high = min(float(values.min()), -1e-3 * top), max(float(values.max()), 1e-3 * top)
    image = axis.pcolormesh(
        at.text, at.video, values.T, cmap="RdBu", norm=TwoSlopeNorm(0, low, high), rasterized=True
    )
    axis.set_title(title, loc="left")
    axis.set_xlabel(TEXT_CLIENTS)
    # Halves of the bar are stretched to the same length, however much longer one reaches.
    ticks = [end * part for end in (low, high) if abs(end) > 0.01 * top for part in (1, 0.5)]
    bar = figure.colorbar(image, ax=axis, shrink=0.9, format=words, ticks=sorted([0.0, *ticks]))
    bar.outline.set_visible(False)


def _nearest(places: np.ndarray, wanted: float) -> int:
    return int(np.argmin(np.abs(places - wanted)))


def _slices(
    surfaces: dict[str, Surface], shares: Sequence[float], x: str, metric: str, **more: object
) -> Figure:
    """A line for each server over one kind of clients; a panel for each share of the other kind's largest."""
    parts = [one.frame().with_columns(pl.lit(server).alias("server")) for server, one in surfaces.items()]
    col, kind = (VIDEO, "video") if x == TEXT else (TEXT, "text")
    places = parts[0][col].unique().sort().to_numpy()
    held = [float(places[_nearest(places, share * places[-1])]) for share in shares]
    table = pl.concat(parts).filter(pl.col(col).is_in(held)).rename({"value": metric})
    words = WORDS | {(col, level): f"{level:g} {kind} clients" for level in held}
    return plots.intervals(
        table, metric, x=x, hue="server", col=col, order={"server": SERVERS, col: held}, words=words,
        runs=False, **more,
    )  # fmt: skip


def text_over_video(text: dict[str, Surface]) -> Figure:
    """Fig. 9."""
    surfaces = {name: text[name].without_text_zero() for name in SERVERS}
    return _slices(surfaces, (0.25, 0.5, 0.75, 1), VIDEO, RESPONSE, sharey=False)


def text_over_text(text: dict[str, Surface]) -> Figure:
    """Fig. 10."""
    return _slices(
        {name: text[name].without_text_zero() for name in SERVERS}, (0, 0.5, 0.8, 1), TEXT, RESPONSE
    )


def parts(service: dict[str, Surface], queueing: dict[str, Surface]) -> Figure:
    """Fig. 11: service time and queueing delay of text."""
    lines = {}
    for panel, surfaces in {"(a) service time": service, "(b) queueing delay": queueing}.items():
        for server in SERVERS:
            surface = surfaces[server].without_text_zero()
            for share in (0,) if server == "partitioned" else (0, 0.5, 1):
                column = _nearest(surface.video, share * surface.video[-1])
                beside = f", {surface.video[column]:g} video clients" if server == "integrated" else ""
                lines[panel, server + beside] = _curve(surface.text, surface.values[:, :, column])
    return plots.curves(lines, TEXT_CLIENTS, "Mean over requests of text (ms)", note=BARS)


def deadlines(video: dict[str, Surface]) -> Figure:
    """Fig. 12."""
    surfaces = {name: video[name].without_video_zero() for name in SERVERS}
    note = "Linear below 0.1 %; dotted: the limit."
    figure = _slices(surfaces, (0, 0.5, 0.75, 1), VIDEO, VIOLATED, note=note)
    for axis in figure.axes:
        plots.reference(axis, FULL_PCT)
        axis.set_yscale("symlog", linthresh=0.1)
        axis.set_ylim(bottom=0)
    return figure


def border(
    text: Surface, video: Surface, partitioned: tuple[float, float], alone: tuple[float, float]
) -> Figure:
    """Figs. 13 and 14: what the integrated server bears."""
    of_text, of_video, both = "(a) response of text", "(b) video", "(c) both"
    lines = {}
    for share in (0, 0.5, 1):
        column = _nearest(text.video, share * partitioned[1])
        lines[of_text, f"{text.video[column]:g} video clients"] = _curve(text.text, text.values[:, :, column])
        row = _nearest(video.text, share * partitioned[0])
        lines[of_video, f"{video.text[row]:g} text clients"] = _curve(video.video, video.values[:, row])
    t, v = partitioned
    fine_t, fine_v = np.linspace(text.text[0], text.text[-1], 200), np.linspace(0, video.video[-1], 200)
    grid = np.meshgrid(fine_t, fine_v, indexing="ij")
    full = (text.at(*grid).mean(axis=0) > FULL_MS) | (video.at(*grid).mean(axis=0) > FULL_PCT)
    edge = [fine_v[row.argmax() - 1] if row.any() and row.argmax() else np.nan for row in full]
    printed = np.array([printed_number("S-TV T"), printed_number("S-TV V")])
    kept = 1 - printed_number("S-F13 together") / 100
    grey, line = {"color": plots.PRINTED, "linestyle": "none"}, {"marker": "", "linestyle": "-"}
    lines |= {
        (both, "partitioned"): Curve([0, t, t], [v, v, 0], more=line),
        (both, "ideal"): Curve([0, 2 * t], [2 * v, 0], more=grey | {"marker": "", "linestyle": "--"}),
        (both, "integrated"): [
            Curve(fine_t, edge, more=line),
            Curve([alone[0]], [0], more={"marker": "o", "clip_on": False}),
        ],
        (both, "paper, integrated"): Curve(
            kept * printed[:1], kept * printed[1:], more=grey | {"marker": "x"}
        ),
        (both, "paper, partitioned"): Curve(printed[:1], printed[1:], more=grey | {"marker": "+"}),
    }
    figure = plots.curves(
        lines, (TEXT_CLIENTS, VIDEO_CLIENTS, TEXT_CLIENTS), (RESPONSE, VIOLATED, VIDEO_CLIENTS), height=3.1,
        level={of_text: [FULL_MS], of_video: [FULL_PCT]},
        note=BARS + f" Dotted: {FULL_MS:g} ms and {FULL_PCT:g} %.",
    )  # fmt: skip
    _limited(figure)
    figure.axes[2].set_xlim(left=0)
    return figure


def _limited(figure: Figure) -> None:
    figure.axes[0].set_ylim(0, 4 * FULL_MS)
    figure.axes[1].set_ylim(0, 4 * FULL_PCT)


def cello(text: pl.DataFrame, video: pl.DataFrame) -> Figure:
    """Capacity of other settings of Cello and other schedulers, up to the partitioned server's limits."""
    lines = {
        (panel, name): _curve(*_by_repetition(table.filter(pl.col("scheduler") == name), TEXT, metric))
        for panel, table, metric in (("text", text, "answered_ms"), ("video", video, "violated_pct"))
        for name in table["scheduler"].unique(maintain_order=True)
    }
    figure = plots.curves(
        lines, "Text clients, with 9 video clients for 20 of them", (RESPONSE, VIOLATED),
        level={"text": [FULL_MS], "video": [FULL_PCT]}, note=BARS + " Dotted: the limits.",
    )  # fmt: skip
    _limited(figure)
    return figure


def schedulers(text: pl.DataFrame, video: pl.DataFrame, names: Sequence[str]) -> Figure:
    """Figs. 2 and 3: an integrated server under other schedulers."""
    heavy, of_text = float(video[VIDEO].max()), float(HEAVY_TEXT)
    at_text, at_video = text.filter(pl.col(TEXT) == of_text), video.filter(pl.col(VIDEO) == heavy)
    lines = {}
    for panel, table, x, metric in (
        (f"{of_text:g} text clients", at_text, VIDEO, "answered_ms"),
        (f"{heavy:g} video clients", at_video, TEXT, "violated_pct"),
    ):
        shared = table.filter(pl.col("architecture") == "integrated")
        parts = {"partitioned": table.filter(pl.col("architecture") == "partitioned")}
        for name, rows in (parts | {n: shared.filter(pl.col("scheduler") == n) for n in names}).items():
            lines[panel, name] = _curve(*_by_repetition(rows, x, metric))
    figure = plots.curves(
        lines, (VIDEO_CLIENTS, TEXT_CLIENTS), (RESPONSE, VIOLATED), ylim=None,
        note=BARS + " All but the partitioned one: one server for both classes under that scheduler.",
    )  # fmt: skip
    plots.log_y(figure.axes[:1])
    figure.axes[1].set_yscale("symlog", linthresh=0.1)
    figure.axes[1].set_ylim(bottom=0)
    return figure


def bursty(text: pl.DataFrame) -> Figure:
    """Fig. 15(a), and the open parameters beside it."""
    half = text[VIDEO].min()
    rows = text.filter(pl.col(VIDEO) == half).sort("repetition")
    # A stream that does not drain on one server has no response there, and is compared on none.
    drained = rows.filter(pl.col("response_ms").is_finite().all().over("variant", "repetition"))
    response = {
        (variant, server): of["response_ms"].to_numpy()
        for (variant, server), of in drained.group_by("variant", "architecture", maintain_order=True)
    }
    found = sorted({variant for variant, _ in response})
    loads = [variant for variant in found if variant.startswith("kb-s-")]
    others = ["kb-s-3000", *(variant for variant in found if variant.startswith("at-"))]
    ratios = [ratio_interval(*(response[of, server] for server in SERVERS)) for of in others]
    left, right = "(a) the stand-in for the NFS trace", "(b) 3000 KB/s, other sizes and bursts"
    places = [int(variant.removeprefix("kb-s-")) for variant in loads]
    lines = {
        (left, server): Curve(places, [geometric_mean_interval(response[of, server]) for of in loads])
        for server in SERVERS
    } | {(right, ""): Curve(range(len(others)), ratios, like="integrated", more={"linestyle": "none"})}
    missing = (len(rows) - len(drained)) // len(SERVERS)
    figure = plots.curves(
        lines, ("Load of bursty text (KB/s)", ""), (RESPONSE, "Partitioned / integrated response"), ylim=None,
        level={right: (1, printed_number("S-F15"))},
        note="Geometric means over streams; bars: 95 % t intervals of the logarithms. "
        f"Beside {half} video clients. Dotted: equal, and the paper's factor. "
        f"Left out: {missing} streams that do not drain on one of the servers.",
    )  # fmt: skip
    plots.log_y(figure.axes)
    names = ["8 KiB, on-off", *(n.removeprefix("at-3000-").replace("kib", " KiB") for n in others[1:])]
    figure.axes[1].set_xticks(range(len(names)), names, rotation=30, ha="right")
    return figure


def distributions(found: Distribution, capacity: float) -> Figure:
    """Fig. 16(a): how likely each text load is."""
    lines = {}
    for overload in OVERLOADS:
        clients = np.sort(found.clients(capacity, overload))
        lines["", f"overload {overload:g}"] = Curve(clients, 1 - np.arange(len(clients)) / len(clients))
    figure = plots.curves(
        lines, TEXT_CLIENTS, "Share of windows above", at=[capacity], ylim=None,
        note="Dotted: what the partitioned server bears.",
    )  # fmt: skip
    plots.log_y(figure.axes)
    return figure


def improvements(found: dict[str, dict[float, list[Improvement]]]) -> Figure:
    """Fig. 17, for each reading of the load."""
    rows = [
        {"reading": name, "overload": overload, "repetition": at, "ms": ms, "percent": percent}
        for name, by in found.items()
        for overload, made in by.items()
        for at, (ms, percent) in enumerate(
            zip(by_seed(made, "difference_ms"), by_seed(made, "percent"), strict=True)
        )
    ]
    words = {
        "overload": "Probability of overload", "ms": "Expected improvement (ms)",
        "percent": "Expected improvement (%)",
    }  # fmt: skip
    printed = CLAIMS.register[f"S-F17 {OVERLOADS[0]:g}"].limits or (0, 0)
    figure = plots.intervals(
        pl.DataFrame(rows), ("ms", "percent"), x="overload", hue="reading", words=words, runs=False,
        note="Repetitions: streams of load, or the servers' runs. Grey: the paper's range.",
    )  # fmt: skip
    figure.axes[1].axhspan(*printed, color=plots.PRINTED, alpha=0.12, linewidth=0)
    return figure


def partitions(text: pl.DataFrame) -> Figure:
    """Fig. 18."""
    disks = {name: int(name.removeprefix("text-")) for name in sorted(text["variant"].unique())}
    words = WORDS | {name: f"{of} + {16 - of} disks" for name, of in disks.items()}
    figure = plots.intervals(
        text.rename({"answered_ms": RESPONSE}), RESPONSE, x=TEXT, hue="architecture", col="variant",
        order={"variant": list(disks)}, words=words, runs=False, note="Disks for text and for video.",
    )  # fmt: skip
    figure.axes[0].set_ylim(top=4 * FULL_MS)
    for axis in figure.axes:
        plots.reference(axis, FULL_MS)
    return figure
