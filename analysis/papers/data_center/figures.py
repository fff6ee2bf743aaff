"""Figures: tables 2 and 4 to 6 as ratios, and Figs. 5 to 14."""

from collections.abc import Iterable, Mapping

import polars as pl
from matplotlib.figure import Figure

from papers.data_center import hybrid_claims, printed
from papers.data_center.judge import CLAIMS
from papers.data_center.names import (
    BACKGROUND,
    BUFFERS,
    DOCUMENTS,
    EXT4,
    GLUSTER,
    HOT,
    LABELS,
    MIXES,
    OPERATIONS,
    PLAIN,
    SHOPPERS,
    SITE,
    SIZES,
    STRIPED,
    alpha,
    buffers,
    document,
    mix_and_class,
)
from papers.data_center.results import QUICK_BYTES, QUICK_MS
from papers.data_center.samples import interval, ratio, sample
from weir import plots
from weir.statistics import Interval

BARS = "Bars: 95 % intervals over repetitions, or over batches of a single run."
#: What a dashed line is.
DASHED = "Dashed: the most that the paper has."
FILESYSTEM, PANEL, ALONG = "file system", "panel", "operation or size"
#: Dynamic sites, in the order of figures.
SITES = {mix: mix for mix in MIXES} | {"rubis": "RUBiS", "rubbos": "RUBBoS"}
#: A panel's title is its level alone, and classes along an axis are numbers.
WORDS = LABELS | SITES | {f"class{at}": f"class {at}" for at in range(5)} | {PANEL: ""}
NUMBERED = WORDS | {f"class{at}": str(at) for at in range(5)} | {ALONG: "class of requests"}


def access(table: pl.DataFrame) -> Figure:
    """Table 2: how many times as long as on ext4 each operation takes."""
    found, was = {}, {}
    for of, name in ((of, name) for of in (*STRIPED.values(), GLUSTER) for name in OPERATIONS):
        pair = (sample(table, "us", filesystem=one, **{"class": name}) for one in (of, EXT4))
        found[of, name] = ratio(*pair)
        was[of, name] = printed.by(*(printed.access_us(one, name) for one in (of, EXT4)))
    words = {
        name: what if name == "open-close" else f"{what}, {size}" for name, (what, size) in OPERATIONS.items()
    }
    note = "the paper, by ext3fs"
    return _times_ext4(found, was, (FILESYSTEM, ALONG), OPERATIONS, "Latency", note, words)


def documents(table: pl.DataFrame) -> Figure:
    """Tables 4 and 5: how many times as long as on ext4 a document takes, behind the web server."""
    found, was = {}, {}
    for cached, title in ((True, "cached (Table 4)"), (False, "not cached (Table 5)")):
        for of, size in ((of, size) for of in STRIPED.values() for size in SIZES):
            pair = (
                sample(
                    table, "response_ms", filesystem=one, variant=document(size, one, cached=cached),
                    **{"class": DOCUMENTS},
                )
                for one in (of, EXT4)
            )  # fmt: skip
            found[of, size, title] = ratio(*pair)
            old = (printed.response_us(one, size, cached=cached) for one in (of, EXT4))
            was[of, size, title] = printed.by(*old)
    note = "the paper, by ext3fs (64K of Lustre, not cached, as misprinted)"
    return _times_ext4(found, was, (FILESYSTEM, ALONG, PANEL), SIZES, "Response", note, {})


def _times_ext4(
    found: Mapping[tuple, Interval | None],
    was: Mapping[tuple, float | None],
    names: tuple[str, ...],
    along: Iterable[str],
    title: str,
    note: str,
    words: dict[str, str],
) -> Figure:
    """Ratios of ours, and of the paper's as open markers."""
    kept = {key[0] for key, one in found.items() if one is not None}
    rows = [dict(zip(names, key, strict=True)) | {"printed": of} for key, of in was.items() if key[0] in kept]
    figure = plots.points(
        plots.tabled(found, *names).join(pl.DataFrame(rows), on=names, how="right"),
        x=ALONG, hue=FILESYSTEM, col=PANEL if PANEL in names else None,
        order={ALONG: list(along), FILESYSTEM: list(LABELS)}, words=WORDS | words,
        title=f"{title}, times that of ext4", log=True, height=2.9, note=f"Open: {note}. {BARS}",
    )  # fmt: skip
    for axis in figure.axes:
        plots.reference(axis, 1, line="-")
    return figure


def traffic(static: pl.DataFrame | None, dynamic: pl.DataFrame | None) -> Figure:
    """Fig. 5: KiB over the network by request, those of the file system and those to the client."""
    parts = {"(a) static, by request": (static, "", {}), "(b) browsing mix, by page": (dynamic, MIXES[0], {})}
    return _by_filesystem(parts, "kib_each", "Network traffic (KiB)", sharey=False)


def throughput(static: pl.DataFrame | None, dynamic: pl.DataFrame | None) -> Figure:
    """Fig. 7: requests and pages answered in a second."""
    shoppers = {"class": SHOPPERS}
    parts = {"(a) static": (static, "", {"class": SITE}), "(b) browsing mix": (dynamic, MIXES[0], shoppers)}
    return _by_filesystem(parts, "per_s", "Answered (1/s)", sharey=False)


def mixes(dynamic: pl.DataFrame) -> Figure:
    """Fig. 8: pages answered in a second, of the other mixes."""
    parts = {f"{mix} mix": (dynamic, mix, {"class": SHOPPERS}) for mix in MIXES[1:]}
    return _by_filesystem(parts, "per_s", "Answered (1/s)", sharey=False)


def _by_filesystem(
    parts: Mapping[str, tuple[pl.DataFrame | None, str, dict[str, str]]],
    metric: str,
    title: str,
    **more: object,
) -> Figure:
    """A series for each file system over the variants of a table.

    Args:
        parts: by the title of a panel its table, how the names of its variants begin, and its class.
        metric: a column of the tables.
        title: of the metric.
        more: what else there is to say of the figure.
    """
    found = {}
    for panel, (table, mix, of) in parts.items():
        cells = [] if table is None else table.select("variant", "filesystem").unique().sort("variant").rows()
        kept = [cell for cell in cells if cell[0].startswith(mix) and buffers(cell[0]) == BUFFERS]
        for variant, filesystem in kept:
            one = sample(table, metric, variant=variant, filesystem=filesystem, **of)
            name = mix_and_class(variant)[1] if mix else variant
            found[panel, name, filesystem] = None if one is None else interval(one)
        if not kept:
            found[panel, None, None] = Interval(None, None, None, 0, "none")
    return plots.points(
        plots.tabled(found, PANEL, ALONG, FILESYSTEM), x=ALONG, hue=FILESYSTEM, col=PANEL, title=title,
        order={PANEL: list(parts), FILESYSTEM: list(LABELS)}, words=NUMBERED,
        height=2.9, note=BARS, **more,
    )  # fmt: skip


def activity(static: pl.DataFrame | None, dynamic: pl.DataFrame | None) -> Figure:
    """Fig. 6: what is read from the disk over time, on ext4, a line for each class."""
    shown = {"(a) static": (static, ""), "(b) browsing mix": (dynamic, MIXES[0])}
    name = pl.col("variant").str.extract(r"(class\d+)$").fill_null(pl.col("variant")).alias("class")
    is_sized = pl.col("variant").str.contains(r"-\d+mib$")
    tables = [
        table.filter(
            pl.col("filesystem").is_in([EXT4, ""]) & pl.col("variant").str.starts_with(mix), ~is_sized
        ).select(name, pl.lit(title).alias(PANEL), "second", "mb_s", "repetition")
        for title, (table, mix) in shown.items()
        if table is not None
    ]
    words = WORDS | {"mb_s": "Read from the disk (MB/s)", "second": "Time, from cold (s)"}
    return plots.timeline(
        pl.concat(tables), "mb_s", time="second", hue="class", col=PANEL, bounds=(0, float("inf")),
        words=words, height=2.9, note="Bins of half a second.",
    )  # fmt: skip


def locality(table: pl.DataFrame) -> Figure:
    """Fig. 9: answers over alpha, the most local first."""
    kept = table.filter(pl.col("variant").str.starts_with("alpha-"))
    found = {}
    for variant, filesystem in kept.select("variant", "filesystem").unique().sort("variant").rows()[::-1]:
        one = sample(kept, "per_s", variant=variant, filesystem=filesystem, **{"class": SITE})
        found[f"{alpha(variant):.2f}", filesystem] = None if one is None else interval(one)
    return plots.points(
        plots.tabled(found, ALONG, FILESYSTEM), x=ALONG, hue=FILESYSTEM, order={FILESYSTEM: list(LABELS)},
        words=WORDS | {ALONG: "alpha, less and less locality"}, title="Answered (1/s)", height=2.9, note=BARS,
    )  # fmt: skip


def pollution(table: pl.DataFrame) -> Figure:
    """Fig. 10: the shares of bytes and of accesses that memory answers, with one site and with two."""
    panels = {"hit_pct": "(a) of the bytes served", "quick_pct": "(b) of the accesses"}
    found = {}
    for metric, title in panels.items():
        for variant, sites in table.select("variant", "sites").unique().sort("variant", "sites").rows():
            one = sample(table, metric, variant=variant, sites=sites)
            of = None if one is None else interval(one, bounds=(0, 100))
            found[title, variant, ("single", "shared")[sites - 1]] = of
    figure = plots.points(
        plots.tabled(found, PANEL, ALONG, "sites"), x=ALONG, hue="sites", col=PANEL,
        words=NUMBERED, title="Answered from memory (%)", joined=False, log=False,
        height=2.9,
        note=f"The rest comes from the disk. (b): answers of at most {QUICK_BYTES // 1024} KiB, from memory "
        f"if within {QUICK_MS:g} ms. Bars: 95 % t intervals over repetitions.",
    )  # fmt: skip
    figure.axes[0].set_ylim(0, 105)
    return figure


def by_background(table: pl.DataFrame, claims: dict[str, tuple[str, tuple[str, ...]]]) -> Figure:
    """Figs. 11 to 13: what hot files gain the second site, over the background.

    Args:
        table: of `results.served`.
        claims: by the title of a panel, the claim whose number is drawn (empty for none) and its sites; all
            sites where there are none.
    """
    found = {
        (title, background, site): one
        for title, (_, wanted) in claims.items()
        for (site, background), one in sorted(hybrid_claims.gains(table).items())
        if not wanted or site in wanted
    }
    figure = plots.points(
        plots.tabled(found, PANEL, "background", "site"), x="background", hue="site", col=PANEL,
        order={PANEL: list(claims), "site": list(SITES)}, words=WORDS,
        title="Gain of the second site (%)", height=2.9, note=f"{BARS} {DASHED}",
    )  # fmt: skip
    for axis, (claim, _) in zip(figure.axes, claims.values(), strict=True):
        _gain_lines(axis, claim)
    return figure


def by_alpha(table: pl.DataFrame) -> Figure:
    """Fig. 14: what hot files gain over a network file system, by locality."""
    named = {(f"{value:.2f}",): one for value, one in hybrid_claims.by_alpha(table).items()}
    figure = plots.points(
        plots.tabled(named, "alpha, less and less locality"), x="alpha, less and less locality",
        title="Gain of the site (%)", height=2.7, note=f"{BARS} {DASHED}",
    )  # fmt: skip
    _gain_lines(figure.axes[0], "V-F14")
    return figure


def _gain_lines(axis, claim: str) -> None:
    plots.reference(axis, 0, line="-")
    if claim:
        plots.reference(axis, CLAIMS.register[claim].paper, line="--")


def limits(table: pl.DataFrame) -> Figure:
    """Beyond the paper: throughput of both sites under each measure, by what it is without."""
    variants = [PLAIN, HOT, *sorted(set(table["variant"]) - {PLAIN, HOT})]
    panels = {"(a) the site": SITE, "(b) the background": BACKGROUND}
    found = {}
    for title, of in panels.items():
        for variant in variants:
            one = sample(table, "per_s", variant=variant, **{"class": of})
            found[title, variant] = None if one is None else interval(one)
    return plots.points(
        plots.tabled(found, PANEL, "measure"), x="measure", col=PANEL, order={"measure": variants},
        words=WORDS, title="Answered (1/s)", joined=False, sharey=False,
        height=2.7, note=BARS,
    )  # fmt: skip
