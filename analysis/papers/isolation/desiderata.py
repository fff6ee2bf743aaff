"""The six desiderata, each a number of plain arrays: formula, unit, source (docs/explanation/isolation.md).

Overhead, fairness, priority against utilisation and burst response are those of Doekemeijer, Ren, De
Matteis, Chandrasekaran and Trivedi, "Does Linux provide performance isolation for NVMe SSDs? Configuring
cgroups for I/O control in the NVMe era" (IISWC 2025), and of its isol-bench; work conservation is that
of Heo et al., "IOCost: block IO control for containers in datacenters" (ASPLOS 2022); delta-fairness is that
of Griggs, Ponnapalli et al., "Delta Fair Sharing: Performance Isolation for Multi-Tenant Storage Systems"
(arXiv:2601.20030, 2026). Where a number has no value the function returns None.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from weir.metrics import jain_index

#: The rate is counted in intervals of this length, ms: long enough for requests of a slow disk.
INTERVAL_MS = 50
#: A burst has been answered when the rate has reached this share of what it settles at,
REACHED_SHARE = 0.9
#: and holds it over so many intervals.
HOLD_INTERVALS = 4
#: What it settles at is the mean over this last share of the time.
SETTLED_SHARE = 0.5


def added(with_it: float, without: float) -> float:
    """(with - without) / without: what a mechanism adds to a latency or a cost, as a share of it.

    Raises:
        ValueError: the baseline is not above 0.
    """
    if without <= 0:
        raise ValueError(f"a baseline is above 0, not {without}")
    return (with_it - without) / without


def weighted_fairness(
    received: ArrayLike, weights: ArrayLike, alone: ArrayLike | None = None
) -> float | None:
    """Jain's index of x = received / alone / weight: 1 where all have got what their weights say.

    Args:
        received: a rate per class.
        weights: what each was promised, in any unit.
        alone: the rate that each has by itself under the same mechanism (proportional slowdown, as isol-bench
            has it); without it rates are compared as they are.

    Raises:
        ValueError: numbers differ, or a rate alone or a weight is not above 0.
    """
    x = np.asarray(received, dtype=float)
    if alone is not None:
        by_itself = np.asarray(alone, dtype=float)
        if by_itself.shape != x.shape or (by_itself <= 0).any():
            raise ValueError("each rate needs one alone, above 0")
        x = x / by_itself
    return jain_index(x, weights)


def largest_share_error(received: ArrayLike, weights: ArrayLike) -> float | None:
    """The largest |share received - share promised| over all classes; None where nothing was received.

    Raises:
        ValueError: numbers differ, or the weights do not add up to more than 0.
    """
    x, w = np.asarray(received, dtype=float), np.asarray(weights, dtype=float)
    if x.shape != w.shape or w.sum() <= 0 or (w < 0).any():
        raise ValueError("each rate needs one weight, and these a sum above 0")
    if x.sum() <= 0:
        return None
    return float(np.abs(x / x.sum() - w / w.sum()).max())


def frontier(points: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the points (utilisation, slowdown) that no other one beats, by utilisation.

    A point is beaten by one that has at least its utilisation and at most its slowdown, and is better in one
    of the two: Pareto's order, as isol-bench draws priority against utilisation.
    """

    def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
        return a[0] >= b[0] and a[1] <= b[1] and a != b

    kept = [i for i, one in enumerate(points) if not any(beats(other, one) for other in points)]
    return sorted(kept, key=lambda i: points[i])


def rates_per_s(
    completed_ns: ArrayLike, begin_ns: int, end_ns: int, interval_ms: int = INTERVAL_MS
) -> np.ndarray:
    """Requests answered in each whole interval of a window, per second."""
    width = interval_ms * 1_000_000
    whole = max((end_ns - begin_ns) // width, 0)
    at = (np.asarray(completed_ns, dtype=np.int64) - begin_ns) // width
    counted = np.bincount(at[(at >= 0) & (at < whole)], minlength=whole)
    return counted[:whole] * (1000 / interval_ms)


def burst_response_ms(rates: ArrayLike, interval_ms: int = INTERVAL_MS) -> float | None:
    """Response to a burst: time in ms until a class that begins at the first interval reaches its final rate.

    The end of the first interval from which on the mean rate over `HOLD_INTERVALS` is at least
    `REACHED_SHARE` of the mean over the last `SETTLED_SHARE` of all intervals. At least one interval: it
    cannot be told finer.

    Returns:
        None where nothing was answered in the end, or there are fewer than twice `HOLD_INTERVALS`.
    """
    x = np.asarray(rates, dtype=float)
    if x.size < 2 * HOLD_INTERVALS:
        return None
    settled = x[-int(x.size * SETTLED_SHARE) :].mean()
    if settled <= 0:
        return None
    held = np.convolve(x, np.ones(HOLD_INTERVALS) / HOLD_INTERVALS, mode="valid")
    # The last window is among those that settle, but need not reach the share itself.
    reached = np.flatnonzero(held >= REACHED_SHARE * settled)
    return float((reached[0] + 1) * interval_ms) if reached.size else float(x.size * interval_ms)


def share_delay_ms(completed_ns: ArrayLike, begin_ns: int, end_ns: int, fair_per_s: float) -> float:
    """Delay until a client that begins has its fair share, in ms: the delta of delta-fairness.

    The least delay d such that each request k = 1, 2, ... is answered by `begin_ns + d + k / rate`: the
    latency of a latency-rate server (Stiliadis and Varma, IEEE/ACM Transactions on Networking 6(5), 1998)
    whose rate is `REACHED_SHARE` of the fair rate.

    Args:
        completed_ns: times at which its requests were answered.
        begin_ns: when it began to want more than its share.
        end_ns: until when it was observed, after `begin_ns`.
        fair_per_s: rate of all / number of clients, above 0.

    Returns:
        Infinity if its rate in the second half is below `REACHED_SHARE` of the fair rate: no delay is enough.
    """
    if fair_per_s <= 0 or end_ns <= begin_ns:
        raise ValueError("a fair rate is above 0, and an end after the beginning")
    rate = REACHED_SHARE * fair_per_s / 1e3
    at_ms = (np.sort(np.asarray(completed_ns, dtype=np.int64)) - begin_ns) / 1e6
    length_ms = (end_ns - begin_ns) / 1e6
    at_ms = at_ms[(at_ms > 0) & (at_ms <= length_ms)]
    half = length_ms / 2
    # One request more or less is the resolution.
    if np.count_nonzero(at_ms > half) + 1 < rate * half:
        return math.inf
    # The next request is not answered before the end.
    answered_ms = np.append(at_ms, length_ms)
    return float(max((answered_ms - np.arange(1, answered_ms.size + 1) / rate).max(), 0.0))


def conserved(lone_rate: float, free_rate: float) -> float:
    """Rate of a class that asks by itself under a mechanism / its rate without one: 1 wastes nothing.

    Raises:
        ValueError: the rate without a mechanism is not above 0.
    """
    if free_rate <= 0:
        raise ValueError(f"a rate without a mechanism is above 0, not {free_rate}")
    return lone_rate / free_rate
