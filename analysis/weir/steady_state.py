"""Steady state of one run: warm-up, drift, and how many independent responses its requests are worth.

Responses of one run follow each other in time and are correlated: a slow moment delays every request that
waits in it. Ten thousand requests can therefore carry no more information than a hundred. The functions
here take responses in the order in which they were asked, as one array; unfinished requests have the
response infinity.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Array = NDArray[np.float64]
#: Probability of calling a stationary run drifting.
SIGNIFICANCE = 0.02
# A drift test uses batches of at least this many autocorrelation times: their means are nearly independent.
TIMES_PER_BATCH = 8
FEWEST_BATCHES = 8
MOST_BATCHES = 64
#: A quantile is reported from this many effective responses beyond it on.
FEWEST_BEYOND = 10


@dataclass(frozen=True)
class Drift:
    """Whether the responses of a run rise or fall over its measured interval.

    Attributes:
        ratio: response at the end / response at the start, by a straight line through the logarithms; None
            where the run is too short.
        p: probability of a slope at least this steep in a run without drift; None where the run is too
            short.
        batches: batches that the test used.
        detectable_ratio: the smallest ratio above 1 that this run would show in 95 of 100 runs; None where
            the run is too short.
        needed: the run must be this many times as long for the test, if it is too short; else 1.
    """

    ratio: float | None
    p: float | None
    batches: int
    detectable_ratio: float | None
    needed: float = 1.0

    @property
    def drifts(self) -> bool | None:
        """True: the run is not in steady state. None: the run is too short to tell."""
        return None if self.p is None else self.p < SIGNIFICANCE


def autocorrelation(values: ArrayLike) -> Array:
    """Autocorrelation at lags 0, 1, ..., n - 1 by the biased estimator, which is positive semi-definite.

    Returns:
        Values in [-1, 1]; 1 followed by zeros where all values are equal.
    """
    x = np.asarray(values, dtype=float)
    x = x - x.mean()
    size = 1 << (2 * x.size - 1).bit_length()
    spectrum = np.fft.rfft(x, size)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), size)[: x.size]
    if x.size == 0 or covariance[0] <= 1e-300:
        return np.concatenate(([1.0], np.zeros(max(x.size - 1, 0))))
    return covariance / covariance[0]


def autocorrelation_time(values: ArrayLike) -> float:
    """The number of consecutive values that are worth one independent value.

    1 + 2 (sum of the autocorrelations). The sum ends where the sum of two neighbours stops being positive,
    and never rises: the initial monotone sequence of Geyer, "Practical Markov chain Monte Carlo"
    (Statistical Science 7(4), 1992, section 3.3).

    Returns:
        At least 1: values that alternate are not counted as more than they are.
    """
    rho = autocorrelation(values)
    pairs = rho[: rho.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: ends[0]] if ends.size else pairs)
    return max(float(2 * pairs.sum() - 1), 1.0)


def effective_size(values: ArrayLike) -> float:
    """The number of independent values with the same information about the mean: n / autocorrelation time.

    Infinite values are ranked above all others, so the size is that of the mean rank.
    """
    x = np.asarray(values, dtype=float)
    if x.size < 2:
        return float(x.size)
    if np.isinf(x).any():
        x = np.argsort(np.argsort(x, kind="stable"), kind="stable").astype(float)
    return x.size / autocorrelation_time(x)


def effective_beyond(values: ArrayLike, q: float) -> float:
    """The number of independent responses beyond the q-quantile: what an estimate of it rests on.

    It counts the values above the quantile, divided by the autocorrelation time of being above it.
    """
    x = np.asarray(values, dtype=float)
    if x.size < 2:
        return 0.0
    rank = max(math.ceil(q * x.size - 1e-9), 1) - 1
    beyond = x > np.partition(x, rank)[rank]
    count = int(beyond.sum())
    # Where the largest values are equal, none is beyond: the quantile is the maximum, and no moment was
    # slow.
    return count / autocorrelation_time(beyond.astype(float)) if count else x.size * (1 - q)


def mser5(values: ArrayLike) -> int | None:
    """How many values to leave out at the beginning, by MSER-5.

    White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for simulation" (Winter
    Simulation Conference 2000): the truncation that minimises the variance of the remaining batch means of
    five values, divided by their number.

    Returns:
        A multiple of 5; None where the minimum lies in the second half: no steady state was reached. 0 for
        fewer than 20 values, of which nothing can be said.
    """
    x = np.asarray(values, dtype=float)
    if x.size < 20:
        return 0
    if np.isinf(x).any():
        return None
    means = x[: x.size // 5 * 5].reshape(-1, 5).mean(axis=1)
    k = means.size
    # Sums from position d to the end, for all d at once.
    left = k - np.arange(k)
    centred = means - means.mean()
    total = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum((centred**2)[::-1])[::-1]
    statistic = np.maximum(squares - total**2 / left, 0) / left.astype(float) ** 2
    best = int(np.argmin(statistic[: k - 4]))
    return best * 5 if best <= k // 2 else None


def drift(values: ArrayLike) -> Drift:
    """Tests whether responses rise or fall over the run.

    The run is cut into batches of equal numbers of requests, long enough that the means of their logarithms
    are nearly independent (`TIMES_PER_BATCH` autocorrelation times of the responses about a straight line).
    The slope of a straight line through these means is tested by Student's t with two degrees of freedom
    fewer than batches: batch means as in Law, "Simulation Modeling and Analysis" (5th ed., 2015), section
    9.5.3.

    Args:
        values: responses above 0 in the order of asking. Unfinished requests count as the longest response.

    Raises:
        ValueError: a value is NaN.
    """
    x = np.asarray(values, dtype=float)
    finite = x[np.isfinite(x) & (x > 0)]
    if np.isnan(x).any():
        raise ValueError("a response is NaN: an unfinished request has the response infinity")
    if finite.size < 2:
        return Drift(None, None, 0, None, math.inf)
    y = np.log(np.clip(x, finite.min(), finite.max()))
    if np.ptp(y) == 0:
        return Drift(1.0, 1.0, min(y.size, MOST_BATCHES), 1.0)
    place = np.linspace(-0.5, 0.5, y.size)
    residual = y - y.mean() - place * (place @ y) / (place @ place)
    batches = int(min(y.size / (TIMES_PER_BATCH * autocorrelation_time(residual)), MOST_BATCHES))
    if batches < FEWEST_BATCHES:
        longer = FEWEST_BATCHES * TIMES_PER_BATCH * autocorrelation_time(residual) / y.size
        return Drift(None, None, batches, None, longer)
    size = y.size // batches
    means = y[y.size - batches * size :].reshape(batches, size).mean(axis=1)
    place = np.linspace(-0.5, 0.5, batches) * (1 - 1 / batches)
    slope = float(place @ means / (place @ place))
    residual = means - means.mean() - slope * place
    error = math.sqrt(float(residual @ residual) / (batches - 2) / float(place @ place))
    if error == 0:
        return Drift(math.exp(slope), 1.0 if slope == 0 else 0.0, batches, 1.0)
    p = 2 * float(special.stdtr(batches - 2, -abs(slope) / error))
    seen = special.stdtrit(batches - 2, 1 - SIGNIFICANCE / 2) + special.stdtrit(batches - 2, 0.95)
    return Drift(math.exp(slope), p, batches, math.exp(float(seen) * error))


def quantile_is_supported(values: ArrayLike, q: float) -> bool:
    """Whether a quantile rests on at least `FEWEST_BEYOND` effective responses beyond it.

    Without as many, the number would be the maximum of a few slow moments: at an autocorrelation of 0.99
    from request to request, the 0.99 quantile of 10,000 requests is 46 % too low on average.
    """
    return effective_beyond(values, q) >= FEWEST_BEYOND
