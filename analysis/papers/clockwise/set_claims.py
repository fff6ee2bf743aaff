"""Claims of what chapter 6 calculates: Tables 6.2, 6.3, Figs. 6.3 and 6.4, sections 6.4.2 and 7.3."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from papers.clockwise import CLAIMS, source
from papers.clockwise.admission import Admit, Curve, curve, regime_mb_s
from papers.clockwise.disk_claims import yes
from papers.clockwise.sets import FACTORS, SEEDS, Crosstalk
from papers.clockwise.streams import LAYOUTS, Task
from weir.claims import Claim
from weir.labels import number

LARGE = "memory-optimized (large buffers)"
#: Disks of each kind in layouts with a film on one disk.
DISKS_OF_KIND = {"RO disks": 2, "WG disk": 1}


def usd_set(admit: Admit, table: pl.DataFrame) -> Iterator[Claim]:
    """B-T6.2, B-F6.3."""
    tasks = [Task(f"tau{at}", *row) for at, row in enumerate(source.USD_TASKS_MS, start=1)]
    found = admit(tasks, "exact")
    shortfall = "none" if found.shortfall_ms is None else f"{number(found.shortfall_ms)} ms are missing"
    note = f"rejected: {yes(not found.admitted)}; {shortfall}"
    yield CLAIMS.judged("B-T6.2", found.utilisation, note, shape=not found.admitted)
    done = table["done_ms"].round(6).to_list()[: len(source.USD_DONE_MS)]
    late = table.filter((pl.col("stream") == "tau2") & (pl.col("asked_ms") == 250))["late_ms"].item()
    same = done == list(source.USD_DONE_MS)
    yield CLAIMS.judged(
        "B-F6.3", round(late, 6), f"requests are done at {', '.join(f'{d:g}' for d in done)} ms", shape=same
    )


def slack_stealing(lst: pl.DataFrame, delta_l: pl.DataFrame) -> Iterator[Claim]:
    """B-6.4.2."""
    kept = float(delta_l["late_ms"].max() or 0.0)
    note = (
        f"tau2 is done at {lst.filter(pl.col('stream') == 'tau2')['done_ms'].item():g} ms, due at 50; with "
        f"deltaL {kept:g} ms late"
    )
    yield CLAIMS.judged("B-6.4.2", round(float(lst["late_ms"].max() or 0.0), 6), note, shape=kept == 0)


def crosstalk(found: Crosstalk) -> Iterator[Claim]:
    """B-7.3."""
    beyond = [f for f in FACTORS if f > 1]
    total = {name: sum(sum(found.missed[name, f]) for f in beyond) for name in ("EDF", "LST", "deltaL")}
    behaved = sum(sum(found.missed[name, 1.0]) for name in total)
    note = (
        f"EDF {total['EDF']}, LST {total['LST']} in {len(SEEDS)} runs for each of {len(beyond)} factors; "
        "none at a factor "
        f"of 1: {yes(behaved == 0)}"
    )
    holds = behaved == 0 and total["EDF"] > 0 and total["LST"] > 0
    yield CLAIMS.judged("B-7.3", float(total["deltaL"]), note, shape=holds)


def periods_s() -> dict[str, list[float]]:
    """Table 6.3: periods by stream, by the bandwidth that it prints."""
    return {
        name: [kb / rate for kb in source.PERIOD_BLOCKS_KB] for name, (rate, _) in source.PERIODS_S.items()
    }


def periods() -> Iterator[Claim]:
    """B-T6.3."""
    ours = periods_s()
    off = [
        abs(value - printed)
        for name, values in ours.items()
        if name != "WG"
        for value, printed in zip(values, source.PERIODS_S[name][1], strict=True)
    ]
    yield CLAIMS.judged("B-T6.3", max(off), "RO, both RGB16 and CD")


def curves(admit: Admit, **how: str) -> dict[str, Curve]:
    """Fig. 6.4's curves, by layout; the random one is not in the figure."""
    return {name: curve(admit, name, **how) for name in LAYOUTS}


def delta_l(found: dict[str, Curve], admit: Admit) -> Iterator[Claim]:
    """B-F6.4, and which loads a random layout admits (B-F6.7 end)."""
    rotation, optimized, large = (found[name] for name in ("rotation", "memory-optimized", LARGE))
    falls = {
        name: all(
            later.delta_l_ms <= before.delta_l_ms + 1e-6
            for kind in one.kinds
            for (_, before), (_, later) in zip(one.of(kind), one.of(kind)[1:], strict=False)
        )
        for name, one in found.items()
    }
    falling = f"falls throughout: {yes(all(falls.values()))}"
    for name, one in (("rotation", rotation), ("memory", optimized), ("large", large)):
        own = {kind: one.of(kind)[0][1].delta_l_ms / 1e3 for kind in one.kinds}
        words = ", ".join(f"{kind} {number(value)}" for kind, value in own.items())
        yield CLAIMS.judged(
            f"B-F6.4 left {name}", own[one.kinds[0]], f"{words}; {falling}", shape=all(falls.values())
        )
    table = curve(admit, "rotation", costs="zone 0")
    yield CLAIMS.judged("B-F6.4 regime", regime_mb_s(rotation))
    exact = curve(admit, "rotation", mode="exact").points[-1].disks["all disks"].delta_l_ms
    last = rotation.points[-1].disks["all disks"].delta_l_ms
    note = (
        f"{len(rotation.points)} pairs with {number(last)} ms by the thesis's definition, {number(exact)} "
        "in truth; with "
        f"Table 6.4's costs {number(table.end_mb_s)} MB/s"
    )
    yield CLAIMS.judged("B-F6.4 end rotation", rotation.end_mb_s, note)
    note = f"{len(optimized.points)} pairs, of WG and RO in turn; the next of WG finds its disk full"
    yield CLAIMS.judged("B-F6.4 end memory", optimized.end_mb_s, note)
    ratios = list(_doubling(optimized, large))
    note = (
        f"{number(min(ratios))} to {number(max(ratios))} times; on the disk with WG videos keep their blocks"
    )
    yield CLAIMS.judged("B-F6.4 doubles", float(np.median(ratios)), note)
    higher = large.end_mb_s > optimized.end_mb_s
    note = f"{len(large.points)} pairs; more than with small buffers: {yes(higher)}"
    yield CLAIMS.judged("B-F6.4 end large", large.end_mb_s, note, shape=higher)
    random = found["random"]
    note = f"{number(random.end_mb_s)} MB/s against {number(rotation.end_mb_s)}"
    yield CLAIMS.judged("B-F6.7 end", random.end_mb_s / rotation.end_mb_s, note)


def _doubling(small: Curve, large: Curve) -> Iterator[float]:
    """DeltaL with large buffers by that with small ones, of each disk with streams, at each common load."""
    for before, after in zip(small.points, large.points, strict=False):
        for kind, disks in DISKS_OF_KIND.items():
            if before.disks[kind].utilisation:
                yield from [after.disks[kind].delta_l_ms / before.disks[kind].delta_l_ms] * disks
