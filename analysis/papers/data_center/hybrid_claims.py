"""Claims of Figs. 11 to 14, and what limits on the other site do instead."""

from collections.abc import Iterator

import polars as pl

from papers.data_center.judge import judged, shown
from papers.data_center.names import BACKGROUND, HOT, PLAIN, SITE, alpha, shared
from papers.data_center.samples import average, difference, interval, percent_gain, ratio, sample
from weir.claims import Claim
from weir.labels import number
from weir.statistics import Interval

#: What a largest gain of many is: more than the gain of that cell would be if measured again.
LARGEST = "the largest of {n} cells, which chance makes larger"
BROWSING = "browsing"


def gains(table: pl.DataFrame | None) -> dict[tuple[str, str], Interval]:
    """Gain of the second site from hot files on tmpfs, in % of its throughput, by site and background."""
    found = {}
    variants = [] if table is None else sorted(table["variant"].unique())
    for variant in variants:
        of = shared(variant)
        if of.placement != HOT:
            continue
        plain = variant.removesuffix(HOT) + PLAIN
        pair = (sample(table, "per_s", variant=one, **{"class": SITE}) for one in (variant, plain))
        gain = percent_gain(ratio(*pair))
        if gain is not None:
            found[(of.site, of.background)] = gain
    return found


def static(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F11, static half."""
    found = gains(table)
    yield from _most("V-F11 static", found)
    yield from _growth("V-F11 static growth", found)


def tables(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F11, dynamic half, V-F12 and V-F13."""
    found = gains(table)
    browsing = _of(found, BROWSING)
    yield from _most("V-F11 browsing", browsing)
    yield from _growth("V-F11 browsing growth", browsing)
    for mix in ("shopping", "ordering"):
        yield from _less(f"V-F12 {mix}", browsing, _of(found, mix))
    for site in ("rubis", "rubbos"):
        yield from _most(f"V-F13 {site}", _of(found, site))
        yield from _less(f"V-F13 {site} less", browsing, _of(found, site))


def network(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F14."""
    found = {alpha(site): one for (site, _), one in gains(table).items() if alpha(site) is not None}
    named = {(f"alpha {value}", ""): one for value, one in sorted(found.items(), reverse=True)}
    yield from _most("V-F14", named)
    if len(found) > 1:
        ends = difference(found[max(found)], found[min(found)])
        yield from judged("V-F14 falls", ends, _words(named))


def gains_table(table: pl.DataFrame | None) -> pl.DataFrame:
    """Throughput without and with hot files, and the share of requests for hot files."""
    rows = []
    for (site, background), gain in gains(table).items():
        name = f"{site}-behind-{background}" if background else site
        cells = [{"variant": f"{name}-{placement}", "class": SITE} for placement in (PLAIN, HOT)]
        plain, hot = (sample(table, "per_s", **cell) for cell in cells)
        share = sample(table, "hot_pct", **cells[1])
        rows.append(
            {
                "site": _cell((site, background)),
                "plain (1/s)": "" if plain is None else shown(interval(plain)),
                "hot (1/s)": "" if hot is None else shown(interval(hot)),
                "gain (%)": shown(gain),
                "requests for hot files (%)": "" if share is None else number(share.mean),
            }
        )
    return pl.DataFrame(rows)


def _of(found: dict[tuple[str, str], Interval], site: str) -> dict[tuple[str, str], Interval]:
    return {key: one for key, one in found.items() if key[0] == site}


def _most(name: str, found: dict[tuple[str, str], Interval]) -> Iterator[Claim]:
    """The largest gain: the number is met or not, and the shape is that it is one at all."""
    if not found:
        return
    where = max(found, key=lambda key: found[key].estimate)
    most = found[where]
    shape = (most.estimate if most.low is None else most.low) > 0
    note = f"{_cell(where)}; " + (LARGEST.format(n=len(found)) if len(found) > 1 else "the only cell")
    missed = "" if shape else "it may be none"
    yield from judged(name, most, f"{note}: {_words(found)}", shape=shape, missed=missed)


def _growth(name: str, found: dict[tuple[str, str], Interval]) -> Iterator[Claim]:
    """The gain behind the largest background less that behind the smallest."""
    steps, words = [], []
    for site in sorted({site for site, _ in found}):
        own = sorted(background for one, background in found if one == site)
        if len(own) > 1:
            ends = [found[(site, own[at])] for at in (-1, 0)]
            step = difference(*ends)
            if step is not None:
                steps.append(step)
                much, little = (number(one.estimate) for one in ends)
                words.append(f"{site}: {much} behind {own[-1]}, {little} behind {own[0]}")
    yield from judged(name, average(steps), "% gain, " + "; ".join(words))


def _less(
    name: str, browsing: dict[tuple[str, str], Interval], other: dict[tuple[str, str], Interval]
) -> Iterator[Claim]:
    """Gain of browsing over other mixes, with the largest common background."""
    common = sorted({one for _, one in browsing} & {one for _, one in other})
    if common:
        pair = [
            next(one for (_, behind), one in of.items() if behind == common[-1]) for of in (browsing, other)
        ]
        note = f"{shown(pair[0])} and {shown(pair[1])} % behind {common[-1]}"
        yield from judged(name, difference(*pair), note)


def _cell(key: tuple[str, str]) -> str:
    return f"{key[0]} behind {key[1]}" if key[1] else key[0]


def _words(found: dict[tuple[str, str], Interval]) -> str:
    return ", ".join(f"{_cell(key)} {number(one.estimate)} %" for key, one in found.items())


def limits(table: pl.DataFrame | None) -> pl.DataFrame:
    """Beyond the paper: what each measure gives the site, and takes from the background.

    Returns:
        A row per variant: throughput of both, gain of the site, and the share of the hot files' gain that it
        is; empty without results.
    """
    if table is None:
        return pl.DataFrame()
    gain = {name: _gain(table, name) for name in _limits(table)}
    rows = []
    for name in (PLAIN, *gain):
        site, other = (sample(table, "per_s", variant=name, **{"class": of}) for of in (SITE, BACKGROUND))
        taken = percent_gain(ratio(other, sample(table, "per_s", variant=PLAIN, **{"class": BACKGROUND})))
        rows.append(
            {
                "variant": name,
                "site (1/s)": "" if site is None else shown(interval(site)),
                "background (1/s)": "" if other is None else shown(interval(other)),
                "gain of the site (%)": shown(gain.get(name)),
                "gain of the background (%)": "" if name == PLAIN else shown(taken),
            }
        )
    return pl.DataFrame(rows)


def answer(table: pl.DataFrame | None) -> str:
    """In a sentence: which limits give as much as the hot files' place in memory does."""
    if table is None:
        return "Not measured."
    hot = _gain(table, HOT)
    if hot is None:
        return "Not measured: there are no runs of both plain and hot."
    words = [f"Hot files in memory: {shown(hot)} %."]
    for name in _limits(table):
        if name == HOT:
            continue
        own = _gain(table, name)
        beyond = difference(own, hot)
        if own is None or beyond is None:
            continue
        if beyond.low is None or beyond.high is None:
            said = "without an interval, nothing is settled"
        elif beyond.low >= 0:
            said = "which is as much or more"
        elif beyond.high < 0:
            said = "which is less"
        else:
            said = "which may be more or less"
        words.append(f"{name}: {shown(own)} %, {said}.")
    return " ".join(words)


def _limits(table: pl.DataFrame) -> list[str]:
    names = sorted(set(table["variant"]) - {PLAIN, HOT})
    return [name for name in (HOT, *names) if name in set(table["variant"])]


def _gain(table: pl.DataFrame, variant: str) -> Interval | None:
    pair = (sample(table, "per_s", variant=one, **{"class": SITE}) for one in (variant, PLAIN))
    return percent_gain(ratio(*pair))
