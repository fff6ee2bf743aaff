"""Table 6.4: worst-case service times by zone, by `weir disks times`."""

import json
from collections.abc import Iterator
from itertools import pairwise

import polars as pl

from papers.clockwise import CLAIMS, source
from papers.clockwise.disk_claims import yes
from weir.binary_cache import BinaryCache
from weir.claims import Claim
from weir.labels import number

PROFILE = "quantum-atlas-ii"


def measured_ms(binary: BinaryCache) -> dict[int, list[float]]:
    """95th percentile of reads one behind the other and the longest seek, in ms: by block, then by zone."""
    sizes = ",".join(map(str, source.WORST_CASE_MS))
    report = json.loads(binary.output("disks", "times", PROFILE, "--kib", sizes, "--sequential", "--json"))
    found: dict[int, list[float]] = {kb: [] for kb in source.WORST_CASE_MS}
    for row in sorted(report["times"], key=lambda row: row["zone"]):
        found[row["kib"]].append(float(row["p95_and_longest_seek_ms"]))
    return found


def table(found: dict[int, list[float]]) -> pl.DataFrame:
    """Ours beside the thesis's."""
    rows = [
        (str(zone), *(f"{number(found[kb][zone])} ({source.WORST_CASE_MS[kb][zone]})" for kb in found))
        for zone in range(len(source.ZONES))
    ]
    return pl.DataFrame(rows, schema=["zone", *(f"{kb} KB: ms (paper)" for kb in found)], orient="row")


def claims(found: dict[int, list[float]]) -> Iterator[Claim]:
    """B-T6.4."""
    for kb, printed in source.WORST_CASE_MS.items():
        off = [100 * (ours / paper - 1) for ours, paper in zip(found[kb], printed, strict=True)]
        # The table itself falls a little here and there, and has whole milliseconds.
        fall = 0.5 + max(0, *(a - b for a, b in pairwise(printed)))
        rises = all(b >= a - fall for a, b in pairwise(found[kb]))
        note = f"from {min(off):+.1f} to {max(off):+.1f} %; rises from zone to zone: {yes(rises)}"
        missed = (
            "the thesis's column has three steps (42, 43 and 50 ms), as if it were measured in whole tracks"
            if kb == 128
            else 'the percentile behind each cell is not in the thesis: "95 or higher"'
        )
        name = "1 MB" if kb == 1024 else f"{kb} KB"
        worst = max(abs(part) for part in off)
        yield CLAIMS.judged(f"B-T6.4 {name}", worst, note, shape=rises, missed=missed)
