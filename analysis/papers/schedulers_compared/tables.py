"""The table of the common study, and what must hold whatever the numbers are."""

from itertools import combinations

import polars as pl

from papers.schedulers_compared.results import (
    ASKED,
    MEANS,
    NAMES,
    TEXT_PER_S,
    at_load,
    breaks_at,
    by_capacity,
)
from weir.claims import text
from weir.labels import number
from weir.statistics import Interval

#: The loads at which costs are shown: what all admit, and what those without admission may bear.
LIGHT, HEAVY = 20, 60


def compared(rows: pl.DataFrame, loads: tuple[int, int] = (LIGHT, HEAVY)) -> pl.DataFrame:
    """One row per scheduler: what it promises, where it breaks, and what it costs the others at two loads."""
    light, heavy = sorted(rows[TEXT_PER_S].unique())
    lines = []
    for name in by_capacity(rows, light):
        line = {"scheduler": NAMES[name], "video is promised": MEANS[name]}
        for text_per_s in (light, heavy):
            line[f"breaks at (text {text_per_s}/s)"] = _streams(breaks_at(rows, name, text_per_s), rows)
        for asked in loads:
            late = at_load(rows, name, light, asked, "late_pct")
            line[f"late at {asked} (%)"] = text(late)
            line[f"text p95 at {asked} (ms)"] = text(at_load(rows, name, light, asked, "text_p95_ms"))
            line[f"bulk at {asked} (MB/s)"] = text(at_load(rows, name, light, asked, "bulk_mb_s"))
            line[f"busy at {asked} (%)"] = number(100 * at_load(rows, name, light, asked, "busy").estimate)
        lines.append(line)
    return pl.DataFrame(lines)


def agreement(one: pl.DataFrame, other: pl.DataFrame, names: tuple[str, str]) -> pl.DataFrame:
    """Capacity of each scheduler on two disks with the lighter text load, and its rank (1 is the largest)."""
    found = []
    for rows in (one, other):
        text_per_s = int(rows[TEXT_PER_S].min())  # type: ignore[arg-type]
        order = by_capacity(rows, text_per_s)
        found.append(
            {name: (_streams(breaks_at(rows, name, text_per_s), rows), order.index(name)) for name in order}
        )
    return pl.DataFrame(
        [
            {"scheduler": NAMES[name]}
            | {f"breaks at, {disk}": part[name][0] for disk, part in zip(names, found, strict=True)}
            | {f"rank, {disk}": part[name][1] + 1 for disk, part in zip(names, found, strict=True)}
            for name in found[0]
        ]
    )


def same_order(one: pl.DataFrame, other: pl.DataFrame) -> str:
    """Of the pairs of schedulers whose intervals are apart on both disks: how many are in the same order."""
    found = []
    for rows in (one, other):
        text_per_s = int(rows[TEXT_PER_S].min())  # type: ignore[arg-type]
        most = float(rows[ASKED].max()) + 1  # type: ignore[arg-type]
        parts = {name: breaks_at(rows, name, text_per_s) for name in rows["scheduler"].unique()}
        found.append({name: _ends(part, most) for name, part in parts.items()})
    same = apart = 0
    for first, second in combinations(sorted(found[0]), 2):
        signs = [_sign(ends[first], ends[second]) for ends in found]
        if all(signs):
            apart += 1
            same += signs[0] == signs[1]
    return f"{same} of {apart} pairs that are apart on both disks are in the same order"


def by_shares(rows: pl.DataFrame, asked: int) -> pl.DataFrame:
    """Capacity and cost of the schedulers that divide the disk, for each division (`variant`)."""
    light, heavy = sorted(rows[TEXT_PER_S].unique())
    lines = []
    for name in by_capacity(rows.filter(pl.col("variant") == rows["variant"].min()), light):
        for shares in sorted(rows["variant"].unique()):
            part = rows.filter(pl.col("variant") == shares)
            lines.append(
                {"scheduler": NAMES[name], "video-text-bulk (%)": shares}
                | {
                    f"breaks at (text {text_per_s}/s)": _streams(breaks_at(part, name, text_per_s), part)
                    for text_per_s in (light, heavy)
                }
                | {
                    f"text p95 at {asked} (ms)": text(at_load(part, name, light, asked, "text_p95_ms")),
                    f"bulk at {asked} (MB/s)": text(at_load(part, name, light, asked, "bulk_mb_s")),
                }
            )
    return pl.DataFrame(lines)


def _ends(found: Interval | None, most: float) -> tuple[float, float]:
    if found is None:
        return most, most
    low = found.estimate if found.low is None else found.low
    return low, found.estimate if found.high is None else found.high


def _sign(one: tuple[float, float], other: tuple[float, float]) -> int:
    return 1 if one[0] > other[1] else -1 if one[1] < other[0] else 0


def _streams(found: Interval | None, rows: pl.DataFrame) -> str:
    return f"over {rows[ASKED].max()}" if found is None else text(found)


def promises(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per scheduler with contracts: what became of the promised streams at all loads.

    Streams that are refused are served as best effort beside them.
    """
    kept = rows.filter(pl.col("promised").is_not_null())
    each = kept.group_by("scheduler", maintain_order=True).agg(
        pl.col("promised").max(), pl.len().alias("runs"), pl.col("promised_late").sum()
    )
    return each.sort("scheduler").select(
        pl.col("scheduler").replace_strict(NAMES),
        pl.col("promised").alias("streams let in"),
        "runs",
        pl.col("promised_late").alias("late requests of these, in all runs"),
    )


def checks(rows: pl.DataFrame) -> pl.DataFrame:
    """Checks of expected properties: name, finding, and whether each holds."""
    deltal = rows.filter(pl.col("scheduler") == "deltal")
    late = int(deltal["promised_late"].sum())
    busy = float(rows["busy"].max())  # type: ignore[arg-type]
    baseline = rows.filter(pl.col("scheduler") == "fcfs")
    kyber = rows.filter(pl.col("scheduler") == "linux-kyber").drop("scheduler")
    found = [
        (f"{NAMES['deltal']} is late for no stream that it let in", f"{late} late requests", late == 0),
        ("no disk is busy for more than all of the time", f"at most {number(busy)}", busy <= 1 + 1e-9),
        (
            "FCFS breaks within the loads that were run",
            f"{number(100 - float(baseline['late_pct'].min()))} % in time at best, "  # type: ignore[arg-type]
            f"{number(100 - float(baseline['late_pct'].max()))} % at worst",  # type: ignore[arg-type]
            float(baseline["late_pct"].max()) > 1,  # type: ignore[arg-type]
        ),
        (
            "Kyber with one request at the disk is FCFS",
            f"{kyber.height} runs",
            kyber.equals(baseline.drop("scheduler")),
        ),
    ]
    return pl.DataFrame(
        [
            {"must hold": what, "found": value, "holds": "yes" if holds else "NO"}
            for what, value, holds in found
        ]
    )
