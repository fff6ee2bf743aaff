"""Decisions of a study with `precision`: whether another repetition is needed.

A decision is made after the repetitions of `sequential.looks`, from the runs of these repetitions only. It depends
on nothing else, so that an interrupted study continues where it was, and a decision can be made again.
"""

import json
import math
import os
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from weir.answers import compared
from weir.errors import InputError
from weir.labels import label, number
from weir.load import DECISION, GO_ON, PLAN_AGAIN, Study
from weir.sequential import half_width, looks, nominal_levels, reached
from weir.study import cell_label, objective_metric

#: The study stops: every interval is precise enough; no more repetitions are allowed; nothing can be judged.
REACHED = "reached"
AT_MOST = "at most"
IMPOSSIBLE = "cannot be judged"
#: Variances that are estimated from few repetitions make errors up to a tenth more frequent than the level; so
#: much of the level is used. Measured by `test_precision.py`.
ALLOWANCE = 0.9


@dataclass(frozen=True)
class Judged:
    """One interval of a decision.

    Attributes:
        name: class, metric and what is judged.
        estimate: the ratio of two levels, or the mean of a cell (geometric means); None without one.
        low: lower end of the interval, which holds at all decisions together; None without one.
        high: upper end; None without one.
        n: repetitions with a value.
        reached: whether the interval is precise enough.
        note: why there is no interval.
    """

    name: str
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    reached: bool
    note: str = ""


@dataclass(frozen=True)
class Decision:
    """What is known after some repetitions, and how many are to be made.

    Attributes:
        status: `GO_ON`, or why the study stops: `REACHED`, `AT_MOST`, `IMPOSSIBLE`.
        after: repetitions that the decision is about; 0 before the first.
        repetitions: repetitions to make; where the study stops, those that were made for it.
        confidence: of all intervals of all decisions together.
        intervals: what was judged.
        precision: the field of the study.
    """

    status: str
    after: int
    repetitions: int
    confidence: float
    intervals: tuple[Judged, ...]
    precision: dict[str, Any]

    @property
    def stops(self) -> bool:
        """Whether no more repetitions are needed."""
        return self.status != GO_ON

    def lines(self) -> list[str]:
        """The decision in sentences, the intervals first."""
        found = []
        for one in self.intervals:
            if one.low is None or one.high is None:
                found.append(f"{one.name}: {one.note}")
                continue
            interval = f"{self.confidence:.4g} interval {number(one.low)} to {number(one.high)}"
            done = "precise enough" if one.reached else "not yet precise enough"
            found.append(f"{one.name}: {number(one.estimate)} ({interval}, n = {one.n}), {done}")
        most = self.precision["at_most"]
        match self.status:
            case "go on":
                text = f"go on: {self.repetitions} of at most {most} repetitions are to be made"
            case "reached":
                text = f"precision reached after {self.after} of at most {most} repetitions"
            case "at most":
                text = f"precision not reached with {most} repetitions, the most that the study allows"
            case _:
                text = f"stopped after {self.after} repetitions: nothing can be judged"
        return [*found, text]


def decide(study: Study, table: pl.DataFrame) -> Decision:
    """Decides whether a study with `precision` needs more repetitions.

    Args:
        study: the study.
        table: one row per valid run and class.

    Raises:
        InputError: the study has no `precision`, or one of its fields is not known here.
    """
    precision = study.precision
    plan = study.path / "plan.json"
    if precision is None:
        raise InputError(plan, "has no field `precision`", "add `precision: {effect: 0.1, at_most: 40}`")
    most, confidence = precision["at_most"], precision["confidence"]
    metric = precision.get("metric")
    if metric is not None and table.height and metric not in table.columns:
        raise InputError(plan, f"field `precision.metric` is {metric!r}, no metric", PLAN_AGAIN)
    values = _values(study, table, precision)
    at = looks(study.first_repetitions, most)
    level = (1 - confidence) * ALLOWANCE / max(len(values), 1)
    complete = complete_blocks(study)
    known: tuple[Judged, ...] = ()
    after = 0
    for n, nominal in zip(at, nominal_levels(at, level), strict=True):
        if n > complete:
            return Decision(GO_ON, after, n, confidence, known, precision)
        known = tuple(_judged(name, by_block, n, nominal, precision) for name, by_block in values.items())
        after = n
        judged = [one for one in known if one.low is not None]
        status = IMPOSSIBLE if not judged else REACHED if all(one.reached for one in judged) else ""
        if status:
            return Decision(status, n, n, confidence, known, precision)
    return Decision(AT_MOST, after, most, confidence, known, precision)


def complete_blocks(study: Study) -> int:
    """Blocks from the first one on whose runs all exist, valid or not."""
    made: dict[int, int] = {}
    for run in study.runs:
        made[run.block] = made.get(run.block, 0) + 1
    planned = len(study.runs) + len(study.missing) + len(study.not_needed)
    of_block = planned // max(study.repetitions, 1)
    block = 0
    while of_block and made.get(block, 0) >= of_block:
        block += 1
    return block


def write(decision: Decision, study: Study) -> None:
    """Writes the decision into the study's folder, where the data plane and the loader read it."""
    path = study.path / DECISION
    partial = path.with_name(f".{DECISION}.partial")
    partial.write_text(json.dumps(asdict(decision), indent=2) + "\n", encoding="utf-8")
    os.replace(partial, path)


def _values(
    study: Study, table: pl.DataFrame, precision: dict[str, Any]
) -> dict[str, dict[int, float] | str]:
    """What is judged, by name: logarithms by block, or why there are none."""
    wanted, metric = precision.get("class"), precision.get("metric")
    found: dict[str, dict[int, float] | str] = {}
    if precision.get("cell") is None:
        for answer, gaps in compared(study, table, metric=metric):
            if wanted in (None, answer.class_name):
                name = f"{answer.class_name}, {label(answer.metric).text.lower()}"
                found[f"{name}: {answer.level} / {answer.baseline}"] = gaps or answer.note
        return found
    cell = {name: str(level) for name, level in precision["cell"].items()}
    rows = table.filter(*(pl.col(name).cast(pl.String) == level for name, level in cell.items()))
    for app_class in study.classes:
        if wanted not in (None, app_class.name) or rows.is_empty():
            continue
        column = metric or objective_metric(app_class)[0]
        of_class = rows.filter(pl.col("class") == app_class.name).drop_nulls(column)
        for key, group in of_class.group_by([*study.factors], maintain_order=True):
            levels = cell_label(dict(zip(study.factors, key, strict=True)), study.factors)
            numbers = group[column].to_numpy()
            name = f"{app_class.name}, {label(column).axis.lower()}: {levels}"
            if np.isfinite(numbers).all() and (numbers > 0).all():
                found[name] = dict(zip(group["block"].to_list(), np.log(numbers).tolist(), strict=True))
            else:
                found[name] = "unbounded or not above 0 in some repetition"
    return found


def _judged(
    name: str, by_block: dict[int, float] | str, n: int, level: float, precision: dict[str, Any]
) -> Judged:
    if isinstance(by_block, str):
        return Judged(name, None, None, None, 0, False, by_block)
    x = np.array([value for block, value in by_block.items() if block < n])
    if x.size < 2:
        return Judged(name, None, None, None, x.size, False, "fewer than two valid repetitions")
    mean, half = float(x.mean()), half_width(float(x.std(ddof=1)), x.size, level)
    low, high = mean - half, mean + half
    done = reached(np.array(low), np.array(high), precision.get("width"), precision.get("effect"))
    return Judged(name, math.exp(mean), math.exp(low), math.exp(high), x.size, bool(done))
