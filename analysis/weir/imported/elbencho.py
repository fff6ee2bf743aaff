"""Results of elbencho: the table of `--csvfile`, and the objects of `--jsonfile`, one a line.

The fields are those of elbencho 3.1-10, whose files `analysis/tests/test_imported.py` reads, and of tables of
3.1-1. Each row or object is a phase: WRITE, READ and so on. Phases of one file follow each other; each is a
class, and one that mixes is two. elbencho gives the shortest, mean and longest latency of a block. JSON with
`--lathisto` has a histogram besides, with four bins in each power of two; the table never has.
"""

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.derive import QUANTILES
from weir.errors import InputError
from weir.imported import text
from weir.imported.outcome import ClassOutcome, Histogram, Outcome, figures

#: Bins in each power of two (`LATHISTO_BUCKETFRACTION`), and the width of one relative to its lower end.
_BINS = 4
BIN_WIDTH = 2 ** (1 / _BINS) - 1
#: Most requests of a bin.
_MOST_REQUESTS = 1 << 53
_MARK = "IO lat us [avg]"
_OPERATION = "operation"
_TIME = "time ms [last]"
_READ = "rwmix read "
#: What is shown of the call, by the names of the table, and those of JSON.
_SAID = {
    "block size": "block_size",
    "file size": "file_size",
    "direct IO": "direct_io",
    "random": "random_offsets",
    "IO depth": "io_depth",
}
_SWITCHES = {"true": "1", "false": "0"}
_RANGE = re.compile(r"[0-9.]{1,20}-([0-9]{1,12}(?:\.[0-9])?)us")
_AGAIN = "run elbencho again with --lat and --csvfile or --jsonfile"


@dataclass(frozen=True)
class _Part:
    """The reads or the writes of a phase."""

    mean_us: float
    max_us: float
    rate_per_s: float
    size_bytes: float
    seconds: float
    histogram: Histogram | None = None


@dataclass(frozen=True)
class _Phase:
    """One phase, with what its row or object says of the call."""

    operation: str
    time_ms: float
    version: str
    threads: str
    said: dict[str, str]
    own: _Part | None
    mixed_read: _Part | None


def is_elbencho(head: str) -> bool:
    """Whether a text has the fields of elbencho's results."""
    return (_MARK in head and _OPERATION in head) or ('"phase_type"' in head and '"last_done"' in head)


def read(path: Path) -> Outcome:
    """Reads the phases of one call of elbencho.

    Raises:
        InputError: a row has no such fields, or a phase comes twice: each call is a repetition of its own.
    """
    content = text.read(path)
    is_json = content.startswith("{")
    phases = list(_of_json(path, content) if is_json else _of_csv(path, content))
    classes: list[ClassOutcome] = []
    for number, phase in enumerate(phases, 1):
        # Making folders and dropping caches have no block latency.
        for ending, part in (("", phase.own), ("-rwmix-read", phase.mixed_read)):
            if part is None:
                continue
            name = phase.operation + ending
            if name in [one.name for one in classes]:
                problem = f"row {number}: phase `{name}` comes twice"
                raise InputError(
                    path, problem, "elbencho appends to its files: give each call a file of its own"
                )
            classes.append(_class(name, phase, part))
    if not classes:
        raise InputError(path, "no phase has a latency of blocks", _AGAIN)
    version = next((phase.version for phase in phases if phase.version), "")
    measured_ms = max(phase.time_ms for phase in phases if phase.own or phase.mixed_read)
    unknown = ["phases follow each other: they did not share the storage"]
    if without := [one.name for one in classes if one.histogram is None]:
        unknown.insert(
            0,
            f"class {', '.join(without)}: no percentile, only mean and longest latency of a block "
            "(elbencho with --lathisto --jsonfile has a histogram)",
        )
    return Outcome(
        files=(path,),
        program=f"elbencho {version}".strip(),
        form="elbencho JSON" if is_json else "elbencho CSV",
        measure="operation",
        classes=tuple(classes),
        duration_s=max(measured_ms / 1e3, 1e-3),
        unknown=tuple(unknown),
    )


def _class(name: str, phase: _Phase, part: _Part) -> ClassOutcome:
    histogram = part.histogram
    return ClassOutcome(
        name=name,
        workload=", ".join(f"{key} {value}" for key, value in phase.said.items()) or "unknown",
        clients=int(phase.threads) if re.fullmatch("[0-9]{1,9}", phase.threads) else 0,
        engine="elbencho",
        figures=figures(
            # Without a histogram elbencho gives rates: the number is rounded.
            requests=histogram.n if histogram else round(part.rate_per_s * part.seconds),
            mean_ns=part.mean_us * 1e3,
            max_ns=part.max_us * 1e3,
            quantiles_ns={key: histogram.quantile_ns(q) for key, q in QUANTILES.items()} if histogram else {},
            size_bytes=part.size_bytes,
            seconds=part.seconds,
        ),
        histogram=histogram,
    )


# ---- the table


def _of_csv(path: Path, content: str) -> Iterator[_Phase]:
    try:
        rows = list(csv.DictReader(io.StringIO(content)))
    except csv.Error as error:
        raise InputError(path, f"is not whole CSV ({error})", _AGAIN) from error
    for number, row in enumerate(rows, 1):
        if None in row or None in row.values():
            problem = f"row {number} has another number of cells than the header"
            raise InputError(path, problem, "elbencho of two versions appended to it? give each call a file")
        own, mixed = (_part_of_row(row, before, path, number) for before in ("", _READ))
        time_ms = _value(row, _TIME, path, number) if own or mixed else 0.0
        counts = [row[key] for key in ("threads", "hosts") if key in row]
        yield _Phase(
            operation=str(row.get(_OPERATION) or "").lower(),
            time_ms=time_ms,
            version=row.get("version") or "",
            threads=next((count for count in counts if count), ""),
            said={key: row[key] for key in _SAID if (row.get(key) or "").strip()},
            own=own,
            mixed_read=mixed,
        )


def _part_of_row(row: dict[str, str], before: str, path: Path, number: int) -> _Part | None:
    if not (row.get(before + _MARK) or "").strip():
        return None
    of = {
        key: _value(row, before + name, path, number)
        for key, name in (
            ("mean_us", _MARK),
            ("max_us", "IO lat us [max]"),
            ("rate_per_s", "IOPS [last]"),
            ("size_bytes", "MiB [last]"),
        )
    }
    return _Part(
        **of | {"size_bytes": of["size_bytes"] * 2**20}, seconds=_value(row, _TIME, path, number) / 1e3
    )


# ---- JSON


def _of_json(path: Path, content: str) -> Iterator[_Phase]:
    for number, line in enumerate(filter(str.strip, content.splitlines()), 1):
        try:
            row, _ = text.json_object(line.strip())
        except ValueError as error:
            raise InputError(path, f"line {number} is not JSON ({error})", _AGAIN) from error
        if not isinstance(row, dict):
            raise InputError(path, f"line {number} is no object", _AGAIN)
        config = _object(row, "config")
        own, mixed = (_part_of_object(row, within, path, number) for within in ((), ("rwmix_read",)))
        is_measured = own or mixed
        said = {key: str(config[name]) for key, name in _SAID.items() if name in config}
        yield _Phase(
            operation=str(row.get("phase_type") or "").lower(),
            time_ms=_value(_object(row, "last_done"), "elapsed_time_ms", path, number)
            if is_measured
            else 0.0,
            version=str(config.get("version") or ""),
            threads=str(config.get("threads") or ""),
            said={key: _SWITCHES.get(value, value) for key, value in said.items()},
            own=own,
            mixed_read=mixed,
        )


def _part_of_object(row: dict[str, Any], within: tuple[str, ...], path: Path, number: int) -> _Part | None:
    last = _object(row, "last_done")
    latency = _object(last, "latency", "IO", *within)
    if "avg_us" not in latency:
        return None
    done = _object(last, *within)
    rate_per_s, per_s, size_bytes = (
        _value(done, name, path, number) for name in ("iops", "bytes/s", "bytes")
    )
    time_ms = _value(last, "elapsed_time_ms", path, number)
    max_us = _value(latency, "max_us", path, number)
    buckets = _object(last, "latency", "IO", "histogram", *within).get("buckets")
    histogram = None
    if buckets:
        histogram = _histogram(buckets, (_value(latency, "min_us", path, number), max_us), path, number)
    return _Part(
        mean_us=_value(latency, "avg_us", path, number),
        max_us=max_us,
        rate_per_s=rate_per_s,
        size_bytes=size_bytes,
        # The rates are of the exact time; the time itself is cut to whole ms.
        seconds=size_bytes / per_s if size_bytes and per_s >= 1 else time_ms / 1e3,
        histogram=histogram,
    )


def _histogram(buckets: Any, ends_us: tuple[float, float], path: Path, number: int) -> Histogram:
    """Counts by the middle of a bin. elbencho prints the ends of one, rounded; its times are whole us."""
    counts: dict[float, int] = {}
    low_us, high_us = ends_us
    try:
        for bucket in buckets:
            found = _RANGE.fullmatch(bucket["range"])
            count = int(bucket["count"])
            if found is None or not 0 <= count < _MOST_REQUESTS:
                raise ValueError(f"{count} requests in {bucket['range']!r}")
            place = round(_BINS * math.log2(float(found[1])))
            middle_us = (2 ** ((place - 1) / _BINS) * (place > 1) + 2 ** (place / _BINS)) / 2
            value_ns = min(max(middle_us, low_us), high_us) * 1e3
            counts[value_ns] = counts.get(value_ns, 0) + count
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        problem = f"row {number}: field `histogram` holds no counts ({error})"
        raise InputError(path, problem[:200], _AGAIN) from error
    if not any(counts.values()):
        raise InputError(path, f"row {number}: field `histogram` holds no counts", _AGAIN)
    return Histogram.of(counts, BIN_WIDTH)


def _object(of: dict[str, Any], *names: str) -> dict[str, Any]:
    """An object within others; empty if it is absent or something else."""
    for name in names:
        inner = of.get(name)
        of = inner if isinstance(inner, dict) else {}
    return of


def _value(row: dict[str, Any], name: str, path: Path, number: int) -> float:
    try:
        value = float(row[name])
    except KeyError:
        raise InputError(path, f"row {number}: field `{name}` is missing", _AGAIN) from None
    except (TypeError, ValueError, OverflowError):
        problem = f"row {number}: field `{name}` is {str(row[name])[:60]!r}, not a number"
        raise InputError(path, problem, _AGAIN) from None
    # Far above any count, rate and time, and the products of two are finite.
    if not 0 <= value < 1e100:
        problem = f"row {number}: field `{name}` is {str(row[name])[:60]!r}, not a size of 0 or more"
        raise InputError(path, problem, _AGAIN)
    return value
