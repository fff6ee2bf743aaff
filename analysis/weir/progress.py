"""Progress of a study that is running: finished runs, the runs in progress, and the time left.

It reads the study's folder and writes nothing. A run is published by one rename, so its folder is whole. A
folder that is being copied from another host is not: it is read again later.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from weir import plans
from weir.derive import metrics_of
from weir.errors import InputError
from weir.load import Run, Study, load_run, load_study
from weir.manifest import NAME as MANIFEST
from weir.manifest import Verified
from weir.precision import GO_ON
from weir.study import class_table

#: Between two runs of one session at most this many times the longest run passes, and `_PAUSE_S`.
_PAUSE_RUNS = 3
_PAUSE_S = 60.0


def be_idle() -> None:
    """Lets this process use only processor time that nothing else wants: it must not disturb a run."""
    for thread in os.listdir("/proc/self/task"):
        # It ended meanwhile, or the host does not allow it.
        with contextlib.suppress(OSError):
            os.sched_setscheduler(int(thread), os.SCHED_IDLE, os.sched_param(0))


@dataclass(frozen=True)
class Progress:
    """A study at one time.

    Attributes:
        study: the plan and the runs that were read.
        table: one row per valid run and class.
        running: ids of planned runs that are made in this folder, with the seconds since they began.
        unread: runs that are finished, and not read yet.
        damaged: finished runs that cannot be read, with the reason, by id.
        is_copied: whether one of these was changed lately: it may be a copy that is not whole yet.
        left_s: estimate of the time left in seconds; None without one.
        idle_s: time since the last run was finished or began; None without a run.
        is_paused: whether no run is made in this folder, and none was for longer than a run takes.
        estimate_s: the plan's estimate of the whole study in seconds.
        steal: CPU steal of each run as a share of the wanted CPU time, in the order in which runs were
            finished; runs in virtual time have none.
    """

    study: Study
    table: pl.DataFrame
    running: dict[str, float]
    unread: int
    damaged: dict[str, str]
    is_copied: bool
    left_s: float | None
    idle_s: float | None
    is_paused: bool
    estimate_s: float
    steal: list[float]

    @property
    def counts(self) -> dict[str, int]:
        """Runs by what is known of them."""
        study = self.study
        found = {status: len(study.runs_with(status)) for status in ("valid", "invalid", "skipped")}
        found |= {"damaged": len(self.damaged), "unread": self.unread, "running": len(self.running)}
        return {**found, "missing": len(study.missing)}

    @property
    def planned(self) -> int:
        """The runs of the plan."""
        return self.finished + len(self.study.missing)

    @property
    def finished(self) -> int:
        """The finished runs of the plan: whole ones, and damaged ones, which are not made again."""
        return len(self.study.runs) + len(self.damaged) + self.unread

    @property
    def is_complete(self) -> bool:
        """Whether every run is finished and was read, and a study with `precision` needs no more."""
        decision = self.study.decision
        is_decided = self.study.precision is None or (decision is not None and decision["status"] != GO_ON)
        return is_decided and not (self.study.missing or self.unread or self.running or self.is_copied)


@dataclass(frozen=True)
class _Finished:
    """A run that was read: when it was finished, how long it took, its CPU steal."""

    at_ns: int
    run: Run
    took_s: float
    steal: float | None


@dataclass
class Follower:
    """Reads the runs of a study as they are finished, each once.

    Attributes:
        path: the study's folder, or `STUDY@LABEL` for the runs with one label.
    """

    path: Path
    _read: dict[str, _Finished] = field(default_factory=dict)
    _metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    _table: pl.DataFrame | None = None

    def progress(self, budget_s: float | None = None) -> Progress:
        """The study now.

        Args:
            budget_s: stop reading finished runs after this time; they are counted as unread.

        Raises:
            InputError: there is no such study, or its plan cannot be read.
        """
        end = None if budget_s is None else time.monotonic() + budget_s
        of_study, label = plans.split(self.path)
        verified = Verified(of_study, content=False)
        damaged: dict[str, str] = {}
        unread: list[str] = []

        def read(folder: Path, entry: dict[str, Any]) -> Run | None:
            at = _finished_ns(folder)
            kept = self._read.get(folder.name)
            if kept is not None and kept.at_ns == at:
                return kept.run
            if end is not None and time.monotonic() > end:
                unread.append(folder.name)
                return None
            self._forget(folder.name)
            try:
                run = load_run(folder, entry, verified)
                if run.validity.status == "valid":
                    self._metrics[run.id] = metrics_of(run, keep=False)
                self._read[run.id] = _finished(run, at)
            # A run that is made again is gone for a moment.
            except (InputError, OSError) as error:
                damaged[folder.name] = str(error)
                return None
            return run

        study = load_study(self.path, read)
        for id in self._read.keys() - {run.id for run in study.runs} - {*unread}:
            self._forget(id)
        finished = sorted(self._read.values(), key=lambda one: one.at_ns)
        plan, _ = plans.read(of_study, label)
        known = {entry["id"]: entry for entry in plan["runs"]}
        found = known.keys() - study.missing.keys() - {*study.not_needed}
        if self._table is None:
            self._table = class_table(study, known=self._metrics)
        running = dict(_running(of_study, known, found))
        now = time.time()
        times = [*(one.at_ns / 1e9 for one in finished), *(now - seconds for seconds in running.values())]
        idle_s = max(now - max(times), 0) if times else None
        estimate_s = float(plan.get("estimate_s") or 0)
        return Progress(
            study=study,
            table=self._table,
            running=running,
            unread=len(unread),
            damaged=damaged,
            is_copied=any(now - _changed_s(of_study / id) < _PAUSE_S for id in damaged),
            left_s=_left_s(study, known, finished, estimate_s, now),
            idle_s=idle_s,
            is_paused=not running and (idle_s is None or idle_s > _pause_s(finished)),
            estimate_s=estimate_s,
            steal=[one.steal for one in finished if one.steal is not None],
        )

    def _forget(self, id: str) -> None:
        self._table = None
        self._read.pop(id, None)
        self._metrics.pop(id, None)


def _finished_ns(folder: Path) -> int:
    """When a run was finished; 0 where that is not known."""
    # An older version of weir wrote no manifest.
    for name in (MANIFEST, "run.json"):
        with contextlib.suppress(OSError):
            return (folder / name).stat().st_mtime_ns
    return 0


def _changed_s(folder: Path) -> float:
    """When a file was last put into a folder."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _finished(run: Run, at_ns: int) -> _Finished:
    observed = run.observed
    timing = observed.get("timing") or {}
    took_s = sum(float(value) for name, value in timing.items() if name.endswith("_s"))
    steal = (observed.get("stolen") or {}).get("of_wanted")
    return _Finished(at_ns, run, took_s, steal)


def _running(path: Path, known: dict[str, Any], found: Set[str]) -> Iterator[tuple[str, float]]:
    """The planned runs with a partial folder, and the seconds since it was changed."""
    with os.scandir(path) as entries:
        for entry in entries:
            id = entry.name.removeprefix(".").split(".")[0]
            if not entry.name.endswith(".partial") or id not in known:
                continue
            try:
                seconds = max(time.time() - entry.stat().st_mtime, 0)
            except OSError:
                # It was finished meanwhile.
                continue
            planned_s = known[id].get("warmup_s", 0) + known[id].get("duration_s", 0)
            # A finished run is made again, or its folder was left by a process that was killed.
            if id not in found or seconds < _PAUSE_RUNS * planned_s + _PAUSE_S:
                yield id, seconds


def _left_s(
    study: Study,
    known: dict[str, dict[str, Any]],
    finished: list[_Finished],
    estimate_s: float,
    now: float,
) -> float | None:
    """The time left: for each testbed the missing runs, at the pace of the last session.

    Runs of several hosts or jobs are finished side by side, so the pace is that at which runs are finished.
    """
    missing: dict[str, int] = {}
    for id in study.missing:
        testbed = str(known[id].get("testbed"))
        missing[testbed] = missing.get(testbed, 0) + 1
    left = 0.0
    for testbed, count in missing.items():
        runs = [one for one in finished if one.run.testbed == testbed]
        pace = _pace_s(runs)
        if pace is None:
            if not estimate_s:
                return None
            pace = estimate_s / len(known)
        since = now - runs[-1].at_ns / 1e9 if runs else 0.0
        left += count * pace - min(max(since, 0.0), pace)
    return left


def _pace_s(finished: list[_Finished]) -> float | None:
    """Mean time between runs of the last session; None with one run."""
    times = [one.at_ns / 1e9 for one in finished]
    pause, begin = _pause_s(finished), 0
    for i in range(1, len(times)):
        if times[i] - times[i - 1] > pause:
            begin = i
    session = times[begin:]
    return (session[-1] - session[0]) / (len(session) - 1) if len(session) > 1 else None


def _pause_s(finished: list[_Finished]) -> float:
    """A longer time without a finished run is a pause between two sessions."""
    return _PAUSE_RUNS * max((one.took_s for one in finished), default=0.0) + _PAUSE_S
