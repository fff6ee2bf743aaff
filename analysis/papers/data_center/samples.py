"""Samples over repetitions or batches, and intervals of their ratios and differences.

With two repetitions or more, each is one value, and two systems are compared block by block. Two or three
repetitions say little of how much runs differ (Student's t is 12.7 with two), so that of rates and times,
which differ by factors, the spread of all cells of a study is taken together: the residual of an analysis of
variance of logarithms (Jain, "The Art of Computer Systems Performance Analysis", 1991, section 22.5).

A single repetition is cut into batches of equal time; a batch is one value, and two systems are compared as
independent: Law and Kelton, "Simulation Modeling and Analysis" (1991), section 9.5.3. Batches say how steady
a run was, not how another one would have been: such an interval is too narrow rather than too wide.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from scipy import special

from weir.labels import with_interval
from weir.statistics import CONFIDENCE, Interval, mean_interval, ratio_interval

#: A run of a single repetition is cut into so many batches.
BATCHES = 8
#: What a column of batches is called.
OF_BATCHES = "_batches"
WITHIN = "batches of one run"
POOLED = "spread of all cells"
#: Metrics whose spread is a factor of one size in all cells, and up to how many repetitions it is pooled.
FACTORS = ("per_s", "mb_s", "response_ms", "read_mb_s", "network_mb_s", "kib_each", "us")
FEW = 4
#: Cells with less than this have next to nothing, of which the spread is any factor.
NEXT_TO_NOTHING = {"read_mb_s": 0.1}


@dataclass(frozen=True)
class Sample:
    """Values of a quantity.

    Attributes:
        values: one per repetition or batch.
        blocks: the block of each; empty for batches.
        spread: variance of the logarithms within cells, and its degrees of freedom; None for its own.
    """

    values: tuple[float, ...]
    blocks: tuple[int, ...] = ()
    spread: tuple[float, int] | None = None

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.values))


def sample(table: pl.DataFrame | None, metric: str, **levels: object) -> Sample | None:
    """The values of a metric in a cell.

    Args:
        table: one row per run, with `repetition`, the metric, and its batches if it has them.
        metric: the column; a row where it is null is left out.
        levels: what the cell's columns must be.

    Returns:
        None if the table is None or the cell has no value.
    """
    if table is None or table.is_empty():
        return None
    rows = table.filter(*(pl.col(name) == level for name, level in levels.items())).drop_nulls(metric)
    rows = rows.sort("repetition")
    if rows.is_empty():
        return None
    if rows.height == 1 and metric + OF_BATCHES in rows.columns:
        batches = [value for value in rows[metric + OF_BATCHES][0] if value is not None]
        if len(batches) > 1:
            return Sample(tuple(batches))
    found = Sample(tuple(rows[metric].to_list()), tuple(rows["repetition"].to_list()))
    if metric in FACTORS and 1 < rows.height <= FEW and min(found.values) > 0:
        found = replace(found, spread=_spread(table, metric, rows.height))
    return found


def _spread(table: pl.DataFrame, metric: str, repetitions: int) -> tuple[float, int] | None:
    """The variance of logarithms within cells; None if no more than the cell itself has any."""
    cells = [name for name in ("variant", "filesystem", "sites", "class") if name in table.columns]
    variances = (
        table.filter(
            pl.col(metric) > 0, pl.col(metric).mean().over(cells) >= NEXT_TO_NOTHING.get(metric, 0.0)
        )
        .group_by(cells, maintain_order=True)
        .agg(pl.col(metric).log().var().alias("variance"), (pl.len() - 1).cast(pl.Int64).alias("freedom"))
        # What cannot differ says nothing of what can.
        .filter(pl.col("variance") > 0)
    )
    freedom = int(variances["freedom"].sum())
    if freedom <= repetitions - 1:
        return None
    return float((variances["variance"] * variances["freedom"]).sum()) / freedom, freedom


def _by_spread(estimate: float, spread: tuple[float, int], share: float, n: int) -> Interval:
    """An estimate whose logarithm has this share of the variance within cells."""
    variance, freedom = spread
    half = float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(variance * share)
    return Interval(estimate, estimate * math.exp(-half), estimate * math.exp(half), n, POOLED)


def interval(found: Sample, *, bounds: tuple[float, float] = (0.0, math.inf)) -> Interval:
    """The mean of a sample, with an interval."""
    if found.spread is not None:
        return _by_spread(found.mean, found.spread, 1 / len(found.values), len(found.values))
    mean = mean_interval(found.values, bounds=bounds)
    return mean if found.blocks else replace(mean, n=1, method=WITHIN, note=WITHIN)


def ratio(above: Sample | None, below: Sample | None) -> Interval | None:
    """The ratio of two means.

    By blocks: the geometric mean of the ratios of common blocks; with few repetitions, by the spread of all
    cells. Otherwise, or where a value is 0, the ratio
    of the means with the error that propagates (delta method), and Welch's degrees of freedom.

    Returns:
        None if either is None, or the mean below is 0.
    """
    if above is None or below is None or below.mean <= 0:
        return None
    common = sorted(set(above.blocks) & set(below.blocks))
    if common:
        a, b = ([of.values[of.blocks.index(at)] for at in common] for of in (above, below))
        if min(*a, *b) > 0:
            own = ratio_interval(a, b)
            spread = above.spread or below.spread
            return own if spread is None else _by_spread(own.estimate, spread, 2 / len(common), len(common))
        above, below = Sample(tuple(a), tuple(common)), Sample(tuple(b), tuple(common))
        if below.mean <= 0:
            return None
    estimate = above.mean / below.mean
    parts = [(of, scale) for of, scale in ((above, 1 / below.mean), (below, estimate / below.mean))]
    errors = [
        np.var(of.values, ddof=1) / len(of.values) * scale**2 for of, scale in parts if len(of.values) > 1
    ]
    total = float(sum(errors))
    if len(errors) < 2 or total == 0:
        return Interval(estimate, None, None, 1, "none", note="one value: no interval")
    freedom = total**2 / sum(
        error**2 / (len(of.values) - 1) for error, (of, _) in zip(errors, parts, strict=True)
    )
    half = float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(total)
    n = len(common) or 1
    note = "" if common else WITHIN
    return Interval(estimate, max(estimate - half, 0.0), estimate + half, n, "delta method", note=note)


def shown(of: Interval | None) -> str:
    """A number with its interval, for tables; nothing for none."""
    return "" if of is None else with_interval(of.estimate, of.low, of.high)


def percent_gain(of: Interval | None) -> Interval | None:
    """A ratio as what it is more than 1, in %."""
    return None if of is None else _through(of, lambda value: 100 * (value - 1))


def difference(above: Interval | None, below: Interval | None) -> Interval | None:
    """The difference of two means that have intervals, as of independent ones.

    The recovery of variance estimates of Zou and Donner (Statistics in Medicine 27, 2008). Pairs of a block
    are correlated, if at all, so that the interval is too wide rather than too narrow.
    """
    if above is None or below is None:
        return None
    middle = above.estimate - below.estimate
    n = min(above.n, below.n)
    ends = (above.low, above.high, below.low, below.high)
    if any(end is None for end in ends):
        return Interval(middle, None, None, n, "none", note=above.note or below.note)
    a_low, a_high, b_low, b_high = (float(end) for end in ends if end is not None)
    low = middle - math.hypot(above.estimate - a_low, b_high - below.estimate)
    high = middle + math.hypot(a_high - above.estimate, below.estimate - b_low)
    return Interval(middle, low, high, n, "MOVER", note=above.note or below.note)


def average(of: list[Interval]) -> Interval | None:
    """The mean of independent means, none of which outweighs another; None of none."""
    if not of:
        return None
    middle = float(np.mean([one.estimate for one in of]))
    n, note = min(one.n for one in of), of[0].note
    if any(one.low is None or one.high is None for one in of):
        return Interval(middle, None, None, n, "none", note=note)
    low = math.hypot(*(one.estimate - float(one.low or 0) for one in of)) / len(of)
    high = math.hypot(*(float(one.high or 0) - one.estimate for one in of)) / len(of)
    return Interval(middle, middle - low, middle + high, n, "MOVER", note=note)


def _through(of: Interval, change) -> Interval:
    """An interval on another scale, which must be rising."""
    low, high = (None if end is None else change(end) for end in (of.low, of.high))
    return replace(of, estimate=change(of.estimate), low=low, high=high)
