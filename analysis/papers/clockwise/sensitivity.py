"""Sensitivity of compared numbers to the thesis's open parameters."""

from collections.abc import Iterator

import polars as pl

from papers.clockwise import streams, string
from papers.clockwise.admission import Admit, Curve, curve
from papers.clockwise.bus_claims import BLOCK_KB
from papers.clockwise.experiments import Bench
from weir.labels import number

#: KB/s of Wallace and Gromit by which Table 6.3's periods come out.
WG_OF_PERIODS = 289.0


def table(admit: Admit, cheetah: Bench) -> pl.DataFrame:
    """One row per choice: what is open, what is taken, and what the numbers are then.

    Of what a claim is judged at several settings of, the claim says it.
    """
    rows = [*_admission(admit), *_strings(cheetah)]
    return pl.DataFrame(rows, schema=["open", "choice", "claims", "then"], orient="row")


def _rotation(found: Curve) -> str:
    delta = [p.disks["all disks"].delta_l_ms for p in found.points]
    at_24 = number(delta[23]) if len(delta) >= 24 else "refused"
    return f"{number(delta[0] / 1e3)} s, {at_24} ms, {number(found.end_mb_s)} MB/s"


def _admission(admit: Admit) -> Iterator[tuple[str, str, str, str]]:
    claims = "B-F6.4: left edge; B-F6.13 0; B-F6.4: end"
    chosen = {
        "133 and 54 ms, 245 KB/s (here)": {},
        "Table 6.4's 134 and 55 ms": {"costs": "zone 0"},
        "intervals beyond the longest period (exact)": {"mode": "exact"},
        "WG at 289 KB/s, as its periods": {"rates_kb_s": streams.RATE_KB_S | {"WG": WG_OF_PERIODS}},
    }
    for choice, how in chosen.items():
        yield "costs, rates, definition", choice, claims, _rotation(curve(admit, "rotation", **how))
    orders = {
        "WG, RO, WG, ... (here)": streams.in_turn,
        "RO, WG, RO, ...": streams.red_october_first,
        "13 of WG, then RO": streams.all_of_wallace,
    }
    for choice, order in orders.items():
        ends = [
            number(curve(admit, name, order=order).end_mb_s)
            for name in ("rotation", "memory-optimized", "memory-optimized (large buffers)")
        ]
        yield "order of pairs", choice, "B-F6.4: ends", f"{', '.join(ends)} MB/s"


def _strings(cheetah: Bench) -> Iterator[tuple[str, str, str, str]]:
    alone = cheetah.partition(0, BLOCK_KB)
    for turnaround in (0.0, 0.4, string.TURNAROUND_MS, 1.2):
        runs = {n: string.serve(n, alone, 1, turnaround_ms=turnaround) for n in (2, 3)}
        here = " (here)" if turnaround == string.TURNAROUND_MS else ""
        rates = ", ".join(number(string.schedulable_mb_s(run.service_ms, n)) for n, run in runs.items())
        words = f"{number(runs[3].rate_mb_s)} MB/s; schedulable {rates} MB/s"
        yield (
            "change of hands on a SCSI bus",
            f"{turnaround:g} ms{here}",
            "B-F4.17 three, B-F8.1 rates",
            words,
        )
