"""`weir import results`: results of other programs as runs of a study."""

import argparse
import re
from pathlib import Path

from rich.console import Console

from weir import locate
from weir.errors import InputError
from weir.imported import folder, mapping, read
from weir.json_output import Outcome

#: Names of studies, as `weir check` has them.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def results(options: argparse.Namespace, console: Console) -> Outcome:
    """Imports the files that the options name; returns the exit code, and what was imported."""
    study = options.study
    if not _NAME.fullmatch(study):
        remedy = "use lower-case letters, digits, `.`, `_` and `-`; it becomes a folder of results"
        raise InputError("STUDY", f"is `{study}`, not a name", remedy)
    given = _mapping(options)
    placed = [
        folder.Placed(cell.levels, outcome)
        for cell in given.cells
        for outcome in read.outcomes(cell.files, options.latency)
    ]
    target = (options.results or locate.results()) / study
    ids = folder.add(target, placed, question=options.question or given.question, comparison=given.comparison)
    for run_id, one in zip(ids, placed, strict=True):
        levels = ", ".join(f"{name}={level}" for name, level in one.levels.items()) or "no levels"
        names = ", ".join(path.name for path in one.outcome.files)
        classes = ", ".join(c.name for c in one.outcome.classes)
        console.print(
            f"{run_id}: {levels}; classes {classes}; `{one.outcome.measure}` of {one.outcome.form} by "
            f"{one.outcome.program}, {names}",
            soft_wrap=True,
        )
        if one.outcome.broken:
            console.print(f"  invalid: {one.outcome.broken}", soft_wrap=True)
        for sentence in one.outcome.unknown:
            console.print(f"  unknown: {sentence}", soft_wrap=True)
    runs = "1 run" if len(ids) == 1 else f"{len(ids)} runs"
    console.print(f"{study}: imported {runs} into {target}; validity was not judged", soft_wrap=True)
    console.print(f"next: weir summary {study}; weir report {study}", soft_wrap=True)
    imported = [
        {
            "id": run_id,
            "levels": one.levels,
            "classes": [c.name for c in one.outcome.classes],
            "measure": one.outcome.measure,
            "form": one.outcome.form,
            "program": one.outcome.program,
            "sources": one.outcome.files,
            "broken": [one.outcome.broken] if one.outcome.broken else [],
            "unknown": one.outcome.unknown,
        }
        for run_id, one in zip(ids, placed, strict=True)
    ]
    return 0, {"study": study, "folder": target, "runs": imported}


def _mapping(options: argparse.Namespace) -> mapping.Mapping:
    if options.map is None:
        if not options.files:
            raise InputError("FILE", "is missing", "name files of results, or a YAML file with --map")
        return mapping.Mapping((mapping.Cell(mapping.levels(options.level), tuple(options.files)),))
    if options.files or options.level:
        raise InputError("--map", "is given beside FILE or --level", "give either the one or the other")
    return mapping.read(Path(options.map))
