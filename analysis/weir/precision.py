"""Decisions of a study with `precision`: whether another repetition is needed.

A decision is made after the repetitions of `sequential.looks`, from the runs of these repetitions. An
interrupted study therefore continues where it was, and a decision that is made again is the same.
"""

import json
import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from weir.answers import compared, is_decided
from weir.binary_cache import BinaryCache
from weir.errors import InputError
from weir.labels import label, number
from weir.load import DECISION, PLAN_AGAIN, Study, load_study, plain_level
from weir.sequential import interval, look_level, looks, reached
from weir.study import cell_label, class_table, level_key, objective_metric

#: More repetitions are needed.
GO_ON = "go on"
#: The study stops: every interval is precise enough; no more repetitions are allowed; nothing can be judged.
REACHED = "reached"
AT_MOST = "at most"
IMPOSSIBLE = "cannot be judged"
#: Value of the field `precision.stop`: each cell stops by itself.
EACH = "each"
#: More intervals are not listed one by one.
_MOST_LINES = 12
_NO_LOGARITHM = "unbounded or not above 0 in some repetition"
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
        is_final: whether more repetitions change nothing: precise enough, or never with an interval.
    """

    name: str
    estimate: float | None
    low: float | None
    high: float | None
    n: int
    reached: bool
    note: str = ""
    is_final: bool = False


@dataclass(frozen=True)
class Decision:
    """What is known after some repetitions, and how many are to be made.

    Attributes:
        status: `GO_ON`, or why the study stops: `REACHED`, `AT_MOST`, `IMPOSSIBLE`.
        after: repetitions that the decision is about; 0 before the first.
        repetitions: repetitions to make; where the study stops, those that were made for it.
        confidence: of all intervals of all decisions together; with `stop: each`, of each one at all
            decisions.
        intervals: what was judged; with `stop: each`, of each cell as it was when the cell stopped.
        precision: the field of the study.
        stopped: with `stop: each`, repetitions of each cell that is repeated no more, by the cell's id.
    """

    status: str
    after: int
    repetitions: int
    confidence: float
    intervals: tuple[Judged, ...]
    precision: dict[str, Any]
    stopped: dict[str, int] = field(default_factory=dict)

    @property
    def stops(self) -> bool:
        """Whether no more repetitions are needed."""
        return self.status != GO_ON

    def document(self) -> dict[str, Any]:
        """The decision as JSON."""
        return asdict(self) | {"sentence": self.lines()[-1]}

    def lines(self) -> list[str]:
        """The decision in sentences, the intervals first; of many intervals only those that are too wide."""
        found, shown = [], self.intervals
        if len(shown) > _MOST_LINES:
            shown = tuple(one for one in shown if not one.reached)
            n = sorted(one.n for one in self.intervals if one.reached)
            if n:
                found.append(f"{len(n)} intervals are precise enough (n = {n[0]} to {n[-1]})")
        for one in shown:
            if one.low is None or one.high is None:
                found.append(f"{one.name}: {one.note}")
                continue
            ends = f"{self.confidence * 100:.4g} % repeated CI {number(one.low)} to {number(one.high)}"
            done = "precise enough" if one.reached else "not precise enough"
            found.append(f"{one.name}: {number(one.estimate)} ({ends}, n = {one.n}), {done}")
        most = self.precision["at_most"]
        of_some = ""
        if self.precision.get("stop") == EACH:
            wide = sum(not one.reached for one in self.intervals)
            of_some = f" by {wide} of {len(self.intervals)} means"
        sentences = {
            GO_ON: f"more repetitions are needed{of_some}: next decision after {self.repetitions} of at most "
            f"{most}",
            REACHED: f"precision reached after {self.after} of at most {most} repetitions",
            AT_MOST: f"precision not reached{of_some} with {most} repetitions, the most that the study "
            "allows",
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
    is_each = precision.get("stop") == EACH
    known: dict[str, Judged] = {}
    stopped: dict[str, int] = {}
    after = 0

    def decision(status: str, repetitions: int) -> Decision:
        return Decision(status, after, repetitions, confidence, tuple(known.values()), precision, stopped)

    for n in at:
        if n > study.blocks_made(stopped):
            return decision(GO_ON, n)
        # Together all intervals hold; each cell that stops by itself has an interval of its own.
        level = look_level(at, n, confidence, 1 if is_each else len(values))
        known |= {
            name: _judged(name, one.by_block, n, level, precision)
            for name, one in values.items()
            if one.cell not in stopped
        }
        after = n
        if all(one.low is None for one in known.values()):
            return decision(IMPOSSIBLE, n)
        if all(one.is_final for one in known.values()):
            return decision(REACHED, n)
        if is_each:
            stopped |= _newly_stopped(study, values, known, n, stopped)
    return decision(AT_MOST, most)


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


@dataclass(frozen=True)
class _Values:
    """What one interval is of: values by block, or why there can be none; the cell, if it is of one cell."""

    by_block: dict[int, float] | str
    cell: str = ""


def _values(study: Study, table: pl.DataFrame, precision: dict[str, Any]) -> dict[str, _Values]:
    """What is judged, by name: logarithms of ratios, which are NaN or infinite where a block has none."""
    wanted, metric = precision.get("class"), precision.get("metric")
    found: dict[str, _Values] = {}
    if precision.get("cell") is None:
        for answer, gaps in compared(study, table, metric=metric):
            if is_decided(precision, answer):
                name = f"{answer.class_name}, {label(answer.metric).text.lower()}"
                without = answer.note if answer.n else {}
                found[f"{name}: {answer.level} / {answer.baseline}"] = _Values(gaps or without)
        return found
    rows = table
    for name, wanted_level in precision["cell"].items():
        wanted_key = level_key(plain_level(wanted_level))
        same = [level_key(level) == wanted_key for level in rows[name]] if rows.height else []
        rows = rows.filter(pl.Series(same, dtype=pl.Boolean))
    cells = {run.id: run.cell for run in study.runs}
    for app_class in study.classes:
        if wanted not in (None, app_class.name) or rows.is_empty():
            continue
        column = metric or objective_metric(app_class)[0]
        of_class = rows.filter(pl.col("class") == app_class.name).drop_nulls(column)
        for key, group in of_class.group_by([*study.factors], maintain_order=True):
            levels = cell_label(dict(zip(study.factors, key, strict=True)), study.factors)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(group[column].to_numpy())
            by_block = dict(zip(group["block"].to_list(), logs.tolist(), strict=True))
            axis = label(column).axis
            name = f"{app_class.name}, {axis[:1].lower()}{axis[1:]}: {levels}"
            found[name] = _Values(by_block, cells[group["run"][0]])
    return found


def _newly_stopped(
    study: Study, values: dict[str, _Values], known: dict[str, Judged], n: int, stopped: dict[str, int]
) -> dict[str, int]:
    """Cells that are repeated no more after `n` repetitions: all intervals are final, or all runs skipped.

    A cell that is not judged is repeated as long as any other one.
    """
    judged: dict[str, list[Judged]] = {}
    for name, one in values.items():
        judged.setdefault(one.cell, []).append(known[name])
    runs = [run for run in study.runs if run.block < n and run.cell not in stopped]
    other = {run.cell for run in runs if run.validity.status != "skipped"}
    final = {cell for cell, intervals in judged.items() if all(one.is_final for one in intervals)}
    return {run.cell: n for run in runs if run.cell in final or run.cell not in other}


def _judged(
    name: str, by_block: dict[int, float] | str, n: int, level: float, precision: dict[str, Any]
) -> Judged:
    if isinstance(by_block, str):
        return Judged(name, None, None, None, 0, False, by_block, is_final=True)
    x = np.array([value for block, value in by_block.items() if block < n])
    # A metric without a logarithm has no interval, however many repetitions are made.
    if not np.isfinite(x).all():
        return Judged(name, None, None, None, x.size, False, _NO_LOGARITHM, is_final=True)
    if x.size < 2:
        return Judged(name, None, None, None, x.size, False, "fewer than two valid repetitions")
    found = interval(x, level)
    done = bool(reached(found.low, found.high, precision.get("width"), precision.get("effect")))
    ends = map(math.exp, (found.estimate, found.low, found.high))
    return Judged(name, *ends, x.size, done, is_final=done)
