"""The PCI bus: what a burst costs, and what several disks get of it (4.1.5, 4.3.6, 7.2.4).

Every card has a FIFO between its SCSI bus and PCI. SCSI fills (or empties) it at the link's rate; whenever a
burst is ready the card asks for PCI, which serves one burst at a time, first come first served. A FIFO is
emptied while it is filled, for PCI is the faster one: its space is free again when a burst begins.
"""

import heapq

import numpy as np

from papers.clockwise.source import KB, MB

CLOCK_HZ = 33e6
WORD_BYTES = 4
#: Clock cycles until a device is selected.
SELECT_CYCLES = {"fast": 1, "medium": 2, "slow": 3, "subtractive": 4}
#: What a burst costs beside its bytes, in ns: memory is read (disk write) after 383, from 64 bytes in 870 and
#: 512 in 4,260; it is written (disk read) after what is left of 570 (NCR53c810), 560 (OPPO; 64 bytes each)
#: and 3,920 (NCR53c875, 512 bytes). 4.3.6, 4.3.7, 4.4.
BYTE_NS = (4_260 - 870) / (512 - 64)
READ_SETUP_NS = 870 - 64 * BYTE_NS
WRITE_SETUP_NS = {"ncr810": 570 - 64 * BYTE_NS, "oppo": 560 - 64 * BYTE_NS, "ncr875": 3_920 - 512 * BYTE_NS}
#: 4.3.6: 64 bytes that are not aligned to a cache line are read from memory in 1.8 us.
UNALIGNED_READ_NS = 1_800
FIFO_BYTES = {"ncr810": 64, "ncr875": 512}
#: 4.1.2: Fast SCSI-2 takes 50 us a sector.
LINK_BYTES_NS = 512 / 50_000
#: "Only a few bytes" in a transaction (4.3.6), before bursts are enabled: the thesis does not say how many.
#: Requests are aligned to the 8 bytes of a memory word.
WORD_BURSTS_BYTES = (4, 8, 16)
#: 4.3.6: 64 bytes that are read from SDRAM.
SDRAM_64_NS = 840
#: How far the time in which a link fills a burst goes up and down, as a share: disks are not in step. Ours.
JITTER = 0.2
#: Bursts of each card that are followed.
BURSTS = 4_000


def burst_mb_s(words: np.ndarray, select: str) -> np.ndarray:
    """Bandwidth of bursts of so many words, in MB/s: a cycle for each, those to select, and an idle one."""
    words = np.asarray(words, dtype=float)
    cycles = SELECT_CYCLES[select] + words + 1
    return WORD_BYTES * words / cycles * CLOCK_HZ / MB


def read_ns(size_bytes: float) -> float:
    """Time of a burst that reads memory (for a disk that is written)."""
    return READ_SETUP_NS + BYTE_NS * size_bytes


def write_ns(size_bytes: float, card: str) -> float:
    """Time of a burst of a card that writes memory (for a disk that is read)."""
    return WRITE_SETUP_NS[card] + BYTE_NS * size_bytes


def link_rates(
    cards: int, burst_bytes: int, fifo_bytes: int, burst_ns: float, seed: int, bursts: int = BURSTS
) -> np.ndarray:
    """Bytes per ns that each card moves while all of them go on without a pause.

    Args:
        cards: how many.
        burst_bytes: what a burst moves.
        fifo_bytes: what a card holds; at least a burst.
        burst_ns: what a burst takes on PCI.
        seed: of where the cards begin, and of the jitter.
        bursts: of each card.
    """
    rng = np.random.default_rng(seed)
    fill = burst_bytes / LINK_BYTES_NS * rng.uniform(1 - JITTER, 1 + JITTER, (cards, bursts))
    depth = max(fifo_bytes // burst_bytes, 1)
    begun = np.zeros((cards, bursts))
    # By card: when the burst that it asks for is ready. A heap serves the earliest.
    asking = [(rng.uniform(0, fill[card, 0]) + fill[card, 0], card, 0) for card in range(cards)]
    heapq.heapify(asking)
    free = 0.0
    while asking:
        ready, card, burst = heapq.heappop(asking)
        start = max(free, ready)
        begun[card, burst] = start
        free = start + burst_ns
        if burst + 1 < bursts:
            # The next one fills behind it, once there is room for it.
            room = begun[card, burst + 1 - depth] if burst + 1 >= depth else 0.0
            heapq.heappush(asking, (max(ready, room) + fill[card, burst + 1], card, burst + 1))
    # All are busy until the first has done its last.
    end = begun[:, -1].min()
    return (begun < end).sum(axis=1) * burst_bytes / end


def delayed_ms(block_kb: float, alone: float, together: float) -> float:
    """Added time of a block at one link rate over another, in bytes per ns."""
    return max(block_kb * KB * (1 / together - 1 / alone) / 1e6, 0.0)


def words(size_bytes: int) -> str:
    """The name of transactions of a few bytes, as in the register."""
    return f"{size_bytes} bytes a transaction"


def modes(operation: str) -> dict[str, tuple[int, float]]:
    """Bytes of a burst and its time with NCR53c810 cards: without PCI bursts and with (Figs. 4.13, 4.14)."""
    if operation == "read":
        few = {words(size): (size, write_ns(size, "ncr810")) for size in WORD_BURSTS_BYTES}
        return few | {"with bursts": (64, write_ns(64, "ncr810"))}
    few = {words(size): (size, read_ns(size)) for size in WORD_BURSTS_BYTES}
    return few | {
        "with bursts": (64, float(UNALIGNED_READ_NS)),
        "with bursts, aligned": (64, read_ns(64)),
    }
