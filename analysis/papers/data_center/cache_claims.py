"""Claims of Figs. 9 and 10: memory of several servers, and sites that share one."""

from collections.abc import Iterator

import polars as pl

from papers.data_center.judge import judged
from papers.data_center.names import EXT4, NETWORKED, SITE, alpha
from papers.data_center.results import QUICK_BYTES, QUICK_MS
from papers.data_center.samples import quotient, ratio, sample
from weir.claims import Claim
from weir.labels import number
from weir.statistics import Interval

#: The paper's text on Fig. 9, which cannot mean what it says.
CONTRADICTION = (
    "the text has the aggregate size of the popular content increase with alpha, but 1/i^alpha makes it "
    "smaller; read here as alpha that decreases"
)
#: The class of which the text says that its misses increase; of others, it speaks of hits.
MISSES_AT = 2
LEAST, GIVEN, MOST = 0.25, 0.75, 0.9


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
    for name, filesystem in NETWORKED.items():
        at = {value: by_alpha(table, filesystem, value) for value in (LEAST, GIVEN, MOST)}
        yield from judged(f"V-F9 {GIVEN} {name}", at[GIVEN], CONTRADICTION)
        yield from judged(f"V-F9 {LEAST} {name}", at[LEAST], CONTRADICTION)
        both = [number(one.estimate) for one in (at[MOST], at[LEAST]) if one is not None]
        yield from judged(f"V-F9 falls {name}", quotient(at[MOST], at[LEAST]), " by ".join(both))


def pollution(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-F10, of a table of `results.hits`."""
    yield from _hits(table, "", ("hit_pct", "miss_pct"), "of the bytes served")
    small = f"of the answers of at most {QUICK_BYTES // 1024} KiB, hits being those within {QUICK_MS:g} ms"
    yield from _hits(table, " accesses", ("quick_pct", "slow_pct"), small)


def _hits(table: pl.DataFrame | None, suffix: str, metrics: tuple[str, str], of: str) -> Iterator[Claim]:
    hit, miss = metrics
    for at in range(5):
        name = f"class{at}"
        both, one = (
            sample(table, miss if at == MISSES_AT else hit, variant=name, sites=sites) for sites in (2, 1)
        )
        hits = [sample(table, hit, variant=name, sites=sites) for sites in (1, 2)]
        words = " and ".join(number(found.mean) for found in hits if found is not None)
        note = f"{words} % hits with one site and with two, {of}"
        # Without a single miss of one site there would be nothing to divide by.
        pair = (one, both) if at == MISSES_AT else (both, one)
        yield from judged(f"V-F10 {name}{suffix}", ratio(*pair), note)
