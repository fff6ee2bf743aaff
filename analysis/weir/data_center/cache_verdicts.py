"""Verdicts on Figs. 9 and 10: memory of several servers, and sites that share one."""

from collections.abc import Iterator

import polars as pl

from weir.data_center.judge import judged
from weir.data_center.names import EXT4, NETWORKED, SITE, alpha
from weir.data_center.samples import quotient, ratio, sample
from weir.labels import number
from weir.statistics import Interval
from weir.traces.claims import Claim

#: The paper's text on Fig. 9, which cannot mean what it says.
CONTRADICTION = (
    "the text has the aggregate size of the popular content increase with alpha, but 1/i^alpha makes it smaller; "
    "read here as alpha that decreases"
)
LEAST, GIVEN, MOST = 0.25, 0.75, 0.9


def by_alpha(table: pl.DataFrame | None, filesystem: str, alpha_is: float) -> Interval | None:
    """What ext4 answers by what a network file system answers, at an exponent."""
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
    for at in range(5):
        name = f"class{at}"
        metric = "miss_pct" if at == 2 else "hit_pct"
        both, one = (sample(table, metric, variant=name, sites=sites) for sites in (2, 1))
        if both is None or one is None:
            continue
        hits = [sample(table, "hit_pct", variant=name, sites=sites) for sites in (1, 2)]
        words = " and ".join(number(of.mean) for of in hits if of is not None)
        note = f"by bytes, {words} % of hits with one site and with two"
        yield from judged(f"V-F10 {name}", ratio(both, one), note)
