"""Steady state of one run: warm-up, drift, and how many independent responses its requests are worth.

Responses of one run follow each other in time and are correlated: a slow moment delays every request that
waits in it. Ten thousand requests can therefore carry no more information than a hundred. The functions
here take responses in the order in which they were asked, as one array or as a `weir.series.Series`;
unfinished requests have the response infinity. Of more than 2^20 responses the autocorrelation is estimated
from up to 8 stretches of 2^20 consecutive ones, spread evenly over the run.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, special

from weir import metrics
from weir.series import PIECE, Series

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


def autocorrelation(*stretches: ArrayLike) -> Array:
    """Autocorrelation at lags 0, 1, ..., n - 1 by the biased estimator, which is positive semi-definite.

    Args:
        stretches: the values; or stretches of n consecutive values each, over which covariances are averaged.

    Returns:
        Values in [-1, 1]; 1 followed by zeros where all values are equal.
    """
    parts = [np.asarray(part, dtype=float) for part in stretches]
    n = parts[0].size
    if n == 0:
        return np.ones(1)
    mean = sum(float(part.sum()) for part in parts) / (n * len(parts))
    size = fft.next_fast_len(2 * n - 1, real=True)
    power = np.zeros(size // 2 + 1)
    for part in parts:
        spectrum = fft.rfft(part - mean, size)
        power += spectrum.real**2 + spectrum.imag**2
    covariance = fft.irfft(power, size)[:n] / len(parts)
    if covariance[0] <= 1e-300:
        return np.concatenate(([1.0], np.zeros(n - 1)))
    return covariance / covariance[0]


def autocorrelation_time(*stretches: ArrayLike) -> float:
    """The number of consecutive values that are worth one independent value.

    1 + 2 (sum of the autocorrelations). The sum ends where the sum of two neighbours stops being positive,
    and never rises: the initial monotone sequence of Geyer, "Practical Markov chain Monte Carlo"
    (Statistical Science 7(4), 1992, section 3.3).

    Args:
        stretches: as of `autocorrelation`.

    Returns:
        At least 1: values that alternate are not counted as more than they are.
    """
    rho = autocorrelation(*stretches)
    pairs = rho[: rho.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: ends[0]] if ends.size else pairs)
    return max(float(2 * pairs.sum() - 1), 1.0)


def effective_size(values: ArrayLike | Series) -> float:
    """The number of independent values with the same information about the mean: n / autocorrelation time.

    Infinite values are ranked above all others, so the size is that of the mean rank.
    """
    series = _series(values)
    if series.n < 2:
        return float(series.n)
    parts = [part for _, part in series.stretches]
    if math.isinf(series.distribution.largest):
        if series.is_long:
            parts = [series.distribution.ranks(part) for part in parts]
        else:
            parts = [np.argsort(np.argsort(parts[0], kind="stable"), kind="stable")]
    return series.n / autocorrelation_time(*parts)


def effective_beyond(values: ArrayLike | Series, q: float) -> float:
    """The number of independent responses beyond the q-quantile: what an estimate of it rests on.

    It counts the values above the quantile, divided by the autocorrelation time of being above it.
    """
    series = _series(values, q)
    if series.n < 2:
        return 0.0
    parts = [part for _, part in series.stretches]
    if series.is_long:
        threshold, count = series.distribution.quantile(q), series.distribution.number_above(q)
    else:
        rank = metrics.rank(series.n, q)
        threshold = np.partition(parts[0], rank)[rank]
        count = int((parts[0] > threshold).sum())
    # Where the largest values are equal, none is beyond: the quantile is the maximum, and no moment was
    # slow.
    if not count:
        return series.n * (1 - q)
    return count / autocorrelation_time(*((part > threshold).astype(float) for part in parts))


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


def drift(values: ArrayLike | Series) -> Drift:
    """Tests whether responses rise or fall over the run.

    The run is cut into batches of equal numbers of requests, long enough that the means of their logarithms
    are nearly independent (`TIMES_PER_BATCH` autocorrelation times of the responses about a straight line).
    The slope of a straight line through these means is tested by Student's t with two degrees of freedom
    fewer than batches: batch means as in Law, "Simulation Modeling and Analysis" (5th ed., 2015), section
    9.5.3. Batches of more than 2^20 responses are multiples of 2^10.

    Args:
        values: responses above 0 in the order of asking. Unfinished requests count as the longest response.

    Raises:
        ValueError: a value is NaN.
    """
    series = _series(values)
    n, lowest, highest = series.n, series.lowest, series.highest
    if series.finite < 2:
        return Drift(None, None, 0, None, math.inf)
    if lowest == highest:
        return Drift(1.0, 1.0, min(n, MOST_BATCHES), 1.0)
    parts = [(first, np.log(np.clip(part, lowest, highest))) for first, part in series.stretches]
    # Equal parts of the run, of which batches are made.
    units, size = (series.pieces(), PIECE) if series.is_long else (parts[0][1], 1)
    place = (np.arange(units.size) * size + (size - 1) / 2) / (n - 1) - 0.5
    centred = place - place.mean()
    slope = centred @ units / (centred @ centred)
    residuals = (
        part - units.mean() - slope * ((first + np.arange(part.size)) / (n - 1) - 0.5)
        for first, part in parts
    )
    time = autocorrelation_time(*residuals)
    batches = int(min(n / (TIMES_PER_BATCH * time), MOST_BATCHES))
    if batches < FEWEST_BATCHES:
        return Drift(None, None, batches, None, FEWEST_BATCHES * TIMES_PER_BATCH * time / n)
    each = units.size // batches
    means = units[units.size - batches * each :].reshape(batches, each).mean(axis=1)
    place = np.linspace(-0.5, 0.5, batches) * (1 - 1 / batches)
    slope = float(place @ means / (place @ place))
    residual = means - means.mean() - slope * place
    error = math.sqrt(float(residual @ residual) / (batches - 2) / float(place @ place))
    if error == 0:
        return Drift(math.exp(slope), 1.0 if slope == 0 else 0.0, batches, 1.0)
    p = 2 * float(special.stdtr(batches - 2, -abs(slope) / error))
    seen = special.stdtrit(batches - 2, 1 - SIGNIFICANCE / 2) + special.stdtrit(batches - 2, 0.95)
    return Drift(math.exp(slope), p, batches, math.exp(float(seen) * error))


def _series(values: ArrayLike | Series, *qs: float) -> Series:
    """The values as a series, whose quantiles at `qs` are known."""
    if isinstance(values, Series):
        return values
    x = np.asarray(values, dtype=float)
    if np.isnan(x).any():
        raise ValueError("a response is NaN: an unfinished request has the response infinity")
    series = Series.of(x)
    series.distribution.resolve_among(x, qs)
    return series


def quantile_is_supported(values: ArrayLike, q: float) -> bool:
    """Whether a quantile rests on at least `FEWEST_BEYOND` effective responses beyond it.

    Without as many, the number would be the maximum of a few slow moments: at an autocorrelation of 0.99
    from request to request, the 0.99 quantile of 10,000 requests is 46 % too low on average.
    """
    return effective_beyond(values, q) >= FEWEST_BEYOND
