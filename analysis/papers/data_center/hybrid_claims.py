"""Claims of Figs. 11 to 14, and what limits on the other site do instead."""

from collections.abc import Iterator

import polars as pl

from papers.data_center.judge import judged, over
from papers.data_center.names import BACKGROUND, BEHIND, HOT, HOT_FILES, PLAIN, SITE, alpha, shared
from papers.data_center.samples import (
    average,
    difference,
    interval,
    percent_gain,
    ratio,
    sample,
    shown,
)
from weir.claims import Claim, Found
from weir.labels import number
from weir.statistics import Interval

Gains = dict[tuple[str, str], Interval]
#: What a largest gain of many is: more than the gain of that cell would be if measured again.
LARGEST = "the largest of {n} cells, which chance makes larger"
BROWSING = "browsing"


def gains(table: pl.DataFrame | None, setting: str = HOT_FILES) -> Gains:
    """Gain of the second site from hot files on tmpfs, in % of its throughput, by site and background.

    Args:
        table: of `results.served`.
        setting: how much memory the hot files have.
    """
    found = {}
    for variant in _variants(table):
        of = shared(variant)
        if of.placement != HOT or of.setting != setting:
            continue
        pair = (sample(table, "per_s", variant=one, **{"class": SITE}) for one in (variant, _plain(variant)))
        gain = percent_gain(ratio(*pair))
        if gain is not None:
            found[(of.site, of.background)] = gain
    return found


def settings(table: pl.DataFrame | None) -> list[str]:
    """How much memory the hot files of the variants have."""
    found = {of.setting for of in map(shared, _variants(table)) if of.placement == HOT}
    return sorted(found, key=lambda setting: int(setting.split()[0]))


def _variants(table: pl.DataFrame | None) -> list[str]:
    return [] if table is None else sorted(table["variant"].unique())


def _plain(hot: str) -> str:
    """The variant beside one with hot files."""
    of = shared(hot)
    return "-".join(part for part in (_name(of.site, of.background), PLAIN) if part)


def _name(site: str, background: str) -> str:
    if (site, background) == (SITE, BACKGROUND):
        return ""
    return f"{site}-behind-{background}" if background else site


def static(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F11, static half."""
    found = {setting: gains(table, setting) for setting in settings(table)}
    yield from over("V-F11 static", {setting: _most(of) for setting, of in found.items()})
    yield from over("V-F11 static growth", {setting: _growth(of) for setting, of in found.items()})


def ramfs(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-4 ramfs: hits of the site most of whose requests are for hot files, by its background."""
    found = {setting: _sustained(table, setting) for setting in settings(table)}
    yield from over("V-4 ramfs", found)


def _sustained(table: pl.DataFrame | None, setting: str) -> Found | None:
    hot: dict[str, list[tuple[str, str]]] = {}
    shares: dict[str, float] = {}
    for variant in _variants(table):
        of = shared(variant)
        share = sample(table, "hot_pct", variant=variant, **{"class": SITE})
        if of.placement == HOT and of.setting == setting and of.background and share is not None:
            hot.setdefault(of.site, []).append((of.background, variant))
            shares[of.site] = max(share.mean, shares.get(of.site, 0.0))
    if not hot:
        return None
    site = max(sorted(shares), key=lambda name: shares[name])
    behind = sorted(hot[site])
    if len(behind) < 2:
        return None
    ends = [sample(table, "quick_pct", variant=behind[at][1], **{"class": SITE}) for at in (-1, 0)]
    words = [
        f"{number(one.mean)} % behind {behind[at][0]}"
        for at, one in zip((-1, 0), ends, strict=True)
        if one is not None
    ]
    note = f"{site}, {number(shares[site])} % of whose requests are for hot files: hits {' and '.join(words)}"
    return Found(ratio(*ends), note)


def tables(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F11, dynamic half, V-F12 and V-F13."""
    found = gains(table)
    browsing = _of(found, BROWSING)
    yield from _behind("V-F11 browsing", browsing)
    growth = _growth(browsing)
    if growth is not None:
        yield from judged("V-F11 browsing growth", growth.ours, growth.note)
    for mix in ("shopping", "ordering"):
        yield from _less(f"V-F12 {mix}", browsing, _of(found, mix))
    for site in ("rubis", "rubbos"):
        yield from _behind(f"V-F13 {site}", _of(found, site), below=browsing)


def network(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F14."""
    found = {setting: by_alpha(table, setting) for setting in settings(table)}
    named = {
        setting: {(f"alpha {value}", ""): one for value, one in of.items()} for setting, of in found.items()
    }
    yield from over("V-F14", {setting: _most(of) for setting, of in named.items()})
    falls = {
        setting: Found(difference(of[max(of)], of[min(of)]), _words(named[setting]))
        for setting, of in found.items()
        if len(of) > 1
    }
    yield from over("V-F14 falls", falls)


def by_alpha(table: pl.DataFrame | None, setting: str = HOT_FILES) -> dict[float, Interval]:
    """The gains of a table of `results.served` by the exponent of popularity, the most local first."""
    found = [(at, one) for (site, _), one in gains(table, setting).items() if (at := alpha(site)) is not None]
    return dict(sorted(found, key=lambda row: row[0], reverse=True))


def gains_table(table: pl.DataFrame | None) -> pl.DataFrame:
    """Throughput without and with hot files, and the share of requests for hot files."""
    rows = []
    for variant in _variants(table):
        of = shared(variant)
        if of.placement != HOT:
            continue
        names = (_plain(variant), variant)
        plain, hot = (sample(table, "per_s", variant=one, **{"class": SITE}) for one in names)
        gain = percent_gain(ratio(hot, plain))
        if gain is None:
            continue
        share = sample(table, "hot_pct", variant=variant, **{"class": SITE})
        rows.append(
            {
                "site": _cell((of.site, of.background)),
                "hot files": of.setting,
                "plain (1/s)": "" if plain is None else shown(interval(plain)),
                "hot (1/s)": "" if hot is None else shown(interval(hot)),
                "gain (%)": shown(gain),
                "requests for hot files (%)": "" if share is None else number(share.mean),
            }
        )
    return pl.DataFrame(rows)


def _of(found: Gains, site: str) -> Gains:
    return {key: one for key, one in found.items() if key[0] == site}


def _gained(of: Interval) -> bool:
    """Whether there is a gain at all."""
    return (of.estimate if of.low is None else of.low) > 0


def _most(found: Gains) -> Found | None:
    """The largest gain: the number is met or not, and the shape is that it is one at all."""
    if not found:
        return None
    where = max(found, key=lambda key: found[key].estimate)
    shape = _gained(found[where])
    note = f"{_cell(where)}; " + (LARGEST.format(n=len(found)) if len(found) > 1 else "the only cell")
    missed = "" if shape else "it may be none"
    return Found(found[where], f"{note}: {_words(found)}", shape=shape, missed=missed)


def _behind(id: str, found: Gains, below: Gains | None = None) -> Iterator[Claim]:
    """The gain behind the class that the paper names; the shape is that it is one, and less than another.

    Args:
        id: the claim's.
        found: the site's gains.
        below: those of a site that gains more.
    """
    by = {background: one for (_, background), one in found.items()}
    if BEHIND not in by:
        return
    ours, note = by[BEHIND], _words(found)
    shape = _gained(ours)
    missed = "" if shape else "it may be none"
    more = {background: one for (_, background), one in (below or {}).items()}.get(BEHIND)
    if more is not None:
        shape = shape and ours.estimate < more.estimate
        note += f"; {_words(below or {})}"
        missed = missed or ("" if shape else f"{BROWSING} gains no more")
    yield from judged(id, ours, note, shape=shape, missed=missed)


def _growth(found: Gains) -> Found | None:
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
    return Found(average(steps), "% gain, " + "; ".join(words)) if steps else None


def _less(id: str, browsing: Gains, other: Gains) -> Iterator[Claim]:
    """Gain of browsing over other mixes, with the largest common background."""
    common = sorted({one for _, one in browsing} & {one for _, one in other})
    if common:
        pair = [
            next(one for (_, behind), one in of.items() if behind == common[-1]) for of in (browsing, other)
        ]
        note = f"{shown(pair[0])} and {shown(pair[1])} % behind {common[-1]}"
        yield from judged(id, difference(*pair), note)


def _cell(key: tuple[str, str]) -> str:
    return f"{key[0]} behind {key[1]}" if key[1] else key[0]


def _words(found: Gains) -> str:
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
