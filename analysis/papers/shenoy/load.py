"""Probability of each operating point (3.3.2, Fig. 16) and mean gain of sharing (Fig. 17)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from papers.shenoy import CLAIMS
from papers.shenoy.results import Surface
from papers.traces.nfs import Load, load_of, per_second
from weir.binary_cache import BinaryCache

#: Probability that the text load exceeds the capacity: delta_1.
OVERLOADS = (0.01, 0.03, 0.05)
#: The stand-in for the NFS trace, and its clients.
WORKLOADS = {"auspex-nfs-on-off": 10, "auspex-nfs": 1}
SEEDS = range(1, 11)
DURATION_S = 2000
#: Lengths of a window of load, in seconds. The paper has windows of 1 s in Fig. 6, but a mean of a fifth of
#: the peak in Fig. 16, where a second's peak is twelve times the mean: only longer windows have that.
WINDOWS_S = (1, 10, 60)
#: The reading that the paper's own numbers of 3.3.2 give.
PRINTED = "printed loads"
#: Windows that stand for a printed distribution: with video there are as many pairs as their square.
POINTS = 2000


@dataclass(frozen=True)
class Distribution:
    """A load over windows, as a share of the busiest one's; every window as likely as the others."""

    shares: np.ndarray

    @classmethod
    def of(cls, load: Load, window_s: int) -> "Distribution":
        """Of a stream."""
        sums = load.over(window_s).astype(float)
        return cls(sums / sums.max())

    @classmethod
    def printed(cls) -> "Distribution":
        """The distribution that 3.3.2 prints three points of.

        Three loads are one distribution at three scales: of each the mean, the peak, and the share above the
        capacity. Between the points it is even; below the lowest it falls exponentially, so that its mean is
        the printed one.
        """
        capacity = printed_number("S-TV T")
        peaks = np.array([printed_number(f"S-F16 peak {overload:g}") for overload in OVERLOADS])
        means = np.array([printed_number(f"S-F16 mean {overload:g}") for overload in OVERLOADS])
        levels = np.append((capacity / peaks)[::-1], 1.0)
        below = np.append(1 - np.array(OVERLOADS)[::-1], 1.0)
        tail = float((np.diff(below) * (levels[1:] + levels[:-1]) / 2).sum())
        rest = float((means / peaks).mean() - tail) / below[0]
        rate = brentq(lambda r: _truncated_mean(r, levels[0]) - rest, 1e-6, 1e3)
        at = (np.arange(POINTS) + 0.5) / POINTS
        bulk = np.minimum(at / below[0], 1)
        exponential = -np.log1p(-bulk * -np.expm1(-rate * levels[0])) / rate
        return cls(np.where(at < below[0], exponential, np.interp(at, below, levels)))

    def clients(self, capacity: float, overload: float) -> np.ndarray:
        """Clients in each window, scaled so that a share `overload` of the windows exceeds the capacity."""
        return self.shares * capacity / np.quantile(self.shares, 1 - overload)

    def within(self, capacity: float) -> np.ndarray:
        """Clients in each window, scaled so that the busiest is at the capacity (delta_2 = 0)."""
        return self.shares * capacity


def printed_number(claim: str) -> float:
    """The number that the paper prints."""
    number = CLAIMS.register[claim].paper
    assert number is not None
    return number


def _truncated_mean(rate: float, end: float) -> float:
    """Mean of an exponential distribution that is cut off."""
    return float(1 / rate - end / np.expm1(rate * end))


def loads(binary: BinaryCache, workload: str) -> list[Load]:
    """A stream of the stand-in for each seed."""
    clients = WORKLOADS[workload]
    return binary.each(
        lambda seed: load_of(binary.stream(workload, seed, DURATION_S, per_second, clients), DURATION_S),
        SEEDS,
    )


@dataclass(frozen=True)
class Improvement:
    """Mean gain of sharing.

    Attributes:
        partitioned_ms: expected response on the partitioned server, by repetition.
        difference_ms: E(I) of equation (1), by repetition.
    """

    partitioned_ms: np.ndarray
    difference_ms: np.ndarray

    @property
    def percent(self) -> np.ndarray:
        """By repetition."""
        return 100 * self.difference_ms / self.partitioned_ms


def by_seed(made: Sequence[Improvement], name: str) -> np.ndarray:
    """A figure by stream of load; of a load without streams, by repetition of the servers' runs."""
    values = [getattr(one, name) for one in made]
    return np.array([one.mean() for one in values]) if len(values) > 1 else values[0]


def improvement(
    partitioned: Surface, integrated: Surface, text: np.ndarray, video: np.ndarray
) -> Improvement:
    """E(I) = sum over t, v of d(t, v) p(t) p(v): text and video are independent.

    Args:
        partitioned: response of text on the partitioned server.
        integrated: on the integrated server.
        text: text clients, all equally likely.
        video: video clients, all equally likely.
    """
    some = text[text >= 1]
    share = len(some) / len(text)
    t, v = np.meshgrid(some, video, indexing="ij")
    apart = partitioned.at(t, v).mean(axis=(1, 2)) * share
    together = integrated.at(t, v).mean(axis=(1, 2)) * share
    return Improvement(apart, apart - together)
