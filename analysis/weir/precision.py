"""Decisions of a study with `precision`: whether another repetition is needed.

A decision is made after the repetitions of `sequential.looks`, from the runs of these repetitions. An
interrupted study therefore continues where it was, and a decision that is made again is the same.
"""

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from weir.answers import compared, is_decided
from weir.binary_cache import BinaryCache
from weir.errors import InputError
from weir.labels import label, number
from weir.load import DECISION, PLAN_AGAIN, Study, load_study
from weir.sequential import interval, look_level, looks, reached
from weir.study import cell_label, class_table, level_key, objective_metric

#: More repetitions are needed.
GO_ON = "go on"
#: The study stops: every interval is precise enough; no more repetitions are allowed; nothing can be judged.
REACHED = "reached"
AT_MOST = "at most"
IMPOSSIBLE = "cannot be judged"
#: Stands beside the results of cells, whose intervals are not repeated ones.
OF_CELLS = "intervals of single cells do not account for the decisions"


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

    def document(self) -> dict[str, Any]:
        """The decision as JSON."""
        return asdict(self) | {"sentence": self.lines()[-1]}

    def lines(self) -> list[str]:
        """The decision in sentences, the intervals first."""
        found = []
        for one in self.intervals:
            if one.low is None or one.high is None:
                found.append(f"{one.name}: {one.note}")
                continue
            ends = f"{self.confidence * 100:.4g} % repeated CI {number(one.low)} to {number(one.high)}"
            done = "precise enough" if one.reached else "not precise enough"
            found.append(f"{one.name}: {number(one.estimate)} ({ends}, n = {one.n}), {done}")
        most = self.precision["at_most"]
        sentences = {
            GO_ON: f"more repetitions are needed: next decision after {self.repetitions} of at most {most}",
            REACHED: f"precision reached after {self.after} of at most {most} repetitions",
            AT_MOST: f"precision not reached with {most} repetitions, the most that the study allows",
            IMPOSSIBLE: f"stopped after {self.after} repetitions: no interval can be computed",
        }
        return [*found, sentences[self.status]]


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
    known: tuple[Judged, ...] = ()
    after = 0
    for n in at:
        if n > study.complete_blocks:
            return Decision(GO_ON, after, n, confidence, known, precision)
        level = look_level(at, n, confidence, len(values))
        known = tuple(_judged(name, by_block, n, level, precision) for name, by_block in values.items())
        after = n
        if all(one.low is None for one in known):
            return Decision(IMPOSSIBLE, n, n, confidence, known, precision)
        # A metric without a logarithm has no interval, however many repetitions are made.
        if all(one.reached for one in known if not isinstance(values[one.name], str)):
            return Decision(REACHED, n, n, confidence, known, precision)
    return Decision(AT_MOST, after, most, confidence, known, precision)


def decide_now(study: Study) -> Decision:
    """The decision from the runs that exist: see `decide`."""
    return decide(study, class_table(study))


def write(decision: Decision, folder: Path) -> None:
    """Writes a decision into the study's folder, where the data plane and the loader read it."""
    path = folder / DECISION
    text = json.dumps(decision.document(), indent=2) + "\n"
    partial = path.with_name(f".{DECISION}.partial")
    try:
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise InputError(path, f"cannot be written ({error.strerror})", "make its folder writable") from error


def simulate(folder: Path, *, shown: bool = False) -> Decision:
    """Simulates the repetitions up to the next decision and decides, until the study stops.

    Args:
        folder: the study's folder, which has a plan.
        shown: leave the output of `weir simulate` to the terminal.

    Returns:
        The last decision, which is written. It stops the study, unless some run could not be simulated.

    Raises:
        InputError: no binary is found, the study has no `precision`, or `weir simulate` failed.
    """
    study = load_study(folder)
    binary = BinaryCache.find(folder.parent)
    found = decide_now(study)
    known = -1
    while not found.stops and found.after > known:
        known = found.after
        write(found, folder)
        # Exit code 3: a run is invalid.
        out = folder.parent.resolve()
        plan = folder.resolve() / "plan.json"
        binary.output("simulate", plan, "--out", out, accepted=(0, 3), shown=shown)
        found = decide_now(load_study(folder))
    write(found, folder)
    return found


def _values(
    study: Study, table: pl.DataFrame, precision: dict[str, Any]
) -> dict[str, dict[int, float] | str]:
    """What is judged, by name: logarithms by block, or why there are none."""
    wanted, metric = precision.get("class"), precision.get("metric")
    found: dict[str, dict[int, float] | str] = {}
    if precision.get("cell") is None:
        for answer, gaps in compared(study, table, metric=metric):
            if is_decided(precision, answer):
                name = f"{answer.class_name}, {label(answer.metric).text.lower()}"
                without = answer.note if answer.n else {}
                found[f"{name}: {answer.level} / {answer.baseline}"] = gaps or without
        return found
    rows = table
    for name, wanted_level in precision["cell"].items():
        same = [level_key(level) == level_key(wanted_level) for level in rows[name]] if rows.height else []
        rows = rows.filter(pl.Series(same, dtype=pl.Boolean))
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
    found = interval(x, level)
    done = bool(reached(found.low, found.high, precision.get("width"), precision.get("effect")))
    return Judged(name, *map(math.exp, (found.estimate, found.low, found.high)), x.size, done)
