"""Simultaneous inference: several comparisons of one family, judged together.

With 48 comparisons of equal systems at the 5 % level, at least one "difference" appears in nine studies of
ten. The functions here keep the probability of any false difference in a family at 5 %, or for large maps the
share of false differences among those claimed (`false_discovery`). A comparison is a set of paired
differences, one per block; ratios are compared by the differences of their logarithms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

Array = NDArray[np.float64]
CONFIDENCE = 0.95
#: Below this probability under a common variance, each comparison stands on its own variance. It is large,
#: because a test of few repetitions overlooks most differences.
HOMOGENEITY = 0.2
# The data choose between a common variance and own ones, which makes errors up to a third more frequent than
# the level; so much of the level is used. Measured by `test_multiplicity.py`.
ALLOWANCE = 0.75
#: Points of the quadratures over the baseline's error and over the estimate of the common deviation.
_POINTS = 64
_DEVIATIONS = 256


@dataclass(frozen=True)
class Paired:
    """One comparison with its baseline.

    Attributes:
        differences: treated - baseline by block; at least one, all finite.
        group: comparisons of one group share the baseline's runs.
    """

    differences: Mapping[int, float]
    group: object = None


@dataclass(frozen=True)
class Judged:
    """One comparison judged beside its family.

    Attributes:
        estimate: the mean difference.
        low: lower end of the simultaneous interval; None without one.
        high: upper end; None without one.
        p: probability of a mean at least this far from 0 if there were no difference; None without an
            interval.
        adjusted_p: by Holm over the family: a difference is claimed where it is at most 1 - confidence.
        n: blocks.
        degrees: degrees of freedom of the variance that was used.
        pooled: the variance is common to the family.
    """

    estimate: float
    low: float | None
    high: float | None
    p: float | None
    adjusted_p: float | None
    n: int
    degrees: int
    pooled: bool


def holm(p: ArrayLike) -> Array:
    """p-values adjusted for their number, valid under any dependence between the tests.

    Holm, "A simple sequentially rejective multiple test procedure" (Scandinavian Journal of Statistics
    6(2), 1979).
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1)
    return adjusted


def false_discovery(p: ArrayLike) -> Array:
    """p-values adjusted so that a share of at most the level of all claimed differences is false on average.

    Benjamini and Hochberg, "Controlling the false discovery rate" (Journal of the Royal Statistical Society B
    57(1), 1995); valid for independent tests and for tests that depend positively on each other, such as
    those of neighbouring loads with common requests (Benjamini and Yekutieli, Annals of Statistics 29(4),
    2001). For maps of hundreds of comparisons, of which Holm's correction would leave most undecided.
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    steps = p[order] * p.size / np.arange(1, p.size + 1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1)
    return adjusted


def simultaneous_t(groups: Sequence[int], degrees: int, confidence: float = CONFIDENCE) -> float:
    """The critical value of the largest |t| of a family of comparisons with baselines.

    Dunnett, "A multiple comparison procedure for comparing several treatments with a control" (Journal of
    the American Statistical Association 50, 1955): within a group the comparisons share a baseline and
    correlate by 1/2, groups are independent, and all share one estimate of the deviation.

    Args:
        groups: the number of comparisons in each group.
        degrees: degrees of freedom of the common variance.
        confidence: the probability that no |t| exceeds the value.

    Raises:
        ValueError: there is no comparison.
    """
    sizes, counts = np.unique([size for size in groups if size > 0], return_counts=True)
    if not sizes.size:
        raise ValueError("a family has at least one comparison")
    nodes, weights = np.polynomial.hermite_e.hermegauss(_POINTS)
    weights = weights / weights.sum()
    # The estimate of the deviation, in units of the deviation, at the middle of equal probabilities.
    shares = (np.arange(_DEVIATIONS) + 0.5) / _DEVIATIONS
    deviation = np.sqrt(special.gammaincinv(degrees / 2, shares) * 2 / degrees)

    def uncovered(critical: float) -> float:
        reach = np.sqrt(2) * critical * deviation[:, None]
        inside = special.ndtr(nodes + reach) - special.ndtr(nodes - reach)
        none = np.prod(
            [((inside**size) @ weights) ** n for size, n in zip(sizes, counts, strict=True)], axis=0
        )
        return confidence - float(none.mean())

    # Between the values of one comparison and of Bonferroni; wider, because the quadrature is inexact.
    ends = (1, sum(groups))
    low, high = (float(special.stdtrit(degrees, 1 - (1 - confidence) / 2 / m)) for m in ends)
    return float(optimize.brentq(uncovered, low / 2, high * 2, xtol=1e-6))


def variances_agree(variances: ArrayLike, degrees: ArrayLike) -> bool:
    """Whether variances may estimate one, by Bartlett's test (Proceedings of the Royal Society A 160, 1937).

    It is chosen for its power at two degrees of freedom. Where values are not normal it refuses too often,
    and a refusal only costs width.

    Args:
        variances: the estimates.
        degrees: degrees of freedom of each; estimates without any are left out.
    """
    degrees = np.asarray(degrees, dtype=float)
    kept = degrees > 0
    variances, degrees = np.asarray(variances, dtype=float)[kept], degrees[kept]
    if variances.size < 2:
        return True
    if (variances == 0).any():
        return False
    total = degrees.sum()
    pooled = float(degrees @ variances) / total
    statistic = total * np.log(pooled) - degrees @ np.log(variances)
    correction = 1 + ((1 / degrees).sum() - 1 / total) / 3 / (variances.size - 1)
    return bool(special.chdtrc(variances.size - 1, statistic / correction) >= HOMOGENEITY)


def judge(
    family: Sequence[Paired], confidence: float = CONFIDENCE, *, all_pairs: bool = False
) -> list[Judged]:
    """Judges every comparison of a family: simultaneous intervals, p and Holm's adjusted p.

    Where the variances of the comparisons agree (`variances_agree`), they are pooled, and the intervals are
    Dunnett's. Otherwise each comparison stands on its own variance, and the intervals are Bonferroni's. A
    comparison of one block has an interval only where variances are pooled.

    Args:
        family: the comparisons.
        confidence: the probability that all intervals hold their differences.
        all_pairs: the family has every pair of some levels, and a group is the pairs with one baseline. The
            first group has all other levels, so the common variance is that of its levels and blocks. The
            pairs are dependent: the intervals are Sidak's (Journal of the American Statistical Association
            62, 1967), which hold under any correlation. A baseline may then be chosen by the results.

    Raises:
        ValueError: a difference is not finite, or a comparison has none.
    """
    samples = [np.asarray(list(one.differences.values()), dtype=float) for one in family]
    if any(x.size == 0 or not np.isfinite(x).all() for x in samples):
        raise ValueError("a comparison needs finite differences, and at least one")
    level = (1 - confidence) * ALLOWANCE
    variances = [float(x.var(ddof=1)) if x.size > 1 else 0.0 for x in samples]
    names = [one.group for one in family]
    of_all = [one for one in family if one.group == names[0]] if all_pairs else family
    common, degrees = pooled_variance(of_all) if len(family) > 1 else (0.0, 0)
    pooled = common > 0 and variances_agree(variances, [x.size - 1 for x in samples])
    if pooled:
        sizes = [1] * len(family) if all_pairs else [names.count(name) for name in dict.fromkeys(names)]
        reach = simultaneous_t(sizes, degrees, 1 - level)
    judged = []
    for x, own in zip(samples, variances, strict=True):
        variance, of = (common, degrees) if pooled else (own, x.size - 1)
        mean = float(x.mean())
        if variance == 0:
            judged.append(Judged(mean, None, None, None, None, x.size, of, pooled))
            continue
        if not pooled:
            reach = float(special.stdtrit(of, 1 - level / 2 / len(samples)))
        error = float(np.sqrt(variance / x.size))
        p = 2 * float(special.stdtr(of, -abs(mean) / error))
        judged.append(Judged(mean, mean - reach * error, mean + reach * error, p, None, x.size, of, pooled))
    adjusted = iter(np.minimum(holm([one.p for one in judged if one.p is not None]) / ALLOWANCE, 1))
    return [one if one.p is None else replace(one, adjusted_p=float(next(adjusted))) for one in judged]


def pooled_variance(family: Sequence[Paired]) -> tuple[float, int]:
    """The variance of one paired difference, common to the family, and its degrees of freedom.

    Twice the residual mean square of levels and blocks. The baseline of a group is its level at 0 in every
    block: what is common to a block has been taken out of the differences.
    """
    squares, degrees = 0.0, 0
    for group in dict.fromkeys(one.group for one in family):
        levels = [one.differences for one in family if one.group == group]
        blocks = sorted({block for level in levels for block in level})
        cells = [(0, block, 0.0) for block in blocks]
        cells += [(i, block, value) for i, level in enumerate(levels, 1) for block, value in level.items()]
        design = np.zeros((len(cells), len(levels) + 1 + len(blocks)))
        for row, (level, block, _) in enumerate(cells):
            design[row, level] = design[row, len(levels) + 1 + blocks.index(block)] = 1
        values = np.array([value for _, _, value in cells])
        fit, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
        squares += float(((values - design @ fit) ** 2).sum())
        degrees += len(cells) - int(rank)
    return (2 * squares / degrees, degrees) if degrees else (0.0, 0)
