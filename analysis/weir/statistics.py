"""Intervals over repetitions, and comparisons paired by block.

The unit of observation is a run: requests of one run wait for each other and are not independent, so an
interval is never computed from them. One repetition has no interval, and says so.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy import special

Method = Literal["t", "bootstrap-percentile", "bootstrap-bca"]
CONFIDENCE = 0.95
RESAMPLES = 9999
#: A bootstrap draws from a generator of its own with this seed, so that a figure is the same every time.
SEED = 20_250_101


@dataclass(frozen=True)
class Interval:
    """An estimate over `n` repetitions with its confidence interval, if it has one.

    Attributes:
        estimate: the mean over repetitions (for a ratio: the geometric mean).
        low: lower end; None without an interval.
        high: upper end; None without an interval.
        n: repetitions.
        method: how the interval was computed; "none" without one.
        confidence: its nominal level.
        note: why there is no interval, or what it rests on; empty if nothing needs saying.
    """

    estimate: float
    low: float | None
    high: float | None
    n: int
    method: str
    confidence: float = CONFIDENCE
    note: str = ""


def mean_interval(
    values: ArrayLike,
    method: Method = "t",
    *,
    confidence: float = CONFIDENCE,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    """The mean of one value per repetition, with an interval.

    `t`: Student's t with n - 1 degrees of freedom, for means of runs. `bootstrap-percentile` and
    `bootstrap-bca`: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 13 and 14; with
    fewer than about ten repetitions they are too narrow, so t is the default.

    Args:
        values: one finite or infinite value per repetition.
        method: the interval's method.
        confidence: its nominal level.
        bounds: the range of the quantity (a share lies in [0, 1]); the interval is cut to it.

    Raises:
        ValueError: there is no value, one is NaN, or the method is unknown.
    """
    x = np.asarray(values, dtype=float)
    if x.size == 0 or np.isnan(x).any():
        raise ValueError("an interval needs at least one value, and none may be NaN")
    if np.isinf(x).any():
        return Interval(
            float(x.mean()), None, None, x.size, "none", confidence, "not bounded in every repetition"
        )
    estimate = float(x.mean())
    if x.size == 1:
        return Interval(estimate, None, None, 1, "none", confidence, "n = 1: no interval")
    # An interval of no width would claim certainty, as for 0 deadlines missed in three short runs.
    if np.ptp(x) == 0:
        note = "all repetitions are equal: no interval"
        return Interval(float(x[0]), None, None, x.size, "none", confidence, note)
    if method == "t":
        half = special.stdtrit(x.size - 1, (1 + confidence) / 2) * x.std(ddof=1) / np.sqrt(x.size)
        low, high = estimate - half, estimate + half
    elif method in ("bootstrap-percentile", "bootstrap-bca"):
        # Only here: it takes seconds to import, which every summary and page would wait for.
        from scipy import stats

        result = stats.bootstrap(
            (x,),
            np.mean,
            confidence_level=confidence,
            n_resamples=RESAMPLES,
            method="percentile" if method == "bootstrap-percentile" else "BCa",
            rng=np.random.default_rng(SEED),
        )
        low, high = result.confidence_interval
    else:
        raise ValueError(f"unknown method {method!r}: t, bootstrap-percentile or bootstrap-bca")
    low, high = max(float(low), bounds[0]), min(float(high), bounds[1])
    return Interval(estimate, low, high, x.size, method, confidence)


def means_by(rows: pl.DataFrame, x: str, y: str) -> tuple[list[float], list[Interval]]:
    """The values of a column `x`, sorted, and the mean of `y` at each with its interval."""
    places = sorted(rows[x].unique().to_list())
    return places, [mean_interval(rows.filter(pl.col(x) == place)[y].to_list()) for place in places]


def geometric_mean_interval(values: ArrayLike) -> Interval:
    """The geometric mean of positive values, with the t interval of their logarithms."""
    found = mean_interval(np.log(np.asarray(values, dtype=float)))
    ends = (None if end is None else float(np.exp(end)) for end in (found.low, found.high))
    return Interval(float(np.exp(found.estimate)), *ends, found.n, found.method, note=found.note)


def ratio_interval(
    numerator: ArrayLike, denominator: ArrayLike, *, confidence: float = CONFIDENCE
) -> Interval:
    """The ratio of two paired quantities: geometric mean of the ratios by block, t interval on its log.

    Pairs share a block (the same repetition of the plan, the same seed), which takes the variation from
    block to block out of the comparison: Jain, "The Art of Computer Systems Performance Analysis" (1991),
    section 13.4.

    Args:
        numerator: one value per block.
        denominator: the baseline's value of the same blocks, in the same order.
        confidence: the nominal level.

    Raises:
        ValueError: the two differ in length, are empty, or hold a value that is not finite and above 0.
    """
    a, b = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    if a.shape != b.shape or a.size == 0:
        raise ValueError("a paired ratio needs as many numerators as denominators, and at least one")
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a > 0).all() and (b > 0).all()):
        raise ValueError("a ratio needs finite values above 0; compare by difference instead")
    log = mean_interval(np.log(a / b), "t", confidence=confidence)
    low = None if log.low is None else float(np.exp(log.low))
    high = None if log.high is None else float(np.exp(log.high))
    method = "none" if low is None else "paired t on log ratio"
    return Interval(float(np.exp(log.estimate)), low, high, log.n, method, confidence, log.note)


def difference_interval(
    treated: ArrayLike, baseline: ArrayLike, *, confidence: float = CONFIDENCE
) -> Interval:
    """The mean of the differences by block with a paired t interval, for quantities that may be zero.

    Raises:
        ValueError: the two differ in length, are empty, or hold a value that is not finite.
    """
    a, b = np.asarray(treated, dtype=float), np.asarray(baseline, dtype=float)
    if a.shape != b.shape or a.size == 0 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("a paired difference needs as many finite values on both sides, and at least one")
    d = mean_interval(a - b, "t", confidence=confidence)
    return Interval(
        d.estimate, d.low, d.high, d.n, "none" if d.low is None else "paired t", confidence, d.note
    )


def summarise(
    table: pl.DataFrame,
    metric: str,
    by: Iterable[str],
    method: Method = "t",
    *,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> pl.DataFrame:
    """Estimate and interval of a metric for each combination of levels.

    Args:
        table: one row per run and class, as `weir.study.class_table` makes it.
        metric: the column; rows where it is null are left out.
        by: the columns that tell the groups apart, in the order of sorting by first appearance.
        method: the interval's method.
        bounds: the range of the quantity.

    Returns:
        One row per group: the `by` columns, `estimate`, `low`, `high`, `n`, `method`, `note`.

    Raises:
        ValueError: a group holds two rows of one repetition: `by` lacks a factor, and different cells
        would be
            counted as repetitions of one.
    """
    by = list(by)
    rows = []
    kept = table.drop_nulls(metric)
    groups = kept.group_by(by, maintain_order=True) if by else [((), kept)] if kept.height else []
    for key, group in groups:
        if group["repetition"].n_unique() < group.height:
            name = dict(zip(by, key, strict=True))
            raise ValueError(f"{metric} of {name} has several rows of one repetition: group by more columns")
        interval = mean_interval(group[metric].to_numpy(), method, bounds=bounds)
        rows.append(dict(zip(by, key, strict=True)) | _columns(interval))
    return _frame(rows, table, by)


def compare(
    table: pl.DataFrame,
    metric: str,
    factor: str,
    baseline: object,
    by: Iterable[str],
    *,
    as_difference: bool = False,
) -> pl.DataFrame:
    """Compares each level of a factor with its baseline level, paired by block within equal other levels.

    Blocks that lack one of the two (an invalid or missing run), or where the metric is null, are left out:
    `n` counts the pairs. Levels without a usable pair are left out as well.

    Args:
        table: one row per run and class.
        metric: the column to compare.
        factor: the factor whose levels are compared.
        baseline: the level that the others are compared with.
        by: the columns that must be equal within a pair (the other factors, the class).
        as_difference: compare by difference; otherwise by ratio, where a metric at 0 has no ratio and its
            group is left out.

    Returns:
        One row per group and level: the `by` columns, `factor`, `estimate`, `low`, `high`, `n`, `method`,
        `note`.
    """
    by = [name for name in by if name != factor]
    kept = table.drop_nulls(metric)
    base = kept.filter(pl.col(factor) == baseline).select(*by, "block", pl.col(metric).alias("_baseline"))
    others = kept.filter(pl.col(factor) != baseline)
    # A second baseline run of one block would pair twice: `by` lacks a column, and polars says so.
    pairs = others.join(base, on=[*by, "block"], how="inner", validate="m:1")
    rows = []
    for key, group in pairs.group_by([*by, factor], maintain_order=True):
        try:
            interval = (difference_interval if as_difference else ratio_interval)(
                group[metric].to_numpy(), group["_baseline"].to_numpy()
            )
        except ValueError:
            # Zero or infinite somewhere: this group has no such comparison.
            continue
        rows.append(dict(zip([*by, factor], key, strict=True)) | _columns(interval))
    return _frame(rows, table, [*by, factor])


def _columns(interval: Interval) -> dict[str, object]:
    names = ("estimate", "low", "high", "n", "method", "note")
    return {name: getattr(interval, name) for name in names}


def _frame(rows: list[dict[str, object]], table: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    schema = {name: table.schema[name] for name in by} | {
        "estimate": pl.Float64, "low": pl.Float64, "high": pl.Float64,
        "n": pl.Int64, "method": pl.String, "note": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema)
