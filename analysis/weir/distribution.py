"""Exact quantiles of any number of values, in memory that does not grow with them.

Few values are kept. Of many, the values are counted by the leading bits of their floating-point numbers,
which order as the numbers do; a second pass counts the distinct values of the few bins that hold the wanted
ranks. The result is the one that sorting all values would give.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from weir import metrics

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
#: Values that are kept; more are counted.
MOST_KEPT = 2**20
# Sign, exponent and 8 bits of the fraction: a bin is at most 0.4 % wide.
_BITS = 20
_SHIFT = np.int64(64 - _BITS)
_OFFSET = 1 << (_BITS - 1)
_MAGNITUDE = np.int64(2**63 - 1)


class Distribution:
    """Values of one quantity, added in any order; infinite ones are above all others.

    Attributes:
        n: number of values.
        largest: the largest value; minus infinity without one.
    """

    def __init__(self) -> None:
        self.n = 0
        self.largest = -np.inf
        self._kept: list[Array] = []
        self._counts: Counts | None = None
        self._upto: Counts | None = None
        # By bin: its distinct values, and how many of all values are at most each.
        self._resolved: dict[int, tuple[Array, Counts]] = {}

    @property
    def is_counted(self) -> bool:
        """Whether values are counted, not kept: quantiles need `resolve` first."""
        return self._counts is not None

    def add(self, values: Array) -> None:
        """Adds values; none may be NaN or minus infinity."""
        if values.size == 0:
            return
        self.n += values.size
        self.largest = max(self.largest, float(values.max()))
        if self._counts is None:
            self._kept.append(values)
            if self.n <= MOST_KEPT:
                return
            values, self._kept = self.values(), []
            self._counts = np.zeros(1 << _BITS, np.int64)
        self._counts += np.bincount(_bins(values), minlength=self._counts.size)
        self._upto = None

    def values(self) -> Array:
        """The kept values, in the order in which they were added."""
        if len(self._kept) != 1:
            self._kept = [np.concatenate([np.empty(0), *self._kept])]
        return self._kept[0]

    def open_bins(self, qs: Iterable[float]) -> list[tuple[float, float]]:
        """The bins `[low, high)` whose distinct values `resolve` needs for these quantiles; none of few."""
        if self._counts is None:
            return []
        bins = {self._bin(metrics.rank(self.n, q)) for q in qs}
        return [(_edge(at), _edge(at + 1)) for at in sorted(bins) if _edge(at) < np.inf]

    def resolve(self, values: Array, counts: Counts) -> None:
        """Takes the distinct values of the open bins, in ascending order, and how often each occurs."""
        bins = _bins(values)
        for at in map(int, np.unique(bins)):
            of_bin = bins == at
            below = self._cumulated()[at] - self._counted()[at]
            self._resolved[at] = values[of_bin], below + np.cumsum(counts[of_bin])

    def resolve_among(self, values: Array, qs: Iterable[float]) -> None:
        """As `resolve`, from all values."""
        for low, high in self.open_bins(qs):
            self.resolve(*np.unique_counts(values[(values >= low) & (values < high)]))

    def quantile(self, q: float) -> float | None:
        """The q-quantile as `metrics.quantile` defines it."""
        if self._counts is None:
            return metrics.quantile(self.values(), q)
        return self._at(metrics.rank(self.n, q))[0]

    def number_above(self, q: float) -> int:
        """How many counted values are above the q-quantile."""
        return self.n - self._at(metrics.rank(self.n, q))[1]

    def ranks(self, values: Array) -> Array:
        """The mean rank of the values in the bin of each of these counted values."""
        bins = _bins(values)
        return (self._cumulated() - (self._counted() + 1) / 2)[bins]

    def _at(self, rank: int) -> tuple[float, int]:
        """The value of a rank, and how many values are at most as large."""
        at = self._bin(rank)
        if _edge(at) == np.inf:
            return np.inf, self.n
        values, upto = self._resolved[at]
        place = int(np.searchsorted(upto, rank, side="right"))
        return float(values[place]), int(upto[place])

    def _bin(self, rank: int) -> int:
        return int(np.searchsorted(self._cumulated(), rank, side="right"))

    def _counted(self) -> Counts:
        if self._counts is None:
            raise ValueError("the values are kept, not counted")
        return self._counts

    def _cumulated(self) -> Counts:
        if self._upto is None:
            self._upto = np.cumsum(self._counted())
        return self._upto


def _bins(values: Array) -> Counts:
    bits = np.asarray(values, dtype=np.float64).view(np.int64)
    # Negative numbers order by their magnitude in reverse.
    return ((bits ^ ((bits >> np.int64(63)) & _MAGNITUDE)) >> _SHIFT) + _OFFSET


def _edge(at: int) -> float:
    """The smallest value of a bin."""
    bits = np.int64((at - _OFFSET) << int(_SHIFT))
    return float((bits ^ ((bits >> np.int64(63)) & _MAGNITUDE)).view(np.float64))
