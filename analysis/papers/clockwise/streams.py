"""The streams of Table 6.3, how they are laid out, and what a disk gets of them (6.3.1, 6.5)."""

from dataclasses import dataclass, field

#: Table 6.3, KB/s. Its row of WG has periods of 289 KB/s; only 245 give deltaL and loads of section 6.5.
RATE_KB_S = {"WG": 245.0, "RO": 817.0, "CD": 172.0}
#: Video and sound that are played together.
PAIRS = {"WG": ("WG", "CD"), "RO": ("RO", "CD")}
DISKS = 3
#: What costs are taken from, in ms by block in KB: Table 6.4 for zones 0 and 11, and, as `fitted`, a ms less,
#: which alone gives the 925, 825 and 725 ms of section 6.5.4. 2 MB are not in the table: 240 ms is ours.
COSTS_MS = {
    "fitted": {256: 54.0, 512: 80.0, 1024: 133.0, 2048: 240.0},
    "zone 0": {256: 55.0, 512: 81.0, 1024: 134.0, 2048: 241.0},
    "zone 11": {256: 69.0, 512: 114.0, 1024: 204.0, 2048: 384.0},
}


@dataclass(frozen=True)
class Task:
    """Requests of one kind of stream on one disk: `count` streams, each `cost_ms` in every `period_ms`."""

    name: str
    cost_ms: float
    period_ms: float
    count: int = 1


@dataclass(frozen=True)
class Layout:
    """Layout of streams on disks (6.5.1 to 6.5.3).

    Attributes:
        disks_of_a_stream: over how many disks a file goes, block by block.
        block_kb: size of a block by part.
        costs: the column of `COSTS_MS`.
    """

    disks_of_a_stream: int
    block_kb: dict[str, int] = field(default_factory=lambda: {"WG": 256, "RO": 1024, "CD": 256})
    costs: str = "fitted"

    def tasks(
        self, pairs: dict[str, int], costs: str | None = None, rates_kb_s: dict[str, float] | None = None
    ) -> list[Task]:
        """The load of a disk with these numbers of pairs of each kind; usual costs and rates if None."""
        rates_kb_s = rates_kb_s or RATE_KB_S
        cost = COSTS_MS[costs or self.costs]
        return [
            Task(
                f"{part} of {name}",
                cost[self.block_kb[part]],
                self.disks_of_a_stream * self.block_kb[part] / rates_kb_s[part] * 1e3,
                count,
            )
            for name, count in pairs.items()
            for part in PAIRS[name]
            if count
        ]

    def on_disks(self, pairs: dict[str, int]) -> dict[str, dict[str, int]]:
        """Pairs by kind of disk: all disks alike, or RO alternately on two of them and WG on the third."""
        if self.disks_of_a_stream == DISKS:
            return {"all disks": pairs}
        # The fuller one of the two.
        return {"RO disks": {"RO": -(-pairs["RO"] // 2)}, "WG disk": {"WG": pairs["WG"]}}


LAYOUTS = {
    "rotation": Layout(DISKS),
    "random": Layout(DISKS, costs="zone 11"),
    "memory-optimized": Layout(1),
    "memory-optimized (large buffers)": Layout(1, {"WG": 256, "RO": 2048, "CD": 512}),
}


def in_turn(count: int) -> dict[str, int]:
    """The first pairs of WG, RO, WG, RO and so on; the thesis does not say in which order it adds them."""
    return {"WG": (count + 1) // 2, "RO": count // 2}


def red_october_first(count: int) -> dict[str, int]:
    """RO, WG, RO and so on: the other way round."""
    return {"WG": count // 2, "RO": (count + 1) // 2}


def all_of_wallace(count: int) -> dict[str, int]:
    """WG up to 13, as many as the text has, then RO."""
    return {"WG": min(count, 13), "RO": max(count - 13, 0)}


def rate_mb_s(pairs: dict[str, int], rates_kb_s: dict[str, float] | None = None) -> float:
    """Bandwidth of pairs in MB/s."""
    rates_kb_s = rates_kb_s or RATE_KB_S
    return sum(count * sum(rates_kb_s[part] for part in PAIRS[name]) for name, count in pairs.items()) / 1024
