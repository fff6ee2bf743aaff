"""Which file belongs to which cell: `--level FACTOR=LEVEL` of the command line, or a YAML file.

question: Does bfq slow random reads down?
comparison: {factor: scheduler, baseline: none}
runs:
  - levels: {scheduler: none}
    files: [none-1.json, none-2.json]      # relative to this file; * and ** are patterns
  - levels: {scheduler: bfq}
    files: [bfq-*.json]
"""

import glob
import math
import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.errors import InputError
from weir.imported import text
from weir.load import Level

#: Largest mapping.
LARGEST_BYTES = 1 << 20
_EXAMPLE = "an example: docs/how-to/other-tools.md"
_FIELDS = ("question", "comparison", "runs")
_FIELDS_OF_RUN = ("levels", "files")
# Aliases within aliases make a short document one of gigabytes.
_short = reprlib.Repr()
_short.maxlevel = 3
_shown = _short.repr


@dataclass(frozen=True)
class Cell:
    """Files of one combination of levels."""

    levels: dict[str, Level]
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Mapping:
    """The cells of a study, its question, and the comparison that answers it."""

    cells: tuple[Cell, ...]
    question: str | None = None
    comparison: dict[str, Any] | None = None


def levels(given: Sequence[str]) -> dict[str, Level]:
    """Levels from `FACTOR=LEVEL`; a level that is a number is one.

    Raises:
        InputError: one is not of this form, or a factor comes twice.
    """
    found: dict[str, Level] = {}
    for one in given:
        name, equals, level = (part.strip() for part in one.partition("="))
        if not (equals and name and level):
            raise InputError("--level", f"is `{one}`, not FACTOR=LEVEL", "for example --level scheduler=bfq")
        if name in found:
            raise InputError("--level", f"factor `{name}` comes twice", "a run has one level of a factor")
        found[name] = _number(level)
    return found


def _number(text: str) -> Level:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d+\.\d+", text) else text


def read(path: Path) -> Mapping:
    """Reads a mapping.

    Raises:
        InputError: the file is no mapping, or a pattern has no file.
    """
    try:
        document = text.yaml_document(text.read(path, LARGEST_BYTES))
    except ValueError as error:
        raise InputError(path, str(error), _EXAMPLE) from error
    if not isinstance(document, dict):
        raise InputError(path, f"holds a {type(document).__name__}, not fields", _EXAMPLE)
    _known(document, _FIELDS, path, "")
    question, comparison, runs = (document.get(name) for name in _FIELDS)
    if question is not None and not isinstance(question, str):
        raise InputError(path, f"field `question` is {_shown(question)}, not text", _EXAMPLE)
    if comparison is not None:
        if not isinstance(comparison, dict) or not isinstance(comparison.get("factor"), str):
            raise InputError(
                path, f"field `comparison` is {_shown(comparison)}, not {{factor: NAME}}", _EXAMPLE
            )
        _known(comparison, ("factor", "baseline"), path, "comparison.")
    if not isinstance(runs, list) or not runs:
        raise InputError(path, f"field `runs` is {_shown(runs)}, not a list", _EXAMPLE)
    cells = tuple(_cell(entry, f"runs[{place}]", path) for place, entry in enumerate(runs))
    return Mapping(cells, question, comparison)


def _cell(entry: Any, name: str, path: Path) -> Cell:
    if not isinstance(entry, dict):
        raise InputError(
            path, f"field `{name}` is {_shown(entry)}, not {{levels: ..., files: [...]}}", _EXAMPLE
        )
    _known(entry, _FIELDS_OF_RUN, path, f"{name}.")
    given, files = entry.get("levels", {}), entry.get("files")
    if not isinstance(given, dict):
        raise InputError(path, f"field `{name}.levels` is {_shown(given)}, not FACTOR: LEVEL", _EXAMPLE)
    for factor, level in given.items():
        if not isinstance(factor, str) or not factor.strip():
            problem = f"field `{name}.levels`: factor {_shown(factor)} is no name"
            raise InputError(path, problem, "name it with text, such as scheduler: bfq")
        if not _is_level(level):
            problem = f"field `{name}.levels.{factor}` is {_shown(level)}, not text or a number"
            raise InputError(path, problem, f'put it in quotes, such as {factor}: "off"')
    if not isinstance(files, list) or not files or not all(isinstance(file, str) for file in files):
        raise InputError(path, f"field `{name}.files` is {_shown(files)}, not a list of files", _EXAMPLE)
    found = [one for pattern in files for one in _matching(path, pattern, f"{name}.files")]
    return Cell(dict(given), tuple(dict.fromkeys(found)))


def _is_level(value: Any) -> bool:
    # YAML reads `none` as text, but `off`, `no` and `~` as something else.
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _matching(path: Path, pattern: str, name: str) -> list[Path]:
    if not any(mark in pattern for mark in "*?["):
        return [path.parent / pattern]
    found = sorted(path.parent / one for one in glob.glob(pattern, root_dir=path.parent, recursive=True))
    if not found:
        raise InputError(
            path, f"field `{name}`: no file matches `{pattern}`", f"patterns are relative to {path.parent}"
        )
    return found


def _known(document: dict[str, Any], names: Sequence[str], path: Path, before: str) -> None:
    for name in document:
        if name not in names:
            raise InputError(path, f"field `{before}{name}` is unknown", f"known: {', '.join(names)}")
