"""Power of a study: the changes that its repetitions show, and the repetitions that a change needs.

The runs that exist are the pilot: the variation between their blocks decides, and their durations give the
cost. A comparison "shows" a change where its simultaneous interval (`weir.multiplicity.judge`) excludes 1.
Few blocks know their variation badly, so the power is the mean over the variations that the pilot allows:
Julious and Owen, "Sample size calculations for clinical studies allowing for uncertainty about the variance"
(Pharmaceutical Statistics 5(1), 2006).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np
import polars as pl
from scipy import optimize, special

from weir.answers import MOST_REPETITIONS, POWER, compared
from weir.detection import detected, fewest
from weir.labels import label, number
from weir.load import Study
from weir.multiplicity import (
    ALLOWANCE,
    CONFIDENCE,
    Paired,
    pooled_variance,
    simultaneous_t,
    variances_agree,
)
from weir.statistics import common_spread
from weir.study import objective_metric

#: Relative changes whose repetitions are computed.
CHANGES = (0.05, 0.10, 0.20)
#: The change that a study's page states.
SHOWN_CHANGE = 0.10
#: Points of the quadrature over the variation that the pilot allows.
_POINTS = 128
_TYPICAL_DEGREES = 30
#: The smallest change that is searched for, and the largest: a factor of e^10.
_SMALLEST, _LARGEST = 1e-9, 10.0


@dataclass(frozen=True)
class Design:
    """What decides the power of one comparison.

    Attributes:
        deviation: standard deviation of the difference between blocks, from the pilot (of logarithms for a
            ratio).
        degrees: degrees of freedom of `deviation`.
        groups: comparisons with each baseline; together they are the family.
        pooled: whether the family shares one estimate of the deviation.
    """

    deviation: float
    degrees: int
    groups: tuple[int, ...] = (1,)
    pooled: bool = False


def probability(design: Design, effect: float, n: int) -> float:
    """The probability that `n` repetitions show an effect, by the noncentral t distribution.

    Args:
        design: the comparison, its family and its pilot.
        effect: the mean difference (of logarithms for a ratio).
        n: repetitions, at least 2.
    """
    critical, degrees = _critical(design.groups, design.pooled, n)
    # The deviations that the pilot allows, at the middle of equal probabilities.
    shares = (np.arange(_POINTS) + 0.5) / _POINTS
    squares = 2 * special.gammaincinv(design.degrees / 2, shares)
    deviations = design.deviation * np.sqrt(design.degrees / squares)
    noncentrality = abs(effect) * math.sqrt(n) / deviations
    return float(np.mean(detected(noncentrality, critical, degrees)))


def _critical(groups: tuple[int, ...], pooled: bool, n: int) -> tuple[float, int]:
    """The critical value of `multiplicity.judge` with `n` repetitions, and its degrees of freedom."""
    degrees = (sum(groups) if pooled else 1) * (n - 1)
    level = _dunnett_level(groups) if pooled else (1 - CONFIDENCE) * ALLOWANCE / sum(groups)
    return float(special.stdtrit(degrees, 1 - level / 2)), degrees


@lru_cache
def _dunnett_level(groups: tuple[int, ...]) -> float:
    """The level at which Student's t has Dunnett's critical value.

    It hardly depends on the degrees of freedom: from 10 of them the value is within 3 % of Dunnett's.
    """
    critical = simultaneous_t(groups, _TYPICAL_DEGREES, 1 - (1 - CONFIDENCE) * ALLOWANCE)
    return 2 * float(special.stdtr(_TYPICAL_DEGREES, -critical))


def repetitions(design: Design, effect: float, power: float = POWER) -> int | None:
    """The fewest repetitions that show an effect with probability `power`.

    Returns:
        At least 2; None where more than `MOST_REPETITIONS` would be needed.
    """
    return fewest(lambda n: probability(design, effect, n) >= power, MOST_REPETITIONS) if effect else None


def smallest_effect(design: Design, n: int, power: float = POWER) -> float | None:
    """The smallest effect that `n` repetitions show with probability `power`; None for one beyond e^10."""
    if n < 2 or probability(design, _LARGEST, n) < power:
        return None
    # Blocks that differ by rounding only show any change.
    if probability(design, _SMALLEST, n) >= power:
        return _SMALLEST
    return float(
        optimize.brentq(lambda effect: probability(design, effect, n) - power, _SMALLEST, _LARGEST, xtol=1e-7)
    )


@dataclass(frozen=True)
class Comparison:
    """The power of one comparison of a study.

    Attributes:
        class_name: the class.
        metric: the metric that is compared.
        pair: the levels that are compared.
        deviation: standard deviation of the logarithm of their ratio between blocks; None without one.
        n: repetitions of the pilot.
        smallest: the smallest relative change that `n` repetitions show; None without one.
        needed: repetitions by relative change; None where more than `MOST_REPETITIONS` are needed.
        hours: what all repetitions take, by relative change.
        note: why there is no deviation.
    """

    class_name: str
    metric: str
    pair: str
    deviation: float | None
    n: int
    smallest: float | None
    needed: Mapping[float, int | None]
    hours: Mapping[float, float | None]
    note: str = ""


@dataclass(frozen=True)
class StudyPower:
    """The power of a study's comparisons.

    Attributes:
        study: its name.
        power: the probability of showing a change that is there.
        block_s: seconds that one repetition of every cell takes, by the runs that exist.
        comparisons: the comparisons of its question, or of any two cells where it asks about none.
    """

    study: str
    power: float
    block_s: float
    comparisons: tuple[Comparison, ...]

    def sentence(self, change: float = SHOWN_CHANGE) -> str:
        """How many repetitions a change takes, by class; empty where no comparison has a deviation."""
        worst: dict[str, Comparison] = {}
        for one in self.comparisons:
            known = worst.get(one.class_name)
            if one.deviation is not None and (known is None or (known.deviation or 0) < one.deviation):
                worst[one.class_name] = one
        if not worst:
            return ""
        parts = [f"{_count(one.needed[change])} for {name}" for name, one in worst.items()]
        hours = [one.hours[change] for one in worst.values() if one.hours[change] is not None]
        cost = f"; all of them take {_duration(max(hours))}" if len(hours) == len(worst) else ""
        return (
            f"Repetitions that show a change of {change:.0%} with probability {self.power:g}: "
            f"{', '.join(parts)}{cost}."
        )

    def table(self) -> pl.DataFrame:
        """One row per comparison, as text."""
        rows = []
        for one in self.comparisons:
            smallest = "n/a" if one.smallest is None else f"{one.smallest:.1%}"
            row = {
                "class": one.class_name,
                "metric": label(one.metric).text,
                "comparison": one.pair,
                "deviation": number(one.deviation),
                "n": str(one.n),
                "smallest change": smallest,
            }
            for change, count in one.needed.items():
                hours = one.hours[change]
                cost = "" if hours is None else f" ({_duration(hours)})"
                row[f"{change:.0%}"] = _count(count) + cost
            rows.append(row | {"note": one.note})
        return pl.DataFrame(rows)

    def document(self) -> dict[str, object]:
        """The same as JSON: hours and repetitions by change in percent."""

        def percent(values: Mapping[float, object]) -> dict[str, object]:
            return {f"{change * 100:g}": value for change, value in values.items()}

        comparisons = [
            asdict(one) | {"needed": percent(one.needed), "hours": percent(one.hours)}
            for one in self.comparisons
        ]
        return {
            "study": self.study, "power": self.power, "block_s": self.block_s, "comparisons": comparisons,
        }  # fmt: skip


def _duration(hours: float) -> str:
    """A duration in its largest unit: `2.31 h`, `4.50 min`, `14.7 s`."""
    for unit, size in (("h", 1), ("min", 60)):
        if hours * size >= 1:
            return f"{number(hours * size)} {unit}"
    return f"{number(hours * 3600)} s"


def _count(value: int | None) -> str:
    return f"more than {MOST_REPETITIONS:,}" if value is None else f"{value:,}"


def power_of(
    study: Study, table: pl.DataFrame, power: float = POWER, changes: Sequence[float] = CHANGES
) -> StudyPower:
    """The power of the comparisons that answer a study's question, with its own runs as the pilot.

    In a study that varies numbers only, two cells of the same variation are compared: the pilot is the
    variation of runs within cells, as in an A/A study.

    Args:
        study: the study.
        table: one row per valid run and class.
        power: the probability of showing a change that is there, between 0 and 1.
        changes: relative changes, above 0.
    """
    block_s = block_seconds(study)
    found = compared(study, table)
    gaps = [Paired(values, answer.class_name) for answer, values in found if values]
    rows = [
        (answer.class_name, answer.metric, f"{answer.level} / {answer.baseline}", answer.n, answer.note)
        for answer, values in found
        if not values
    ]
    designs = iter(_designs(gaps))
    planned = [
        (answer.class_name, answer.metric, f"{answer.level} / {answer.baseline}", answer.n, next(designs))
        for answer, values in found
        if values
    ]
    if not found:
        planned, rows = _of_cells(study, table)
    comparisons = []
    for class_name, metric, pair, n, design in planned:
        if design.deviation == 0:
            rows.append((class_name, metric, pair, n, "one repetition, or no variation between blocks"))
            continue
        needed = {change: repetitions(design, math.log1p(change), power) for change in changes}
        hours = {
            change: None if count is None else count * block_s / 3600 for change, count in needed.items()
        }
        effect = smallest_effect(design, n, power)
        smallest = None if effect is None else math.expm1(effect)
        comparisons.append(Comparison(class_name, metric, pair, design.deviation, n, smallest, needed, hours))
    nothing = dict.fromkeys(changes)
    comparisons += [
        Comparison(class_name, metric, pair, None, n, None, nothing, nothing, note)
        for class_name, metric, pair, n, note in rows
    ]
    return StudyPower(study.name, power, block_s, tuple(comparisons))


def _designs(family: Sequence[Paired]) -> list[Design]:
    """The design of each comparison, judged as `multiplicity.judge` would."""
    samples = [np.array(list(one.differences.values())) for one in family]
    variances = [float(x.var(ddof=1)) if x.size > 1 else 0.0 for x in samples]
    names = [one.group for one in family]
    groups = tuple(names.count(name) for name in dict.fromkeys(names))
    common, degrees = pooled_variance(family) if len(family) > 1 else (0.0, 0)
    if common > 0 and variances_agree(variances, [x.size - 1 for x in samples]):
        return [Design(math.sqrt(common), degrees, groups, True)] * len(family)
    return [
        Design(math.sqrt(variance), x.size - 1, groups)
        for variance, x in zip(variances, samples, strict=True)
    ]


def _of_cells(
    study: Study, table: pl.DataFrame
) -> tuple[list[tuple[str, str, str, int, Design]], list[tuple[str, str, str, int, str]]]:
    """Of each class: the difference of two cells whose runs vary as those of its cells do."""
    planned, without = [], []
    pair = "one cell / another"
    for app_class in study.classes if table.height else ():
        metric, _ = objective_metric(app_class)
        rows = table.filter((pl.col("class") == app_class.name) & pl.col(metric).is_finite())
        rows = rows.filter(pl.col(metric) > 0)
        if rows.is_empty():
            continue
        keys = list(study.factors) or ["class"]
        groups = [np.log(group[metric].to_numpy()) for _, group in rows.group_by(keys)]
        n = max(x.size for x in groups)
        spread = common_spread(groups)
        alone = [x for x in groups if x.size > 1]
        if spread is None and alone:
            # Variances that differ have no common value: the largest of them is planned for.
            x = max(alone, key=lambda x: float(x.var(ddof=1)))
            variance, degrees = float(x.var(ddof=1)), x.size - 1
        elif spread is not None:
            variance, degrees = spread.variance, spread.degrees
        else:
            without.append((app_class.name, metric, pair, n, "one repetition"))
            continue
        planned.append((app_class.name, metric, pair, n, Design(math.sqrt(2 * variance), degrees)))
    return planned, without


def block_seconds(study: Study) -> float:
    """Seconds that one repetition of every cell takes, set-up included: the mean over the runs that exist.

    Runs without recorded times count with warm-up and measured interval.
    """
    by_cell: dict[str, list[float]] = {}
    for run in study.runs:
        parts = [v for v in (run.observed.get("timing") or {}).values() if isinstance(v, int | float)]
        by_cell.setdefault(run.cell, []).append(sum(parts) or run.warmup_s + run.duration_s)
    if not by_cell:
        return 0.0
    means = [sum(values) / len(values) for values in by_cell.values()]
    return sum(means) / len(means) * study.planned / max(study.repetitions, 1)
