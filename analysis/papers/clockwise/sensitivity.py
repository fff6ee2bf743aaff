"""Sensitivity of compared numbers to the thesis's open parameters."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from papers.clockwise import conflicts, pci, streams, string
from papers.clockwise.admission import Admit, Curve, curve
from papers.clockwise.bus_claims import BLOCK_KB, SEEDS
from papers.clockwise.experiments import Bench, sectors_of
from weir.labels import number

#: KB/s of Wallace and Gromit by which Table 6.3's periods come out.
WG_OF_PERIODS = 289.0


def table(admit: Admit, bench: Bench, cheetah: Bench) -> pl.DataFrame:
    """One row per choice: what is open, what is taken, and what the numbers are then."""
    rows = [*_admission(admit), *_cards(bench), *_strings(cheetah), *_phases()]
    return pl.DataFrame(rows, schema=["open", "choice", "claims", "then"], orient="row")


def _rotation(found: Curve) -> str:
    delta = [p.disks["all disks"].delta_l_ms for p in found.points]
    at_24 = number(delta[23]) if len(delta) >= 24 else "refused"
    return f"{number(delta[0] / 1e3)} s, {at_24} ms, {number(found.end_mb_s)} MB/s"


def _admission(admit: Admit) -> Iterator[tuple[str, str, str, str]]:
    claims = "B-F6.4: left edge, 24 pairs, end"
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


def _cards(bench: Bench) -> Iterator[tuple[str, str, str, str]]:
    fifo = pci.FIFO_BYTES["ncr810"]
    for size in (4, 8, 16):
        ups = []
        for write in (False, True):
            alone = float(bench.raw(0, sectors_of(BLOCK_KB), write=write).mean())
            ns = pci.read_ns(size) if write else pci.write_ns(size, "ncr810")
            one, four = (pci.link_rates(n, size, fifo, ns, 0).mean() for n in (1, 4))
            ups.append(4 * alone / (alone + pci.delayed_ms(BLOCK_KB, one, four)))
        here = " (here)" if size == pci.WORD_BURST_BYTES else ""
        words = f"read {number(ups[0])}, write {number(ups[1])} times"
        yield "PCI transactions before bursts", f"{size} bytes{here}", "B-F4.13 read, write", words


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


def _phases() -> Iterator[tuple[str, str, str, str]]:
    claims = "B-F4.18: 9 to 10, 10 to 11 disks"
    means = [conflicts.over_phases(n, "3", SEEDS).mean() for n in (9, 10, 11)]
    step = [conflicts.in_step(n, "3") for n in (9, 10, 11)]
    for choice, values in (("at random (here)", means), ("all cards in step", step)):
        growth = np.array(values[1:]) / np.array(values[:-1])
        yield "phases of cards on PCI", choice, claims, f"{number(growth[0])}, {number(growth[1])} times"
