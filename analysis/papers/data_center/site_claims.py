"""Claims of Table 1 and Figs. 5 to 8: network, disks and throughput of static and dynamic sites."""

import itertools
from collections.abc import Iterator

import polars as pl

from papers.data_center.judge import judged, over
from papers.data_center.names import (
    BUFFERS,
    CACHED,
    DIRECT,
    EXT4,
    MIXES,
    NETWORKED,
    SHOPPERS,
    SITE,
    TMPFS,
    buffers,
    mix_and_class,
)
from papers.data_center.pages import Tested
from papers.data_center.samples import average, interval, ratio, sample, shown
from weir.claims import Claim, Found
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
        if found.walk_p is not None:
            note += (
                f"; of the transitions chi-squared is {number(found.walk_chi2)} with {found.walk_freedom} "
                f"degrees of freedom, p {number(found.walk_p)}, and {found.impossible} are not in the table"
            )
        yield from judged(f"V-T1 {mix}", _exact(found.p), note)


def _exact(value: float) -> Interval:
    return Interval(value, None, None, 1, "none")


def classes_of(table: pl.DataFrame | None, filesystem: str) -> list[str]:
    """The classes that a file system was measured with, small ones first."""
    if table is None:
        return []
    return sorted(table.filter(pl.col("filesystem") == filesystem)["variant"].unique())


def static_traffic(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F5, static half, of a table of `results.traffic`."""
    yield from _furthest(table, "V-F5 static direct", DIRECT, 2)
    yield from _furthest(table, "V-F5 static cached", CACHED, 1)


def _furthest(table: pl.DataFrame | None, id: str, filesystem: str, expected: float) -> Iterator[Claim]:
    """Network traffic by what was served, of the class that is furthest from what is expected."""
    names = classes_of(table, filesystem)
    each = {name: sample(table, "per_served", variant=name, filesystem=filesystem) for name in names}
    there = {name: one for name, one in each.items() if one is not None}
    if there:
        worst = max(there, key=lambda name: abs(there[name].mean - expected))
        words = ", ".join(f"{name} {number(one.mean)}" for name, one in there.items())
        yield from judged(id, interval(there[worst]), f"{worst} of {words}")


def network_use(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F6 network use, of a table of `results.traffic` of the study on a network of the paper's speed."""
    names = classes_of(table, DIRECT)
    each = {name: sample(table, "network_mb_s", variant=name, filesystem=DIRECT) for name in names}
    there = {name: one for name, one in each.items() if one is not None}
    if there:
        most = max(there, key=lambda name: there[name].mean)
        words = ", ".join(f"{name} {number(one.mean)}" for name, one in there.items())
        yield from judged("V-F6 network use", interval(there[most]), f"{most} of {words}, with the warm-up")


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
    others = [one for one in whole[:4] if one is not None]
    most = max(others, key=lambda one: one.mean, default=None)
    yield from judged("V-F6 static class4", ratio(most, whole[4]), note)


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
    settings = sorted({buffers(one) for one in _shown(table, EXT4)} | {BUFFERS})
    for name, filesystem in NETWORKED.items():
        found = {setting: _growth(table, filesystem, setting) for setting in settings}
        yield from over(f"V-F5 dynamic {name}", found)
    yield from over("V-F5 dynamic local", {setting: _beside_local(table, setting) for setting in settings})
    here = {mix_and_class(one)[1]: one for one in _shown(table, EXT4, BUFFERS)}
    common = sorted(set(here) & set(classes_of(static, EXT4)))
    if common:
        dynamic = sample(table, "read_mb_s", variant=here[common[-1]], filesystem=EXT4)
        other = sample(static, "read_mb_s", variant=common[-1], filesystem=EXT4)
        if dynamic is not None and other is not None:
            note = f"{common[-1]}: {number(dynamic.mean)} by {number(other.mean)} MB/s"
            yield from judged("V-F6 dynamic", ratio(dynamic, other), note)


def _shown(table: pl.DataFrame | None, filesystem: str, setting: str = "") -> list[str]:
    """The variants of the mix whose traffic is shown: of one setting of the buffers, or of all."""
    own = [one for one in classes_of(table, filesystem) if mix_and_class(one)[0] == SHOWN_MIX]
    return [one for one in own if not setting or buffers(one) == setting]


def _growth(table: pl.DataFrame | None, filesystem: str, setting: str) -> Found | None:
    """Traffic by page with the largest database, by that with the smallest."""
    own = _shown(table, filesystem, setting)
    if len(own) < 2:
        return None
    ends = [sample(table, "kib_each", variant=own[at], filesystem=filesystem) for at in (-1, 0)]
    return Found(ratio(*ends), f"{own[-1]} by {own[0]}")


def _beside_local(table: pl.DataFrame | None, setting: str) -> Found | None:
    """Traffic by page of the file system with a client cache, by that of ext4."""
    both = [one for one in _shown(table, EXT4, setting) if one in classes_of(table, CACHED)]
    if not both:
        return None
    pair = [sample(table, "kib_each", variant=both[-1], filesystem=where) for where in (CACHED, EXT4)]
    return Found(ratio(*pair), both[-1])


def dynamic_throughput(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F7 and V-F8, dynamic halves, of a table of `results.served`."""

    def wips(variant: str, filesystem: str):
        return sample(table, "per_s", variant=variant, filesystem=filesystem, **{"class": SHOPPERS})

    by_mix: dict[str, list[str]] = {mix: [] for mix in MIXES}
    for variant in (one for one in classes_of(table, EXT4) if buffers(one) == BUFFERS):
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
