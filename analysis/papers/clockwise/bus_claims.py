"""Claims of buses, cards and memory: chapter 4 from Fig. 4.13 on, 7.2.4 to 7.4, 8.1, 5.2.4 and 6.5.3."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from papers.clockwise import CLAIMS, conflicts, memory, network, pci, source, string
from papers.clockwise.disk_claims import yes
from papers.clockwise.experiments import SIZES_KB, Bench, sectors_of
from weir.claims import Claim, Found, over_seeds
from weir.labels import number

SEEDS = range(1, 11)
BLOCK_KB = 1024
#: Writing counts as slower than reading from here on.
APART = 0.98
#: More disks are of use from this speed-up on.
OF_USE = 0.5
#: Words of a burst: up to what fits into a card's.
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
    # Every further byte takes what it takes with the other memory.
    sdram = pci.SDRAM_64_NS + (512 - 64) * pci.BYTE_NS
    note = (
        f"from {pci.SDRAM_64_NS} ns for 64 bytes and {number(pci.BYTE_NS)} ns a byte, measured on EDO memory"
    )
    yield CLAIMS.judged("B-F4.16", sdram, note)
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
    for operation in ("read", "write"):
        few = [pci.words(size) for size in pci.WORD_BURSTS_BYTES]
        yield CLAIMS.over(f"B-F4.13 {operation}", {mode: _four(found, operation, mode) for mode in few})
        four = _four(found, operation, "with bursts")
        yield CLAIMS.judged(f"B-F4.14 {operation}", four.ours, four.note)
    for name, disks in (("two", 2), ("three", 3)):
        ours = found.up("read", "with bursts", disks)
        yield CLAIMS.judged(f"B-F7.9 {name}", ours, "reads of 1 MB in zone 0 with bursts")


def _four(found: SpeedUps, operation: str, mode: str) -> Found:
    """The speed-up of four disks; of writes without bursts also whether more than two are of no use."""
    ups = [found.up(operation, mode, n) for n in range(1, 5)]
    useless = ups[3] - ups[1] < OF_USE if operation == "write" else None
    return Found(ups[3], f"1 to 4 disks: {', '.join(number(up) for up in ups)}", shape=useless)


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

    def parallel_ms(self, disks: int) -> float:
        """Fig. 7.10: mean time of 1 MB on a disk of so many, two on a bus, as far as memory allows it."""
        return max(float(self.times(min(disks, 2)).mean()), disks * 1e3 / string.MEMORY_MB_S["read"])

    def aggregate(self, layout: str, operation: str) -> list[float]:
        """Fig. 4.17: MB/s of 1 to 12 disks."""
        rates = {n: self.rate(n) for n in self.runs}
        return [string.aggregate_mb_s(n, layout, operation, rates) for n in range(1, 13)]


def cheetahs(found: Strings) -> Iterator[Claim]:
    """B-F4.17."""
    yield CLAIMS.judged("B-F4.17 one", over_seeds(r.rate_mb_s for r in found.runs[1]), "1 MB, outer zone")
    note = f"two: {number(found.rate(2))} MB/s"
    yield CLAIMS.judged("B-F4.17 three", over_seeds(r.rate_mb_s for r in found.runs[3]), note)
    lines = {(a, b): found.aggregate(a, b) for a in ("3", "2+1") for b in ("read", "write")}
    read = lines["3", "read"]
    note = f"ten disks {number(read[9])} MB/s"
    yield CLAIMS.judged("B-F4.17 read", read[11], note)
    yield CLAIMS.judged(
        "B-F4.17 write", lines["3", "write"][11], f"ten disks {number(lines['3', 'write'][9])}"
    )
    eight = lines["2+1", "read"][7]
    yield CLAIMS.judged("B-F4.17 eight", eight, f"writing {number(lines['2+1', 'write'][7])} MB/s")
    gains = [a - b for a, b in zip(lines["2+1", "read"][:8], read[:8], strict=True)]
    yield CLAIMS.judged("B-F4.17 gain", max(gains), f"1 to 8 disks: {', '.join(number(g) for g in gains)}")
    apart = [r for r, w in zip(lines["2+1", "read"], lines["2+1", "write"], strict=True) if w < APART * r]
    yield CLAIMS.judged("B-F4.17 apart", min(apart), "two on a bus, then three")


def bus_conflicts() -> Iterator[Claim]:
    """B-F4.18."""
    three = {n: conflicts.over_phases(n, "3", SEEDS) for n in range(1, 13)}
    step = {n: conflicts.in_step(n, "3") for n in three}
    missed = "PCI is nearly full at ten disks; the thesis gives no phases"
    found = {
        "phases at random": Found(
            over_seeds(three[10] / three[9]),
            _thousands([three[n].mean() for n in (9, 10, 11)]),
            shape=_rises([three[n].mean() for n in three]),
            missed=missed,
        ),
        "all cards in step": Found(
            step[10] / step[9],
            _thousands([step[n] for n in (9, 10, 11)]),
            shape=_rises(list(step.values())),
            missed=missed,
        ),
    }
    yield CLAIMS.over("B-F4.18 rises", found)
    yield CLAIMS.judged("B-F4.18 explodes", over_seeds(three[11] / three[10]), "phases at random")
    ratio = conflicts.over_phases(9, "2+1", SEEDS) / conflicts.over_phases(8, "2+1", SEEDS)
    note = f"fewer with {int((ratio < 1).sum())} of {len(ratio)} phases"
    yield CLAIMS.judged("B-F4.18 nine", over_seeds(ratio), note)


def _rises(values: list[float]) -> bool:
    """Whether conflicts never fall, but for the error of a mean."""
    return all(after >= 0.95 * before for before, after in pairwise(values))


def _thousands(values: list[float]) -> str:
    return f"9, 10 and 11 disks: {', '.join(number(value / 1e3) for value in values)} thousand a second"


def cells() -> Iterator[Claim]:
    """B-F4.19."""
    sizes = 2 ** np.arange(6, 17) - network.TRAILER_BYTES
    rates = {n: network.sent_mbit_s(sizes, n) for n in (1, 2, 4)}
    rises = all(bool((np.diff(rate) > -0.5).all()) for rate in rates.values())
    more = bool((rates[4] >= rates[2] - 1e-9).all() and (rates[2] >= rates[1] - 1e-9).all())
    note = f"rises with the packet: {yes(rises)}, with circuits: {yes(more)}"
    yield CLAIMS.judged("B-F4.19 most", float(rates[4].max()), note, shape=rises and more)
    packets = float(network.sent_mbit_s(np.array([48]), 1)[0]) * 1e6 / 8 / 48
    yield CLAIMS.judged("B-F4.19 least", packets, "one circuit")


def parallel(found: Strings) -> Iterator[Claim]:
    """B-F7.10, B-F8.1."""
    means = {n: over_seeds(r.service_ms.mean() for r in found.runs[n]) for n in found.runs}
    note = (
        f"p90 {number(np.quantile(found.times(2), 0.9))} ms; buses are apart, so 2, 4 and 6 disks are alike"
    )
    yield CLAIMS.judged("B-F7.10 mean", means[2], note)
    more = means[2].estimate - means[1].estimate
    missed = "a burst and the change of hands cost 5.3 ms, and some wait for the other disk's burst"
    yield CLAIMS.judged("B-F7.10 shared", more, f"one disk {number(means[1].estimate)} ms", missed=missed)
    five, six = (found.parallel_ms(n) for n in (5, 6))
    missed = "three buses do not meet, and memory slows nobody down below its limit"
    yield CLAIMS.judged("B-F7.10 six", six - five, f"{number(six)} ms", missed=missed)
    rate = min(3 * string.schedulable_mb_s(found.times(2), 2), string.MEMORY_MB_S["read"])
    yield CLAIMS.judged("B-F7.10 rate", rate, "6 MB by the 90th percentile")
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
    words = ", ".join(f"{d} by {c} {number(v)}" for (d, c), v in full.items())
    yield CLAIMS.judged(
        "B-F7.11 least", min(full.values()), f"1,024 bytes: {words}; saw-tooth: {yes(teeth)}", shape=teeth
    )
    yield CLAIMS.judged("B-F7.11 most", max(full.values()), f"1,024 bytes: {words}")
    others = max(rate for key, rate in full.items() if key != ("record", "ncr875"))
    worst = min(full, key=full.__getitem__) == ("record", "ncr810")
    note = f"recording by the NCR53c810 is the worst: {yes(worst)}"
    order = full["record", "ncr875"] / others
    yield CLAIMS.judged("B-F7.11 order", order, note, shape=worst)
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
