"""Responses of a run in the order of asking: all of a short run, stretches and sums of a long one.

Up to `STRETCH` responses are kept. Of more, every second, fourth, eighth ... stretch of as many consecutive
responses is kept, at most `MOST_STRETCHES`, so that they are spread evenly over the run; and of all responses
the mean logarithm of every `PIECE`. A long run's autocorrelation is estimated from the stretches, its drift
from the pieces.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from weir.distribution import MOST_KEPT, Array, Distribution

#: Consecutive responses of one stretch.
STRETCH = MOST_KEPT
MOST_STRETCHES = 8
PIECE = 2**10


class Series:
    """Responses in the order of asking. Unfinished requests have the response infinity.

    Attributes:
        distribution: the same responses without their order.
        lowest: the smallest response above 0; infinity without one.
        highest: the largest finite response above 0; 0 without one.
        finite: number of finite responses above 0.
    """

    def __init__(self) -> None:
        self.distribution = Distribution()
        self.lowest, self.highest, self.finite = math.inf, 0.0, 0
        # Stretches begun, and the distance of those that are kept.
        self._begun, self._step = 0, 1
        self._kept: list[Array] = []
        self._open: list[Array] = []
        # By piece: sum of the logarithms of responses that have one, infinite responses, responses of 0.
        self._pieces: list[Array] = []

    @classmethod
    def of(cls, values: ArrayLike) -> "Series":
        """A series of all these values."""
        series = cls()
        series.add(np.asarray(values, dtype=float))
        return series

    @property
    def n(self) -> int:
        """Number of responses."""
        return self.distribution.n

    @property
    def is_long(self) -> bool:
        """Whether not all responses are kept."""
        return self.distribution.is_counted

    @property
    def stretches(self) -> list[tuple[int, Array]]:
        """What is kept: the place of a first response, and the responses from it on."""
        if not self.is_long:
            return [(0, self._whole())]
        return [(at * self._step * STRETCH, kept) for at, kept in enumerate(self._kept)]

    def add(self, values: Array) -> None:
        """Adds responses that were asked after those before; none may be NaN."""
        if values.size == 0:
            return
        self.distribution.add(values)
        positive = values[(values > 0) & (values < math.inf)]
        self.finite += positive.size
        if positive.size:
            self.lowest = min(self.lowest, float(positive.min()))
            self.highest = max(self.highest, float(positive.max()))
        self._open.append(values)
        if self.is_long and sum(map(len, self._open)) >= STRETCH:
            rest = self._whole()
            while rest.size >= STRETCH:
                self._close(rest[:STRETCH])
                rest = rest[STRETCH:]
            self._open = [rest.copy()]

    def pieces(self) -> Array:
        """The mean logarithm of every `PIECE` consecutive responses of a long series.

        Infinite responses count as the largest finite one, and those of 0 as the smallest above it. Responses
        after the last whole piece are left out.
        """
        rest = self._whole()
        sums, infinite, zero = np.hstack([*self._pieces, _summed(rest[: rest.size // PIECE * PIECE])])
        return (sums + infinite * math.log(self.highest) + zero * math.log(self.lowest)) / PIECE

    def _whole(self) -> Array:
        if len(self._open) != 1:
            self._open = [np.concatenate([np.empty(0), *self._open])]
        return self._open[0]

    def _close(self, stretch: Array) -> None:
        self._pieces.append(_summed(stretch))
        if self._begun % self._step == 0:
            self._kept.append(stretch.copy())
        self._begun += 1
        if len(self._kept) > MOST_STRETCHES:
            self._kept, self._step = self._kept[::2], 2 * self._step


def _summed(values: Array) -> Array:
    """By piece: the sum of the logarithms that are finite, the number of infinite values, and of zeros."""
    infinite, zero = np.isinf(values), values <= 0
    logarithms = np.log(np.where(infinite | zero, 1.0, values))
    return np.array([part.reshape(-1, PIECE).sum(axis=1) for part in (logarithms, infinite, zero)])
