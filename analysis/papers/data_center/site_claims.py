"""Claims of Table 1 and Figs. 5 to 8: network, disks and throughput of static and dynamic sites."""

import itertools
from collections.abc import Iterator

import polars as pl

from papers.data_center.judge import judged, shown
from papers.data_center.names import (
    CACHED,
    DIRECT,
    EXT4,
    MIXES,
    NETWORKED,
    SHOPPERS,
    SITE,
    TMPFS,
    mix_and_class,
)
from papers.data_center.pages import Tested
from papers.data_center.samples import average, interval, ratio, sample
from weir.claims import Claim
from weir.labels import number
from weir.statistics import Interval

#: The mix whose traffic and disk activity the paper shows.
SHOWN_MIX = MIXES[0]
FIGURES = dict(zip(MIXES, ("V-F7", "V-F8", "V-F8"), strict=True))


def mixes(tests: dict[str, Tested | None]) -> Iterator[Claim]:
    """V-T1, of a test of each mix."""
    for mix, found in tests.items():
        if found is None:
            continue
        name, off = found.most_off
        note = (
            f"{found.pages} pages; {name} is furthest off, by {off:+.2f} points; chi-squared "
            f"{number(found.chi2)} with {found.freedom} degrees of freedom, p {number(found.plain_p)} as of "
            "independent pages, which they are not: from client to client shares vary "
            f"{number(found.design_effect)} times as much"
        )
        yield from judged(f"V-T1 {mix}", _exact(found.p), note)
        if found.walk_p is not None:
            note = (
                f"chi-squared {number(found.walk_chi2)} with {found.walk_freedom} degrees of freedom; "
                f"{found.impossible} transitions that the table does not have; a session's end "
                "looks like a step to the home page"
            )
            shape = None if found.impossible == 0 else False
            yield from judged(f"V-T1 {mix} walk", _exact(found.walk_p), note, shape=shape)


def _exact(value: float) -> Interval:
    return Interval(value, None, None, 1, "none")


def classes_of(table: pl.DataFrame | None, filesystem: str) -> list[str]:
    """The classes that a file system was measured with, small ones first."""
    if table is None:
        return []
    return sorted(table.filter(pl.col("filesystem") == filesystem)["variant"].unique())


def static_traffic(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F5, static half, and the rate of section 4.2, of a table of `results.traffic`."""
    names = classes_of(table, DIRECT)
    each = {name: sample(table, "per_served", variant=name, filesystem=DIRECT) for name in names}
    each = {name: one for name, one in each.items() if one is not None}
    if each:
        worst = max(each, key=lambda name: abs(each[name].mean - 2))
        words = ", ".join(f"{name} {number(one.mean)}" for name, one in each.items())
        yield from judged("V-F5 static direct", interval(each[worst]), f"{worst} of {words}")
    if len(names) > 1:
        ends = [sample(table, "kib_each", variant=names[at], filesystem=DIRECT) for at in (-1, 0)]
        yield from judged("V-F5 static growth", ratio(*ends), f"{names[-1]} by {names[0]}")
    own = classes_of(table, CACHED)
    if own:
        found = {name: sample(table, "per_served", variant=name, filesystem=CACHED) for name in own}
        last = found[own[-1]]
        words = ", ".join(f"{name} {number(one.mean)}" for name, one in found.items() if one is not None)
        yield from judged("V-F5 static cached", None if last is None else interval(last), words)
    if names:
        rates = [sample(table, "network_mb_s", variant=name, filesystem=DIRECT) for name in names]
        means = [one.mean for one in rates if one is not None]
        rate = rates[-1]
        largest = means[-1] == max(means) if len(means) > 1 else None
        words = ", ".join(number(mean) for mean in means)
        note = f"{names[-1]} of {words}, with the warm-up, on modelled disks and another network"
        found_rate = None if rate is None else interval(rate)
        yield from judged("V-F6 network rate", found_rate, note, is_comparable=False, shape=largest)


def static_activity(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F6, static half, of a table of `results.traffic`."""

    def rate(name: str):
        return sample(table, "read_mb_s", variant=name, filesystem=EXT4)

    whole = [rate(f"class{at}") for at in range(5)]
    words = ", ".join(f"class {at} {number(one.mean)}" for at, one in enumerate(whole) if one is not None)
    note = f"MB/s read: {words}"
    for at in range(3):
        yield from judged(f"V-F6 static class{at}", ratio(whole[at], whole[4]), note)
    yield from judged("V-F6 static class3", ratio(whole[2], whole[3]), note)
    yield from judged("V-F6 static class4", ratio(whole[3], whole[4]), note)


def static_throughput(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F7, static half, of a table of `results.served`."""
    for at in range(3):
        for name, filesystem in NETWORKED.items():
            local = {
                where: sample(table, "per_s", variant=f"class{at}", filesystem=where, **{"class": SITE})
                for where in (EXT4, TMPFS)
            }
            ours = sample(table, "per_s", variant=f"class{at}", filesystem=filesystem, **{"class": SITE})
            there = {where: one for where, one in local.items() if one is not None}
            if not there or ours is None:
                continue
            lesser = min(there, key=lambda where: there[where].mean)
            words = ", ".join(f"{where} {number(one.mean)}" for where, one in there.items())
            note = f"a second: {words}, {filesystem} {number(ours.mean)}"
            yield from judged(f"V-F7 static class{at} {name}", ratio(there[lesser], ours), note)


def dynamic_traffic(table: pl.DataFrame | None, static: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F5 and V-F6, dynamic halves, of tables of `results.traffic`."""
    for name, filesystem in NETWORKED.items():
        own = [one for one in classes_of(table, filesystem) if mix_and_class(one)[0] == SHOWN_MIX]
        if len(own) > 1:
            ends = [sample(table, "kib_each", variant=own[at], filesystem=filesystem) for at in (-1, 0)]
            yield from judged(f"V-F5 dynamic {name}", ratio(*ends), f"{own[-1]} by {own[0]}")
    both = [
        one
        for one in classes_of(table, EXT4)
        if mix_and_class(one)[0] == SHOWN_MIX and one in classes_of(table, CACHED)
    ]
    if both:
        pair = [sample(table, "kib_each", variant=both[-1], filesystem=where) for where in (CACHED, EXT4)]
        yield from judged("V-F5 dynamic local", ratio(*pair), both[-1])
    here = {
        mix_and_class(one)[1]: one for one in classes_of(table, EXT4) if mix_and_class(one)[0] == SHOWN_MIX
    }
    common = sorted(set(here) & set(classes_of(static, EXT4)))
    if common:
        dynamic = sample(table, "read_mb_s", variant=here[common[-1]], filesystem=EXT4)
        other = sample(static, "read_mb_s", variant=common[-1], filesystem=EXT4)
        if dynamic is not None and other is not None:
            note = f"{common[-1]}: {number(dynamic.mean)} by {number(other.mean)} MB/s"
            yield from judged("V-F6 dynamic", ratio(dynamic, other), note)


def dynamic_throughput(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F7 and V-F8, dynamic halves, of a table of `results.served`."""

    def wips(variant: str, filesystem: str):
        return sample(table, "per_s", variant=variant, filesystem=filesystem, **{"class": SHOPPERS})

    by_mix: dict[str, list[str]] = {mix: [] for mix in MIXES}
    for variant in classes_of(table, EXT4):
        by_mix.setdefault(mix_and_class(variant)[0], []).append(variant)
    for mix in MIXES:
        for name, filesystem in NETWORKED.items():
            found = {
                mix_and_class(one)[1]: ratio(wips(one, EXT4), wips(one, filesystem)) for one in by_mix[mix]
            }
            yield from judged(f"{FIGURES[mix]} {mix} {name}", _mean(found), _words(found))
    for above, below in itertools.pairwise(MIXES):
        classes = [mix_and_class(one)[1] for one in by_mix[above]]
        found = {
            size: ratio(wips(f"{above}-{size}", EXT4), wips(f"{below}-{size}", EXT4)) for size in classes
        }
        yield from judged(f"V-F8 {above} over {below}", _mean(found), _words(found))


def _mean(found: dict[str, Interval | None]) -> Interval | None:
    return average([one for one in found.values() if one is not None])


def _words(found: dict[str, Interval | None]) -> str:
    return ", ".join(f"{name} {shown(one)}" for name, one in found.items() if one is not None)
