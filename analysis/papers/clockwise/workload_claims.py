"""Claims of workloads: Figs. 3.1 to 3.4, Tables 3.1 to 3.4, section 3.2.2.

What needs the traces of CELLO and SNAKE is not judged: no copy of them is public.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from papers.clockwise import CLAIMS
from papers.clockwise.disk_claims import yes
from papers.traces import paper, series
from papers.traces.disks import Cello, spikes
from papers.traces.sprite import Sprite
from papers.traces.video import LARGE_KB, MotionJpeg, delays, early
from weir.claims import Claim, Found, over_seeds
from weir.labels import number

#: Disks of CELLO whose busiest hour of the trace is of the stand-in's day.
HOURS_OF_THE_DAY = (0, 5)


def films(found: MotionJpeg) -> Iterator[Claim]:
    """B-F3.1 to B-F3.3."""
    for film, seeds in zip(paper.FILMS, found.films, strict=True):
        for name, of in (("mean", np.mean), ("std", np.std)):
            yield CLAIMS.judged(f"B-F3.1 {film.short} {name}", over_seeds(of(s) / series.KB for s in seeds))
        shares = {f"{kb} KB": Found(early(seeds, kb), _beside(found, kb)) for kb in LARGE_KB}
        yield CLAIMS.over(f"B-F3.2 {film.short}", shares)
        spreads = [[delays(s, kb).std() for kb in paper.BLOCKS_KB] for s in seeds]
        steps = [max(after / before for before, after in pairwise(of)) for of in spreads]
        note = f"blocks of {', '.join(map(str, paper.BLOCKS_KB))} KB"
        yield CLAIMS.judged(f"B-F3.3 {film.short}", over_seeds(steps), note)


def _beside(found: MotionJpeg, block_kb: int) -> str:
    real = found.real_early(block_kb)
    words = f"buffers of {block_kb} KB"
    return words if real is None else f"{words}; Star Wars, real: {number(real)}"


def users(found: Sprite) -> Iterator[Claim]:
    """B-T3.1."""
    for window_s in paper.SPRITE_WINDOWS_S:
        for name, words in paper.SPRITE_RATES.items():
            yield CLAIMS.judged(f"B-T3.1 {words}, {window_s} s", found.kb_s(name, window_s))


def server(found: Cello) -> Iterator[Claim]:
    """B-T3.3, B-T3.4 and B-F3.4 of the stand-in for CELLO, which has days like June 1st, 1992."""
    yield CLAIMS.judged("B-T3.3 CELLO reads", over_seeds(found.read_shares))
    mean = found.hours.mean(axis=1)
    spiked = bool(spikes(mean).all())
    note = f"peak at half past five on all disks: {yes(spiked)}"
    yield CLAIMS.judged("B-F3.4 daily shape", found.work_share, note, shape=spiked)
    for disk in HOURS_OF_THE_DAY:
        yield CLAIMS.judged(f"B-T3.4 disk {disk}", over_seeds(found.maxima("hour")[disk]), "mean over days")


def workstation(found: Cello) -> Iterator[Claim]:
    """B-T3.2, B-T3.3 and B-3.2.2 of HPLAJW, of which a week is public; nothing where it is not at hand."""
    real = found.real
    if real is None:
        return
    machine = next(m for m in paper.MACHINES if m.name == "HPLAJW")
    same = (real.disks, real.bus) == (machine.disks, machine.bus)
    note = f"{', '.join(real.disks)}; {real.bus}"
    yield CLAIMS.judged("B-T3.2 HPLAJW", float(len(real.disks)), note, shape=same)
    missed = "one week of nine is public"
    yield CLAIMS.judged("B-T3.3 HPLAJW rate", real.io_per_s, missed=missed)
    yield CLAIMS.judged("B-T3.3 HPLAJW reads", real.read_share, missed=missed)
    yield CLAIMS.judged("B-3.2.2 HPLAJW queue", float(real.queues.mean()), missed=missed)
    yield CLAIMS.judged("B-3.2.2 HPLAJW queue std", float(real.queues.std()), missed=missed)
    yield CLAIMS.judged("B-3.2.2 HPLAJW latency", real.response_ms, missed=missed)
