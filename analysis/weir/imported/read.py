"""Files of other programs as outcomes: which format a file has, and which files are one run."""

import re
from collections.abc import Sequence
from pathlib import Path

from weir.errors import InputError
from weir.imported import fio
from weir.imported.outcome import Outcome

#: What a folder is searched for; other files in it are left out.
_IN_FOLDERS = ("*.json", "*.json+")
_KNOWN = "JSON or JSON+ of fio"


def outcomes(paths: Sequence[Path], measure: str | None = None) -> list[Outcome]:
    """Reads files of one cell, each a repetition.

    Args:
        paths: files, or folders with JSON of fio at any depth (cbt, kdevops, isol-bench).
        measure: the response time to take, a name of `outcome.MEASURES`.

    Raises:
        InputError: a file is of no known format, damaged, or has no such response time.
    """
    return [_read(path, measure) for path in _files(paths)]


def _files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted({file for ending in _IN_FOLDERS for file in path.rglob(ending) if file.is_file()})
        inside = [file for file in inside if fio.is_fio(_head(file))]
        if not inside:
            raise InputError(path, "has no JSON of fio", "name the files")
        found += inside
    return found


def _read(path: Path, measure: str | None) -> Outcome:
    head = _head(path)
    if fio.is_fio(head):
        return fio.read(path, measure)
    if re.match(r"\s*\[(global|[\w-]+)\]\s*$", head.split("\n", 1)[0]):
        raise InputError(path, "is a job file of fio, not a result", f"weir import fio-job {path}")
    raise InputError(path, "is of no format that weir imports", f"give {_KNOWN}")


def _head(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(65536).decode("utf-8", errors="replace")
    except FileNotFoundError:
        raise InputError(path, "there is no such file", "check the name") from None
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})", "check its permissions") from error
