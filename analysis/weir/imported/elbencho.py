"""Results of elbencho: the table of `--csvfile`, and lines of JSON (`--jsonfile`) with the same fields.

The fields are those of elbencho's documentation, and of files of elbencho 3.1-1 that others published.
Each row is a phase: WRITE, READ and so on. Phases of one file follow each other; each is a class. elbencho
gives the shortest, mean and longest latency of a block (`IO lat us`), and no percentile in these files.
"""

import csv
import io
import re
from pathlib import Path
from typing import Any

from weir.errors import InputError
from weir.imported import text
from weir.imported.outcome import ClassOutcome, Outcome, figures

_MARK = "IO lat us [avg]"
_OPERATION = "operation"
_TIME = "time ms [last]"
_READ = "rwmix read "
_SAID = ("block size", "file size", "direct IO", "random", "IO depth")
_AGAIN = "run elbencho again with --lat and --csvfile or --jsonfile"


def is_elbencho(head: str) -> bool:
    """Whether a text has the fields of elbencho's results."""
    return _MARK in head and _OPERATION in head


def read(path: Path) -> Outcome:
    """Reads the phases of one call of elbencho.

    Raises:
        InputError: a row has no such fields, or a phase comes twice: each call is a repetition of its own.
    """
    rows = _rows(path)
    classes: list[ClassOutcome] = []
    total_ms = 0.0
    for number, row in enumerate(rows, 1):
        operation = str(row.get(_OPERATION) or "").lower()
        time_ms = _value(row, _TIME, path, number)
        # Making folders and dropping caches have no block latency.
        parts = [(operation, "")] + (
            [(f"{operation}-rwmix-read", _READ)] if _is_given(row, _READ + _MARK) else []
        )
        for name, before in parts:
            if not _is_given(row, before + _MARK):
                continue
            if name in [one.name for one in classes]:
                problem = f"row {number}: phase `{name}` comes twice"
                raise InputError(
                    path, problem, "elbencho appends to its files: give each call a file of its own"
                )
            classes.append(_class(name, row, before, time_ms, path, number))
            total_ms = max(total_ms, time_ms)
    if not classes:
        raise InputError(path, f"no row has `{_MARK}`", _AGAIN)
    version = next((str(row["version"]) for row in rows if row.get("version")), "")
    return Outcome(
        files=(path,),
        program=f"elbencho {version}".strip(),
        form="elbencho CSV" if not _is_json(path) else "elbencho JSON",
        measure="operation",
        classes=tuple(classes),
        duration_s=max(total_ms / 1e3, 1e-3),
        unknown=(
            "elbencho's CSV and JSON have no percentile, only mean and longest latency of a block",
            "phases follow each other: they did not share the storage",
        ),
    )


def _is_json(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(1) == "{"


def _rows(path: Path) -> list[dict[str, Any]]:
    content = text.read(path)
    if not content.startswith("{"):
        try:
            rows = list(csv.DictReader(io.StringIO(content)))
        except csv.Error as error:
            raise InputError(path, f"is not whole CSV ({error})", _AGAIN) from error
        for number, row in enumerate(rows, 1):
            if None in row or None in row.values():
                problem = f"row {number} has another number of cells than the header"
                raise InputError(
                    path, problem, "elbencho of two versions appended to it? give each call a file"
                )
        return rows
    rows = []
    for number, line in enumerate(filter(str.strip, content.splitlines()), 1):
        try:
            row, _ = text.json_object(line.strip())
        except ValueError as error:
            raise InputError(path, f"line {number} is not JSON ({error})", _AGAIN) from error
        if not isinstance(row, dict):
            raise InputError(path, f"line {number} is no object", _AGAIN)
        rows.append(row)
    return rows


def _class(
    name: str, row: dict[str, Any], before: str, time_ms: float, path: Path, number: int
) -> ClassOutcome:
    mean_us = _value(row, f"{before}{_MARK}", path, number)
    rate = _value(row, f"{before}IOPS [last]", path, number)
    mib = _value(row, f"{before}MiB [last]", path, number)
    seconds = time_ms / 1e3
    said = [f"{key} {row[key]}" for key in _SAID if _is_given(row, key)]
    threads = [row.get(key) for key in ("threads", "hosts")]
    counts = [int(str(value)) for value in threads if re.fullmatch("[0-9]{1,9}", str(value))]
    return ClassOutcome(
        name=name,
        workload=", ".join(said) or "unknown",
        clients=counts[0] if counts else 0,
        engine="elbencho",
        figures=figures(
            # elbencho gives rates: the number is rounded.
            requests=round(rate * seconds),
            mean_ns=mean_us * 1e3,
            max_ns=_value(row, f"{before}IO lat us [max]", path, number) * 1e3,
            quantiles_ns={},
            size_bytes=mib * 2**20,
            seconds=seconds,
        ),
    )


def _is_given(row: dict[str, Any], name: str) -> bool:
    return str(row.get(name) if row.get(name) is not None else "").strip() != ""


def _value(row: dict[str, Any], name: str, path: Path, number: int) -> float:
    try:
        value = float(row[name])
    except KeyError:
        raise InputError(path, f"row {number}: field `{name}` is missing", _AGAIN) from None
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            path, f"row {number}: field `{name}` is {row[name]!r}, not a number", _AGAIN
        ) from None
    # Far above any count, rate and time, and the products of two are finite.
    if not 0 <= value < 1e100:
        raise InputError(
            path, f"row {number}: field `{name}` is {row[name]!r}, not a size of 0 or more", _AGAIN
        )
    return value
