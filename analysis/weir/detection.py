"""How often a t test finds an effect, and how many repetitions that takes."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

#: A noncentrality this far above the critical value is found with certainty.
_CERTAIN = 30


def detected(noncentrality: ArrayLike, critical: float, degrees: int) -> NDArray[np.float64]:
    """The probability that t exceeds its critical value, by the noncentral t distribution.

    Cohen, "Statistical Power Analysis for the Behavioral Sciences" (2nd ed., 1988), section 2.3.

    Args:
        noncentrality: mean difference / standard error, at least 0.
        critical: the critical value.
        degrees: degrees of freedom.
    """
    # Far above the critical value the distribution function is not a number for some degrees of freedom.
    is_certain = np.asarray(noncentrality) > critical + _CERTAIN
    return 1 - special.nctdtr(degrees, np.where(is_certain, critical, noncentrality), critical) * ~is_certain


def fewest(finds: Callable[[int], bool], most: int) -> int | None:
    """The fewest repetitions that find an effect; at least 2, None where `most` are too few.

    Args:
        finds: whether this many repetitions find it; more do, too.
        most: the largest number that is tried.
    """
    if not finds(most):
        return None
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if finds(middle) else (middle, high)
    return high
