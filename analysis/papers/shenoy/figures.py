"""Figures 2, 3, 7 to 18."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from papers.shenoy.load import Distribution, Improvement
from papers.shenoy.results import FULL_MS, FULL_PCT, SERVERS, TEXT, VIDEO, Surface
from weir import plots
from weir.statistics import geometric_mean_interval, mean_interval, ratio_interval

TEXT_CLIENTS, VIDEO_CLIENTS = "Text clients", "Video clients"
RESPONSE, VIOLATED = "Mean response of text (ms)", "Video deadlines violated (%)"
WORDS = {TEXT: TEXT_CLIENTS, VIDEO: VIDEO_CLIENTS}
BARS = "Points: means over repetitions; bars: 95 % t intervals."
#: The partitioned server is drawn solid, the integrated one dashed.
DASHES = {server: plots.line_style(at) for at, server in enumerate(SERVERS)}


def _line(
    axis: Axes,
    x: np.ndarray,
    values: np.ndarray,
    label: str,
    at: int,
    line: str = "-",
    *,
    geometric: bool = False,
) -> None:
    """A line of means with intervals, geometric ones if asked; values by repetition (rows) and place."""
    interval = geometric_mean_interval if geometric else mean_interval
    found = [interval(column) for column in values.T]
    plots.estimates(axis, x, found, label, at, linestyle=line)


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


@plots.style()
def parts(service: dict[str, Surface], queueing: dict[str, Surface]) -> Figure:
    """Fig. 11: service time and queueing delay of text."""
    figure, axes = plots.panels(1, 2, 2.9)
    for axis, surfaces, title in zip(
        axes, (service, queueing), ("(a) service time", "(b) queueing delay"), strict=True
    ):
        for at, server in enumerate(SERVERS):
            surface = surfaces[server].without_text_zero()
            for nth, share in enumerate((0, 0.5, 1)):
                column = _nearest(surface.video, share * surface.video[-1])
                if server == "partitioned" and nth:
                    continue
                beside = f", {surface.video[column]:g} video clients"
                name = server if server == "partitioned" else server + beside
                _line(axis, surface.text, surface.values[:, :, column], name, at + nth, DASHES[server])
        axis.set_title(title, loc="left")
        axis.set_xlabel(TEXT_CLIENTS)
        axis.set_ylabel("Mean over requests of text (ms)")
        axis.set_ylim(bottom=0)
    plots.legend(figure, axes[0], 2)
    plots.note(figure, BARS)
    return figure


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


@plots.style()
def border(
    text: Surface, video: Surface, partitioned: tuple[float, float], alone: tuple[float, float]
) -> Figure:
    """Figs. 13 and 14: what the integrated server bears."""
    figure, axes = plots.panels(1, 3, 3.1)
    for nth, share in enumerate((0, 0.5, 1)):
        column = _nearest(text.video, share * partitioned[1])
        _line(axes[0], text.text, text.values[:, :, column], f"{text.video[column]:g}", nth)
        row = _nearest(video.text, share * partitioned[0])
        _line(axes[1], video.video, video.values[:, row], f"{video.text[row]:g}", nth)
    axes[0].set_ylim(0, 4 * FULL_MS)
    axes[1].set_ylim(0, 4 * FULL_PCT)
    plots.reference(axes[0], FULL_MS)
    plots.reference(axes[1], FULL_PCT)
    axes[0].set_xlabel(TEXT_CLIENTS)
    axes[1].set_xlabel(VIDEO_CLIENTS)
    axes[0].set_ylabel(RESPONSE)
    axes[1].set_ylabel(VIOLATED)
    axes[0].legend(title=VIDEO_CLIENTS, loc="upper left")
    axes[1].legend(title=TEXT_CLIENTS, loc="upper left")
    axis = axes[2]
    t, v = partitioned
    axis.plot([0, t, t], [v, v, 0], color=plots.colour(0), label="partitioned")
    axis.plot([0, 2 * t], [2 * v, 0], color=plots.PRINTED, linestyle="--", label="ideal integrated")
    fine_t, fine_v = np.linspace(text.text[0], text.text[-1], 200), np.linspace(0, video.video[-1], 200)
    grid = np.meshgrid(fine_t, fine_v, indexing="ij")
    full = (text.at(*grid).mean(axis=0) > FULL_MS) | (video.at(*grid).mean(axis=0) > FULL_PCT)
    edge = [fine_v[row.argmax() - 1] if row.any() and row.argmax() else np.nan for row in full]
    axis.plot(fine_t, edge, color=plots.colour(1), label="integrated")
    axis.plot([alone[0]], [0], marker="o", color=plots.colour(1), clip_on=False)
    axis.plot([192], [97], marker="x", linestyle="none", color=plots.PRINTED, label="paper, integrated")
    axis.plot([200], [102], marker="+", linestyle="none", color=plots.PRINTED, label="paper, partitioned")
    axis.set_xlabel(TEXT_CLIENTS)
    axis.set_ylabel(VIDEO_CLIENTS)
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    plots.legend(figure, axis, 3)
    plots.note(figure, BARS + f" Dotted: {FULL_MS:g} ms and {FULL_PCT:g} %.")
    return figure


@plots.style()
def cello(text: pl.DataFrame, video: pl.DataFrame) -> Figure:
    """Capacity of other settings of Cello and other schedulers, up to the partitioned server's limits."""
    figure, axes = plots.panels(1, 2, 3.2)
    for axis, table, metric in ((axes[0], text, "response_ms"), (axes[1], video, "violated_pct")):
        for at, (name,) in enumerate(table.select("scheduler").unique(maintain_order=True).rows()):
            rows = table.filter(pl.col("scheduler") == name)
            _line(axis, *_by_repetition(rows, TEXT, metric), name, at, plots.line_style(at))
        axis.set_xlabel("Text clients, with 9 video clients for 20 of them")
    plots.reference(axes[0], FULL_MS)
    plots.reference(axes[1], FULL_PCT)
    axes[0].set_ylim(0, 4 * FULL_MS)
    axes[1].set_ylim(0, 4 * FULL_PCT)
    axes[0].set_ylabel(RESPONSE)
    axes[1].set_ylabel(VIOLATED)
    plots.legend(figure, axes[0])
    plots.note(figure, BARS + " Dotted: the limits.")
    return figure


@plots.style()
def schedulers(text: pl.DataFrame, video: pl.DataFrame, names: Sequence[str]) -> Figure:
    """Figs. 2 and 3: an integrated server under other schedulers."""
    heavy = float(video[VIDEO].max())
    of_text = float(text[TEXT].max() * 0.75)
    figure, axes = plots.panels(1, 2, 3.2)
    at_text, at_video = text.filter(pl.col(TEXT) == of_text), video.filter(pl.col(VIDEO) == heavy)
    for axis, table, x, held, metric in (
        (axes[0], at_text, VIDEO, f"{of_text:g} text clients", "response_ms"),
        (axes[1], at_video, TEXT, f"{heavy:g} video clients", "violated_pct"),
    ):
        for at, name in enumerate(("partitioned", *names)):
            rows = table.filter(
                pl.col("architecture") == "partitioned"
                if name == "partitioned"
                else (pl.col("architecture") == "integrated") & (pl.col("scheduler") == name)
            )
            _line(axis, *_by_repetition(rows, x, metric), name, at, "-" if at == 0 else "--")
        axis.set_title(held, loc="left")
    axes[0].set_yscale("log")
    axes[1].set_yscale("symlog", linthresh=0.1)
    axes[1].set_ylim(bottom=0)
    axes[0].set_xlabel(VIDEO_CLIENTS)
    axes[1].set_xlabel(TEXT_CLIENTS)
    axes[0].set_ylabel(RESPONSE)
    axes[1].set_ylabel(VIOLATED)
    plots.legend(figure, axes[0])
    plots.note(figure, BARS + " Dashed: one server for both classes under that scheduler.")
    return figure


@plots.style()
def bursty(text: pl.DataFrame) -> Figure:
    """Fig. 15(a), and the open parameters beside it."""
    figure, axes = plots.panels(1, 2, 3.1)
    half = text[VIDEO].min()
    rows = text.filter((pl.col(VIDEO) == half) & pl.col("variant").str.starts_with("kb-s-"))
    rows = rows.with_columns(pl.col("variant").str.slice(5).cast(pl.Int64).alias("kb_s"))
    for at, server in enumerate(SERVERS):
        line = _by_repetition(rows.filter(pl.col("architecture") == server), "kb_s", "response_ms")
        _line(axes[0], *line, server, at, DASHES[server], geometric=True)
    axes[0].set_yscale("log")
    axes[0].set_xlabel("Load of bursty text (KB/s)")
    axes[0].set_ylabel(RESPONSE)
    axes[0].legend(loc="upper left")
    axes[0].set_title("(a) the stand-in for the NFS trace", loc="left")
    names = {"kb-s-3000": "8 KiB, on-off"} | {
        name: name.removeprefix("at-3000-").replace("kib", " KiB")
        for name in sorted(text["variant"].unique())
        if name.startswith("at-")
    }
    for place, variant in enumerate(names):
        rows = text.filter((pl.col(VIDEO) == half) & (pl.col("variant") == variant)).sort("repetition")
        apart, shared = (
            rows.filter(pl.col("architecture") == server)["response_ms"].to_numpy() for server in SERVERS
        )
        ratio = ratio_interval(apart, shared)
        axes[1].plot(ratio.estimate, place, marker="o", color=plots.colour(1))
        plots.interval_bar(axes[1], place, ratio, across=True, color=plots.colour(1))
    axes[1].set_yticks(range(len(names)), list(names.values()))
    axes[1].invert_yaxis()
    plots.reference(axes[1], 6, across=False)
    plots.reference(axes[1], 1, across=False, line="-")
    axes[1].set_xscale("log")
    plots.log_x(axes[1])
    axes[1].set_xlabel("Partitioned / integrated response")
    axes[1].set_title("(b) 3000 KB/s, other sizes and bursts", loc="left")
    plots.note(
        figure,
        "Geometric means over ten streams; bars: 95 % t intervals of the logarithms. "
        f"Beside {half} video clients. Dotted: the paper's factor of 6.",
    )
    return figure


@plots.style()
def distributions(found: dict[float, list[Distribution]], capacity: float) -> Figure:
    """Fig. 16(a): how likely each text load is."""
    figure, axes = plots.panels(1, 1, 2.8)
    for at, (overload, loads) in enumerate(found.items()):
        clients = np.sort(np.concatenate([one.clients(capacity, overload) for one in loads]))
        above = 1 - np.arange(len(clients)) / len(clients)
        plots.line(axes[0], clients, above, f"overload {overload:g}", at, marker="")
    plots.reference(axes[0], capacity, across=False)
    axes[0].set_yscale("log")
    axes[0].set_xlabel(TEXT_CLIENTS)
    axes[0].set_ylabel("Share of windows above")
    axes[0].legend(loc="upper right")
    plots.note(figure, "All seeds together. Dotted: what the partitioned server bears.")
    return figure


def improvements(found: dict[str, dict[float, list[Improvement]]]) -> Figure:
    """Fig. 17, for each reading of the load."""
    rows = [
        {
            "reading": name, "overload": overload, "repetition": at,
            "ms": float(one.difference_ms.mean()), "percent": float(one.percent.mean()),
        }
        for name, by in found.items()
        for overload, loads in by.items()
        for at, one in enumerate(loads)
    ]  # fmt: skip
    words = {
        "overload": "Probability of overload", "ms": "Expected improvement (ms)",
        "percent": "Expected improvement (%)",
    }  # fmt: skip
    figure = plots.intervals(
        pl.DataFrame(rows), ("ms", "percent"), x="overload", hue="reading", words=words, runs=False,
        note="Repetitions: streams of load. Grey: the paper's range.",
    )  # fmt: skip
    figure.axes[1].axhspan(40, 80, color=plots.PRINTED, alpha=0.12, linewidth=0)
    return figure


def partitions(text: pl.DataFrame) -> Figure:
    """Fig. 18."""
    disks = {name: int(name.removeprefix("text-")) for name in sorted(text["variant"].unique())}
    words = WORDS | {name: f"{of} + {16 - of} disks" for name, of in disks.items()}
    figure = plots.intervals(
        text.rename({"response_ms": RESPONSE}), RESPONSE, x=TEXT, hue="architecture", col="variant",
        order={"variant": list(disks)}, words=words, runs=False, note="Disks for text and for video.",
    )  # fmt: skip
    figure.axes[0].set_ylim(0, 4 * FULL_MS)
    for axis in figure.axes:
        plots.reference(axis, FULL_MS)
    return figure
