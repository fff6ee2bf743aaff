"""Group-sequential intervals: repetitions are looked at one after another, and the confidence is kept.

Looking at every repetition and stopping at the first "significant" one claims differences of equal systems in
far more than 5 of 100 studies. Here each look has a part of the 5 %: Lan and DeMets, "Discrete sequential
boundaries for clinical trials" (Biometrika 70(3), 1983), with their spending function of Pocock's type, which
spends early and therefore stops early. The intervals of all looks hold at once, whatever rule stops the study:
Jennison and Turnbull, "Interim analyses: the repeated confidence interval approach" (Journal of the Royal
Statistical Society B 51(3), 1989). For variances that are estimated, Student's t has the same level at each
look: Jennison and Turnbull, "Group Sequential Methods" (1999), section 4.4.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

Array = NDArray[np.float64]
#: Repetitions up to which each one is looked at, and the factor between later looks.
_EACH = 20
_GROWTH = 1.05
#: Nodes of the quadrature over the sums that have not stopped.
_NODES = 160


def looks(first: int, at_most: int) -> tuple[int, ...]:
    """The numbers of repetitions after which a decision is made.

    Every number up to 20, then each 5 % more: later looks would hardly save repetitions.

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


def half_width(deviation: float | Array, n: int, level: float) -> float | Array:
    """Half the width of the interval of a mean at one look, from the look's nominal level.

    Args:
        deviation: standard deviation of the values.
        n: values, at least 2.
        level: two-sided, as `nominal_levels` gives it.
    """
    return float(special.stdtrit(n - 1, 1 - level / 2)) / math.sqrt(n) * deviation


def reached(low: Array, high: Array, width: float | None, effect: float | None) -> NDArray[np.bool_]:
    """Whether intervals of logarithms are precise enough.

    Args:
        low: lower ends.
        high: upper ends.
        width: relative half-width that is narrow enough.
        effect: relative change that matters: an interval decides about it if it excludes 0, or excludes every
            change of this size.
    """
    done = np.zeros(np.shape(low), dtype=bool)
    if width is not None:
        done |= high - low <= 2 * math.log1p(width)
    if effect is not None:
        matters = math.log1p(effect)
        done |= (low > 0) | (high < 0) | ((low > -matters) & (high < matters))
    return done
