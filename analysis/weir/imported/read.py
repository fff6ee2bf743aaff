"""Files of other programs as outcomes: which format a file has, and which files are one run."""

import re
from collections.abc import Sequence
from pathlib import Path

from weir.errors import InputError
from weir.imported import elbencho, fio, recorded
from weir.imported.outcome import Outcome

#: What a folder is searched for; other files in it are left out.
_IN_FOLDERS = ("*.json", "*.json+")
_KNOWN = (
    "JSON, JSON+ or latency logs of fio (NAME_lat.N.log), CSV or JSON of elbencho, or text of blkparse, "
    "biosnoop or biosnoop.bt"
)
#: A line of blkparse: device, CPU, number, seconds, process, action, operation.
_BLKPARSE = re.compile(r"\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d+\s+\d+\s+[A-Zm]\s")


def outcomes(paths: Sequence[Path], measure: str | None = None) -> list[Outcome]:
    """Reads files of one cell, each a repetition; latency logs of one call of fio are one.

    Args:
        paths: files, or folders with JSON of fio at any depth (cbt, kdevops, isol-bench).
        measure: the response time to take, a name of `outcome.MEASURES`.

    Raises:
        InputError: a file is of no known format, damaged, or has no such response time.
    """
    found: list[Outcome] = []
    logs: dict[Path, list[Path]] = {}
    for path in _files(paths):
        if named := recorded.LOG.fullmatch(path.name):
            _head(path)
            logs.setdefault(path.with_name(f"{named['prefix']}_{named['measure']}"), []).append(path)
        else:
            found.append(_read(path, measure))
    found += [recorded.fio_logs(of_call) for of_call in logs.values()]
    for one in found:
        if measure not in (None, one.measure):
            problem = f"has response times of `{one.measure}` only, --latency is {measure}"
            raise InputError(one.files[0], problem, f"give files with `{measure}`, or leave --latency out")
    return found


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
    if recorded.OTHER_LOG.fullmatch(path.name):
        remedy = "write_lat_log of fio writes NAME_lat.N.log: give these"
        raise InputError(path, "is a log of fio without response times of requests", remedy)
    if elbencho.is_elbencho(head):
        return elbencho.read(path)
    for line in head.splitlines()[:16]:
        if " ".join(line.split()) == recorded.BPFTRACE_HEADER:
            return recorded.bpftrace(path)
        if line.startswith("TIME(s)"):
            return recorded.block_requests(path, "biosnoop")
        if _BLKPARSE.match(line):
            return recorded.block_requests(path, "blkparse")
    if re.match(r"\s*\[(global|[\w-]+)\]\s*$", head.split("\n", 1)[0]):
        raise InputError(
            path,
            "is a job file of fio, not a result",
            f"run it: fio --output-format=json+ --output=RESULT.json {path}",
        )
    raise InputError(path, "is of no format that weir imports", f"give {_KNOWN}")


def _head(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(65536).decode("utf-8", errors="replace")
    except FileNotFoundError:
        raise InputError(path, "there is no such file", "check the name") from None
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})", "check its permissions") from error
