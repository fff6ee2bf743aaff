"""Claims of buses, cards and memory: chapter 4 from Fig. 4.13 on, 7.2.4 to 7.4, 8.1, 5.2.4 and 6.5.3."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from papers.clockwise import CLAIMS, conflicts, memory, network, pci, source, string
from papers.clockwise.disk_claims import yes
from papers.clockwise.experiments import SIZES_KB, Bench, sectors_of
from weir.claims import Claim, over_seeds
from weir.labels import number

SEEDS = range(1, 11)
BLOCK_KB = 1024
#: Writing counts as slower than reading from here on.
APART = 0.98
#: What gives words of a memory in the text, and what fits into a burst of a card.
WORDS = np.arange(1, 129)


def bursts() -> Iterator[Claim]:
    """B-F4.4, B-F4.16, B-4.5."""
    rates = {name: pci.burst_mb_s(WORDS, name) for name in pci.SELECT_CYCLES}
    rises = all(bool((np.diff(rate) > 0).all()) for rate in rates.values())
    by_select = list(rates.values())
    ordered = all(bool((a > b).all()) for a, b in pairwise(by_select))
    lost = {name: 1 - rate[19] / pci.burst_mb_s(np.array([1e9]), name)[0] for name, rate in rates.items()}
    words = ", ".join(f"{name} {number(100 * part)}" for name, part in lost.items())
    note = f"20 words lose {words} %"
    limit = float(pci.burst_mb_s(np.array([1e9]), "fast")[0])
    yield CLAIMS.judged("B-F4.4", limit, note, shape=rises and ordered and min(lost.values()) > 0.05)
    # SDRAM: 64 bytes in 840 ns, and every further byte as with the other memory.
    sdram = 840 + (512 - 64) * pci.BYTE_NS
    yield CLAIMS.judged(
        "B-F4.16", sdram, "from 840 ns for 64 bytes and 7.57 ns a byte, measured on EDO memory"
    )
    off = [abs(network.bus_share_pct(size, ns) - printed) for _, size, ns, printed in source.BUS_SHARES]
    yield CLAIMS.judged("B-4.5", max(off), "with 2^20 bits to a Mb; with 10^6 all come out 5 % lower")


@dataclass(frozen=True)
class SpeedUps:
    """Throughput of several disks, each on its own SCSI bus.

    Attributes:
        alone_ms: what a disk takes for a block that has PCI to itself, by operation and size in KB.
        links: by operation and kind of burst, what the links of one to four disks move, in bytes per ns.
    """

    alone_ms: dict[str, dict[int, float]]
    links: dict[tuple[str, str], list[float]]

    @classmethod
    def of(cls, bench: Bench) -> "SpeedUps":
        """From what one disk takes."""
        alone: dict[str, dict[int, float]] = {}
        links = {}
        for operation in ("read", "write"):
            alone[operation] = {
                kb: float(bench.raw(0, sectors_of(kb), write=operation == "write").mean()) for kb in SIZES_KB
            }
            for mode, (size, ns) in pci.modes(operation).items():
                fifo = pci.FIFO_BYTES["ncr810"]
                links[operation, mode] = [
                    float(np.mean([pci.link_rates(n, size, fifo, ns, seed).mean() for seed in SEEDS[:3]]))
                    for n in range(1, 5)
                ]
        return cls(alone, links)

    def up(self, operation: str, mode: str, disks: int, block_kb: int = BLOCK_KB) -> float:
        """Speed-up over one disk."""
        links = self.links[operation, mode]
        alone = self.alone_ms[operation][block_kb]
        return disks * alone / (alone + pci.delayed_ms(block_kb, links[0], links[disks - 1]))


def speed_ups(found: SpeedUps) -> Iterator[Claim]:
    """B-F4.13, B-F4.14, B-F7.9."""
    bounded = all(
        found.up(*key, n, kb) <= n + 1e-6 for key in found.links for n in range(1, 5) for kb in SIZES_KB
    )
    for figure, mode in (("B-F4.13", "without bursts"), ("B-F4.14", "with bursts")):
        for operation in ("read", "write"):
            ups = [found.up(operation, mode, n) for n in range(1, 5)]
            note = f"1 to 4 disks: {', '.join(number(up) for up in ups)}; never more than n: {yes(bounded)}"
            if (figure, operation) == ("B-F4.13", "write"):
                note += f"; {pci.WORD_BURST_BYTES} bytes a transaction are assumed"
                bounded = bounded and ups[3] - ups[1] < 0.5
            yield CLAIMS.judged(f"{figure} {operation}", ups[3], note, shape=bounded)
    for name, disks in (("two", 2), ("three", 3)):
        ours = found.up("read", "with bursts", disks)
        yield CLAIMS.judged(f"B-F7.9 {name}", ours, "reads of 1 MB in zone 0 with bursts")


@dataclass(frozen=True)
class Strings:
    """Throughput of one to three Cheetahs on a bus, by seed."""

    runs: dict[int, list[string.Served]]

    @classmethod
    def of(cls, bench: Bench) -> "Strings":
        """From what a Cheetah takes that is alone."""
        alone = bench.partition(0, BLOCK_KB)
        return cls({n: [string.serve(n, alone, seed) for seed in SEEDS] for n in (1, 2, 3)})

    def rate(self, disks: int) -> float:
        """Mean rate of a bus in MB/s."""
        return float(np.mean([run.rate_mb_s for run in self.runs[disks]]))

    def times(self, disks: int) -> np.ndarray:
        """All service times in ms."""
        return np.concatenate([run.service_ms.ravel() for run in self.runs[disks]])

    def aggregate(self, layout: str, operation: str) -> list[float]:
        """Fig. 4.17: MB/s of 1 to 12 disks."""
        rates = {n: self.rate(n) for n in self.runs}
        return [string.aggregate_mb_s(n, layout, operation, rates) for n in range(1, 13)]


def cheetahs(found: Strings) -> Iterator[Claim]:
    """B-F4.17."""
    yield CLAIMS.judged("B-F4.17 one", over_seeds(r.rate_mb_s for r in found.runs[1]), "1 MB, outer zone")
    note = (
        f"two: {number(found.rate(2))} MB/s; the bus's turnaround of {string.TURNAROUND_MS} ms is fitted to "
        "it"
    )
    yield CLAIMS.judged("B-F4.17 three", over_seeds(r.rate_mb_s for r in found.runs[3]), note)
    lines = {(a, b): found.aggregate(a, b) for a in ("3", "2+1") for b in ("read", "write")}
    fitted = "memory's limit is the curve's own: by construction"
    read = lines["3", "read"]
    yield CLAIMS.judged("B-F4.17 read", read[11], fitted, shape=read[11] - read[9] < 6)
    yield CLAIMS.judged("B-F4.17 write", lines["3", "write"][11], fitted)
    eight = lines["2+1", "read"][7]
    note = f"writing {number(lines['2+1', 'write'][7])}, in the thesis 89"
    missed = "two of our disks on a bus come to 24.9 MB/s, the thesis's to 24"
    yield CLAIMS.judged("B-F4.17 eight", eight, note, missed=missed)
    gains = [a - b for a, b in zip(lines["2+1", "read"][:8], read[:8], strict=True)]
    yield CLAIMS.judged("B-F4.17 gain", max(gains), f"1 to 8 disks: {', '.join(number(g) for g in gains)}")
    apart = [r for r, w in zip(lines["2+1", "read"], lines["2+1", "write"], strict=True) if w < APART * r]
    missed = "memory is a hard limit here; in the machine cards slow each other down before they reach it"
    yield CLAIMS.judged("B-F4.17 apart", min(apart), "two on a bus, then three", missed=missed)


def bus_conflicts() -> Iterator[Claim]:
    """B-F4.18."""
    three = {n: conflicts.over_phases(n, "3", SEEDS).mean() for n in range(1, 13)}
    rises = all(three[n + 1] >= 0.95 * three[n] for n in three if n < 12)
    in_step = [conflicts.in_step(n, "3") for n in (9, 10, 11)]
    note = (
        f"means over phases of 9, 10 and 11 disks: {', '.join(number(three[n] / 1e3) for n in (9, 10, 11))} "
        "thousand "
        f"a second; all cards in step: {', '.join(number(v / 1e3) for v in in_step)}; rises: {yes(rises)}"
    )
    missed = (
        "PCI is full at eleven disks: a card cannot wait more often than always; phases are not in the thesis"
    )
    grows = [conflicts.over_phases(n + 1, "3", SEEDS) / conflicts.over_phases(n, "3", SEEDS) for n in (9, 10)]
    yield CLAIMS.judged("B-F4.18 rises", over_seeds(grows[0]), note, shape=rises, missed=missed)
    yield CLAIMS.judged("B-F4.18 explodes", over_seeds(grows[1]), note, missed=missed)
    ratio = conflicts.over_phases(9, "2+1", SEEDS) / conflicts.over_phases(8, "2+1", SEEDS)
    missed = "the third disk asks more often; with some phases there are fewer, not on average"
    note = f"fewer with {int((ratio < 1).sum())} of {len(ratio)} phases"
    yield CLAIMS.judged("B-F4.18 nine", over_seeds(ratio), note, missed=missed)


def cells() -> Iterator[Claim]:
    """B-F4.19."""
    sizes = 2 ** np.arange(6, 17) - network.TRAILER_BYTES
    rates = {n: network.sent_mbit_s(sizes, n) for n in (1, 2, 4)}
    rises = all(bool((np.diff(rate) > -0.5).all()) for rate in rates.values())
    more = bool((rates[4] >= rates[2] - 1e-9).all() and (rates[2] >= rates[1] - 1e-9).all())
    note = (
        f"rises with the packet: {yes(rises)}, with circuits: {yes(more)}; the line's 149.9 Mb/s are measured"
    )
    yield CLAIMS.judged("B-F4.19 most", float(rates[4].max()), note, shape=rises and more)
    packets = float(network.sent_mbit_s(np.array([48]), 1)[0]) * 1e6 / 8 / 48
    yield CLAIMS.judged("B-F4.19 least", packets, "an entry's turn of 111 us is fitted to it")


def parallel(found: Strings) -> Iterator[Claim]:
    """B-F7.10, B-F8.1."""
    means = {n: over_seeds(r.service_ms.mean() for r in found.runs[n]) for n in found.runs}
    why = (
        "Fig. 8.1 has 80 ms at the 90th percentile for the same two disks on a bus, which is ours, and this "
        "figure "
        "75.3 at most: the thesis's two measurements differ by more than the disks"
    )
    note = (
        f"p90 {number(np.quantile(found.times(2), 0.9))} ms; buses are apart, so 2, 4 and 6 disks are alike"
    )
    yield CLAIMS.judged("B-F7.10 mean", means[2], note, missed=why)
    more = means[2].estimate - means[1].estimate
    missed = "a burst and the change of hands cost 5.3 ms, and some wait for the other disk's burst"
    yield CLAIMS.judged("B-F7.10 shared", more, f"one disk {number(means[1].estimate)} ms", missed=missed)
    missed = "memory slows nobody down here below its limit of 100 MB/s"
    yield CLAIMS.judged("B-F7.10 six", 0.0, "three buses do not meet", missed=missed)
    rate = min(3 * string.schedulable_mb_s(found.times(2), 2), string.MEMORY_MB_S["read"])
    yield CLAIMS.judged("B-F7.10 rate", rate, "6 MB by the 90th percentile", missed=why)
    for name, disks in (("one", 1), ("two", 2), ("three", 3)):
        low = np.quantile(found.times(disks), 0.01)
        ours = over_seeds(r.service_ms.min() for r in found.runs[disks])
        missed = "a few blocks of ours get through before the others are in their way"
        yield CLAIMS.judged(f"B-F8.1 {name}", ours, f"1 % take less than {number(low)} ms", missed=missed)
    for disks in (2, 3):
        rates = over_seeds(string.schedulable_mb_s(r.service_ms, disks) for r in found.runs[disks])
        note = (
            f"p90 {number(np.quantile(found.times(disks), 0.9))} ms; the bus is busy "
            f"{number(100 * found.runs[disks][0].busy)} %"
        )
        yield CLAIMS.judged(f"B-F8.1 rate {disks}", rates, note)


def packets() -> Iterator[Claim]:
    """B-F7.11."""
    full = {
        (d, c): network.combined_mb_s(1024, d, c) for d in ("record", "play") for c in ("ncr810", "ncr875")
    }
    teeth = all(
        network.combined_mb_s(n + 1, "record", card) < network.combined_mb_s(n, "record", card)
        for card, n in (("ncr810", 64), ("ncr810", 512), ("ncr875", 512))
    )
    sizes = range(64, 2049)
    better = all(
        network.combined_mb_s(n, d, "ncr875") >= network.combined_mb_s(n, d, "ncr810") - 1e-9
        for n in sizes
        for d in ("record", "play")
    )
    words = ", ".join(f"{d} by {c} {number(v)}" for (d, c), v in full.items())
    note = f"1,024 bytes: {words}; saw-tooth: {yes(teeth)}; NCR53c875 never worse: {yes(better)}"
    yield CLAIMS.judged("B-F7.11 least", min(full.values()), note, shape=teeth and better)
    most = max(full, key=full.__getitem__)
    yield CLAIMS.judged("B-F7.11 most", full[most], f"{note}; the best is {most[0]} (in the text record)")
    share = 100 * network.combined_mb_s(336, "record", "ncr810") / pci.burst_mb_s(np.array([1e9]), "fast")[0]
    yield CLAIMS.judged("B-F7.11 packet", float(share), "six transactions, not four: 336 = 5 x 64 + 16")


def buffers() -> Iterator[Claim]:
    """B-6.5.3, B-5.2.4."""
    for name, mb in memory.rows().items():
        yield CLAIMS.judged(f"B-6.5.3 {name}", mb, "two buffers for each disk of a stream")
    off = memory.contended()
    note = "two file systems and two streams all ask for all memory, one after the other"
    yield CLAIMS.judged("B-5.2.4 share", max(abs(value) for value in off.values()), note)
    slow, quick = memory.shared(obeys=False), memory.shared(obeys=True)
    note = f"{number(max(quick.waited_ms.values()))} ms of those that return them when they are clean"
    yield CLAIMS.judged("B-5.2.4 time", float(max(slow.waited_ms.values())), note)
