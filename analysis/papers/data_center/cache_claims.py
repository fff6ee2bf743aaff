"""Claims of Figs. 9 and 10: memory of several servers, and sites that share one."""

from collections.abc import Iterator

import polars as pl

from papers.data_center.judge import judged, over
from papers.data_center.names import EXT4, GIVEN_ALPHA, NETWORKED, SITE, alpha
from papers.data_center.results import QUICK_BYTES, QUICK_MS
from papers.data_center.samples import ratio, sample
from weir.claims import Claim, Found
from weir.labels import number
from weir.statistics import Interval

#: The paper's text on Fig. 9, which cannot mean what it says.
CONTRADICTION = (
    "the text has the aggregate size of the popular content increase with alpha, but 1/i^alpha makes it "
    "smaller; read here as alpha that falls"
)
#: The class of which the text says that its misses increase; of others, it speaks of hits.
MISSES_AT = 2
#: The two readings.
FALLS, RISES = "alpha falls", "alpha rises"


def by_alpha(table: pl.DataFrame | None, filesystem: str, alpha_is: float) -> Interval | None:
    """Throughput of ext4 relative to a network file system, at an exponent."""
    if table is None:
        return None
    names = [name for name in table["variant"].unique() if alpha(name) == alpha_is]
    if not names:
        return None
    pair = (
        sample(table, "per_s", variant=names[0], filesystem=where, **{"class": SITE})
        for where in (EXT4, filesystem)
    )
    return ratio(*pair)


def locality(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F9, of a table of `results.served`."""
    measured = set() if table is None else {alpha(name) for name in table["variant"].unique()} - {None}
    furthest = {FALLS: min(measured, default=GIVEN_ALPHA), RISES: max(measured, default=GIVEN_ALPHA)}
    for name, filesystem in NETWORKED.items():
        given = by_alpha(table, filesystem, GIVEN_ALPHA)
        yield from judged(f"V-F9 {GIVEN_ALPHA} {name}", given)
        found = {
            reading: _larger(given, value, by_alpha(table, filesystem, value))
            for reading, value in furthest.items()
            if value != GIVEN_ALPHA
        }
        yield from over(f"V-F9 larger {name}", found)


def _larger(given: Interval | None, value: float, there: Interval | None) -> Found | None:
    if there is None:
        return None
    note = f"at alpha {value:.2f} {number(there.estimate)}"
    if given is not None:
        note += f", at {GIVEN_ALPHA} {number(given.estimate)}"
    shape = None if given is None else there.estimate < given.estimate
    return Found(there, f"{note}; {CONTRADICTION}", shape=shape)


def pollution(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F10, of a table of `results.hits`."""
    of = f"of the answers of at most {QUICK_BYTES // 1024} KiB, hits being those within {QUICK_MS:g} ms"
    for at in range(5):
        name = f"class{at}"
        metric = "slow_pct" if at == MISSES_AT else "quick_pct"
        both, one = (sample(table, metric, variant=name, sites=sites) for sites in (2, 1))
        hits = [sample(table, "quick_pct", variant=name, sites=sites) for sites in (1, 2)]
        words = " and ".join(number(found.mean) for found in hits if found is not None)
        note = f"{words} % hits with one site and with two, {of}"
        # Without a single miss of one site there would be nothing to divide by.
        pair = (one, both) if at == MISSES_AT else (both, one)
        yield from judged(f"V-F10 {name} accesses", ratio(*pair), note)
