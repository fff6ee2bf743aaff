"""A study and its runs, read from their folders: plan, runs, validity, host facts.

`results/<study>/plan.json` is the plan (of each label one: `weir.plans`); `results/<study>/<run id>/` is one
run. A run's folder is complete once it exists; folders whose name begins with `.` or ends with `.partial` are
ignored.
"""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from weir import plans
from weir.documents import check_format, field, read_document
from weir.errors import DamagedError, InputError
from weir.manifest import NAME as MANIFEST
from weir.manifest import RUN_AGAIN, Verified
from weir.plan import PLAN_AGAIN
from weir.plans import LABEL

NUMBER = (int, float)
#: The factor that the testbed is where a study names both.
TESTBED = "testbed"
#: Status, testbed and mark of runs that another program carried out (`weir import results`).
IMPORTED = "imported"
#: The only validity rule of such a run.
IMPORTED_RULE = "R-IMPORTED"
#: Statuses of the runs whose data are used.
USABLE = ("valid", IMPORTED)
STATUSES = (*USABLE, "invalid", "skipped")
#: Levels that a factor may take.
Level = str | int | float | bool
#: Parts of `observed.json` that are objects where they are there.
_OBSERVED_OBJECTS = {"capture", "cpu", "hot", "live", "models", "replay", "simulator", "timing", "web"}
#: The last decision about a study's precision, in its folder.
DECISION = "precision.json"
DECIDE_AGAIN = "remove it, then decide again: python -m weir precision STUDY --decide"


@dataclass(frozen=True)
class AppClass:
    """One application class of a study: clients, workload, engine, objective.

    `clients` are those of all hosts of a run. `rate_per_s` is the limit that a client of a closed loop keeps
    to; None if there is none.
    """

    name: str
    workload: str
    clients: int
    engine: str
    priority: str | None
    objective: dict[str, Any] | None
    rate_per_s: float | None = None


@dataclass(frozen=True)
class Rule:
    """One validity rule of a run: `status` is one of `STATUSES`."""

    rule: str
    status: str
    reason: str
    value: float | None
    limit: float | None


@dataclass(frozen=True)
class Validity:
    """Whether the data of a run may be used: only those of a valid run, and imported ones as they are."""

    status: str
    rules: tuple[Rule, ...]
    # CPU steal made the attempts before it invalid.
    attempt: int = 1

    @property
    def is_usable(self) -> bool:
        """Whether tables and figures may show the run's data."""
        return self.status in USABLE

    @property
    def reasons(self) -> str:
        """Why the run is not valid, rule by rule; empty for a valid run."""
        return "; ".join(f"{r.rule}: {r.reason}" for r in self.rules if r.status == self.status != "valid")


@dataclass(frozen=True)
class Run:
    """One repetition of a cell. Times are in seconds from the run's start.

    `manifest` is the checksum of its manifest, which covers all its files; None for runs of a version of
    weir without manifests.
    """

    path: Path
    id: str
    testbed: str
    cell: str
    levels: dict[str, Level]
    repetition: int
    block: int
    order: int
    seed: int
    warmup_s: float
    duration_s: float
    classes: tuple[AppClass, ...]
    validity: Validity
    manifest: str | None = None
    duplicate: bool = False

    @property
    def window_ns(self) -> tuple[int, int]:
        """The measured interval `[start, end)`: `duration_s` seconds after the warm-up."""
        start = round(self.warmup_s * 1e9)
        return start, start + round(self.duration_s * 1e9)

    @property
    def measured_ns(self) -> tuple[int, int]:
        """The part of the measured interval that was carried out, `[start, end)`: rates are of it.

        A simulation of an overload is given up before its time. The interval is empty if that was in the
        warm-up.
        """
        start, end = self.window_ns
        saturation = (self.observed.get("simulator") or {}).get("saturation") or {}
        at_s = saturation.get("at_s")
        return start, end if at_s is None else max(start, min(end, round(at_s * 1e9)))

    @property
    def observed(self) -> dict[str, Any]:
        """`observed.json`: statistics of engines and collectors; empty if the run has no such file."""
        document = self._optional("observed.json")
        for name in _OBSERVED_OBJECTS & document.keys():
            field(document, self.path / "observed.json", name, (dict, type(None)))
        return document

    @property
    def media(self) -> dict[str, str]:
        """The device of each class, such as `modelled disk hdd-7200`; empty if not recorded."""
        said = self.observed.get("media")
        if isinstance(said, dict):
            return {str(name): str(text) for name, text in said.items()}
        if self.testbed != "simulator":
            return {}
        devices = self._optional("run.json").get("devices")
        profiles = {str(device.get("profile")) for device in devices or () if isinstance(device, dict)}
        text = f"modelled disk {' or '.join(sorted(profiles))} in virtual time"
        return {c.name: text for c in self.classes} if profiles else {}

    @property
    def imported(self) -> dict[str, Any]:
        """Of an imported run: program, format, measure and files; empty for runs of weir."""
        recorded = self._optional("run.json").get(IMPORTED)
        return recorded if isinstance(recorded, dict) else {}

    @property
    def host(self) -> dict[str, Any]:
        """Facts of the host, or of several hosts by name; empty if the run has no such file."""
        alone = self._optional("host.json")
        if alone:
            return alone
        return {
            path.parent.name: read_document(path, RUN_AGAIN)
            for path in sorted(self.path.glob("hosts/*/host.json"))
        }

    def _optional(self, name: str) -> dict[str, Any]:
        path = self.path / name
        return read_document(path, RUN_AGAIN) if path.exists() else {}


@dataclass(frozen=True)
class Study:
    """A plan and its existing runs, in the order in which they were run.

    `note` says why the plan is only a part of the study, if it is. `missing` are the levels of planned runs
    that do not exist, by id; `stray` are ids of runs that are not in the plan. `comparison` is the factor and
    perhaps the baseline whose comparison answers the question, if the study names one. `precision` is the
    precision at which the study stops, if the study names one: `first_repetitions` are made before the first
    decision, `decision` is the last decision, and `not_needed` are ids of planned runs that the decision does
    not ask for. `label` is the only label whose runs it has, if one was asked for.
    """

    path: Path
    name: str
    question: str
    description: str
    seed: int
    repetitions: int
    note: str
    factors: dict[str, list[Level]]
    classes: tuple[AppClass, ...]
    runs: tuple[Run, ...]
    missing: dict[str, dict[str, Level]]
    stray: tuple[str, ...]
    comparison: dict[str, Any] | None = None
    precision: dict[str, Any] | None = None
    first_repetitions: int = 0
    decision: dict[str, Any] | None = None
    not_needed: tuple[str, ...] = ()
    label: str | None = None

    @property
    def place(self) -> str:
        """Its folder, or `FOLDER@LABEL` where it has the runs of one label."""
        return str(self.path) if self.label is None else f"{self.path}@{self.label}"

    @property
    def asked_repetitions(self) -> int:
        """Repetitions of each cell to make: with `precision`, those up to the next decision."""
        return self.repetitions if self.precision is None else _asked(self.first_repetitions, self.decision)

    @property
    def fewest_repetitions(self) -> int:
        """Repetitions of the cell that is repeated least: `asked_repetitions`, but for stopped cells."""
        return min([self.asked_repetitions, *_stopped(self.decision).values()])

    @property
    def repetitions_text(self) -> str:
        """Repetitions of a cell, such as `3`, or `4 to 6` where cells stop by themselves."""
        fewest, most = self.fewest_repetitions, self.asked_repetitions
        return str(most) if fewest == most else f"{fewest} to {most}"

    def repetitions_in_common(self, runs: Iterable[str]) -> int:
        """Repetitions that the cells of these runs all have, where `precision` has stopped some of them.

        Later blocks contain only cells with wide intervals, which would get more weight in a mean over cells.
        """
        stopped = _stopped(self.decision)
        if not stopped:
            return self.repetitions
        wanted = set(runs)
        cells = {run.cell for run in self.runs if run.id in wanted}
        return min((stopped[cell] for cell in cells if cell in stopped), default=self.repetitions)

    @property
    def planned(self) -> int:
        """Runs of the plan."""
        return len(self.runs) + len(self.missing) + len(self.not_needed)

    @cached_property
    def complete_blocks(self) -> int:
        """`blocks_made` with the cells that the last decision has stopped."""
        return self.blocks_made(_stopped(self.decision))

    def blocks_made(self, stopped: Mapping[str, int]) -> int:
        """Blocks from the first one on whose runs all exist, valid or not.

        Args:
            stopped: cells that later blocks do not need, by their ids, with their repetitions.
        """
        made = Counter(run.block for run in self.runs if run.block < stopped.get(run.cell, self.repetitions))
        of_block = self.planned // max(self.repetitions, 1)
        # Runs of a block that end with so many repetitions.
        ending = Counter(stopped[run.cell] for run in self.runs if run.block == 0 and run.cell in stopped)

        def wanted(block: int) -> int:
            return of_block - sum(runs for repetitions, runs in ending.items() if repetitions <= block)

        return next(block for block in count() if made[block] < max(wanted(block), 1))

    @cached_property
    def valid_runs(self) -> tuple[Run, ...]:
        """The runs whose data are used, without duplicates: valid runs, and imported ones."""
        return tuple(run for run in self.runs if run.validity.is_usable and not run.duplicate)

    @cached_property
    def duplicates(self) -> tuple[Run, ...]:
        """The valid runs that repeat a cell within its block (A/A)."""
        return tuple(run for run in self.runs if run.validity.is_usable and run.duplicate)

    @cached_property
    def unsealed(self) -> tuple[str, ...]:
        """Ids of the runs without a manifest: their files cannot be verified."""
        return tuple(run.id for run in self.runs if run.manifest is None)

    @property
    def by_status(self) -> dict[str, tuple[Run, ...]]:
        """The runs by status: `imported` only where there are imported runs."""
        found = {status: self.runs_with(status) for status in STATUSES}
        return {status: runs for status, runs in found.items() if runs or status != IMPORTED}

    def runs_with(self, status: str) -> tuple[Run, ...]:
        """The runs with this validity status."""
        return tuple(run for run in self.runs if run.validity.status == status)

    @cached_property
    def varied(self) -> dict[str, list[Level]]:
        """The factors that take more than one level in the plan."""
        return {name: levels for name, levels in self.factors.items() if len(levels) > 1}

    @cached_property
    def testbeds(self) -> tuple[str, ...]:
        """The testbeds on which its runs ran, sorted."""
        return tuple(sorted({run.testbed for run in self.runs}))


def load_study(path: Path | str, read: Callable[[Path, dict[str, Any]], Run | None] | None = None) -> Study:
    """Loads a study's plan and the records of its runs, without request tables.

    Args:
        path: the study's folder; `results/STUDY@LABEL` for the runs of one label.
        read: reads the run of a folder and its entry of the plan, or leaves it out with None; `load_run` if
            None.

    Raises:
        InputError: the folder holds no study, or one of its files cannot be used.
        DamagedError: a file of a run was changed after it was written.
    """
    path, label = plans.split(Path(path))
    if not path.is_dir():
        raise InputError(
            path, "there is no such folder", f"run the study first: make study STUDY={path.name}"
        )
    plan, plan_path = plans.read(path, label)
    planned = {field(entry, plan_path, "id", str): entry for entry in plan["runs"]}
    found = {entry.name for entry in path.iterdir() if _is_run_folder(entry, planned)}
    precision = field(plan, plan_path, "precision", dict) if plan.get("precision") else None
    decision = _decision(path / DECISION, precision)
    first = field(plan, plan_path, "first_repetitions", int) if precision else 0
    asked, stopped = _asked(first, decision), _stopped(decision)
    not_needed = tuple(
        run_id
        for run_id, entry in planned.items()
        if precision
        and run_id not in found
        and entry.get("block", 0) >= min(asked, stopped.get(entry.get("cell", ""), asked))
    )
    known = found | set(not_needed)
    verified = Verified(path)
    read = read or (lambda folder, entry: load_run(folder, entry, verified))
    try:
        runs = [read(path / name, entry) for name, entry in planned.items() if name in found]
    finally:
        verified.save()
    return Study(
        path=path,
        name=field(plan, plan_path, "study", str),
        question=field(plan, plan_path, "question", str),
        description=plan.get("description") or "",
        note=plan.get("note") or "",
        seed=field(plan, plan_path, "seed", int),
        repetitions=field(plan, plan_path, "repetitions", int),
        factors=_factors(plan, plan_path),
        classes=_all_classes(list(planned.values()), plan_path),
        runs=tuple(sorted((run for run in runs if run is not None), key=lambda run: run.order)),
        missing={n: entry.get("levels") or {} for n, entry in planned.items() if n not in known},
        # Runs of an earlier plan with this name are not part of the design.
        stray=tuple(sorted(found - planned.keys())) if label is None else (),
        comparison=_comparison(plan, plan_path),
        precision=precision,
        first_repetitions=first,
        decision=decision,
        not_needed=not_needed,
        label=label,
    )


def load_run(path: Path, planned: dict[str, Any] | None = None, verified: Verified | None = None) -> Run:
    """Loads one run.

    A run's id covers what decides its outcome. Levels as shown, order and objectives are read from the
    plan, since they may have changed there after the run.

    Args:
        path: the run's folder.
        planned: the run's entry in the plan; `run.json` alone if None.
        verified: the runs of its study that were verified before.

    Raises:
        InputError: a file is absent or of another kind, or the folder is named after another run.
        DamagedError: a file was changed after it was written.
    """
    manifest = (verified or Verified(path.parent)).check(path)
    run_path = path / "run.json"
    recorded = read_document(run_path, RUN_AGAIN)
    check_format(recorded, run_path)
    run_id = field(recorded, run_path, "id", str)
    if run_id != path.name:
        raise InputError(run_path, f"field `id` is {run_id!r}, its folder is {path.name!r}", RUN_AGAIN)
    if manifest is None and "results_format" in recorded:
        raise DamagedError(path / MANIFEST, "is missing: the run had one", RUN_AGAIN)
    document = recorded if planned is None else recorded | planned
    levels = field(document, run_path, "levels", dict)
    for name, level in levels.items():
        if not isinstance(level, str | int | float | bool):
            raise InputError(run_path, f"field `levels.{name}` is {level!r}, not a plain value", RUN_AGAIN)
    duration_s = float(field(document, run_path, "duration_s", NUMBER))
    if duration_s <= 0:
        raise InputError(run_path, f"field `duration_s` is {duration_s}, not above 0", RUN_AGAIN)
    return Run(
        path=path,
        id=run_id,
        testbed=field(document, run_path, "testbed", str),
        cell=field(document, run_path, "cell", str),
        levels=levels,
        repetition=field(document, run_path, "repetition", int),
        block=field(document, run_path, "block", int),
        order=field(document, run_path, "order", int),
        seed=field(document, run_path, "seed", int),
        warmup_s=float(field(document, run_path, "warmup_s", NUMBER)),
        duration_s=duration_s,
        classes=_classes(document, run_path),
        validity=_validity(path / "verdict.json"),
        manifest=manifest,
        duplicate=document.get("duplicate") is True,
    )


def _is_run_folder(entry: Path, planned: Container[str]) -> bool:
    if entry.name.startswith(".") or entry.name.endswith(".partial") or not entry.is_dir():
        return False
    # A run without its run.json is damaged, not missing.
    return entry.name in planned or (entry / "run.json").exists() or (entry / MANIFEST).exists()


def _decision(path: Path, precision: dict[str, Any] | None) -> dict[str, Any] | None:
    """The last decision about a study's precision; None without one, or if it is about another precision."""
    if precision is None or not path.exists():
        return None
    decision = read_document(path, DECIDE_AGAIN)
    field(decision, path, "repetitions", int)
    for cell in field(decision, path, "stopped", dict) if "stopped" in decision else ():
        field(decision["stopped"], path, cell, int)
    return decision if decision.get("precision") == precision else None


def _asked(first: int, decision: dict[str, Any] | None) -> int:
    return int(decision["repetitions"]) if decision else first


def _stopped(decision: dict[str, Any] | None) -> dict[str, int]:
    """Repetitions of the cells that are repeated no more, by their ids."""
    return (decision or {}).get("stopped") or {}


def _comparison(plan: dict[str, Any], path: Path) -> dict[str, Any] | None:
    if plan.get("comparison") is None:
        return None
    comparison = field(plan, path, "comparison", dict)
    if field(comparison, path, "factor", str) not in field(plan, path, "factors", dict):
        if comparison["factor"] == LABEL:
            # There is only one label yet, or only one was asked for.
            return None
        raise InputError(
            path, f"field `comparison.factor` is {comparison['factor']!r}, no factor", PLAN_AGAIN
        )
    return comparison


def _factors(plan: dict[str, Any], path: Path) -> dict[str, list[Level]]:
    factors = field(plan, path, "factors", dict)
    for name, levels in factors.items():
        if not isinstance(levels, list) or not levels:
            raise InputError(path, f"field `factors.{name}` is {levels!r}, not a list", PLAN_AGAIN)
    return {name: [plain_level(level) for level in levels] for name, levels in factors.items()}


def plain_level(level: Any) -> Level:
    """A level as in `run.json`: scalars unchanged, one value per class as `text=10 video=4`."""
    if isinstance(level, dict):
        parts = ((name, v if isinstance(v, str) else json.dumps(v)) for name, v in level.items())
        return " ".join(f"{name}={value}" for name, value in parts)
    return level


def _all_classes(planned: list[dict[str, Any]], path: Path) -> tuple[AppClass, ...]:
    """Every class of any planned run, as the first run that has it describes it."""
    classes: dict[str, AppClass] = {}
    for entry in planned:
        for app_class in _classes(entry, path):
            classes.setdefault(app_class.name, app_class)
    return tuple(classes.values())


def _classes(document: dict[str, Any], path: Path) -> tuple[AppClass, ...]:
    classes = []
    # Each client host has its own clients.
    hosts = (document.get("hosts") or {}).get("clients", 1)
    for entry in field(document, path, "classes", list):
        if not isinstance(entry, dict):
            raise InputError(path, f"field `classes` holds {entry!r}, not an object", PLAN_AGAIN)
        classes.append(
            AppClass(
                name=field(entry, path, "name", str),
                workload=field(entry, path, "workload", str),
                clients=field(entry, path, "clients", int) * hosts,
                engine=entry.get("engine") or "replay",
                priority=entry.get("priority"),
                objective=_objective(entry, path),
                rate_per_s=_rate_per_s(entry, path),
            )
        )
    return tuple(classes)


def _rate_per_s(entry: dict[str, Any], path: Path) -> float | None:
    """The limit of a closed loop: that of its workload, or the one that an imported class has itself."""
    of: Any = entry
    if "rate_per_s" not in entry:
        for name in ("recipe", "arrivals", "closed"):
            of = of.get(name) if isinstance(of, dict) else None
    if not isinstance(of, dict) or of.get("rate_per_s") is None:
        return None
    return float(field(of, path, "rate_per_s", NUMBER))


def _objective(entry: dict[str, Any], path: Path) -> dict[str, Any] | None:
    if entry.get("objective") is None:
        return None
    objective = field(entry, path, "objective", dict)
    for name in objective.keys() & {"deadline_miss_share", "rate_mb_s", "share"}:
        field(objective, path, name, NUMBER)
    if "response_ms" in objective:
        response = field(objective, path, "response_ms", dict)
        field(response, path, "at_most", NUMBER)
        quantile = field(response, path, "quantile", NUMBER)
        if not 0 < quantile <= 1:
            raise InputError(path, f"field `quantile` is {quantile}, not above 0 and at most 1", PLAN_AGAIN)
    return objective


def _validity(path: Path) -> Validity:
    document = read_document(path, RUN_AGAIN)
    rules = []
    for entry in field(document, path, "rules", list) if "rules" in document else []:
        rules.append(
            Rule(
                rule=field(entry, path, "rule", str),
                status=_status(entry, path),
                reason=entry.get("reason") or "",
                value=entry.get("value"),
                limit=entry.get("limit"),
            )
        )
    attempt = field(document, path, "attempt", int) if "attempt" in document else 1
    return Validity(status=_status(document, path), rules=tuple(rules), attempt=attempt)


def _status(document: dict[str, Any], path: Path) -> str:
    status = field(document, path, "status", str)
    if status not in STATUSES:
        known = f"{', '.join(STATUSES[:-1])} or {STATUSES[-1]}"
        raise InputError(path, f"field `status` is {status!r}, not {known}", RUN_AGAIN)
    return status
