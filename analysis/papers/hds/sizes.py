"""Sensitivity of the claims to the request size, which is fitted."""

from collections.abc import Callable, Iterator, Mapping

import polars as pl

from papers.hds import claims
from papers.hds.results import RATE, control, of_stream, rates
from weir.claims import Claim, is_met, over_seeds
from weir.labels import number

#: The size with which three readers get about what the paper's disk gave them.
FITTED_KIB = 416
VARIANT = "variant"
#: What stands behind a number that is outside its claim's band.
MISSED = "*"


def sizes_of(table: pl.DataFrame) -> list[int]:
    """The sizes of requests in a study that varies them, in KiB, sorted."""
    return sorted(int(name.removeprefix("kib-")) for name in table[VARIANT].unique())


def at(table: pl.DataFrame, kib: int = FITTED_KIB) -> pl.DataFrame:
    """The runs of a study with requests of one size."""
    return table.filter(pl.col(VARIANT) == f"kib-{kib}").drop(VARIANT)


def greedy(table: pl.DataFrame) -> Iterator[Claim]:
    """The numbers of H-F3 where both streams ask for all that they can get."""
    table = table.with_columns(
        pl.col("scheduler").map_elements(control, return_dtype=pl.String).alias("control"),
        pl.lit(0.0).alias("asked"),
    )
    got = rates(table, "control")
    spread = claims.variability(table, [0.0])["Linux alone"]
    yield claims.CLAIMS.judged("H-F3 a", over_seeds(100 * value for value in spread), "")
    equal = got.filter(pl.col("control") == "HDS, equal weights")
    yield claims.CLAIMS.judged("H-F3 b", over_seeds(of_stream(equal, "stream1", "share_pct")), "")
    shared = got.filter(pl.col("control") == "HDS, 70 % and 30 %")
    yield claims.CLAIMS.judged("H-F3 c share", over_seeds(of_stream(shared, "stream1", "share_pct")), "")
    for stream in (1, 2):
        ours = over_seeds(of_stream(shared, f"stream{stream}", RATE))
        yield claims.CLAIMS.judged(f"H-F3 c stream {stream}", ours, "")


#: By study, what is judged of it.
JUDGED: dict[str, Callable[[pl.DataFrame], Iterator[Claim]]] = {
    "request-size": greedy,
    "isolation": claims.isolation,
    "borrowing": claims.borrowing,
    "throughput": claims.throughput,
    "root": claims.root,
    "adaptive": claims.adaptive,
}


def moved(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row per claim: its id, the paper's number, and ours with requests of each size.

    Args:
        tables: the windows of the studies of `JUDGED`, by name.
    """
    rows: dict[str, dict[str, str]] = {}
    for name, judge in JUDGED.items():
        for kib in sizes_of(tables[name]):
            for claim in judge(at(tables[name], kib)):
                row = rows.setdefault(claim.id, {"claim": claim.id, "paper": _paper(claim)})
                row[f"{kib} KiB"] = _ours(claim)
    return pl.DataFrame(list(rows.values()))


def _paper(claim: Claim) -> str:
    return "" if claim.paper is None else number(claim.paper)


def _ours(claim: Claim) -> str:
    if claim.ours is None:
        return "none" + MISSED
    limits = claims.CLAIMS.read()[claim.id].get("limits")
    if limits is not None:
        met = limits[0] <= claim.ours <= limits[1]
    else:
        met = claim.paper is None or is_met(claim.ours, claim.paper)
    return number(claim.ours) + ("" if met else MISSED)
