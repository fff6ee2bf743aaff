"""Sensitivity of the claims to the request size, which is fitted, and to other open parameters."""

from collections.abc import Callable, Iterable, Iterator

import polars as pl

from papers.hds import claims, figures
from papers.hds.claims import Evidence, Shown
from weir.claims import REPRODUCED, Claim
from weir.labels import number

#: The size with which three readers get about what the paper's disk gave them.
FITTED_KIB = 416
VARIANT = "variant"
#: What stands behind a number at which its claim is not reproduced.
MISSED = "*"
#: Of the study of open parameters: the requests whose schedulers are judged.
REQUESTS = f"kib-{FITTED_KIB}-depth-1"


def setting(kib: int = FITTED_KIB) -> str:
    """The name of a size in the register."""
    return f"{kib} KiB"


def sizes_of(table: pl.DataFrame) -> list[int]:
    """The sizes of requests in a study that varies them, in KiB, sorted."""
    return sorted(int(name.removeprefix("kib-")) for name in table[VARIANT].unique())


def at(table: pl.DataFrame, kib: int = FITTED_KIB) -> pl.DataFrame:
    """The runs of a study with requests of one size."""
    return table.filter(pl.col(VARIANT) == f"kib-{kib}").drop(VARIANT)


#: By study that varies the size, what it shows.
JUDGED: dict[str, Callable[[pl.DataFrame], Iterator[Shown]]] = {
    "request-size": claims.greedy,
    "isolation": claims.isolation,
    "borrowing": claims.borrowing,
    "throughput": claims.throughput,
    "root": claims.root,
    "adaptive": claims.adaptive,
}


def add(evidence: Evidence, name: str, table: pl.DataFrame) -> None:
    """Adds what a study of `JUDGED` shows with requests of each size.

    Of Fig. 3 with requests of the fitted size the study `overload` decides, which varies what is asked for.
    """
    for kib in sizes_of(table):
        if (name, kib) != ("request-size", FITTED_KIB):
            evidence.add(setting(kib), JUDGED[name](at(table, kib)))


def add_others(evidence: Evidence, table: pl.DataFrame) -> None:
    """Adds what the study `sensitivity` shows of Fig. 4 with other roots, buckets and disk schedulers."""
    rows = table.filter(pl.col(VARIANT) == REQUESTS).drop(VARIANT)
    for scheduler in rows["scheduler"].unique(maintain_order=True):
        shown = claims.isolation(rows.filter(pl.col("scheduler") == scheduler))
        evidence.add(figures.setting(scheduler), shown)


def moved(made: Iterable[Claim], kib: Iterable[int]) -> pl.DataFrame:
    """One row per claim that is judged at several sizes: its id, the paper's number, and ours by size.

    Args:
        made: the claims of `Evidence.claims`.
        kib: the sizes.
    """
    kib = list(kib)
    rows = []
    for claim in made:
        ours = {one.setting: one for one in claim.settings}
        if len(names := [name for name in map(setting, kib) if name in ours]) > 1:
            row = {"claim": claim.id, "paper": "" if claim.paper is None else number(claim.paper)}
            rows.append(row | {name: _ours(ours[name].ours, ours[name].status) for name in names})
    return pl.DataFrame(rows)


def _ours(value: float | None, status: str) -> str:
    return ("none" if value is None else number(value)) + ("" if status == REPRODUCED else MISSED)
