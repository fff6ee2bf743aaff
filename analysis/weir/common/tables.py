"""The table of the common study, and what must hold whatever the numbers are."""

import polars as pl

from weir.common.results import ASKED, MEANS, NAMES, TEXT_PER_S, at_load, breaks_at, by_capacity
from weir.labels import number
from weir.statistics import Interval
from weir.traces.claims import text

#: The loads at which costs are shown: what all admit, and what those without admission may bear.
LIGHT, HEAVY = 20, 60


def compared(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per scheduler: what it promises, where it breaks, and what it costs the others."""
    light, heavy = sorted(rows[TEXT_PER_S].unique())
    lines = []
    for name in by_capacity(rows, light):
        line = {"scheduler": NAMES[name], "video is promised": MEANS[name]}
        for text_per_s in (light, heavy):
            line[f"breaks at (text {text_per_s}/s)"] = _streams(breaks_at(rows, name, text_per_s), rows)
        for asked in (LIGHT, HEAVY):
            late = at_load(rows, name, light, asked, "late_pct")
            line[f"late at {asked} (%)"] = text(late)
            line[f"text p95 at {asked} (ms)"] = text(at_load(rows, name, light, asked, "text_p95_ms"))
            line[f"bulk at {asked} (MB/s)"] = text(at_load(rows, name, light, asked, "bulk_mb_s"))
        lines.append(line)
    return pl.DataFrame(lines)


def _streams(found: Interval | None, rows: pl.DataFrame) -> str:
    return f"over {rows[ASKED].max()}" if found is None else text(found)


def promises(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per scheduler with contracts: what became of the promised streams at all loads, with refused streams
    served as best effort beside them."""
    kept = rows.filter(pl.col("promised").is_not_null())
    each = kept.group_by("scheduler").agg(
        pl.col("promised").max(), pl.len().alias("runs"), pl.col("promised_late").sum()
    )
    return each.sort("scheduler").select(
        pl.col("scheduler").replace_strict(NAMES),
        pl.col("promised").alias("streams let in"),
        "runs",
        pl.col("promised_late").alias("late requests of these, in all runs"),
    )


def checks(rows: pl.DataFrame) -> pl.DataFrame:
    """What must hold: each with what was found, and whether it does."""
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
        [{"must hold": what, "found": value, "holds": "yes" if holds else "NO"} for what, value, holds in found]
    )
