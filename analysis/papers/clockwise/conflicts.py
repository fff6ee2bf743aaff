"""Conflicts of SCSI cards on the PCI bus (4.3.7, Fig. 4.18).

A card with one, two or three Cheetahs has 512 bytes to move every 37.3, 19.3 or 15.4 us, which take at most
4.3 us. A conflict is a card that finds the bus busy. The thesis has a small program for this and does not say
with what phases cards begin or for how long it runs: here phases are drawn at random, or all are 0.
"""

import numpy as np

PERIOD_US = {1: 37.3, 2: 19.3, 3: 15.4}
HOLD_US = 4.3
CARDS = 4
#: Length of a run.
SPAN_US = 200_000.0


def attached(disks: int, layout: str) -> list[int]:
    """Disks on each card: `3`: cards are filled one after the other; `2+1`: two on each before a third.

    Raises:
        ValueError: there are more disks than places, or no such layout.
    """
    if not 1 <= disks <= 3 * CARDS or layout not in ("3", "2+1"):
        raise ValueError(f"{disks} disks as {layout!r}: 1 to {3 * CARDS} disks as '3' or '2+1'")
    if layout == "3":
        return [min(3, disks - 3 * card) for card in range(CARDS) if disks > 3 * card]
    pairs = [min(2, disks - 2 * card) for card in range(CARDS) if disks > 2 * card]
    for card in range(max(disks - 2 * CARDS, 0)):
        pairs[card] += 1
    return pairs


def per_second(disks: list[int], phases: np.ndarray) -> float:
    """Conflicts per second of cards with so many disks each, which begin at phases of 0 to 1."""
    asked = np.sort(
        np.concatenate(
            [
                np.arange(phase * PERIOD_US[n], SPAN_US, PERIOD_US[n])
                for n, phase in zip(disks, phases, strict=True)
            ]
        )
    )
    # First come, first served: f(i) = max(a(i), f(i-1)) + hold, as one running maximum.
    turn = np.arange(len(asked))
    begun = np.maximum.accumulate(asked - turn * HOLD_US) + turn * HOLD_US
    inside = begun < SPAN_US
    return float((begun > asked + 1e-9)[inside].sum() / SPAN_US * 1e6)


def over_phases(disks: int, layout: str, seeds: range) -> np.ndarray:
    """Conflicts per second for phases drawn with each seed."""
    cards = attached(disks, layout)
    return np.array([per_second(cards, np.random.default_rng(seed).random(len(cards))) for seed in seeds])


def in_step(disks: int, layout: str) -> float:
    """Conflicts per second of cards that begin at the same time."""
    cards = attached(disks, layout)
    return per_second(cards, np.zeros(len(cards)))
