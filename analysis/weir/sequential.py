"""Repeated confidence intervals of a group-sequential design.

A study that looks at its results after each repetition and stops at the first difference claims differences
of equal systems in far more than 5 of 100 studies. Here each look spends a part of the 5 %: Lan and DeMets,
"Discrete sequential boundaries for clinical trials" (Biometrika 70(3), 1983), with their spending function
of Pocock's type, which stops early. The intervals of all looks hold together, whatever rule stops the study:
Jennison and Turnbull, "Interim analyses: the repeated confidence interval approach" (Journal of the Royal
Statistical Society B 51(3), 1989). Variances are estimated: each look uses Student's t at the level that the
look has with known variances (Jennison and Turnbull, "Group Sequential Methods", 1999, section 4.4).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

Array = NDArray[np.float64]
# Variances that are estimated from few repetitions make errors up to a sixth more frequent than the level; so
# much of the level is used. Measured by `test_sequential.py`.
ALLOWANCE = 0.85
#: Repetitions up to which each one is looked at, and the factor between later looks.
_EACH = 20
_GROWTH = 1.05
#: Nodes of the quadrature over the sums that have not stopped.
_NODES = 160


def looks(first: int, at_most: int) -> tuple[int, ...]:
    """The numbers of repetitions after which a decision is made.

    Every number up to 20, then 5 % more at a time: more looks would hardly save repetitions.

    Args:
        first: repetitions before the first look, at least 2.
        at_most: repetitions at the last look.

    Raises:
        ValueError: `first` is below 2 or above `at_most`.
    """
    if not 2 <= first <= at_most:
        raise ValueError(f"looks from {first} to {at_most} repetitions: give 2 <= first <= at_most")
    found = [first]
    while found[-1] < at_most:
        n = found[-1]
        step = 1 if n < _EACH else max(1, math.floor(n * (_GROWTH - 1)))
        found.append(min(n + step, at_most))
    return tuple(found)


def spent(share: float, level: float) -> float:
    """The part of `level` that is spent when a share of the repetitions has been made."""
    return level * math.log1p((math.e - 1) * share)


@lru_cache(maxsize=256)
def nominal_levels(at: tuple[int, ...], level: float) -> tuple[float, ...]:
    """The two-sided level of each look, so that all looks together err with probability `level`.

    By recursive integration over the sums that have crossed no boundary: Armitage, McPherson and Rowe,
    "Repeated significance tests on accumulating data" (Journal of the Royal Statistical Society A 132(2),
    1969).

    Args:
        at: repetitions at each look, as `looks` gives them.
        level: the probability that an interval of any look misses the true value.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    levels: list[float] = []
    spent_before, bound, density = 0.0, 0.0, np.empty(0)
    for i, n in enumerate(at):
        share = spent(n / at[-1], level)
        now = share - spent_before
        spent_before = share
        if i == 0:
            bound = math.sqrt(n) * float(special.ndtri(1 - now / 2))
            at_nodes = bound * nodes
            density = np.exp(-(at_nodes**2) / 2 / n) / math.sqrt(2 * math.pi * n)
        else:
            step = math.sqrt(n - at[i - 1])
            sums, mass = bound * nodes, bound * weights * density

            def crossing(bound: float, sums: Array = sums, mass: Array = mass, step: float = step) -> float:
                outside = special.ndtr((sums - bound) / step) + special.ndtr((-bound - sums) / step)
                return float(mass @ outside)

            # From no boundary at all to one that nothing reaches.
            new = optimize.brentq(lambda b, now=now: crossing(b) - now, 0, 12 * math.sqrt(n), xtol=1e-10)
            at_nodes = new * nodes
            jumps = (at_nodes[:, None] - sums[None, :]) / step
            density = (np.exp(-(jumps**2) / 2) @ mass) / (step * math.sqrt(2 * math.pi))
            bound = new
        levels.append(2 * float(special.ndtr(-bound / math.sqrt(n))))
    return tuple(levels)


def look_level(at: tuple[int, ...], made: int, confidence: float, comparisons: int = 1) -> float:
    """The two-sided level of one interval at the last look that has been made, or at the first one.

    Args:
        at: repetitions at each look, as `looks` gives them.
        made: repetitions that have been made.
        confidence: of all intervals of all looks together.
        comparisons: intervals at each look (Bonferroni).
    """
    last = max(sum(n <= made for n in at) - 1, 0)
    return nominal_levels(at, (1 - confidence) * ALLOWANCE / max(comparisons, 1))[last]


@dataclass(frozen=True)
class Interval:
    """The interval of a mean at one look.

    Attributes:
        estimate: the mean.
        low: lower end.
        high: upper end.
        p: probability of a mean at least this far from 0 if it were 0, of this look alone.
    """

    estimate: float
    low: float
    high: float
    p: float


def interval(values: Array, level: float) -> Interval:
    """The interval of the mean of values at one look.

    Args:
        values: at least 2.
        level: two-sided, as `look_level` gives it.
    """
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(values.size)
    half = float(half_width(error, values.size, level))
    p = 2 * float(special.stdtr(values.size - 1, -abs(mean) / error)) if error > 0 else float(mean == 0)
    return Interval(mean, mean - half, mean + half, p)


def half_width(error: float | Array, n: int, level: float) -> float | Array:
    """Half the width of the interval of a mean at one look.

    Args:
        error: standard error of the mean.
        n: values, at least 2.
        level: two-sided, as `look_level` gives it.
    """
    return float(special.stdtrit(n - 1, 1 - level / 2)) * error


def reached(
    low: float | Array, high: float | Array, width: float | None, effect: float | None
) -> NDArray[np.bool_]:
    """Whether intervals of logarithms are precise enough.

    Args:
        low: lower ends.
        high: upper ends.
        width: relative half-width that is narrow enough.
        effect: relative change that matters: an interval decides about it if it excludes 0, or excludes every
            change of this size.
    """
    low, high = np.asarray(low), np.asarray(high)
    done = np.zeros(low.shape, dtype=bool)
    if width is not None:
        done |= high - low <= 2 * math.log1p(width)
    if effect is not None:
        matters = math.log1p(effect)
        done |= (low > 0) | (high < 0) | ((low > -matters) & (high < matters))
    return done
