"""Imported runs in the folder of a study: plan, `run.json`, `verdict.json`, summary or requests.

Everything is read before anything is written. A run's folder is written under a temporary name, made durable
and renamed; the plan is written last. A plan of imported runs has `imported: true`: only such a study takes
further runs.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import parquet

from weir import __version__
from weir.documents import FORMAT, write_document
from weir.errors import InputError
from weir.imported.outcome import MEASURES, ClassOutcome, Outcome
from weir.load import IMPORTED, IMPORTED_RULE, Level
from weir.manifest import NAME as MANIFEST
from weir.manifest import RESULTS_FORMAT, seal, sha256_of
from weir.plan import read_plan

QUESTION = "What do the imported results of other programs show?"
#: Hexadecimal digits of the id of a run or a cell, as of runs of weir's own.
_ID_DIGITS = 12
_OTHER_NAME = "give the imported study another name"
#: Names that a factor cannot have: columns of the tables of results.
_NO_FACTORS = (
    "run",
    "class",
    "testbed",
    "repetition",
    "block",
    "order",
    "device",
    "status",
    "reason",
    "label",
)


@dataclass(frozen=True)
class Placed:
    """An outcome and the levels of its cell."""

    levels: dict[str, Level]
    outcome: Outcome


def add(
    folder: Path,
    placed: Sequence[Placed],
    *,
    question: str | None = None,
    comparison: dict[str, Any] | None = None,
) -> list[str]:
    """Adds runs to a study of imported runs, which is made if it does not exist.

    Args:
        folder: `results/STUDY`.
        placed: the runs. Those of equal levels are repetitions, in this order, after the ones that are there.
        question: the study's question; the one that it has, or `QUESTION`, if None.
        comparison: factor and perhaps baseline whose comparison answers the question.

    Returns:
        The ids of the runs.

    Raises:
        InputError: the folder holds a study of weir's own, runs do not go together, or one is there.
    """
    plan_path = folder / "plan.json"
    with _locked(folder):
        plan = _existing(plan_path)
        runs = list(plan["runs"]) if plan else []
        documents: list[dict[str, Any]] = []
        for one in placed:
            documents.append(_document(folder.name, one, [*runs, *documents], question))
        runs += documents
        _check_together(runs, placed)
        made = _plan(folder.name, runs, plan, question, comparison)
        try:
            for document, one in zip(documents, placed, strict=True):
                _write_run(folder, document, one.outcome)
            write_document(plan_path, made)
        except BaseException as error:
            for document in documents:
                shutil.rmtree(folder / document["id"], ignore_errors=True)
            if isinstance(error, OSError):
                problem = f"cannot be written ({error.strerror})"
                raise InputError(folder, problem, "make room on the disk") from error
            raise
    return [document["id"] for document in documents]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Makes the folder and keeps a second import waiting; an import that fails leaves no new folder."""
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        problem = f"cannot be made or read ({error.strerror})"
        raise InputError(folder, problem, "name another folder of results with --results") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    except BaseException:
        if is_new and not any(folder.iterdir()):
            folder.rmdir()
        raise
    finally:
        os.close(handle)


def _existing(plan_path: Path) -> dict[str, Any] | None:
    folder = plan_path.parent
    if not plan_path.exists():
        others = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
        # Runs of an import that was interrupted before its plan was written are made again.
        others = [name for name in others if not (folder / name / "run.json").is_file()]
        if others or any(folder.glob("plan@*.json")):
            raise InputError(folder, "holds something and no imported study", _OTHER_NAME)
        return None
    plan = read_plan(plan_path, _OTHER_NAME)
    if plan.get(IMPORTED) is not True or any(folder.glob("plan@*.json")):
        raise InputError(folder, "is a study that weir ran: imported runs are not added to it", _OTHER_NAME)
    return plan


def _document(
    study: str, placed: Placed, before: list[dict[str, Any]], question: str | None
) -> dict[str, Any]:
    outcome = placed.outcome
    files = [
        {"path": str(path.resolve()), "size_bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for path in outcome.files
    ]
    cell = _id({"levels": placed.levels})
    run_id = _id(
        {"levels": placed.levels, "measure": outcome.measure, "files": [one["sha256"] for one in files]}
    )
    hashes = {one["sha256"] for one in files}
    for run in before:
        if hashes & {one["sha256"] for one in run[IMPORTED]["files"]}:
            where = ", ".join(f"{k}={v}" for k, v in run["levels"].items()) or "no levels"
            problem = f"is in the study already, as run {run['id']} ({where})"
            raise InputError(
                outcome.files[0], problem, "leave it out: the same file is no further repetition"
            )
    repetition = sum(run["cell"] == cell for run in before)
    return {
        "format": FORMAT,
        "results_format": RESULTS_FORMAT,
        "id": run_id,
        "study": study,
        "question": question or QUESTION,
        "testbed": IMPORTED,
        "cell": cell,
        "levels": placed.levels,
        "repetition": repetition,
        "block": repetition,
        "order": len(before),
        "seed": 0,
        "warmup_s": 0.0,
        "duration_s": outcome.duration_s,
        "classes": [_class(one) for one in outcome.classes],
        IMPORTED: {
            "program": outcome.program,
            "form": outcome.form,
            "measure": outcome.measure,
            "began_s": outcome.began_s,
            "files": files,
            "unknown": list(outcome.unknown),
            "bin_width": max((one.histogram.width for one in outcome.classes if one.histogram), default=None),
        },
    }


def _class(one: ClassOutcome) -> dict[str, Any]:
    names = ("name", "workload", "clients", "engine")
    found = {name: getattr(one, name) for name in names} | {"priority": None, "objective": None}
    return found if one.rate_per_s is None else found | {"rate_per_s": one.rate_per_s}


def _id(parts: dict[str, Any]) -> str:
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


def _check_together(runs: list[dict[str, Any]], placed: Sequence[Placed]) -> None:
    """Refuses runs that cannot be compared: of other factors, or of another measure."""
    first = runs[0]
    added = runs[len(runs) - len(placed) :]
    for run, one in zip(added, placed, strict=True):
        path = one.outcome.files[0]
        for name in run["levels"]:
            if name in _NO_FACTORS:
                raise InputError(
                    path, f"level `{name}`: results have a column of this name", "name the factor differently"
                )
        if run["levels"].keys() != first["levels"].keys():
            own, known = (", ".join(of["levels"]) or "none" for of in (run, first))
            problem = f"its levels are of the factors {own}, those of earlier runs are of {known}"
            raise InputError(path, problem, "give each run a level of each factor")
        for name, level in run["levels"].items():
            known = first["levels"][name]
            if isinstance(level, str) != isinstance(known, str):
                problem = f"level `{name}` is {level!r}, that of earlier runs {known!r}: text and a number"
                raise InputError(path, problem, "give numbers only, or text only such as `16k` and `auto`")
        measure, known = run[IMPORTED]["measure"], first[IMPORTED]["measure"]
        if measure != known:
            problem = (
                f"its response times are `{measure}` ({MEASURES[measure]}), those of earlier runs `{known}` "
                f"({MEASURES[known]})"
            )
            raise InputError(path, problem, f"give --latency {known}, or import it into another study")


def _plan(
    study: str,
    runs: list[dict[str, Any]],
    before: dict[str, Any] | None,
    question: str | None,
    comparison: dict[str, Any] | None,
) -> dict[str, Any]:
    factors: dict[str, list[Level]] = {}
    for run in runs:
        for name, level in run["levels"].items():
            levels = factors.setdefault(name, [])
            if level not in levels:
                levels.append(level)
    # That of earlier runs was checked when they were imported; factors and levels only become more.
    comparison = comparison or (before or {}).get("comparison")
    if comparison is not None and comparison["factor"] not in factors:
        known = ", ".join(factors) or "none"
        problem = f"field `comparison.factor`: there is no factor `{comparison['factor']}` (factors: {known})"
        raise InputError("--map", problem, "name a factor of the levels")
    baseline = (comparison or {}).get("baseline")
    if baseline is not None and baseline not in factors[comparison["factor"]]:
        known = ", ".join(map(str, factors[comparison["factor"]]))
        raise InputError(
            "--map",
            f"field `comparison.baseline`: there is no level `{baseline}` (levels: {known})",
            "name one of them",
        )
    question = question or (before or {}).get("question") or QUESTION
    # In the order in which they began, where all files tell: changes over the order of runs are looked for.
    if all(run[IMPORTED]["began_s"] is not None for run in runs):
        runs = sorted(runs, key=lambda run: run[IMPORTED]["began_s"])
    repetitions = max(run["repetition"] for run in runs) + 1
    programs = sorted({run[IMPORTED]["program"] for run in runs})
    return {
        "format": FORMAT,
        "study": study,
        IMPORTED: True,
        "question": question,
        "description": f"Imported results of {', '.join(programs)}. weir carried out no run of this study.",
        "comparison": comparison,
        "note": "",
        "seed": 0,
        "repetitions": repetitions,
        "factors": factors,
        "estimate_s": 0.0,
        "devices": [],
        "runs": [run | {"question": question, "order": order} for order, run in enumerate(runs)],
    }


def _write_run(folder: Path, document: dict[str, Any], outcome: Outcome) -> None:
    target = folder / document["id"]
    partial = folder / f".{document['id']}.partial"
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        _write_files(partial, document, outcome)
        _seal(partial, document["id"])
        # A folder of this id is of an import that was interrupted before the plan was written.
        shutil.rmtree(target, ignore_errors=True)
        os.rename(partial, target)
        _sync(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _write_files(partial: Path, document: dict[str, Any], outcome: Outcome) -> None:
    write_document(partial / "run.json", document)
    write_document(partial / "verdict.json", _verdict(outcome))
    media = {one.name: one.medium for one in outcome.classes if one.medium}
    write_document(partial / "observed.json", {"media": media} if media else {})
    if outcome.requests is not None:
        path = partial / "requests.parquet"
        parquet.write_table(outcome.requests, path, compression="zstd", write_page_checksum=True)
        return
    summary: dict[str, Any] = {
        "format": FORMAT,
        "classes": {one.name: one.figures for one in outcome.classes},
    }
    summary["histograms"] = {
        one.name: {
            "value_ns": list(one.histogram.value_ns),
            "requests": list(one.histogram.requests),
            "bin_width": one.histogram.width,
        }
        for one in outcome.classes
        if one.histogram
    }
    write_document(partial / "summary.json", summary)


def _verdict(outcome: Outcome) -> dict[str, Any]:
    names = ", ".join(path.name for path in outcome.files)
    reason = f"imported from {names} by {outcome.program}; weir did not judge it"
    status = IMPORTED
    if outcome.broken:
        status, reason = "invalid", f"{outcome.broken}; {reason}"
    rule = {"rule": IMPORTED_RULE, "status": status, "reason": reason, "value": None, "limit": None}
    return {"status": status, "rules": [rule], "disturbed": False, "attempt": 1}


def _seal(partial: Path, run_id: str) -> None:
    """Writes the manifest and makes all files durable."""
    files = sorted(partial.iterdir())
    entries = [
        {"path": path.name, "size_bytes": path.stat().st_size, "sha256": sha256_of(path)} for path in files
    ]
    manifest = {"results_format": RESULTS_FORMAT, "weir": __version__, "run": run_id, "files": entries}
    (partial / MANIFEST).write_text(seal(json.dumps(manifest, indent=2)), encoding="utf-8")
    for path in (*files, partial / MANIFEST, partial):
        _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
