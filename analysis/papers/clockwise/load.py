"""The load of June 1st, 1992: Tables 6.5 and 7.1."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from papers.clockwise import CLAIMS, source
from papers.traces import paper
from papers.traces.disks import DAY_S, Cello
from weir.binary_cache import BinaryCache
from weir.claims import Claim, over_seeds, text
from weir.labels import number

WORKLOAD = "cello-1992-06-01"
SEEDS = range(1, 11)


def per_second(requests: pl.LazyFrame) -> pl.LazyFrame:
    """Requests of each disk (file) in each second of the 1,300 that Table 7.1 is about."""
    second = (pl.col("intended_ns") // 1_000_000_000).alias("second")
    # 16:48:00 to 17:09:40.
    inside = pl.col("second").is_between(60_480, 61_779)
    return (
        requests.group_by("file", second, maintain_order=True).agg(pl.len().alias("requests")).filter(inside)
    )


@dataclass(frozen=True)
class Slice:
    """Requests by seed, disk and second."""

    seconds: np.ndarray

    @classmethod
    def load(cls, binary: BinaryCache) -> "Slice":
        """Makes the days, or reads them from the cache."""
        days = binary.each(lambda seed: binary.stream(WORKLOAD, seed, DAY_S, per_second), SEEDS)
        seconds = np.zeros((len(days), len(source.SLICE_REQUESTS), source.SLICE_S), dtype=np.int64)
        for day, found in enumerate(days):
            file, second, requests = (found[name].to_numpy() for name in ("file", "second", "requests"))
            seconds[day, file, second - source.SLICE_FROM_S] = requests
        return cls(seconds)

    def table(self) -> pl.DataFrame:
        """Table 7.1."""
        rows = []
        for disk, (requests, peak) in enumerate(zip(source.SLICE_REQUESTS, source.SLICE_PEAKS, strict=True)):
            own = self.seconds[:, disk]
            rows.append(
                (
                    str(disk),
                    f"{requests:,}",
                    text(over_seeds(own.sum(axis=1))),
                    str(peak),
                    text(over_seeds(own.max(axis=1))),
                )
            )
        names = ("disk", "paper: requests", "ours", "paper: busiest second", "ours: busiest second")
        return pl.DataFrame(rows, schema=names, orient="row")

    def claims(self) -> Iterator[Claim]:
        """B-T7.1."""
        disks = list(source.SLICE_DISKS)
        held = "the specification is held to it"
        for name, ours, printed in (
            ("requests", self.seconds.sum(axis=2), source.SLICE_REQUESTS),
            ("peaks", self.seconds.max(axis=2), source.SLICE_PEAKS),
        ):
            wanted = np.array(printed)[disks]
            off = 100 * np.abs(ours.mean(axis=0)[disks] / wanted - 1)
            others = number(np.delete(ours.mean(axis=0), disks).sum())
            note = (
                f"by disk {', '.join(number(v) for v in off)} %, means of {len(SEEDS)} days; disks 1, 3 and "
                f"4 have {others}; {held}"
            )
            yield CLAIMS.judged(f"B-T7.1 {name}", float(off.max()), note)


def day_table(cello: Cello) -> pl.DataFrame:
    """Table 6.5."""
    rows = []
    for disk, (requests, peak) in enumerate(zip(paper.DAY_REQUESTS, source.DAY_PEAKS, strict=True)):
        own = cello.minutes[disk]
        rows.append(
            (
                str(disk),
                f"{requests:,}",
                text(over_seeds(own.sum(axis=1))),
                f"{peak:,}",
                text(over_seeds(own.max(axis=1))),
            )
        )
    names = ("disk", "paper: requests", "ours", "paper: busiest minute", "ours: busiest minute")
    return pl.DataFrame(rows, schema=names, orient="row")


def day_claims(cello: Cello) -> Iterator[Claim]:
    """B-T6.5."""
    totals = cello.minutes.sum(axis=2)
    same = bool((totals == np.array(paper.DAY_REQUESTS)[:, None]).all())
    note = f"each disk's as printed on {totals.shape[1]} days: {'yes' if same else 'no'}"
    yield CLAIMS.judged("B-T6.5 requests", over_seeds(totals.sum(axis=0)), note, shape=same)
    off = 100 * np.abs(cello.minutes.max(axis=2).mean(axis=1) / np.array(source.DAY_PEAKS) - 1)
    note = f"by disk {', '.join(number(v) for v in off)} %, means"
    yield CLAIMS.judged("B-T6.5 peaks", float(off.max()), note)
