"""The answer to a study's question: how each level of a factor compares with the baseline.

An answer is about one class, one metric and one pair of levels. Within a block, the ratio is the geometric
mean over all cells that have both levels; over blocks, the interval is Student's t of its logarithm. Cells
that disagree do not widen the interval: the number of cells with the same sign stands beside it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from weir.detection import detected, fewest
from weir.labels import label, number
from weir.load import TESTBED, AppClass, Level, Study
from weir.multiplicity import ALLOWANCE, Judged, Paired, judge
from weir.sequential import interval, look_level, looks
from weir.statistics import CONFIDENCE, without_ratio
from weir.steady_state import SIGNIFICANCE
from weir.study import answering, objective_metric
from weir.support import caution

#: Probability of settling a ratio of the size that was seen, at the number of repetitions that is advised.
POWER = 0.8
#: More repetitions than this are not advised: the answer is that the study cannot settle it.
MOST_REPETITIONS = 10_000
_MORE = ("longer", "shorter")


@dataclass(frozen=True)
class Answer:
    """One comparison of two levels for one class.

    Attributes:
        class_name: the class.
        metric: the metric that is compared.
        factor: the factor.
        level: the level that is compared.
        baseline: the level that it is compared with.
        ratio: level / baseline; infinite or 0 where the metric is unbounded at one of them, None without
            any.
        low: lower end of the simultaneous interval of the study's answers; None without one.
        high: upper end; None without one.
        p: adjusted for the number of answers; None without an interval.
        n: blocks.
        cells: cells that have both levels in some block.
        agree: cells whose own ratio lies on the same side of 1.
        needed: repetitions that would settle a ratio of this size, by estimate; None where it is settled or
            no number can be given.
        note: why there is no ratio or interval, or why the study makes no more repetitions.
        testbed: the testbed whose runs are compared, in a study of both; else empty.
        confidence: of the interval.
        repeated: whether the interval is one of repeated confidence intervals, in a study with `precision`.
        change: the relative change that matters, if the study's `precision` names one.
        caution: what a reader must know about the metric; empty if nothing.
    """

    class_name: str
    metric: str
    factor: str
    level: Level
    baseline: Level
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    n: int
    cells: int
    agree: int
    needed: int | None
    note: str = ""
    testbed: str = ""
    confidence: float = CONFIDENCE
    repeated: bool = False
    change: float | None = None
    caution: str = ""

    @property
    def settled(self) -> bool:
        """Whether the interval excludes equality, and nothing must be known about the metric.

        The interval does so wrongly in at most 5 of 100 studies, if the metric of each run is an estimate.
        """
        return self._excludes_equality and not self.caution

    @property
    def _excludes_equality(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high

    def _is_within(self, ratio: float) -> bool:
        return self.low is not None and self.high is not None and 1 / ratio < self.low <= self.high < ratio

    def sentence(self) -> str:
        """The answer in one sentence, with its interval and what would settle it; then the caution."""
        verdict = f"{self.effect()}; {self._verdict()}." if self._has_ratio else f"{self.effect()}."
        return f"{verdict} {self.caution}".rstrip()

    @property
    def _has_ratio(self) -> bool:
        return self.ratio is not None and math.isfinite(self.ratio) and self.ratio != 0

    def effect(self) -> str:
        """The ratio with its interval, without what would settle it."""
        what = f"{self.class_name}, {label(self.metric).text.lower()}"
        pair = f"{self.factor} {self.level} relative to {self.baseline}"
        if self.ratio is None:
            return f"{what}: {pair} cannot be compared ({self.note})"
        if not self._has_ratio:
            return f"{what}: {self.level} relative to {self.baseline} is {self.note}"
        size = f"{number(self.ratio)} times that of {self.baseline}"
        parts = [f"n = {self.n}"]
        if self.low is not None and self.high is not None:
            kind = "repeated CI" if self.repeated else "CI"
            ends = f"{number(self.low)} to {number(self.high)}"
            parts.insert(0, f"{self.confidence * 100:.4g} % {kind} {ends}")
        if self.cells > 1:
            parts.append(f"same direction in {self.agree} of {self.cells} cells")
        if self.testbed:
            parts.append(f"testbed {self.testbed}")
        return f"{what}: {self.level} takes {size} ({', '.join(parts)})"

    def _verdict(self) -> str:
        verdict = "not settled, although the interval says" if self.caution else "settled"
        if self._excludes_equality:
            return f"{verdict}: {_MORE[0] if (self.ratio or 0) > 1 else _MORE[1]}"
        if self.change is not None and self._is_within(1 + self.change):
            return f"{verdict}: no change of {self.change * 100:.4g} % or more"
        if self.note:
            return f"not settled: {self.note}"
        if self.needed is None:
            return f"not settled: more than {MOST_REPETITIONS:,} repetitions needed"
        return f"not settled: about {self.needed} repetitions needed for a difference of this size"


def answers(study: Study, table: pl.DataFrame, factor: str | None = None) -> list[Answer]:
    """The answers of a study about one factor, all judged as one family.

    They are by the runs of `weir.study.answering`.

    Args:
        study: the study.
        table: one row per valid run and class.
        factor: the factor; `main_factor` if None.

    Returns:
        One answer for each class with a response time and each level but the baseline; the first is the one
        furthest from 1. Empty where the study varies no factor of names. In a study with `precision` the
        intervals are the repeated confidence intervals of the last decision.
    """
    kept = compared(study, table, factor)
    family = [Paired(gaps, answer.class_name) for answer, gaps in kept if gaps]
    if study.precision is not None:
        done = [at_last_look(study, answer, gaps, kept) if gaps else answer for answer, gaps in kept]
    else:
        judged = iter(judge(family) if family else [])
        done = [
            as_judged(answer, gaps, next(judged), len(family)) if gaps else answer for answer, gaps in kept
        ]
    return sorted(done, key=lambda answer: -_distance(answer.ratio))


def compared(
    study: Study,
    table: pl.DataFrame,
    factor: str | None = None,
    metric: str | None = None,
    baseline: Level | None = None,
) -> list[tuple[Answer, dict[int, float]]]:
    """The answers before they are judged, each with the logarithm of its ratio by block, if it has any.

    Args:
        study: the study.
        table: one row per valid run and class.
        factor: the factor; `main_factor` if None.
        metric: the metric; that of each class's objective if None.
        baseline: the level that others are compared with; `baseline_of` if None.
    """
    factor = factor or main_factor(study)
    if factor is None or table.is_empty():
        return []
    baseline = str(baseline_of(study, factor) if baseline is None else baseline)
    levels = [str(level) for level in study.factors[factor] if str(level) != baseline]
    table = table.with_columns(pl.col(factor).cast(pl.String))
    table, testbed = answering(study, table)
    found = [
        _compared(study, table, app_class, factor, level, baseline, metric)
        for app_class in study.classes
        for level in levels
    ]
    return [(replace(answer, testbed=testbed), gaps) for answer, gaps in found if answer is not None]


def main_factor(study: Study) -> str | None:
    """The factor that a study asks about: that of its `comparison`, else the first varied one of names.

    The testbed is no such factor. None where the study varies numbers only.
    """
    if study.comparison is not None:
        return str(study.comparison["factor"])
    for name, levels in study.varied.items():
        if name != TESTBED and not all(isinstance(level, int | float) for level in levels):
            return name
    return None


def baseline_of(study: Study, factor: str) -> Level:
    """The level that others are compared with: that of the study's `comparison`, else the plan's first."""
    if study.comparison is not None and study.comparison["factor"] == factor:
        wanted = study.comparison.get("baseline")
        for level in study.factors[factor]:
            if wanted is not None and str(level) == str(wanted):
                return level
    return study.factors[factor][0]


def _distance(ratio: float | None) -> float:
    if ratio is None:
        return -1.0
    return math.inf if ratio == 0 or math.isinf(ratio) else abs(math.log(ratio))


def _compared(
    study: Study,
    table: pl.DataFrame,
    app_class: AppClass,
    factor: str,
    level: str,
    baseline: str,
    metric: str | None,
) -> tuple[Answer | None, dict[int, float]]:
    """An answer that is not judged yet, and the logarithm of its ratio by block, if it has any."""
    metric = metric or objective_metric(app_class)[0]
    rows = table.filter(pl.col("class") == app_class.name).drop_nulls(metric)
    if rows.is_empty():
        return None, {}
    others = [name for name in study.varied if name != factor]
    sides = [
        rows.filter(pl.col(factor) == one).select(*others, "block", pl.col(metric).alias(name))
        for one, name in ((level, "treated"), (baseline, "reference"))
    ]
    pairs = sides[0].join(sides[1], on=[*others, "block"], how="inner", validate="m:1", nulls_equal=True)
    blank = Answer(
        app_class.name, metric, factor, level, baseline, None, None, None, None, 0, 0, 0, None,
        "no pair of valid runs",
    )  # fmt: skip
    of_pair = rows.filter(pl.col(factor).is_in([level, baseline]))
    pairs = pairs.filter(pl.col("block") < study.repetitions_in_common(of_pair["run"]))
    blank = replace(blank, caution=caution(of_pair, metric, study.varied))
    if pairs.is_empty():
        return blank, {}
    n = pairs["block"].n_unique()
    treated, reference = (pairs[name] for name in ("treated", "reference"))
    instead = without_ratio(treated, reference, "pairs of runs")
    if instead is not None:
        return replace(blank, n=n, ratio=instead[0], note=instead[1]), {}
    pairs = pairs.with_columns(gap=(pl.col("treated") / pl.col("reference")).log())
    by_block = dict(
        pairs.group_by("block", maintain_order=True).agg(pl.col("gap").mean()).sort("block").rows()
    )
    mean = float(np.mean(list(by_block.values())))
    cells = (
        pairs.group_by(others, maintain_order=True).agg(pl.col("gap").mean())
        if others
        else pairs.select(pl.col("gap").mean())
    )
    agree = int((cells["gap"].sign() == np.sign(mean)).sum())
    return replace(blank, ratio=math.exp(mean), n=n, cells=cells.height, agree=agree, note=""), by_block


def as_judged(answer: Answer, gaps: dict[int, float], judged: Judged, family: int) -> Answer:
    """An answer with the interval that it has in a family of this size, and what would settle it."""
    low, high, p = judged.low, judged.high, judged.adjusted_p
    if low is None or high is None:
        note = "one repetition" if answer.n == 1 else "all repetitions are equal"
        return replace(answer, note=note)
    needed = None
    if low <= 0 <= high:
        values = np.array(list(gaps.values()))
        deviation = float(values.std(ddof=1)) if values.size > 1 else (high - low) / 4 * math.sqrt(answer.n)
        needed = repetitions_needed(abs(math.log(answer.ratio or 1)), deviation, family)
    return replace(answer, low=math.exp(low), high=math.exp(high), p=p, needed=needed)


def at_last_look(
    study: Study, answer: Answer, gaps: dict[int, float], all_answers: list[tuple[Answer, dict[int, float]]]
) -> Answer:
    """An answer judged by the repeated confidence interval of the last decision about `precision`."""
    precision = study.precision or {}
    confidence, most = precision["confidence"], precision["at_most"]
    decided = [one for one, _ in all_answers if is_decided(precision, one)]
    answer = replace(answer, confidence=confidence, repeated=True, change=precision.get("effect"))
    if len(gaps) < 2:
        return replace(answer, note="one repetition")
    at = looks(study.first_repetitions, most)
    # Answers that no decision is about are judged beside all others.
    comparisons = len(decided if answer in decided else all_answers)
    level = look_level(at, study.complete_blocks, confidence, comparisons)
    found = interval(np.array(list(gaps.values())), level)
    low, high = math.exp(found.low), math.exp(found.high)
    p = min(found.p * (1 - confidence) / level, 1.0)
    made = study.complete_blocks
    return replace(answer, low=low, high=high, p=p, note=f"{made} of at most {most} repetitions are made")


def is_decided(precision: dict[str, Any], answer: Answer) -> bool:
    """Whether decisions of a study with `precision` are about an answer."""
    wanted = {"class": answer.class_name, "metric": answer.metric}
    return precision.get("cell") is None and all(
        precision.get(name) in (None, value) for name, value in wanted.items()
    )


def repetitions_needed(effect: float, deviation: float, family: int = 1, power: float = POWER) -> int | None:
    """Repetitions at which a paired t test finds an effect with probability `power`.

    The level is that of `multiplicity.judge` for each of `family` comparisons (Bonferroni).

    Args:
        effect: the mean difference to find (of logarithms for a ratio).
        deviation: standard deviation of the difference between blocks.
        family: comparisons that are judged together.
        power: the probability to find it.

    Returns:
        At least 2; None where more than `MOST_REPETITIONS` would be needed.
    """
    if deviation == 0:
        return 2
    level = (1 - CONFIDENCE) * ALLOWANCE / family

    def finds(n: int) -> bool:
        critical = float(special.stdtrit(n - 1, 1 - level / 2))
        return bool(detected(effect / deviation * math.sqrt(n), critical, n - 1) >= power)

    return fewest(finds, MOST_REPETITIONS) if effect else None


def drifting(study: Study, table: pl.DataFrame) -> Iterator[tuple[str, int, int, int]]:
    """By class: runs whose responses drift, runs that are too short to tell, and all runs."""
    for app_class in study.classes:
        rows = table.filter(pl.col("class") == app_class.name)
        if rows.is_empty() or "drift_p" not in rows.columns:
            continue
        p = rows["drift_p"]
        yield app_class.name, int((p < SIGNIFICANCE).sum()), p.null_count(), rows.height
