"""Capacity of a server: the largest number of clients of a class at which all objectives are attained.

Each repetition has a capacity of its own, since its requests are its own; the same repetition of two cells
has the same requests, so capacities are compared in pairs. A capacity is found by doubling and bisection of
the number of clients: it is the largest number tried such that it and all smaller numbers tried attained
the objectives. Capacities of repetitions are summarised by their geometric mean with a `log-t` interval.
"""

import json
import math
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from weir.binary_cache import BinaryCache
from weir.derive import metrics_of
from weir.documents import write_text
from weir.errors import InputError
from weir.load import Run, Study, load_study
from weir.statistics import CONFIDENCE, compare, summarise

CAPACITY, FAILED = "capacity", "failed"
CLIENTS = "clients"
#: Numbers of clients that are tried of one cell at most, on average: doubling and bisection need far fewer.
MOST_TRIED = 64


@dataclass(frozen=True)
class Search:
    """What is searched for.

    Attributes:
        class_name: the class whose clients are counted.
        others: numbers of clients of other classes, by class; each combination is a point of the curve.
            Classes that are not named keep the study's number.
        limits: further objectives: largest value by class and metric.
        least: the first number of clients that is tried.
        most: the largest.
        resolution: a capacity is searched for until the next larger number tried is at most this share
            larger, or larger by one client.
    """

    class_name: str
    others: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    limits: Mapping[tuple[str, str], float] = field(default_factory=dict)
    least: int = 1
    most: int = 10_000
    resolution: float = 0.02

    def points(self) -> list[dict[str, int]]:
        """The combinations of numbers of clients of the other classes."""
        return [dict(zip(self.others, counts, strict=True)) for counts in product(*self.others.values())]


@dataclass(frozen=True)
class Cell:
    """One server of the study at one point of the curve.

    Attributes:
        levels: levels of the study's factors, as text.
        others: numbers of clients of the other classes.
    """

    levels: tuple[tuple[str, str], ...]
    others: tuple[tuple[str, int], ...]


_NOT_KEYS = {"class", "repetition", "block", CAPACITY, FAILED, "tried"}
#: Whether the objectives were attained, by number of clients, of each repetition of a cell.
Verdicts = dict[int, dict[int, bool]]


def bracket(verdicts: Mapping[int, bool]) -> tuple[int, int | None]:
    """The capacity by the numbers tried, and the next larger number tried.

    Args:
        verdicts: whether the objectives were attained, by number of clients.

    Returns:
        0 where the smallest number failed. None as second: no number failed.
    """
    capacity = 0
    for clients in sorted(verdicts):
        if not verdicts[clients]:
            return capacity, clients
        capacity = clients
    return capacity, None


def next_number(verdicts: Verdicts, search: Search) -> int | None:
    """The number of clients to try next in a cell; None where every repetition's capacity is known."""
    if not verdicts:
        return search.least
    for of_repetition in verdicts.values():
        low, high = bracket(of_repetition)
        if high is None:
            if low < search.most:
                return min(2 * low, search.most)
        elif low == 0:
            if high > 1:
                return high // 2
        elif high - low > max(1, math.floor(search.resolution * low)):
            # Bisection of the logarithm: the resolution is a ratio.
            return min(max(round(math.sqrt(low * high)), low + 1), high - 1)
    return None


@dataclass(frozen=True)
class Capacities:
    """Capacities of all cells.

    Attributes:
        study: the study that was derived, with all of its runs.
        search: what was searched for.
        table: one row per cell and repetition: levels, numbers of clients of other classes (`NAME clients`),
            `repetition`, `capacity`, `failed` (the next larger number tried; null where none failed),
            `tried` (numbers of clients).
    """

    study: Study
    search: Search
    table: pl.DataFrame

    @property
    def keys(self) -> list[str]:
        """The columns that tell cells apart: factors, then numbers of clients of other classes."""
        return [name for name in self.table.columns if name not in _NOT_KEYS]

    def estimates(self) -> pl.DataFrame:
        """One row per cell: the keys, `estimate`, `low`, `high`, `n`, `method`, `note`."""
        keys = ["class", *self.keys]
        rows = self.table.with_columns(pl.col(CAPACITY).cast(pl.Float64))
        found = summarise(rows, CAPACITY, keys, "log-t", pool=True)
        reached = self.table.group_by(keys).agg(is_most=pl.col(FAILED).is_null().any())
        return found.join(reached, on=keys, how="left", maintain_order="left")

    def comparisons(self, factor: str, baseline: str) -> pl.DataFrame:
        """Each level of a factor relative to the baseline, cell by cell, as `weir.statistics.compare`.

        `verdict`: `more` or `fewer` clients where the adjusted p excludes equality. Where all repetitions are
        equal there is no p: a level bears more if its capacity is at least the number that failed at the
        baseline, in each repetition. Else `undecided`.
        """
        by = ["class", *(name for name in self.keys if name != factor)]
        rows = self.table.with_columns(pl.col(CAPACITY).cast(pl.Float64))
        found = compare(rows, CAPACITY, factor, baseline, by)
        verdicts = [self._verdict(row, by, factor, baseline) for row in found.to_dicts()]
        return found.with_columns(verdict=pl.Series(verdicts, dtype=pl.String))

    def _verdict(self, row: Mapping[str, Any], by: list[str], factor: str, baseline: str) -> str:
        if row["p"] is not None:
            settled = row["p"] <= 1 - CONFIDENCE
            return "undecided" if not settled else "more" if row["estimate"] > 1 else "fewer"
        cell = self.table.filter(*(pl.col(name) == row[name] for name in by))
        sides = [
            cell.filter(pl.col(factor) == level).select("block", CAPACITY, pl.col(FAILED).fill_null(math.inf))
            for level in (row[factor], baseline)
        ]
        pairs = sides[0].join(sides[1], on="block", suffix="_baseline")
        if pairs.height < 2:
            return "undecided"
        if (pairs[CAPACITY] >= pairs[f"{FAILED}_baseline"]).all():
            return "more"
        return "fewer" if (pairs[f"{CAPACITY}_baseline"] >= pairs[FAILED]).all() else "undecided"


def search_capacities(
    document: Mapping[str, Any],
    search: Search,
    results: Path,
    planned: Callable[[Path], dict[str, Any]],
    carry_out: Callable[[Path, Path, dict[str, Any]], None],
    report: Callable[[str], None] = lambda _: None,
) -> Capacities:
    """Searches until the capacity of every repetition of every cell is known.

    Runs are kept in the results folder: a search that was interrupted goes on, and a finer resolution uses
    what is there.

    Args:
        document: the study, as its file has it.
        search: what is searched for.
        results: the folder of results.
        planned: the plan of a study's file.
        carry_out: makes the runs of a study that the results do not have yet; it is given the study's file,
            the folder of results and a plan of the runs that are needed.
        report: is given a line about each round.

    Raises:
        InputError: the study has no such class or no objective, or a run is invalid.
    """
    check(document, search)
    name = f"{document['name']}-capacity-{search.class_name}"
    folder = results / name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.yml"
    verdicts: dict[Cell, Verdicts] = {}
    tried: set[tuple[Cell, int]] = set()
    numbers = {search.least}
    judged: dict[str, bool] = {}
    while True:
        write_text(file, _text(derived(document, search, name, _levels(document, search, numbers))))
        plan = planned(file)
        if not verdicts:
            verdicts = {cell: {} for cell, _ in (_place(run["levels"], search) for run in plan["runs"])}
            continue_with = {(cell, search.least) for cell in verdicts}
        tried |= continue_with
        runs = [run for run in plan["runs"] if _place(run["levels"], search) in tried]
        report(f"{name}: {len(continue_with)} numbers of clients to try, {len(runs)} runs in all")
        carry_out(file, results, {**plan, "runs": runs})
        study = load_study(folder)
        verdicts = _verdicts(study, search, tried, judged)
        following = {cell: next_number(found, search) for cell, found in verdicts.items()}
        continue_with = {(cell, clients) for cell, clients in following.items() if clients is not None}
        if not continue_with:
            return Capacities(study, search, _table(search, verdicts))
        numbers |= {clients for _, clients in continue_with}
        if len(tried) + len(continue_with) > MOST_TRIED * len(verdicts):
            problem = f"no capacity after {MOST_TRIED} numbers of clients for each cell"
            raise InputError(folder, problem, "search with a coarser --resolution")


def check(document: Mapping[str, Any], search: Search) -> None:
    """Raises InputError unless the study can be searched."""
    classes = document.get("classes") or {}
    known = ", ".join(classes)
    name = Path(f"{document.get('name', 'study')}.yml")
    for one in (search.class_name, *search.others, *(of for of, _ in search.limits)):
        if one not in classes:
            raise InputError(name, f"there is no class `{one}`", f"classes: {known}")
    if search.class_name in search.others:
        raise InputError(
            name, f"class `{search.class_name}` is the one that is searched", "leave it out of --with"
        )
    has_objective = any((fields or {}).get("objective") for fields in classes.values())
    if not has_objective and not search.limits:
        problem = "no class has an objective"
        raise InputError(name, problem, "give one: --limit CLASS.METRIC=VALUE, or `objective:` in the study")
    if not 1 <= search.least <= search.most or not search.resolution > 0:
        raise InputError(
            name, "--least is at least 1 and at most --most; --resolution is above 0", "change them"
        )


def derived(
    document: Mapping[str, Any], search: Search, name: str, levels: list[dict[str, int]]
) -> dict[str, Any]:
    """The study whose factor `clients` has the numbers that are tried, in place of factors of load."""
    factors = {
        key: value for key, value in (document.get("factors") or {}).items() if key not in ("load", CLIENTS)
    }
    made = {**document, "name": name, "factors": {**factors, CLIENTS: levels}}
    # A search makes the repetitions that it names, each once.
    made.pop("precision", None)
    made["duplicate"] = False
    made["question"] = f"How many {search.class_name} clients does each server bear?"
    comparison = made.get("comparison")
    if comparison and comparison.get("factor") in ("load", CLIENTS):
        del made["comparison"]
    return made


def _text(document: Mapping[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True)


def _levels(document: Mapping[str, Any], search: Search, numbers: Iterable[int]) -> list[dict[str, int]]:
    own = {name: (fields or {}).get(CLIENTS, 1) for name, fields in document["classes"].items()}
    return [
        {**own, **point, search.class_name: clients}
        for point in search.points()
        for clients in sorted(numbers)
    ]


def _place(levels: Mapping[str, Any], search: Search) -> tuple[Cell, int]:
    """The cell and the number of clients of a run, by its levels."""
    own = tuple((name, str(level)) for name, level in sorted(levels.items()) if name != CLIENTS)
    counts = dict(part.split("=") for part in str(levels[CLIENTS]).split())
    others = tuple((name, int(counts[name])) for name in search.others)
    return Cell(own, others), int(counts[search.class_name])


def _verdicts(
    study: Study, search: Search, tried: set[tuple[Cell, int]], judged: dict[str, bool]
) -> dict[Cell, Verdicts]:
    found: dict[Cell, Verdicts] = {}
    for run in study.runs:
        cell, clients = _place(run.levels, search)
        if (cell, clients) not in tried:
            continue
        if run.validity.status != "valid":
            problem = f"run {run.id} ({clients} clients) is {run.validity.status}: {run.validity.reasons}"
            raise InputError(study.path, problem, "see docs/how-to/invalid-runs.md; then search again")
        if run.id not in judged:
            judged[run.id] = attained(run, search)
        found.setdefault(cell, {}).setdefault(run.repetition, {})[clients] = judged[run.id]
    return found


def attained(run: Run, search: Search) -> bool:
    """Whether a run attained the objectives of all its classes, and the further limits.

    Raises:
        InputError: a limit names a metric that the run does not have, or a metric has no value.
    """
    classes = metrics_of(run)["classes"]
    judged = []
    for app_class in run.classes:
        if app_class.objective:
            values = classes[app_class.name]
            value, is_kept = values["objective_value"], values["objective_attained"]
            judged.append((app_class.name, "objective_value", value, is_kept))
    for (name, metric), limit in search.limits.items():
        # A class without clients is not in the run.
        if name in classes:
            if metric not in classes[name]:
                raise InputError(run.path, f"there is no metric `{metric}`", "see docs/reference/metrics.md")
            value = classes[name][metric]
            judged.append((name, metric, value, value is not None and value <= limit))
    for name, metric, value, _ in judged:
        if value is None:
            problem = f"class {name} has too few requests: `{metric}` has no value"
            raise InputError(run.path, problem, "measure longer, or begin with a larger --least")
    return all(is_kept for *_, is_kept in judged)


def _table(search: Search, verdicts: dict[Cell, Verdicts]) -> pl.DataFrame:
    rows = []
    for cell, of_cell in sorted(verdicts.items(), key=lambda item: (item[0].levels, item[0].others)):
        for repetition, of_repetition in sorted(of_cell.items()):
            capacity, failed = bracket(of_repetition)
            rows.append(
                {
                    **dict(cell.levels),
                    **{f"{name} clients": count for name, count in cell.others},
                    "class": search.class_name,
                    "repetition": repetition,
                    "block": repetition,
                    CAPACITY: capacity,
                    FAILED: failed,
                    "tried": len(of_repetition),
                }
            )
    return pl.DataFrame(rows, schema_overrides={FAILED: pl.Int64})


def in_virtual_time(binary: BinaryCache) -> Callable[[Path, Path, dict[str, Any]], None]:
    """Makes runs by `weir simulate`: those of the plan."""

    def carry_out(file: Path, results: Path, plan: dict[str, Any]) -> None:
        path = file.with_name("plan.json")
        write_text(path, json.dumps(plan, indent=2) + "\n")
        binary.output("simulate", path, "--out", results, remedy="see the message")

    return carry_out


def on_devices(root: Path) -> Callable[[Path, Path, dict[str, Any]], None]:
    """Makes runs by the playbook: those of all cells at every number of clients that is tried in one."""

    def carry_out(file: Path, results: Path, _: dict[str, Any]) -> None:
        command = ["make", "-C", root, "study", f"STUDY={file}", f"ANSIBLE_ARGS=-e weir_results={results}"]
        if subprocess.run(command, check=False).returncode:
            raise InputError(file, "the playbook failed", "see its messages; then search again")

    return carry_out


def read_study(root: Path, name: str) -> dict[str, Any]:
    """The content of a study's file.

    Args:
        root: the root of the project.
        name: the study's name, or its file.

    Raises:
        InputError: there is no such study, or several.
    """
    import yaml

    given = Path(name)
    found = [given] if given.suffix == ".yml" else sorted((root / "studies").rglob(f"{name}.yml"))
    if len(found) != 1:
        problem = "there is no such study" if not found else "several files have this name"
        raise InputError(root / "studies" / f"{name}.yml", problem, "see weir list studies, or name the file")
    try:
        document = yaml.safe_load(found[0].read_text())
    except (OSError, yaml.YAMLError) as error:
        raise InputError(found[0], f"cannot be read ({error})", "see weir check") from error
    if not isinstance(document, dict) or "name" not in document:
        raise InputError(found[0], "is no study", "see docs/reference/study.md")
    return document


def make_virtual(document: dict[str, Any]) -> bool:
    """Whether the search is in virtual time; a study of both testbeds is searched on the simulator."""
    testbed = document.get("testbed", "device")
    if "simulator" not in ([testbed] if isinstance(testbed, str) else testbed):
        return False
    document["testbed"] = "simulator"
    return True
