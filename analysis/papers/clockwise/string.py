"""Disks that share a SCSI bus (4.3.7, 7.2.5, 8.1; Figs. 4.17, 7.10, 8.1).

A disk alone passes on what it reads as it comes. With others on its bus it moves 170 KB at a time, a sixth of
a block: it asks for the bus when so much is in its buffer, the bus serves one burst at a time, first come
first served, and a block is done when its last burst is. With three disks at most one burst waits for each,
so their buffers of three bursts never fill, and no revolution is lost.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from papers.clockwise.conflicts import attached

#: Ultra-Wide SCSI (4.1.2).
BUS_MB_S = 38.1
#: Bursts of a block of 1 MB: 170 KB each (7.2.5).
BURSTS = 6
#: Between two bursts the bus changes hands: fitted to the 32 MB/s that three disks on a bus come to (4.3.7).
TURNAROUND_MS = 0.8
#: What memory takes and gives, in MB/s, with all cards at work: the greatest rates of Fig. 4.17. PCI itself
#: would move 124.2 and 114.6.
MEMORY_MB_S = {"read": 100.0, "write": 88.0}
#: Blocks of each disk that are left out at the start, until the disks are in their places beside each other.
SETTLING = 20


@dataclass(frozen=True)
class Served:
    """Results of a bus.

    Attributes:
        service_ms: by disk and block, from when the disk began to when its last burst was done.
        rate_mb_s: of all disks together.
        busy: share of the time in which the bus moved data.
    """

    service_ms: np.ndarray
    rate_mb_s: float
    busy: float


def serve(
    disks: int, alone_ms: np.ndarray, seed: int, blocks: int = 300, turnaround_ms: float = TURNAROUND_MS
) -> Served:
    """Blocks of 1 MB back to back on each disk of a bus.

    Args:
        disks: on the bus.
        alone_ms: what blocks take on a disk that is alone; drawn from at random.
        seed: of the draws.
        blocks: of each disk, after those that are left out.
        turnaround_ms: between two bursts.
    """
    rng = np.random.default_rng(seed)
    reading = rng.choice(np.asarray(alone_ms, dtype=float), (disks, blocks + SETTLING))
    if disks == 1:
        shown = reading[:, SETTLING:]
        rate = 1e3 / shown.mean()
        return Served(shown, rate, rate / BUS_MB_S)
    done = _done(reading, rng.uniform(0, reading.mean(), disks), turnaround_ms)
    service = np.diff(done, axis=1)[:, SETTLING:]
    # While all of them are at work.
    begin, end = done[:, SETTLING].max(), done[:, -1].min()
    inside = ((done > begin) & (done <= end)).sum()
    rate = inside / (end - begin) * 1e3
    return Served(service, rate, rate / BUS_MB_S)


def _done(reading: np.ndarray, started: np.ndarray, turnaround_ms: float) -> np.ndarray:
    """When each block is done, by disk; first when the disk begins."""
    disks, blocks = reading.shape
    burst_ms = 1e3 / BURSTS / BUS_MB_S
    done = np.zeros((disks, blocks + 1))
    done[:, 0] = started
    asking = [(started[disk] + reading[disk, 0] / BURSTS, disk, 0) for disk in range(disks)]
    heapq.heapify(asking)
    free = 0.0
    while asking:
        ready, disk, burst = heapq.heappop(asking)
        start = max(ready, free)
        free = start + burst_ms + turnaround_ms
        block, of_block = divmod(burst, BURSTS)
        if of_block == BURSTS - 1:
            # The next block is asked for when this one is there; within a block reading goes on meanwhile.
            ready = done[disk, block + 1] = start + burst_ms
            if block + 1 == blocks:
                continue
        following = (burst + 1) // BURSTS
        heapq.heappush(asking, (ready + reading[disk, following] / BURSTS, disk, burst + 1))
    return done


def aggregate_mb_s(disks: int, layout: str, operation: str, by_string: dict[int, float]) -> float:
    """Rate of so many Cheetahs on four buses in MB/s: what their buses give, up to what memory does.

    Args:
        disks: 1 to 12.
        layout: `3` or `2+1`, as Fig. 4.17 has them.
        operation: "read" or "write".
        by_string: rate of a bus by its disks.
    """
    return min(sum(by_string[n] for n in attached(disks, layout)), MEMORY_MB_S[operation])


def schedulable_mb_s(service_ms: np.ndarray, disks: int, quantile: float = 0.9) -> float:
    """Rate that can be promised of blocks of 1 MB whose service times are taken at a quantile (8.1)."""
    return disks / float(np.quantile(service_ms, quantile)) * 1e3
