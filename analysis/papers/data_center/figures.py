"""Figures: tables 2 and 4 to 6 as ratios, and Figs. 5 to 10."""

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.data_center import printed
from papers.data_center.names import (
    DOCUMENTS,
    EXT4,
    LABELS,
    MIXES,
    NETWORKED,
    OPERATIONS,
    SHOPPERS,
    SITE,
    SIZES,
    alpha,
    document,
    mix_and_class,
)
from papers.data_center.plot import (
    BARS,
    by_filesystem,
    class_look,
    look_of,
    name_places,
    points,
    words,
)
from papers.data_center.results import QUICK_BYTES, QUICK_MS
from papers.data_center.samples import interval, ratio, sample
from weir import plots
from weir.statistics import Interval

#: Heights of panels in inches.
HEIGHT = 2.9


@plots.style()
def access(table: pl.DataFrame) -> Figure:
    """Table 2: how many times as long as on ext4 each operation takes."""
    found = {}
    was = {}
    for filesystem in (*NETWORKED.values(), "glusterfs"):
        pairs = {
            name: ratio(*(sample(table, "us", filesystem=of, **{"class": name}) for of in (filesystem, EXT4)))
            for name in OPERATIONS
        }
        found[filesystem] = {name: one for name, one in pairs.items() if one is not None}
        was[filesystem] = {
            name: printed.by(printed.access_us(filesystem, name), printed.access_us(EXT4, name))
            for name in OPERATIONS
        }
    figure, axes = plots.panels(1, 1, HEIGHT)
    _beside(axes[0], list(OPERATIONS), found, was)
    places = [
        f"{what}\n{size}" if name != "open-close" else what for name, (what, size) in OPERATIONS.items()
    ]
    axes[0].set_xticks(range(len(places)), places)
    axes[0].set_ylabel("Latency, times that of ext4")
    plots.legend(figure, axes, 4)
    plots.note(figure, f"Open: the paper, by ext3fs. {BARS}")
    return figure


@plots.style()
def documents(table: pl.DataFrame) -> Figure:
    """Tables 4 and 5: how many times as long as on ext4 a document takes, behind the web server."""
    figure, axes = plots.panels(1, 2, HEIGHT, sharey=True)
    for axis, cached in zip(axes, (True, False), strict=True):
        found = {}
        was = {}
        for filesystem in NETWORKED.values():
            pairs = {
                size: ratio(
                    *(
                        sample(
                            table, "response_ms", variant=document(size, cached=cached), filesystem=of,
                            **{"class": DOCUMENTS},
                        )
                        for of in (filesystem, EXT4)
                    )
                )
                for size in SIZES
            }  # fmt: skip
            found[filesystem] = {size: one for size, one in pairs.items() if one is not None}
            was[filesystem] = {
                size: printed.by(*(printed.response_us(of, size, cached=cached) for of in (filesystem, EXT4)))
                for size in SIZES
            }
        _beside(axis, list(SIZES), found, was)
        axis.set_title("cached (Table 4)" if cached else "not cached (Table 5)", loc="left")
    axes[0].set_ylabel("Response, times that of ext4")
    plots.legend(figure, axes, 4)
    printed_so = "Open: the paper, by ext3fs (64K of Lustre, not cached, as misprinted)."
    plots.note(figure, f"{printed_so}\n{BARS}")
    return figure


def _beside(
    axis: Axes,
    names: list[str],
    found: dict[str, dict[str, Interval]],
    was: dict[str, dict[str, float | None]],
) -> None:
    """Ratios of ours, and of the paper's as open markers on dotted lines."""
    kept = {name: of for name, of in found.items() if of}
    for at, (filesystem, of) in enumerate(kept.items()):
        place = look_of(filesystem)
        points(axis, at, len(kept), names, of, LABELS[filesystem], place)
        shift = (at - (len(kept) - 1) / 2) * 0.5 / max(len(kept), 1)
        old = [(x + shift, was[filesystem][name]) for x, name in enumerate(names)]
        drawn = [(x, value) for x, value in old if value is not None]
        look = plots.look(place, marker="o", linestyle=":", linewidth=0.7, markerfacecolor="white")
        axis.plot([x for x, _ in drawn], [value for _, value in drawn], **look)
    name_places(axis, names)
    plots.reference(axis, 1, line="-")
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_formatter(lambda *_: "")


def traffic(static: pl.DataFrame | None, dynamic: pl.DataFrame | None) -> Figure:
    """Fig. 5: KiB over the network by request, those of the file system and those to the client."""
    parts = ((static, "(a) static, by request", None), (dynamic, "(b) browsing mix, by page", MIXES[0]))
    return _panels(parts, "kib_each", "Network traffic (KiB)", None)


def throughput(static: pl.DataFrame | None, dynamic: pl.DataFrame | None) -> Figure:
    """Fig. 7: requests and pages answered in a second."""
    parts = ((static, "(a) static", None), (dynamic, "(b) browsing mix", MIXES[0]))
    return _panels(parts, "per_s", "Answered (1/s)", (SITE, SHOPPERS))


def mixes(dynamic: pl.DataFrame) -> Figure:
    """Fig. 8: pages answered in a second, of the other mixes."""
    parts = tuple(
        (dynamic, f"({letter}) {mix} mix", mix) for letter, mix in zip("ab", MIXES[1:], strict=True)
    )
    return _panels(parts, "per_s", "Answered (1/s)", (SHOPPERS, SHOPPERS))


@plots.style()
def _panels(parts: tuple, metric: str, label: str, classes: tuple[str, str] | None) -> Figure:
    figure, axes = plots.panels(1, 2, HEIGHT)
    for at, (axis, (table, title, mix)) in enumerate(zip(axes, parts, strict=True)):
        of_class = {} if classes is None else {"class": classes[at]}

        def value(variant, filesystem, table=table, of_class=of_class):
            return sample(table, metric, variant=variant, filesystem=filesystem, **of_class)

        def keep(variant, mix=mix):
            return mix is None or mix_and_class(variant)[0] == mix

        def named(variant, mix=mix):
            return variant if mix is None else mix_and_class(variant)[1]

        there = by_filesystem(axis, table, value, keep=keep, named=named)
        _finish(axis, title, there)
        if there and table is not None:
            rows = table.filter(*(pl.col(name) == of for name, of in of_class.items()))
            plots.decades(axis, [v for v in rows[metric] if v is not None])
    axes[0].set_ylabel(label)
    plots.legend(figure, axes, 4)
    plots.note(figure, BARS)
    return figure


def _finish(axis: Axes, title: str, there: bool) -> None:
    axis.set_title(title, loc="left")
    if not there:
        axis.text(0.5, 0.5, "not measured", transform=axis.transAxes, ha="center", color=plots.PRINTED)
        # Not its ticks taken away: panels may share them.
        axis.tick_params(bottom=False, labelbottom=False, left=False, labelleft=False)
        axis.grid(visible=False)


@plots.style()
def activity(static: pl.DataFrame | None, dynamic: pl.DataFrame | None) -> Figure:
    """Fig. 6: what is read from the disk over time, on ext4, a line for each class."""
    figure, axes = plots.panels(1, 2, HEIGHT, sharey=True)
    parts = ((static, "(a) static", ""), (dynamic, "(b) browsing mix", MIXES[0]))
    for axis, (table, title, mix) in zip(axes, parts, strict=True):
        rows = None if table is None else table.filter(pl.col("filesystem").is_in([EXT4, ""]))
        every = [] if rows is None else sorted(rows["variant"].unique())
        names = [variant for variant in every if variant.startswith(mix)]
        for name in names:
            at = class_look(mix_and_class(name)[1] or name)
            own = rows.filter(pl.col("variant") == name)
            over = own.group_by("second").agg(pl.col("mb_s").mean()).sort("second")
            look = plots.look(at, marker="", linewidth=1.2, label=words(mix_and_class(name)[1] or name))
            axis.step(over["second"], over["mb_s"], where="post", **look)
        _finish(axis, title, bool(names))
        if names:
            axis.set_xlabel("Time, from cold (s)")
    axes[0].set_ylabel("Read from the disk (MB/s)")
    axes[0].set_ylim(bottom=0)
    plots.legend(figure, axes, 5)
    plots.note(figure, "Means over repetitions in bins of half a second.")
    return figure


@plots.style()
def locality(table: pl.DataFrame) -> Figure:
    """Fig. 9: answers over alpha, the most local first."""
    figure, axes = plots.panels(1, 1, HEIGHT)

    def value(variant, filesystem):
        return sample(table, "per_s", variant=variant, filesystem=filesystem, **{"class": SITE})

    by_filesystem(
        axes[0], table, value, keep=lambda v: alpha(v) is not None, named=lambda v: f"{alpha(v):.2f}",
        falling=True,
    )  # fmt: skip
    plots.decades(axes[0], table["per_s"])
    axes[0].set_xlabel("alpha, less and less locality")
    axes[0].set_ylabel("Answered (1/s)")
    plots.legend(figure, axes, 4)
    plots.note(figure, BARS)
    return figure


@plots.style()
def pollution(table: pl.DataFrame) -> Figure:
    """Fig. 10: the shares of bytes and of accesses that memory answers, with one site and with two."""
    figure, axes = plots.panels(1, 2, HEIGHT, sharey=True)
    _hits(axes[0], table, "hit_pct")
    axes[0].set_title("(a) of the bytes served", loc="left")
    _hits(axes[1], table, "quick_pct")
    axes[1].set_title("(b) of the accesses", loc="left")
    axes[0].set_ylim(0, 100)
    axes[0].set_ylabel("Share (%)")
    plots.legend(figure, axes, 4)
    plots.note(
        figure,
        f"(b): answers of at most {QUICK_BYTES // 1024} KiB, from memory if within {QUICK_MS:g} ms. "
        "Lines: 95 % t intervals over repetitions.",
    )
    return figure


def _hits(axis: Axes, table: pl.DataFrame, metric: str) -> None:
    names = sorted(table["variant"].unique())
    for at, sites in enumerate((1, 2)):
        found = {name: sample(table, metric, variant=name, sites=sites) for name in names}
        places = [(x + (at - 0.5) * 0.36, found[name]) for x, name in enumerate(names)]
        kept = [(x, interval(one, bounds=(0, 100))) for x, one in places if one is not None]
        xs, hits = [x for x, _ in kept], [one.estimate for _, one in kept]
        label = ("single", "shared")[at]
        axis.bar(xs, hits, 0.32, color=plots.colour(at), label=f"{label}: from memory")
        rest = {"alpha": 0.25, "hatch": "///", "edgecolor": "white", "label": f"{label}: from the disk"}
        axis.bar(xs, [100 - hit for hit in hits], 0.32, bottom=hits, color=plots.colour(at), **rest)
        for x, one in kept:
            plots.interval_bar(axis, x, one)
    name_places(axis, names)
