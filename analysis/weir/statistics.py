"""Intervals over repetitions, and comparisons paired by block.

The unit of observation is a run: requests of one run wait for each other and are not independent, so an
interval is never computed from them. One repetition has no interval, and says so.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy import special

from weir.labels import cut_at, label
from weir.multiplicity import Paired, judge, variances_agree

Method = Literal["t", "log-t", "bootstrap-percentile", "bootstrap-bca"]
CONFIDENCE = 0.95
RESAMPLES = 9999
#: A bootstrap of fewer values draws too few different samples: its intervals are far too narrow.
FEWEST_FOR_BOOTSTRAP = 10
MEAN = "mean of runs"
GEOMETRIC_MEAN = "geometric mean of runs"
#: The note of an interval whose variance is that of several groups.
POOLED = "pooled variance"
#: A bootstrap draws from a generator of its own with this seed, so that a figure is the same every time.
SEED = 20_250_101


@dataclass(frozen=True)
class Interval:
    """An estimate over `n` repetitions with its confidence interval, if it has one.

    Attributes:
        estimate: the estimand's estimate; None of a comparison without one.
        low: lower end; None without an interval.
        high: upper end; None without an interval.
        n: repetitions.
        method: how the interval was computed; "none" without one.
        confidence: its nominal level.
        note: why there is no interval, or what it rests on; empty if nothing needs saying.
        estimand: what is estimated: the mean of runs, or their geometric mean.
    """

    estimate: float | None
    low: float | None
    high: float | None
    n: int
    method: str
    confidence: float = CONFIDENCE
    note: str = ""
    estimand: str = MEAN


@dataclass(frozen=True)
class Spread:
    """A variance that several groups share, and its degrees of freedom."""

    variance: float
    degrees: int


def mean_interval(
    values: ArrayLike,
    method: Method = "t",
    *,
    confidence: float = CONFIDENCE,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    common: Spread | None = None,
) -> Interval:
    """The mean of one value per repetition, with an interval.

    `t`: Student's t with n - 1 degrees of freedom, for means of runs. `log-t`: the geometric mean of positive
    values, with the t interval of their logarithms; it fits skewed quantities such as response times, and its
    lower end is above 0. `bootstrap-percentile` and `bootstrap-bca`: Efron and Tibshirani, "An Introduction
    to the Bootstrap" (1993), chapters 13 and 14; there is none of fewer than ten repetitions.

    Args:
        values: one finite or infinite value per repetition.
        method: the interval's method.
        confidence: its nominal level.
        bounds: the range of the quantity (a share lies in [0, 1]); an interval that is cut to it says so.
        common: the variance that the values (for `log-t` their logarithms) share with those of other groups;
            their own if None.

    Raises:
        ValueError: there is no value, one is NaN, one is not above 0 and the method is `log-t`, or the method
            is unknown.
    """
    if method == "log-t":
        return _log_interval(values, confidence, common)
    x = np.asarray(values, dtype=float)
    if x.size == 0 or np.isnan(x).any():
        raise ValueError("an interval needs at least one value, and none may be NaN")
    if np.isinf(x).any():
        return Interval(
            float(x.mean()), None, None, x.size, "none", confidence, "not bounded in every repetition"
        )
    estimate = float(x.mean())
    if x.size == 1 and common is None:
        return Interval(estimate, None, None, 1, "none", confidence, "n = 1: no interval")
    # An interval of no width would claim certainty, as for 0 deadlines missed in three short runs.
    if np.ptp(x) == 0 and common is None:
        note = "all repetitions are equal: no interval"
        return Interval(float(x[0]), None, None, x.size, "none", confidence, note)
    if method == "t":
        spread = common or Spread(float(x.var(ddof=1)), x.size - 1)
        half = special.stdtrit(spread.degrees, (1 + confidence) / 2) * np.sqrt(spread.variance / x.size)
        low, high = estimate - half, estimate + half
    elif method in ("bootstrap-percentile", "bootstrap-bca"):
        if x.size < FEWEST_FOR_BOOTSTRAP:
            note = f"n = {x.size}: a bootstrap needs at least {FEWEST_FOR_BOOTSTRAP} repetitions"
            return Interval(estimate, None, None, x.size, "none", confidence, note)
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
        raise ValueError(f"unknown method {method!r}: t, log-t, bootstrap-percentile or bootstrap-bca")
    cut = [cut_at(bound) for bound in bounds if (bound > low if bound == bounds[0] else bound < high)]
    low, high = max(float(low), bounds[0]), min(float(high), bounds[1])
    return Interval(estimate, low, high, x.size, method, confidence, ", ".join(cut))


def _log_interval(values: ArrayLike, confidence: float, common: Spread | None) -> Interval:
    x = np.asarray(values, dtype=float)
    if (x <= 0).any():
        raise ValueError("a geometric mean needs values above 0")
    found = mean_interval(np.log(x), "t", confidence=confidence, common=common)
    ends = (None if end is None else float(np.exp(end)) for end in (found.low, found.high))
    method = "none" if found.low is None else "log-t"
    estimate = float(np.exp(found.estimate))
    return Interval(estimate, *ends, found.n, method, confidence, found.note, GEOMETRIC_MEAN)


def common_spread(groups: Iterable[ArrayLike]) -> Spread | None:
    """The variance within groups, pooled over them, where their own variances agree.

    With three repetitions a group, a pooled variance gives intervals a third as wide as the groups' own.

    Args:
        groups: finite values of each group.

    Returns:
        None for fewer than two groups with repetitions, or where `multiplicity.variances_agree` refuses.
    """
    samples = [x for x in (np.asarray(group, dtype=float) for group in groups) if x.size > 1]
    degrees = [x.size - 1 for x in samples]
    variances = [float(x.var(ddof=1)) for x in samples]
    if len(samples) < 2 or not np.any(variances) or not variances_agree(variances, degrees):
        return None
    return Spread(float(np.dot(variances, degrees)) / sum(degrees), sum(degrees))


def means_by(rows: pl.DataFrame, x: str, y: str) -> tuple[list[float], list[Interval]]:
    """The values of a column `x`, sorted, and the mean of `y` at each with its interval."""
    places = sorted(rows[x].unique().to_list())
    return places, [mean_interval(rows.filter(pl.col(x) == place)[y].to_list()) for place in places]


def geometric_mean_interval(values: ArrayLike) -> Interval:
    """The geometric mean of positive values, with the t interval of their logarithms."""
    return mean_interval(values, "log-t")


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
    estimate = float(np.exp(log.estimate))
    return Interval(estimate, low, high, log.n, method, confidence, log.note, "geometric mean of ratios")


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
        d.estimate,
        d.low,
        d.high,
        d.n,
        "none" if d.low is None else "paired t",
        confidence,
        d.note,
        "mean of differences",
    )


def summarise(
    table: pl.DataFrame,
    metric: str,
    by: Iterable[str],
    method: Method = "t",
    *,
    bounds: tuple[float, float] = (-np.inf, np.inf),
    pool: bool = False,
) -> pl.DataFrame:
    """Estimate and interval of a metric for each combination of levels.

    Args:
        table: one row per run and class, as `weir.study.class_table` makes it.
        metric: the column; rows where it is null are left out.
        by: the columns that tell the groups apart, in the order of sorting by first appearance.
        method: the interval's method; where a value is not above 0, `log-t` is replaced by `t` in all groups.
        bounds: the range of the quantity.
        pool: take the variance from all groups together, where theirs agree (`common_spread`); for `t` and
            `log-t`. A group of one repetition has no interval.

    Returns:
        One row per group: the `by` columns, `estimate`, `low`, `high`, `n`, `method`, `note`, `estimand`.

    Raises:
        ValueError: a group holds two rows of one repetition: `by` lacks a factor, and different cells
        would be
            counted as repetitions of one.
    """
    by = list(by)
    rows = []
    kept = table.drop_nulls(metric)
    if method == "log-t" and kept.height and (kept[metric] <= 0).any():
        method = "t"
    groups = list(kept.group_by(by, maintain_order=True)) if by else [((), kept)] if kept.height else []
    common = None
    if pool:
        values = [group[metric].to_numpy() for _, group in groups]
        finite = [x for x in values if np.isfinite(x).all()]
        common = common_spread(np.log(x) if method == "log-t" else x for x in finite)
    for key, group in groups:
        if group["repetition"].n_unique() < group.height:
            name = dict(zip(by, key, strict=True))
            raise ValueError(f"{metric} of {name} has several rows of one repetition: group by more columns")
        own = common if group.height > 1 else None
        interval = mean_interval(group[metric].to_numpy(), method, bounds=bounds, common=own)
        if own is not None and interval.low is not None:
            interval = replace(interval, note=", ".join(filter(None, (POOLED, interval.note))))
        rows.append(dict(zip(by, key, strict=True)) | _columns(interval))
    return _frame(rows, table, by)


def fitted(table: pl.DataFrame, metric: str, by: Iterable[str]) -> pl.DataFrame:
    """`summarise` with the estimand and interval that fit the metric, and a pooled variance where it may be.

    Quantities above 0, such as response times, have the geometric mean of runs and the `log-t` interval;
    others have the mean of runs and the `t` interval: `weir.labels`.
    """
    own = label(metric)
    return summarise(table, metric, by, own.method, bounds=own.bounds, pool=True)


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

    Every combination of levels in the table has a row: one that cannot be compared says why, so that no
    overloaded cell is missing from what is concluded. Blocks that lack one of the two runs, or where the
    metric is null, are left out: `n` counts the pairs. All rows are one family (`weir.multiplicity`).

    Args:
        table: one row per run and class.
        metric: the column to compare.
        factor: the factor whose levels are compared.
        baseline: the level that the others are compared with.
        by: the columns that must be equal within a pair (the other factors, the class).
        as_difference: compare by difference; otherwise by ratio, which a metric at 0 does not have.

    Returns:
        One row per group and level: the `by` columns, `factor`, `estimate`, `low`, `high`, `n`, `method`,
        `note`, `estimand`; of the family, `family_low` and `family_high` (simultaneous interval) and `p`
        (adjusted by Holm). `estimate` is infinite where the metric is unbounded at the level, 0 (of a
        difference: minus infinite) where it is unbounded at the baseline, null where there is none.
    """
    by = [name for name in by if name != factor]
    keys = [*by, factor]
    base = table.filter(pl.col(factor) == baseline).drop_nulls(metric)
    base = base.select(*by, "block", pl.col(metric).alias("_baseline"))
    # A metric that a class does not have is no comparison.
    has_metric = table.drop_nulls(metric).select(*by).unique() if by else None
    others = table.filter(pl.col(factor) != baseline)
    others = (
        others if has_metric is None else others.join(has_metric, on=by, how="semi", maintain_order="left")
    )
    # A second baseline run of one block would pair twice: `by` lacks a column, and polars says so.
    pairs = others.drop_nulls(metric).join(base, on=[*by, "block"], how="inner", validate="m:1")
    found = {key: group for key, group in pairs.group_by(keys)}
    rows, family = [], []
    for key in others.select(keys).unique(maintain_order=True).rows():
        group = found.get(key, pairs.clear())
        treated, reference = group[metric].to_numpy(), group["_baseline"].to_numpy()
        row = dict(zip(keys, key, strict=True)) | _columns(_paired(treated, reference, as_difference))
        if row["n"] and row["estimate"] is not None and np.isfinite([*treated, *reference]).all():
            gaps = treated - reference if as_difference else np.log(treated / reference)
            differences = dict(zip(group["block"].to_list(), gaps.tolist(), strict=True))
            family.append((row, Paired(differences, key[: len(by)])))
        rows.append(row)
    for (row, _), judged in zip(family, judge([one for _, one in family]) if family else [], strict=True):
        ends = (judged.low, judged.high)
        if not as_difference:
            ends = tuple(None if end is None else float(np.exp(end)) for end in ends)
        row |= {"family_low": ends[0], "family_high": ends[1], "p": judged.adjusted_p}
    return _frame(rows, table, keys, dict.fromkeys(("family_low", "family_high", "p"), pl.Float64))


def without_ratio(treated: ArrayLike, baseline: ArrayLike, of: str) -> tuple[float | None, str] | None:
    """What takes the place of a ratio where a value is unbounded or not above 0, and why.

    Args:
        treated: values at the level.
        baseline: values at the baseline, paired with them.
        of: what a pair is called, in the plural.

    Returns:
        Infinity where only the level is unbounded, 0 where only the baseline is, None without a sign; with
        the reason. None where there is a ratio.
    """
    treated, baseline = np.asarray(treated, dtype=float), np.asarray(baseline, dtype=float)
    unbounded = [int(np.isinf(side).sum()) for side in (treated, baseline)]
    if all(unbounded):
        return None, f"unbounded at both levels ({unbounded[0]} and {unbounded[1]} of {treated.size} {of})"
    if any(unbounded):
        side, ratio = ("level", math.inf) if unbounded[0] else ("baseline", 0.0)
        return ratio, f"unbounded at the {side} in {max(unbounded)} of {treated.size} {of}"
    if (treated <= 0).any() or (baseline <= 0).any():
        return None, f"not above 0 in all {of}"
    return None if treated.size else (None, "no pair of valid runs")


def _paired(treated: np.ndarray, baseline: np.ndarray, as_difference: bool) -> Interval:
    """The comparison of one group, or an interval without estimate that says why there is none."""
    instead = without_ratio(treated, baseline, "blocks")
    if as_difference and treated.size and np.isfinite([*treated, *baseline]).all():
        return difference_interval(treated, baseline)
    if instead is None:
        return ratio_interval(treated, baseline)
    estimate, note = instead
    if as_difference and estimate == 0:
        estimate = -math.inf
    return Interval(estimate, None, None, treated.size, "none", note=note)


def _columns(interval: Interval) -> dict[str, object]:
    names = ("estimate", "low", "high", "n", "method", "note", "estimand")
    return {name: getattr(interval, name) for name in names}


def _frame(
    rows: list[dict[str, object]],
    table: pl.DataFrame,
    by: list[str],
    more: Mapping[str, type[pl.DataType]] | None = None,
) -> pl.DataFrame:
    schema = {name: table.schema[name] for name in by} | {
        "estimate": pl.Float64, "low": pl.Float64, "high": pl.Float64,
        "n": pl.Int64, "method": pl.String, "note": pl.String, "estimand": pl.String,
    }  # fmt: skip
    schema |= more or {}
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)
