"""Results of commands as JSON: what `--json` prints.

Standard output has the JSON alone. What else is printed, also by child processes, goes to standard error.
"""

import contextlib
import dataclasses
import io
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import polars as pl

#: What a command returns: its exit code, and its result; a command that printed its own lines has no result.
Outcome = tuple[int, object]

_STDOUT, _STDERR = 1, 2
#: Names of fields that cannot be the word that all other documents and tables have.
_NAMES = {"class_name": "class"}


@contextlib.contextmanager
def reserved() -> Iterator[TextIO]:
    """Standard output for JSON alone; until the end, everything else goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(_STDOUT)
    # In a test, sys.stdout may be a text in memory.
    stream = os.fdopen(os.dup(kept), "w", encoding="utf-8") if _is_file(sys.stdout) else sys.stdout
    os.dup2(_STDERR, _STDOUT)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield stream
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)
        if stream is not sys.stdout:
            stream.close()


def _is_file(stream: TextIO) -> bool:
    try:
        return stream.fileno() >= 0
    except (OSError, io.UnsupportedOperation):
        return False


def document(value: object) -> str:
    """A result as a JSON document."""
    return json.dumps(plain(value), indent=2, allow_nan=False)


def line(value: object) -> str:
    """One of several documents, or one that a program waits for: on one line."""
    return json.dumps(plain(value), allow_nan=False)


def plain(value: Any) -> Any:
    """A value in the types of JSON. Numbers that are not finite are null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case np.generic():
            return plain(value.item())
        case Path():
            return str(value)
        case pl.DataFrame():
            return plain(value.to_dicts())
        case Mapping():
            return {_NAMES.get(name, str(name)): plain(part) for name, part in value.items()}
        case _:
            return [plain(part) for part in value]


def written(path: Path) -> dict[str, object]:
    """A written file in a result."""
    return {"path": str(path), "size_bytes": path.stat().st_size}
