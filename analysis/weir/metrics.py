"""The metrics, each defined once: formula, unit and source.

Plain functions of arrays, without files. `weir.derive` applies them to a run. Times are in the unit that the
name says; MB is 10^6 bytes. Where a metric has no value (no request, nothing promised) the function returns
None: zero is never a stand-in for an absent result.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def quantile(values: ArrayLike, q: float) -> float | None:
    """The q-quantile by the inverse of the empirical distribution: a value that was really observed.

    Definition 1 of Hyndman and Fan, "Sample quantiles in statistical packages" (American Statistician 50(4),
    1996): the smallest x with F(x) >= q. It does not interpolate, so it is right for censored responses: a
    request that never completed has the response infinity, and a quantile among those is infinity.

    Args:
        values: one value per request, infinity allowed.
        q: in (0, 1].

    Returns:
        The quantile; None where fewer than 1 / (1 - q) values exist, since it would only name the maximum.

    Raises:
        ValueError: q is outside (0, 1], or a value is NaN.
    """
    if not 0 < q <= 1:
        raise ValueError(f"a quantile is asked at q in (0, 1], not at {q}")
    values = np.asarray(values, dtype=float)
    if np.isnan(values).any():
        raise ValueError("a value is NaN: an unfinished request has the response infinity")
    n = values.size
    if n == 0 or (q < 1 and n * (1 - q) < 1 - 1e-9):
        return None
    return float(np.partition(values, rank(n, q))[rank(n, q)])


def rank(n: int, q: float) -> int:
    """The place of the q-quantile among n sorted values, from 0."""
    # The slack keeps 0.95 * 20 = 19.000000000000004 at rank 19.
    return max(math.ceil(q * n - 1e-9), 1) - 1


def mean(values: ArrayLike) -> float | None:
    """The arithmetic mean; infinity if one value is; None of nothing."""
    values = np.asarray(values, dtype=float)
    return float(values.mean()) if values.size else None


def share_within(response_ms: ArrayLike, at_most_ms: float) -> float | None:
    """The share of requests whose response was at most `at_most_ms`: how far an objective was attained."""
    values = np.asarray(response_ms, dtype=float)
    return float((values <= at_most_ms).mean()) if values.size else None


def deadline_miss_share(completed_ns: ArrayLike, deadline_ns: ArrayLike, status: ArrayLike) -> float | None:
    """Missed deadlines / requests with a deadline.

    A deadline is missed when the request completed after it, failed, or never completed (NaN): Abbott and
    Garcia-Molina, "Scheduling real-time transactions with disk resident data" (VLDB 1989), with failures
    added.

    Args:
        completed_ns: NaN where the request never completed.
        deadline_ns: NaN where there is none; such requests are not counted.
        status: 0, or the errno of the failure.
    """
    completed_ns, deadline_ns = np.asarray(completed_ns, dtype=float), np.asarray(deadline_ns, dtype=float)
    has_deadline = ~np.isnan(deadline_ns)
    if not has_deadline.any():
        return None
    # A comparison with NaN is false, so an unfinished request is not "in time".
    in_time = (completed_ns <= deadline_ns) & (np.asarray(status) == 0)
    return float((~in_time[has_deadline]).mean())


def throughput_mb_s(size_bytes: ArrayLike, duration_s: float) -> float:
    """Bytes completed in the measured interval / its length, in MB/s."""
    return float(np.sum(np.asarray(size_bytes, dtype=float))) / 1e6 / duration_s


def jain_index(allocations: ArrayLike, weights: ArrayLike | None = None) -> float | None:
    """Jain's fairness index (sum x)^2 / (n sum x^2) of x = allocation / weight: 1 is fair, 1/n is not.

    Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination for resource allocation in
    shared computer systems" (DEC TR-301, 1984).

    Returns:
        The index in [1/n, 1]; None of no allocation, or where all are zero.

    Raises:
        ValueError: an allocation is negative, a weight is not positive, or their numbers differ.
    """
    x = np.asarray(allocations, dtype=float)
    if (x < 0).any():
        raise ValueError("an allocation is negative")
    if weights is not None:
        w = np.asarray(weights, dtype=float)
        if w.shape != x.shape or (w <= 0).any():
            raise ValueError("each allocation needs one weight above 0")
        x = x / w
    largest = x.max(initial=0.0)
    if largest == 0:
        return None
    # The index does not change with the unit; scaling keeps the squares of very small and large x in range.
    x = x / largest
    return float(x.sum() ** 2 / (x.size * (x**2).sum()))


def share_error(received: float, promised: float) -> float:
    """(received - promised) / promised: below 0 the class got less than its reservation.

    Raises:
        ValueError: nothing was promised.
    """
    if promised <= 0:
        raise ValueError(f"a reservation is above 0, not {promised}")
    return (received - promised) / promised


def slowdown(shared_ms: float, alone_ms: float) -> float:
    """Response when the device is shared / response alone on the same device: 1 is perfect isolation.

    Mutlu and Moscibroda, "Stall-time fair memory access scheduling" (MICRO 2007) for memory; used for
    storage by Shen and Park, "FlashFQ" (USENIX ATC 2013).

    Raises:
        ValueError: the response alone is not above 0.
    """
    if alone_ms <= 0:
        raise ValueError(f"a response time is above 0, not {alone_ms}")
    return shared_ms / alone_ms


def isolation(shared_ms: float, alone_ms: float) -> float:
    """1 / slowdown: the part of its solitary performance that a class keeps when others share the device."""
    return 1 / slowdown(shared_ms, alone_ms)


def interference(shared_ms: float, alone_ms: float) -> float:
    """Slowdown - 1: the response time that the others added, in units of the response alone."""
    return slowdown(shared_ms, alone_ms) - 1


def union_ns(start_ns: ArrayLike, end_ns: ArrayLike, window_ns: tuple[int, int]) -> float:
    """The time within the window that at least one of the intervals `[start, end)` covers."""
    low, high = window_ns
    start = np.clip(np.asarray(start_ns, dtype=float), low, high)
    end = np.clip(np.asarray(end_ns, dtype=float), low, high)
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    if start.size == 0:
        return 0.0
    # What each interval adds lies beyond the furthest end seen before it.
    reached = np.concatenate(([low], np.maximum.accumulate(end)[:-1]))
    return float(np.maximum(end - np.maximum(start, reached), 0).sum())


def utilisation(issued_ns: ArrayLike, completed_ns: ArrayLike, window_ns: tuple[int, int]) -> float:
    """The share of the window in which the device held at least one request: `%util` of iostat, but exact."""
    return union_ns(issued_ns, completed_ns, window_ns) / (window_ns[1] - window_ns[0])


def work_conservation(
    queued_ns: ArrayLike, issued_ns: ArrayLike, completed_ns: ArrayLike, window_ns: tuple[int, int]
) -> float | None:
    """Time in which the device worked / time in which a request waited or was served.

    1 for a work-conserving scheduler; below it, the scheduler idled the device while requests waited (Iyer
    and Druschel, "Anticipatory scheduling", SOSP 2001, do so on purpose).

    Returns:
        The share in [0, 1]; None where no request was there.
    """
    backlog = union_ns(queued_ns, completed_ns, window_ns)
    return union_ns(issued_ns, completed_ns, window_ns) / backlog if backlog > 0 else None


def mean_number(start_ns: ArrayLike, end_ns: ArrayLike, window_ns: tuple[int, int]) -> float:
    """The time average of the number of requests between start and end (queue length, device depth)."""
    low, high = window_ns
    start = np.clip(np.asarray(start_ns, dtype=float), low, high)
    end = np.clip(np.asarray(end_ns, dtype=float), low, high)
    return float((end - start).sum()) / (high - low)


def counts(times_ns: ArrayLike, interval_ns: int, window_ns: tuple[int, int]) -> Array:
    """Arrivals in each whole interval of the window; a last interval that is cut short is left out."""
    low, high = window_ns
    n = (high - low) // interval_ns
    index = (np.asarray(times_ns, dtype=np.int64) - low) // interval_ns
    return np.bincount(index[(index >= 0) & (index < n)], minlength=n).astype(float)


def peak_to_mean(arrivals: ArrayLike) -> float | None:
    """The largest count of an interval / the mean count: burstiness at that interval's length."""
    arrivals = np.asarray(arrivals, dtype=float)
    return float(arrivals.max() / arrivals.mean()) if arrivals.size and arrivals.any() else None


def index_of_dispersion(arrivals: ArrayLike) -> float | None:
    """Variance / mean of the counts: 1 for Poisson arrivals, more for bursts, 0 for a clock.

    Gusella, "Characterizing the variability of arrival processes with indexes of dispersion" (IEEE JSAC 9(2),
    1991). The variance is the unbiased one.
    """
    arrivals = np.asarray(arrivals, dtype=float)
    if arrivals.size < 2 or not arrivals.any():
        return None
    return float(arrivals.var(ddof=1) / arrivals.mean())


def attained(value: float | None, limit: float, upper: bool) -> bool | None:
    """Whether a promise was kept: at most the limit if `upper`, at least otherwise; None without a value."""
    if value is None:
        return None
    return value <= limit if upper else value >= limit


def shares(amounts: Sequence[float]) -> list[float] | None:
    """Each amount / their sum; None where the sum is zero."""
    total = sum(amounts)
    return [amount / total for amount in amounts] if total > 0 else None
