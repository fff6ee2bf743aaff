"""Claims of section 2 that need no runs of requests: merged sweeps, demand traces."""

from collections.abc import Iterable

import numpy as np

from papers.wijayaratne import CLAIMS
from weir.claims import Claim, Found, over_seeds

#: Table 1: cylinders, and seeks at least, on average and at most, in ms.
CYLINDERS, MIN_MS, AVG_MS, MAX_MS = 3711, 0.60, 8.0, 17.0
#: 2.2: frames a second, and seconds in a round.
RATE_HZ, ROUND_S = 24, 0.5
#: 2.2: blocks in the rounds of the example.
EXAMPLE = [3, 1]


def seek_ms(distance: np.ndarray) -> np.ndarray:
    """The seek curve of Lee and Katz through Table 1's figures."""
    a = (15 * AVG_MS - 10 * MIN_MS - 5 * MAX_MS) / (3 * np.sqrt(CYLINDERS))
    b = (7 * MIN_MS - 15 * AVG_MS + 8 * MAX_MS) / (3 * CYLINDERS)
    rest = np.maximum(distance - 1, 0)
    return np.where(distance > 0, a * np.sqrt(rest) + b * rest + MIN_MS, 0.0)


def sweep_ms(places: np.ndarray, arm: int) -> float:
    """Seeks of one sweep over places, from its nearer end."""
    ordered = np.sort(places)
    ways = (np.concatenate(([arm], order)) for order in (ordered, ordered[::-1]))
    return min(float(seek_ms(np.abs(np.diff(way))).sum()) for way in ways)


def merging(draws: int = 20_000, seed: int = 1) -> list[Claim]:
    """W-C1: two groups of random requests, swept apart and together; from an edge, and from anywhere."""
    random = np.random.default_rng(seed)
    longer = {"from an edge": 0, "from anywhere": 0}
    for _ in range(draws):
        groups = [random.integers(0, CYLINDERS, random.integers(1, 9)) for _ in range(2)]
        for where, arm in zip(longer, (0, int(random.integers(0, CYLINDERS))), strict=True):
            apart = sum(sweep_ms(group, arm) for group in groups)
            longer[where] += sweep_ms(np.concatenate(groups), arm) > apart + 1e-9
    note = f"of {draws} pairs of groups"
    return [CLAIMS.over("W-C1", {where: Found(float(count), note) for where, count in longer.items()})]


def example(demand_blocks: dict[str, list[int]]) -> list[Claim]:
    """W-C2, from the demand trace that admission control used."""
    blocks = demand_blocks["example"]
    return [CLAIMS.judged("W-C2", float(blocks[0]), f"{blocks}", shape=blocks == EXAMPLE)]


def trace_size(films: Iterable[np.ndarray]) -> list[Claim]:
    """W-C3, of a film for each seed: its frames' sizes in bits."""
    ratios, by_frame = [], []
    for frames in films:
        # A decimal number and a separator for each frame; a byte for each round.
        by_frame.append(sum(len(str(bits)) + 1 for bits in frames.tolist()))
        ratios.append(by_frame[-1] / (len(frames) / RATE_HZ / ROUND_S))
    note = f"{np.mean(by_frame):,.0f} bytes by frame, if frames are decimal numbers"
    return [CLAIMS.judged("W-C3", over_seeds(ratios), note)]
