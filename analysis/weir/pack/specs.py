"""Specifications of a study: its file, and the workloads, disk models and daemons that it names.

The plan has all settings of each run as resolved. The files have the words in which somebody wrote them,
and the parameters of disk models.
"""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from weir import locate, paper_registry, plans
from weir.binary_cache import BinaryCache
from weir.errors import InputError
from weir.load import Study

SPECS = "specs"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
#: Folders of specifications in a project, by what names their files.
_FOLDERS = ("workloads", "testbeds")


def files_of(studies: list[Study]) -> dict[str, Path]:
    """The specifications of studies: names in the archive, and files. Those that are absent are left out."""
    root = locate.project()
    if root is None:
        return {}
    named: set[str] = set()
    found: dict[Path, None] = {}
    for study in studies:
        if file := paper_registry.study_file(root, study.name):
            found[file] = None
        plan, _ = plans.read(study.path, study.label)
        named |= _named(plan)
    known = [
        file
        for folder in _FOLDERS
        for file in sorted((root / folder).rglob("*"))
        if file.is_file() and file.suffix in (".yml", ".csv", ".txt", ".json")
    ]
    # A specification may name others: a site its tables, a file system its cluster; no workload another.
    mentioned: set[str] = set()
    workloads = root / "workloads"

    def is_wanted(file: Path) -> bool:
        return file.stem in named or (file.stem in mentioned and file.parent != workloads)

    while new := [file for file in known if file not in found and is_wanted(file)]:
        for file in new:
            found[file] = None
            if file.suffix == ".yml":
                mentioned |= _words(yaml.safe_load(file.read_text(encoding="utf-8")))
    return {f"{SPECS}/{file.relative_to(root).as_posix()}": file for file in sorted(found)}


def _named(plan: dict[str, Any]) -> set[str]:
    """Names of workloads, disk models, file systems and daemons in a plan."""
    found: set[str] = set()
    for run in plan["runs"]:
        found |= {str(entry.get("workload")) for entry in run.get("classes") or ()}
        for device in [*(run.get("devices") or ()), *(plan.get("devices") or ())]:
            found |= _words(device.get("profile") if isinstance(device, dict) else None)
        found |= _words((run.get("settings") or {}).get("filesystem"))
        found |= _words(run.get("services"))
    return found


def _words(value: Any) -> set[str]:
    if isinstance(value, dict):
        # A description may use the name of a specification as a word.
        texts = (inner for name, inner in value.items() if name not in ("description", "source", "question"))
        return set().union(*map(_words, texts))
    if isinstance(value, list):
        return set().union(*map(_words, value))
    if not isinstance(value, str):
        return set()
    names = set(_WORD.findall(value))
    return names | {Path(name).stem for name in names}


def give_plan(study: Study) -> bool | None:
    """Whether the study's file still gives the runs of its plan; None where that cannot be asked."""
    if study.label is not None or plans.LABEL in study.factors:
        return None
    try:
        binary = BinaryCache.find(locate.results())
        if paper_registry.study_file(binary.root, study.name) is None:
            return None
        given = json.loads(binary.output("plan", study.name, "--json"))["runs"]
    except InputError:
        return None
    planned = {*(run.id for run in study.runs), *study.missing, *study.not_needed}
    return planned <= {run["id"] for run in given}
